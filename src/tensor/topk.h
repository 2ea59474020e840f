/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_TENSOR_TOPK_H
#define SAR_TENSOR_TOPK_H

#include "base/arena.h"
#include "tensor/dgc.h"

/** A selection of elements that are not zero and reach a magnitude. Where there are more than its capacity it
 * has the largest of them, and of equal ones those with lower indices. */
struct sar_topk {
    struct sar_run run; /**< the elements selected, once it is closed */
    uint64_t least;     /**< magnitude that it takes from here on */
    size_t capacity;    /**< most elements */
    struct sar_shape shape;
    size_t limit;         /**< candidates from which on some have to leave */
    uint64_t *magnitudes; /**< room for those of all candidates */
};

/** Take memory for one: about 2 * capacity elements with their magnitudes. */
enum sar_status sar_topk_open(const struct sar_shape *shape, size_t capacity, struct sar_arena *arena,
                              struct sar_topk *topk);

/** Advance all values, see dgc.h, and select, in one pass over them.
 * @param least  the magnitude, see magnitude.h */
void sar_topk_run(struct sar_topk *topk, const struct sar_dgc *of, uint64_t least);

#endif
