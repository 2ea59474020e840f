/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums, or what else an op makes, of a stretch of an outcome, into which runs are folded one after the
 * other. */

#ifndef SAR_TENSOR_SUMS_H
#define SAR_TENSOR_SUMS_H

#include "base/arena.h"
#include "tensor/shape.h"

/** Elements are told by their places. */
struct sar_sums {
    const struct sar_shape *shape;
    size_t runs;                       /**< that are folded */
    const struct sar_kernels *kernels; /**< that make the sums */
    size_t most;                       /**< elements of a stretch */
    void *wide;         /**< floats that are rounded in the end; NULL where sums are made in the outcome */
    uint32_t *hits;     /**< runs that reached an element; NULL unless absent ones are zeros */
    uint8_t *reached;   /**< by none, one or several; NULL unless elements are long */
    unsigned char *out; /**< the element of place 0 */
    unsigned char *at;  /**< the sum of place 0 */
};

/** Take memory for the sums of so many runs, over places below `places`. */
enum sar_status sar_sums_open(const struct sar_shape *shape, size_t runs, size_t places,
                              struct sar_arena *arena, struct sar_sums *sums);

/** Let n elements from place `from` on, which is 0 with `wide`, be reached by none. The element of place 0 is
 * at `out`. */
void sar_sums_begin(struct sar_sums *sums, void *out, size_t from, size_t n);

/** Fold n elements of a run in.
 * @param last  the place of the run's element before them, UINT32_MAX for none; then of the last of them */
void sar_sums_fold(const struct sar_sums *sums, const uint32_t *places, const void *value, size_t n,
                   uint32_t *last);

/** Write the n elements from place `from` on, which all runs have been folded into. */
void sar_sums_end(const struct sar_sums *sums, size_t from, size_t n);

#endif
