/* SPDX-License-Identifier: BSD-3-Clause */
/* Distributions of test vectors: positions of each rank's elements, and their values. */
#ifndef SAR_TESTS_SUPPORT_PATTERNS_H
#define SAR_TESTS_SUPPORT_PATTERNS_H

#include "tensors.h"

struct pattern {
    const char *name;
    void (*add)(struct tensor *tensor, uint64_t key, double density);
    double density; /**< for random patterns */
    bool floats_only;
    bool sums_only;  /**< MPI does not define the result for other ops */
    bool exact_bits; /**< equality with MPI does not imply equal bits on all ranks */
};

/** All patterns; the last entry has no name. */
extern const struct pattern patterns[];

/** Find a pattern by name; aborts if there is none. */
const struct pattern *pattern_find(const char *name);

/** Draw this rank's elements. `seed` is equal on all ranks. */
void tensor_draw(const struct pattern *pattern, const struct tensor_desc *desc, uint64_t seed,
                 struct tensor *tensor);

/** Write numbers whose reduction over all ranks is exact in any order, and never zero: small multiples of 1/4
 * for float sums, powers of two for float products, any bits for integers. The sign bit is clear for MAX and
 * MIN of unsigned numbers, which MPICH 4.0.2 compares as signed. */
void put_numbers(const struct tensor_desc *desc, uint64_t key, void *out);

#endif
