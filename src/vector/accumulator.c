/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums are computed in the result, starting from the op's identity. Sums of 16 bits are computed as floats,
 * in memory that fits into a cache, and are rounded once after all vecs are added.
 *
 * Large elements (COPY_FIRST_MIN) skip the identity, which would be written and read again: the first value
 * at a position is copied to the result, and later values are added to the copy. */

#include "vector/accumulator.h"

#include <string.h>

enum {
    COPY_FIRST_MIN = 128, /* bytes from which on the first value at a position is copied */
    WIDE_BYTES = 16 << 10 /* bytes of the floats, but at least one element */
};

enum { NONE, ONE, SEVERAL }; /* values seen at a position */

enum sar_status sar_accumulator_open(const struct sar_vec_desc *desc, size_t n_vecs, size_t positions,
                                     struct sar_arena *arena, struct sar_accumulator *acc)
{
    void *hits = NULL, *seen = NULL;
    size_t wide = desc->row_len * sizeof(float), fit = wide < WIDE_BYTES ? WIDE_BYTES / wide : 1;
    *acc = (struct sar_accumulator){
        .desc = desc, .n_vecs = n_vecs, .kernels = desc->kernels, .capacity = SIZE_MAX
    };
    if (desc->kernels->wide != NULL) {
        positions = positions < fit ? positions : fit;
        acc->kernels = desc->kernels->wide;
        acc->capacity = positions > 0 ? positions : 1;
        SAR_TRY(sar_arena_alloc(arena, positions, wide, &acc->wide));
    }
    if (desc->element_size >= COPY_FIRST_MIN)
        SAR_TRY(sar_arena_alloc(arena, positions, sizeof *acc->seen, &seen));
    if (desc->absent_is_zero)
        SAR_TRY(sar_arena_alloc_zeroed(arena, positions, sizeof *acc->hits, &hits));
    acc->hits = hits;
    acc->seen = seen;
    return SAR_OK;
}

static unsigned char *sum_of(const struct sar_accumulator *acc, size_t position)
{
    return acc->values + position * acc->desc->row_len * acc->kernels->size;
}

void sar_accumulator_begin(struct sar_accumulator *acc, void *out, size_t from, size_t n)
{
    acc->out = out;
    acc->values = acc->wide != NULL ? acc->wide : out;
    if (acc->seen != NULL)
        memset(acc->seen + from, NONE, n * sizeof *acc->seen);
    else
        acc->kernels->fill_identity(sum_of(acc, from), n * acc->desc->row_len);
}

/* Count a vec once for each position, even if the vec repeats an index. */
static void count_hits(uint32_t *hits, const uint32_t *positions, size_t n, uint32_t *last)
{
    for (size_t i = 0; i < n; i++) {
        hits[positions[i]] += positions[i] != *last;
        *last = positions[i];
    }
}

/* Add a value to the sum at a position. `first` is the copy of the only value so far, if there is one. */
static void add_wide(const struct sar_accumulator *acc, uint32_t position, const void *first,
                     const void *value)
{
    size_t row = acc->desc->row_len;
    void *sum = sum_of(acc, position);
    if (acc->seen[position] == ONE) {
        acc->kernels->fill_identity(sum, row);
        acc->kernels->apply(sum, first, row);
    }
    acc->kernels->apply(sum, value, row);
}

static void add_large(const struct sar_accumulator *acc, const uint32_t *positions,
                      const unsigned char *value, size_t n)
{
    const struct sar_accumulator local = *acc; /* a local copy: stores to out cannot alias it */
    size_t bytes = local.desc->element_size, row = local.desc->row_len;
    for (size_t i = 0; i < n; i++, value += bytes) {
        uint32_t position = positions[i];
        unsigned char *out = local.out + position * bytes;
        if (local.seen[position] == NONE) {
            memcpy(out, value, bytes);
            local.seen[position] = ONE;
            continue;
        }
        if (local.wide != NULL)
            add_wide(acc, position, out, value);
        else
            local.kernels->apply(out, value, row);
        local.seen[position] = SEVERAL;
    }
}

void sar_accumulator_add(const struct sar_accumulator *acc, const uint32_t *positions, const void *value,
                         size_t n, uint32_t *last)
{
    if (acc->hits != NULL)
        count_hits(acc->hits, positions, n, last);
    if (acc->seen != NULL)
        add_large(acc, positions, value, n);
    else
        acc->kernels->apply_rows(acc->values, positions, value, n, acc->desc->row_len);
}

/* True if the result holds a copy and the sum is not in acc->values. */
static bool is_copied(const struct sar_accumulator *acc, size_t position)
{
    return acc->seen != NULL && acc->seen[position] == ONE;
}

/* Apply the op with a zero to elements that are absent from some vec. */
static void apply_absent(const struct sar_accumulator *acc, size_t from, size_t n)
{
    const struct sar_vec_desc *desc = acc->desc;
    for (size_t i = from; i < from + n; i++) {
        if (acc->hits[i] == acc->n_vecs)
            continue;
        if (is_copied(acc, i))
            desc->kernels->apply_zero(acc->out + i * desc->element_size, desc->row_len);
        else
            acc->kernels->apply_zero(sum_of(acc, i), desc->row_len);
    }
    memset(acc->hits + from, 0, n * sizeof *acc->hits);
}

static void round_sums(const struct sar_accumulator *acc, size_t n)
{
    const struct sar_vec_desc *desc = acc->desc;
    if (acc->seen == NULL)
        desc->kernels->round(acc->out, acc->wide, n * desc->row_len);
    for (size_t i = 0; acc->seen != NULL && i < n; i++)
        if (!is_copied(acc, i))
            desc->kernels->round(acc->out + i * desc->element_size, sum_of(acc, i), desc->row_len);
}

void sar_accumulator_finish(const struct sar_accumulator *acc, size_t from, size_t n)
{
    if (acc->hits != NULL)
        apply_absent(acc, from, n);
    if (acc->wide != NULL)
        round_sums(acc, n);
}

bool sar_accumulator_sums_are_plain(const struct sar_vec_desc *desc, unsigned index_size)
{
    bool narrow = desc->index_size == sizeof(uint32_t) && index_size == sizeof(uint32_t);
    return desc->op == SAR_SUM && desc->row_len == 1 && narrow && !desc->absent_is_zero &&
           desc->kernels->wide == NULL && desc->element_size >= sizeof(uint32_t);
}
