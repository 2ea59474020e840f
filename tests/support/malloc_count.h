/* SPDX-License-Identifier: BSD-3-Clause */
/* Count of bytes allocated with malloc, calloc and realloc, and not freed.
 *
 * Link with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free. */
#ifndef SAR_TESTS_SUPPORT_MALLOC_COUNT_H
#define SAR_TESTS_SUPPORT_MALLOC_COUNT_H

#include <stdint.h>

/** Restart the measurement of the peak. Returns the bytes now allocated. The number can be negative, since
 * memory from other allocators is freed here too. */
int64_t malloc_count_begin(void);

/** Peak of allocated bytes since malloc_count_begin. */
int64_t malloc_count_peak(void);

/** Count memory of another allocator. */
void malloc_count_add(int64_t bytes);

#endif
