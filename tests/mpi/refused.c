/* SPDX-License-Identifier: BSD-3-Clause */
#include "refused.h"

#include <stdlib.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *memory, size_t bytes);

long refused_at = -1, refused_asked;

bool refused_next(void)
{
    return refused_asked++ == refused_at;
}

void *__wrap_malloc(size_t bytes)
{
    return refused_next() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return refused_next() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return refused_next() ? NULL : __real_realloc(memory, bytes);
}
