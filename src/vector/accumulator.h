/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums, or results of another op, for a range of the reduced vector; vecs are added one after the other.
 * sar_reduce uses them. */

#ifndef SAR_VECTOR_ACCUMULATOR_H
#define SAR_VECTOR_ACCUMULATOR_H

#include "vector/tile.h"

/** Sums of n_vecs vecs; a position names an element. sar_accumulator_open sets all but out and values, which
 * sar_accumulator_begin sets. */
struct sar_accumulator {
    const struct sar_vec_desc *desc;
    size_t n_vecs;                        /**< vecs that are added */
    const struct sar_op_kernels *kernels; /**< kernels that compute the sums */
    size_t capacity;                      /**< most elements of a range */
    void *wide;         /**< sums as floats, rounded at the end; NULL if sums are computed in the result */
    uint32_t *hits;     /**< vecs that have an element at a position; NULL unless absent elements are zeros */
    uint8_t *seen;      /**< none, one or several values at a position; NULL unless elements are large */
    unsigned char *out; /**< result at position 0 */
    unsigned char *values; /**< sum at position 0: in out, or in wide */
};

/** Allocates memory from the arena for the sums of n_vecs vecs at positions below `positions`. */
enum sar_status sar_accumulator_open(const struct sar_vec_desc *desc, size_t n_vecs, size_t positions,
                                     struct sar_arena *arena, struct sar_accumulator *acc);

/** Begins the range of n elements from position `from`, which is 0 if acc->wide is set; n <= acc->capacity.
 * The result for position 0 is at `out`. */
void sar_accumulator_begin(struct sar_accumulator *acc, void *out, size_t from, size_t n);

/** Adds n elements of a vec.
 * @param last  position of the vec's element before these, UINT32_MAX for none; set to the last of these */
void sar_accumulator_add(const struct sar_accumulator *acc, const uint32_t *positions, const void *value,
                         size_t n, uint32_t *last);

/** Finishes the n elements from position `from` after all vecs are added: adds absent zeros, and rounds. */
void sar_accumulator_finish(const struct sar_accumulator *acc, size_t from, size_t n);

/** True for sums of scalars of 4 or 8 bytes with indices of 4 bytes, in which absent elements are absent.
 * @param index_size  bytes of an index of the result */
bool sar_accumulator_sums_are_plain(const struct sar_vec_desc *desc, unsigned index_size);

#endif
