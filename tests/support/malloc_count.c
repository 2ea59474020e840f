/* SPDX-License-Identifier: BSD-3-Clause */
#include "malloc_count.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *memory, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *memory, size_t bytes);
void __wrap_free(void *memory);

static _Atomic int64_t held, most;

int64_t malloc_count_begin(void)
{
    most = held;
    return held;
}

int64_t malloc_count_peak(void)
{
    return most;
}

void malloc_count_add(int64_t bytes)
{
    int64_t now = atomic_fetch_add(&held, bytes) + bytes, before = most;
    while (now > before && !atomic_compare_exchange_weak(&most, &before, now))
        continue;
}

static void *hold(void *memory)
{
    malloc_count_add((int64_t)malloc_usable_size(memory));
    return memory;
}

void *__wrap_malloc(size_t bytes)
{
    return hold(__real_malloc(bytes));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return hold(__real_calloc(n, size));
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    malloc_count_add(-(int64_t)malloc_usable_size(memory));
    return hold(__real_realloc(memory, bytes));
}

void __wrap_free(void *memory)
{
    malloc_count_add(-(int64_t)malloc_usable_size(memory));
    __real_free(memory);
}
