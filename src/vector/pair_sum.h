/* SPDX-License-Identifier: BSD-3-Clause */
/* Sum of two sorted vecs by a merge in vectors of AVX-512. */

#ifndef SAR_VECTOR_PAIR_SUM_H
#define SAR_VECTOR_PAIR_SUM_H

#include "vector/spvec.h"

/** Two vecs, their merged keys, and how far they are merged and written. sar_pair_sum_open and
 * sar_pair_sum_count set all fields; the arena owns the keys. */
struct sar_pair_sum {
    const struct sar_vec_desc *desc;
    const struct sar_spvec *vecs;
    uint32_t base;     /**< least index */
    size_t merged[2];  /**< elements of each vec whose keys are read */
    size_t written[2]; /**< elements of each vec that are written */
    size_t distinct;   /**< distinct indices among the merged keys */
    uint32_t high[16]; /**< keys that are read and not listed; keys after the last are UINT32_MAX */
    uint32_t last;     /**< last listed key */
    uint32_t *keys;    /**< listed keys; the one before them is keys[-1] */
    bool starts;       /**< no key is read */
    bool repeats;      /**< a vec has an index twice */
};

/** True if n vecs whose indices lie in a range of `span` indices can be summed so: two of them with plain
 * sums (vector/accumulator.h), on a processor that has AVX-512. */
bool sar_pair_sum_works(const struct sar_vec_desc *desc, size_t n, unsigned index_size, uint64_t span);

/** Sums two vecs. Returns false, with any contents of out, if a vec repeats an index: another
 * reduction has to be used.
 * @param out  arrays with capacity for out->nnz elements, as sar_reduce needs; nnz is set */
bool sar_pair_sum(const struct sar_vec_desc *desc, const struct sar_spvec vecs[2], struct sar_spvec *out);

/** Merges the keys of two vecs into memory from the arena, and sets p->distinct and p->repeats. */
enum sar_status sar_pair_sum_count(const struct sar_vec_desc *desc, const struct sar_spvec vecs[2],
                                   struct sar_arena *arena, struct sar_pair_sum *p);

/** Writes the sum of counted vecs without repeats, p->distinct elements. */
void sar_pair_sum_write(struct sar_pair_sum *p, const struct sar_spvec *out);

#endif
