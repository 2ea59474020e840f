/* SPDX-License-Identifier: BSD-3-Clause */
/* Differences of two versions of a dense vector, by bits: the numbers that changed, and their new values. */

#ifndef SAR_VECTOR_DELTA_H
#define SAR_VECTOR_DELTA_H

#include "vector/spvec.h"

/** Two versions of a vector. Their units are numbers of 1, 2, 4 or 8 bytes. */
struct sar_delta {
    const void *before, *after;
    unsigned unit; /**< bytes of a unit */
};

/** Estimates the changed units among n from about `sample` units, in groups at hashed positions; exact if the
 * sample contains all units. */
uint64_t sar_delta_estimate(const struct sar_delta *delta, uint64_t n, uint64_t sample);

/** Lists the changed units of [from, from + n), with 4-byte indices that count from `from`, and their new
 * values. Runs at memory bandwidth.
 * @param n    at most 2^31
 * @param vec  its arrays have room for n elements; vec->nnz is set */
void sar_delta_scan(const struct sar_delta *delta, uint64_t from, size_t n, struct sar_spvec *vec);

/** Returns a hash of the indices and values of a vec with 4-byte indices. */
uint64_t sar_delta_hash(const struct sar_spvec *vec, unsigned unit);

/** Returns the sar_delta_hash of the units that `buf` has at the indices of a vec. */
uint64_t sar_delta_hash_at(const struct sar_spvec *vec, unsigned unit, const void *buf);

/** Writes the values of a vec with 4-byte indices to buf, at its indices. */
void sar_delta_apply(const struct sar_spvec *vec, unsigned unit, void *buf);

#endif
