/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocations that fail: of malloc and its kin, and of what else asks here.
 *
 * Link with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc. */
#ifndef SAR_TESTS_SUPPORT_MALLOC_FAIL_H
#define SAR_TESTS_SUPPORT_MALLOC_FAIL_H

#include <stdbool.h>

/** Which allocation is to fail, from 0 on; -1 for none. */
extern long malloc_fail_at;

/** How many there have been since this was last set to 0. */
extern long malloc_fail_calls;

/** Count an allocation; whether it is to fail. */
bool malloc_fail_next(void);

#endif
