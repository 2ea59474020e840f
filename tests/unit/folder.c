/* SPDX-License-Identifier: BSD-3-Clause */
#include "folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TEXT = 1 << 20, PATH = 1024 };

char folder[] = "/tmp/mpix_sparse_XXXXXX";

int folder_make(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL ? -1 : 0;
}

int folder_remove(void **state)
{
    (void)state;
    return rmdir(folder);
}

const char *folder_take(const char *name)
{
    static char text[TEXT];
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        perror(path);
        abort();
    }
    size_t n = fread(text, 1, TEXT - 1, file);
    text[n] = '\0';
    fclose(file);
    unlink(path);
    return text;
}
