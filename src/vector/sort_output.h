/* SPDX-License-Identifier: BSD-3-Clause */
/* The result of a sort (sort.c). Items are 8 bytes in ascending order of their upper half: an index, or the
 * half of an index. */

#ifndef SAR_VECTOR_SORT_OUTPUT_H
#define SAR_VECTOR_SORT_OUTPUT_H

#include "vector/spvec.h"

/** An element that does not fit into an item of 8 bytes. */
struct sar_sort_entry {
    uint64_t index, payload; /**< the payload is the value, or its position in the caller's array */
};

/** The unrounded sum of the result's last element, for types of 16 bits: only the last addition may round. */
struct sar_wide_sum {
    size_t nnz; /**< elements of the result when the sum was begun; 0 for no sum */
    void *sums; /**< a row of floats */
};

/** The result so far. */
struct sar_sorted {
    struct sar_spvec vec;
    uint64_t last; /**< index of the last element */
    struct sar_wide_sum *wide;
};

/** Appends n items: an index less base above a payload of 4 bytes.
 * @param value  the caller's values; NULL if the payloads are the values */
void sar_sorted_append_items(const struct sar_vec_desc *desc, const void *value, const uint64_t *item,
                             size_t n, uint64_t base, struct sar_sorted *sorted);

/** As sar_sorted_append_items, for items with the number of an entry in their lower half. */
void sar_sorted_append_entries(const struct sar_vec_desc *desc, const void *value, const uint64_t *item,
                               size_t n, const struct sar_sort_entry *entries, struct sar_sorted *sorted);

#endif
