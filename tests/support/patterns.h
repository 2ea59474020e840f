/* SPDX-License-Identifier: BSD-3-Clause */
/* Vectors of many kinds: where the elements of each rank lie, and what they hold. */
#ifndef SAR_TESTS_SUPPORT_PATTERNS_H
#define SAR_TESTS_SUPPORT_PATTERNS_H

#include "tensors.h"

struct pattern {
    const char *name;
    void (*add)(struct tensor *tensor, uint64_t key, double density);
    double density; /**< for the random ones */
    bool floats_only;
    bool sums_only;  /**< MPI leaves open what the other ops make of it */
    bool exact_bits; /**< has values for which equality with MPI does not mean equal bits on all ranks */
};

/** Ended by one without name. */
extern const struct pattern patterns[];

/** The one of this name, which there must be. */
const struct pattern *pattern_find(const char *name);

/** This rank's elements; `seed` is equal on all ranks. */
void tensor_draw(const struct pattern *pattern, const struct kind *kind, uint64_t seed,
                 struct tensor *tensor);

/** Numbers whose reduction over all our ranks is exact in any order: small whole quarters for float sums,
 * powers of two for float products, any bits for integers, without the sign bit where MPICH 4.0.2
 * mistakes unsigned numbers for signed ones (MAX and MIN). Never zero. */
void put_numbers(const struct kind *kind, uint64_t key, void *out);

#endif
