/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_TENSOR_DGC_H
#define SAR_TENSOR_DGC_H

#include "tensor/shape.h"

/** What elements are selected from: plain values, or those that a gradient makes of them. With one,
 *
 *     velocity = momentum * velocity + scale * gradient,    values = values + velocity
 *
 * where both outcomes are rounded to the type, after each multiplication and addition for floats of 32 and 64
 * bits, and once for those of 16, which are computed with as floats of 32. */
struct sar_dgc {
    enum sar_base base;
    uint64_t count;
    void *values;         /**< only read where there is no gradient */
    const void *gradient; /**< or NULL */
    void *velocity;
    double momentum, scale;
    bool masking; /**< whether all that is selected loses its velocity, and not only what is not finite */
};

/** Do so for n values. */
void sar_dgc_advance(const struct sar_dgc *of, size_t from, size_t n);

/** The magnitudes of n of the values, as they will be; each from a random place of one of n stretches of
 * equal length, so that of all values where n is their count. n <= of->count. */
void sar_dgc_sample(const struct sar_dgc *of, size_t n, uint32_t seed, uint64_t *magnitudes);

/** The magnitude from which on a value that is selected loses its velocity. */
uint64_t sar_dgc_masked(const struct sar_dgc *of);

/** Zero the values that are in a run, and the velocities that go with them. */
void sar_dgc_clear(const struct sar_dgc *of, const struct sar_shape *shape, const struct sar_run *run);

#endif
