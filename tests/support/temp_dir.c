/* SPDX-License-Identifier: BSD-3-Clause */
#include "temp_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TEXT = 1 << 20, PATH = 1024 };

char temp_dir[] = "/tmp/mpix_sparse_XXXXXX";

int temp_dir_make(void **state)
{
    (void)state;
    return mkdtemp(temp_dir) == NULL ? -1 : 0;
}

int temp_dir_remove(void **state)
{
    (void)state;
    return rmdir(temp_dir);
}

const char *temp_dir_read(const char *name)
{
    static char text[TEXT];
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", temp_dir, name);
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
