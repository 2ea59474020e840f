/* SPDX-License-Identifier: BSD-3-Clause */
/* Cards: a number of 32 bits above as many that go with it. */

#ifndef SAR_TENSOR_RADIX_H
#define SAR_TENSOR_RADIX_H

#include <stddef.h>
#include <stdint.h>

/** Sort fewer than 2^32 cards by their upper halves, of which only the lowest `length` bits are set; equal
 * ones stay in order. Returns the array that holds the outcome. */
uint64_t *sar_radix_sort(uint64_t *cards, uint64_t *spare, size_t n, unsigned length);

#endif
