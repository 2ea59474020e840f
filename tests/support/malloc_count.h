/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes that are taken from malloc and its kin and not given back.
 *
 * Link with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free. */
#ifndef SAR_TESTS_SUPPORT_MALLOC_COUNT_H
#define SAR_TESTS_SUPPORT_MALLOC_COUNT_H

#include <stdint.h>

/** Begin to look for the most that is held at a time; returns what is held now, which may be less than
 * nothing: what was made elsewhere is given back here, too. */
int64_t malloc_count_begin(void);

/** The most since then. */
int64_t malloc_count_peak(void);

/** Count other memory. */
void malloc_count_add(int64_t bytes);

#endif
