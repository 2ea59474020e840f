/* SPDX-License-Identifier: BSD-3-Clause */
/* Input for unit tests: reproducible random numbers, index sets, vectors in memory of exactly their size, and
 * a reference reduction. */

#ifndef SAR_TESTS_SUPPORT_GENERATE_H
#define SAR_TESTS_SUPPORT_GENERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "array_length.h"
#include "vector/spvec.h"
#include "wire/message.h"

/** A generator of random numbers. Equal states give equal numbers. */
struct rng {
    uint64_t state;
};

uint64_t rng_next(struct rng *rng);
uint64_t rng_below(struct rng *rng, uint64_t limit);

/** Random number in [0, 1). */
double rng_unit(struct rng *rng);

/** A distribution of indices. */
struct pattern {
    const char *name;
    /** Write at most `room` ascending indices below `span`; returns their number. */
    size_t (*choose)(const struct pattern *pattern, uint64_t span, size_t room, struct rng *rng,
                     uint64_t *index);
    double density;
};

enum { PATTERNS = 11 };
extern const struct pattern patterns[PATTERNS];

/** Classes of random values. */
enum values {
    VALUES_INEXACT, /**< sums of floats depend on their order; integers wrap around */
    VALUES_SPECIAL, /**< zeros of both signs, infinities, NaNs, denormals, extremes; explicit zeros */
    VALUES_EXACT    /**< small whole numbers */
};

/** Random values of a basic type. */
void values_fill(enum sar_dtype base, enum values kind, void *out, size_t n, struct rng *rng);

/** Bytes of a basic type. */
size_t base_size(enum sar_dtype base);

/** Set values to 0 or 1 if the op is logical, as its results are. */
void values_normalize(enum sar_dtype base, enum sar_op op, void *values, size_t n);

/** Store the lowest `size` bytes of a number: 1, 2, 4 or 8. */
void uint_store(uint64_t value, size_t size, void *out);

/** A vec_desc in which absent elements are not zeros, with the narrowest index type that fits the count. */
struct sar_vec_desc vec_desc_make(enum sar_dtype base, enum sar_op op, uint64_t count, size_t row);

/** Allocate memory of exactly this size; never returns NULL. The sanitizers detect accesses outside of it. */
void *exact_alloc(size_t bytes);

/** Make a vector with these indices and random normalized values, in memory of exactly its size. */
struct sar_spvec spvec_make(const struct sar_vec_desc *shape, const uint64_t *index, size_t nnz,
                            enum values kind, struct rng *rng);

/** Make an uninitialised vector of capacity nnz in memory of exactly its size. */
struct sar_spvec spvec_alloc(const struct sar_vec_desc *shape, size_t nnz);

void spvec_free(struct sar_spvec *run);

/** True if indices and values are equal bit for bit, except that any two NaNs are equal. */
bool spvec_equal(const struct sar_vec_desc *shape, const struct sar_spvec *a, const struct sar_spvec *b);

/** True if indices ascend strictly and are below span. */
bool spvec_ascends(const struct sar_spvec *run, unsigned index_size, uint64_t span);

/** Reference reduction of one basic value. */
void reference_fold(enum sar_dtype base, enum sar_op op, void *sum, const void *value);

/** Reference reduction of n vectors. Takes the smallest index of all vectors, and reduces its elements in the
 * order of the vectors. Sums and products of 16-bit floats are computed in fp32 and rounded once. */
struct sar_spvec reference_reduce(const struct sar_vec_desc *shape, const struct sar_spvec runs[], size_t n);

/** Recompute a header's checksum. */
void header_set_check(struct sar_msg_header *header);

#endif
