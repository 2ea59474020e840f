/* SPDX-License-Identifier: BSD-3-Clause */
#include "generate.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "float16.h"
#include "hash/murmur3.h"

/* SplitMix64 (Steele, Lea, Flood). */
uint64_t rng_next(struct rng *rng)
{
    uint64_t z = rng->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t rng_below(struct rng *rng, uint64_t limit)
{
    return rng_next(rng) % limit;
}

double rng_unit(struct rng *rng)
{
    return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

static size_t choose_none(const struct pattern *pattern, uint64_t span, size_t room, struct rng *rng,
                          uint64_t *index)
{
    (void)pattern, (void)span, (void)room, (void)rng, (void)index;
    return 0;
}

static size_t choose_first(const struct pattern *pattern, uint64_t span, size_t room, struct rng *rng,
                           uint64_t *index)
{
    (void)pattern, (void)rng;
    if (span == 0 || room == 0)
        return 0;
    index[0] = 0;
    return 1;
}

static size_t choose_ends(const struct pattern *pattern, uint64_t span, size_t room, struct rng *rng,
                          uint64_t *index)
{
    size_t n = choose_first(pattern, span, room, rng, index);
    if (span < 2 || room < 2)
        return n;
    index[1] = span - 1;
    return 2;
}

/* Choose every 1/density-th index, starting from the last one. */
static size_t choose_every(const struct pattern *pattern, uint64_t span, size_t room, struct rng *rng,
                           uint64_t *index)
{
    uint64_t step = (uint64_t)(1 / pattern->density);
    size_t n = 0;
    (void)rng;
    for (uint64_t i = span == 0 ? 0 : (span - 1) % step; i < span && n < room; i += step)
        index[n++] = i;
    return n;
}

/* Choose a contiguous range in the middle. */
static size_t choose_block(const struct pattern *pattern, uint64_t span, size_t room, struct rng *rng,
                           uint64_t *index)
{
    size_t n = 0;
    (void)pattern, (void)rng;
    for (uint64_t i = span / 2; i < span && n < 100 && n < room; i++)
        index[n++] = i;
    return n;
}

/* Choose each index with the same probability, lowered if the capacity would be exceeded. */
static size_t choose_random(const struct pattern *pattern, uint64_t span, size_t room, struct rng *rng,
                            uint64_t *index)
{
    double density = fmin(pattern->density, 0.8 * (double)room / (double)span), at = -1;
    size_t n = 0;
    while (n < room) {
        at += 1 + floor(log(1 - rng_unit(rng)) / log1p(-density));
        if (!(at < (double)span))
            break;
        index[n++] = (uint64_t)at;
    }
    return n;
}

const struct pattern patterns[PATTERNS] = {
    { "none", choose_none, 0 },
    { "first", choose_first, 0 },
    { "ends", choose_ends, 0 },
    { "all", choose_every, 1 },
    { "every third", choose_every, 1.0 / 3 },
    { "every 64th", choose_every, 1.0 / 64 },
    { "block", choose_block, 0 },
    { "one in 1000", choose_random, 0.001 },
    { "one in 40", choose_random, 0.025 },
    { "a quarter", choose_random, 0.25 },
    { "most", choose_random, 0.95 },
};

static float float_value(enum values kind, struct rng *rng)
{
    static const float special[] = { 0,           -0.0f,   1,       -1,       INFINITY,       -INFINITY,
                                     NAN,         FLT_MIN, FLT_MAX, -FLT_MAX, FLT_MIN / 1024, -FLT_MIN / 1024,
                                     FLT_EPSILON, 16777216 };
    switch (kind) {
    case VALUES_INEXACT: return (float)ldexp(rng_unit(rng) - 0.5, (int)rng_below(rng, 20) - 10);
    case VALUES_SPECIAL: return special[rng_below(rng, LENGTH(special))];
    default: return (float)rng_below(rng, 17) - 8;
    }
}

static double double_value(enum values kind, struct rng *rng)
{
    static const double special[] = { 0,           -0.0,           1,
                                      -1,          INFINITY,       -INFINITY,
                                      NAN,         DBL_MIN,        DBL_MAX,
                                      -DBL_MAX,    DBL_MIN / 1024, -DBL_MIN / 1024,
                                      DBL_EPSILON, 0x1p53 };
    switch (kind) {
    case VALUES_INEXACT: return ldexp(rng_unit(rng) - 0.5, (int)rng_below(rng, 40) - 20);
    case VALUES_SPECIAL: return special[rng_below(rng, LENGTH(special))];
    default: return (double)rng_below(rng, 17) - 8;
    }
}

void uint_store(uint64_t value, size_t size, void *out)
{
    uint8_t one = (uint8_t)value;
    uint16_t two = (uint16_t)value;
    uint32_t four = (uint32_t)value;
    const void *as[] = { [1] = &one, [2] = &two, [4] = &four, [8] = &value };
    memcpy(out, as[size], size);
}

/* Special values include extremes of every width and sign. */
static uint64_t whole_value(enum values kind, size_t size, struct rng *rng)
{
    static const uint64_t special[] = { 0, 1, UINT64_MAX, (uint64_t)1 << 63, ((uint64_t)1 << 63) - 1, 2, 3 };
    uint64_t value;
    switch (kind) {
    case VALUES_INEXACT: return rng_next(rng);
    case VALUES_SPECIAL:
        value = special[rng_below(rng, LENGTH(special))];
        return value > 3 ? (value >> (64 - 8 * size)) | (value & 1) : value;
    default: return rng_below(rng, 17) - 8;
    }
}

size_t base_size(enum sar_dtype base)
{
    return sar_op_kernels_of(base, SAR_SUM)->size;
}

void values_fill(enum sar_dtype base, enum values kind, void *out, size_t n, struct rng *rng)
{
    size_t size = base_size(base);
    for (size_t i = 0; i < n; i++) {
        switch (base) {
        case SAR_FLOAT: ((float *)out)[i] = float_value(kind, rng); break;
        case SAR_DOUBLE: ((double *)out)[i] = double_value(kind, rng); break;
        case SAR_BF16:
        case SAR_FP16: ((uint16_t *)out)[i] = float16_of(base, float_value(kind, rng)); break;
        default: uint_store(whole_value(kind, size, rng), size, (unsigned char *)out + i * size); break;
        }
    }
}

void values_normalize(enum sar_dtype base, enum sar_op op, void *values, size_t n)
{
    static const unsigned char zeros[8];
    size_t size = base_size(base);
    for (size_t i = 0; sar_op_is_logical(op) && i < n; i++) {
        unsigned char *value = (unsigned char *)values + i * size;
        uint_store(memcmp(value, zeros, size) != 0, size, value);
    }
}

struct sar_vec_desc vec_desc_make(enum sar_dtype base, enum sar_op op, uint64_t count, size_t row)
{
    const struct sar_op_kernels *kernels = sar_op_kernels_of(base, op);
    return (struct sar_vec_desc){ .count = count,
                                  .row_len = row,
                                  .element_size = row * kernels->size,
                                  .index_size = sar_index_size(count),
                                  .dtype = base,
                                  .op = op,
                                  .kernels = kernels };
}

void *exact_alloc(size_t bytes)
{
    void *memory = malloc(bytes == 0 ? 1 : bytes);
    if (memory == NULL) {
        perror("malloc");
        abort();
    }
    return memory;
}

struct sar_spvec spvec_alloc(const struct sar_vec_desc *shape, size_t nnz)
{
    return (struct sar_spvec){ exact_alloc(nnz * shape->index_size), exact_alloc(nnz * shape->element_size),
                               nnz };
}

struct sar_spvec spvec_make(const struct sar_vec_desc *shape, const uint64_t *index, size_t nnz,
                            enum values kind, struct rng *rng)
{
    struct sar_spvec run = spvec_alloc(shape, nnz);
    for (size_t i = 0; i < nnz; i++)
        sar_index_set(run.index, shape->index_size, i, index[i]);
    values_fill(shape->dtype, kind, run.value, nnz * shape->row_len, rng);
    values_normalize(shape->dtype, shape->op, run.value, nnz * shape->row_len);
    return run;
}

void spvec_free(struct sar_spvec *run)
{
    free(run->index);
    free(run->value);
    *run = (struct sar_spvec){ NULL, NULL, 0 };
}

static bool value_equal(enum sar_dtype base, size_t size, const void *a, const void *b)
{
    if (memcmp(a, b, size) == 0)
        return true;
    if (base == SAR_FLOAT)
        return isnan(*(const float *)a) && isnan(*(const float *)b);
    if (base == SAR_DOUBLE)
        return isnan(*(const double *)a) && isnan(*(const double *)b);
    return is_float16(base) && isnan(float16_value(base, *(const uint16_t *)a)) &&
           isnan(float16_value(base, *(const uint16_t *)b));
}

bool spvec_equal(const struct sar_vec_desc *shape, const struct sar_spvec *a, const struct sar_spvec *b)
{
    size_t size = shape->kernels->size;
    if (a->nnz != b->nnz)
        return false;
    if (a->nnz == 0)
        return true;
    if (memcmp(a->index, b->index, a->nnz * shape->index_size) != 0)
        return false;
    for (size_t i = 0; i < a->nnz * shape->row_len; i++) {
        const unsigned char *left = a->value, *right = b->value;
        if (!value_equal(shape->dtype, size, left + i * size, right + i * size))
            return false;
    }
    return true;
}

bool spvec_ascends(const struct sar_spvec *run, unsigned index_size, uint64_t span)
{
    for (size_t i = 0; i < run->nnz; i++) {
        uint64_t index = sar_index_get(run->index, index_size, i);
        if (index >= span || (i > 0 && index <= sar_index_get(run->index, index_size, i - 1)))
            return false;
    }
    return true;
}

void header_set_check(struct sar_msg_header *header)
{
    uint32_t hash = 0, word;
    for (size_t i = 0; i < offsetof(struct sar_msg_header, checksum); i += sizeof word) {
        memcpy(&word, (const char *)header + i, sizeof word);
        hash = sar_murmur3(word, hash);
    }
    header->checksum = hash;
}
