/* SPDX-License-Identifier: BSD-3-Clause */
/* Injection of allocation failures into malloc, calloc, realloc, and other allocators that call
 * malloc_fail_next.
 *
 * Link with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc. */
#ifndef SAR_TESTS_SUPPORT_MALLOC_FAIL_H
#define SAR_TESTS_SUPPORT_MALLOC_FAIL_H

#include <stdatomic.h>
#include <stdbool.h>

/** Number of the allocation that fails, from 0; -1 for none. */
extern long malloc_fail_at;

/** Allocations of all threads since the test last set this to 0. */
extern atomic_long malloc_fail_calls;

/** Count an allocation; returns true if it must fail. */
bool malloc_fail_next(void);

#endif
