/* SPDX-License-Identifier: BSD-3-Clause */
#include "malloc_fail.h"

#include <stdlib.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *memory, size_t bytes);

long malloc_fail_at = -1;
atomic_long malloc_fail_calls;

bool malloc_fail_next(void)
{
    return atomic_fetch_add(&malloc_fail_calls, 1) == malloc_fail_at;
}

void *__wrap_malloc(size_t bytes)
{
    return malloc_fail_next() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return malloc_fail_next() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return malloc_fail_next() ? NULL : __real_realloc(memory, bytes);
}
