/* SPDX-License-Identifier: BSD-3-Clause */
/* What the unit tests share: numbers that look random and are the same in every run, index sets, runs in
 * memory of exactly their size, and the obvious way to reduce. */

#ifndef SAR_TESTS_SUPPORT_GENERATE_H
#define SAR_TESTS_SUPPORT_GENERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "array_length.h"
#include "vector/spvec.h"
#include "wire/message.h"

/** A stream of numbers. Equal states give equal streams. */
struct rng {
    uint64_t state;
};

uint64_t rng_next(struct rng *rng);
uint64_t rng_below(struct rng *rng, uint64_t limit);

/** From 0 to 1, the latter excluded. */
double rng_unit(struct rng *rng);

/** A way to choose indices. */
struct pattern {
    const char *name;
    /** Write ascending indices below span, at most `room` of them; returns their number. */
    size_t (*choose)(const struct pattern *pattern, uint64_t span, size_t room, struct rng *rng,
                     uint64_t *index);
    double density;
};

enum { PATTERNS = 11 };
extern const struct pattern patterns[PATTERNS];

/** What values are like. */
enum values {
    VALUES_INEXACT, /**< sums of floats depend on their order; integers wrap around */
    VALUES_SPECIAL, /**< zeros of both signs, infinities, NaNs, denormals, extremes; explicit zeros */
    VALUES_EXACT    /**< small whole numbers */
};

/** Random values of a basic type. */
void values_fill(enum sar_dtype base, enum values kind, void *out, size_t n, struct rng *rng);

/** Bytes of a basic type. */
size_t base_size(enum sar_dtype base);

/** Make them 0 or 1 where the op is logical, as its outcomes are. */
void values_normalize(enum sar_dtype base, enum sar_op op, void *values, size_t n);

/** The lowest `size` bytes of a number, 1, 2, 4 or 8. */
void uint_store(uint64_t value, size_t size, void *out);

/** A shape in which absent elements are not zeros, with indices as narrow as the count allows. */
struct sar_vec_desc vec_desc_make(enum sar_dtype base, enum sar_op op, uint64_t count, size_t row);

/** malloc that neither fails nor returns NULL. The sanitizers see every byte before and behind. */
void *exact_alloc(size_t bytes);

/** A run with these indices and random values that are settled, in memory of exactly its size. */
struct sar_spvec spvec_make(const struct sar_vec_desc *shape, const uint64_t *index, size_t nnz,
                            enum values kind, struct rng *rng);

/** Such a run with room for nnz elements, uninitialised. */
struct sar_spvec spvec_alloc(const struct sar_vec_desc *shape, size_t nnz);

void spvec_free(struct sar_spvec *run);

/** Equal indices and values: in bits, but that any NaN equals any other. */
bool spvec_equal(const struct sar_vec_desc *shape, const struct sar_spvec *a, const struct sar_spvec *b);

/** Indices that ascend strictly below span. */
bool spvec_ascends(const struct sar_spvec *run, unsigned index_size, uint64_t span);

/** The obvious way to fold one basic value. */
void reference_fold(enum sar_dtype base, enum sar_op op, void *sum, const void *value);

/** The obvious way to reduce: the least index of all runs, then each run's elements of this index; sums and
 * products of 16 bits as floats, rounded in the end. */
struct sar_spvec reference_reduce(const struct sar_vec_desc *shape, const struct sar_spvec runs[], size_t n);

/** Make a header's check fit its other fields. */
void header_set_check(struct sar_msg_header *header);

#endif
