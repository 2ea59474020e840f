/* SPDX-License-Identifier: BSD-3-Clause */
#include "file.h"

#include <errno.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Read all of a file into memory that grows; false on an error. */
static bool read_all(FILE *file, char **content, size_t *bytes)
{
    size_t room = 1 << 16;

    for (*bytes = 0;;) {
        char *larger = realloc(*content, (room *= 2) + 1);
        if (larger == NULL)
            return false;
        *content = larger;
        *bytes += fread(larger + *bytes, 1, room - *bytes, file);
        if (*bytes < room) {
            larger[*bytes] = '\0';
            return !ferror(file);
        }
    }
}

/* The whole file in fresh memory, or NULL with errno set. */
static char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *content = NULL;
    int error = 0;

    if (file == NULL)
        return NULL;
    if (!read_all(file, &content, bytes)) {
        error = errno;
        free(content);
        content = NULL;
    }
    fclose(file);
    errno = error;
    return content;
}

static void broadcast(char *content, size_t bytes)
{
    const size_t piece = 1 << 30;

    for (size_t at = 0; at < bytes; at += piece)
        MPI_Bcast(content + at, (int)(bytes - at < piece ? bytes - at : piece), MPI_BYTE, 0, MPI_COMM_WORLD);
}

char *perf_file_load(const char *path, size_t *bytes, const struct perf_world *world)
{
    char *content = NULL;
    long long length = -1;

    if (world->rank == 0) {
        content = read_file(path, bytes);
        if (content != NULL)
            length = (long long)*bytes;
        else
            fprintf(stderr, "mpix_sparse_perf: cannot read '%s': %s\n", path, strerror(errno));
    }
    MPI_Bcast(&length, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
    if (length < 0)
        return NULL;
    *bytes = (size_t)length;
    if (world->rank != 0)
        content = perf_alloc(*bytes + 1, 1);
    broadcast(content, *bytes);
    return content;
}
