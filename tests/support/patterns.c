/* SPDX-License-Identifier: BSD-3-Clause */
#include "patterns.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static bool is_float(const struct tensor_desc *k)
{
    return k->base == FLOAT32 || k->base == FLOAT64;
}

/* Write x to every number of an element. */
static void put_real(const struct tensor_desc *k, double x, void *out)
{
    float single = (float)x;
    for (size_t i = 0; i < k->row; i++) {
        if (k->base == FLOAT32)
            memcpy((float *)out + i, &single, sizeof single);
        else
            memcpy((double *)out + i, &x, sizeof x);
    }
}

static void put_whole(size_t size, uint64_t x, void *out)
{
    uint32_t narrow = (uint32_t)x;
    memcpy(out, size == 4 ? (const void *)&narrow : &x, size);
}

static double exact_real(enum op op, uint64_t bits)
{
    double sign = bits % 2 == 0 ? 1 : -1;
    if (op == PROD)
        return sign * ldexp(1, (int)(bits / 2 % 3) - 1);
    return sign * (double)(bits / 2 % 64 + 1) / 4;
}

void put_numbers(const struct tensor_desc *k, uint64_t key, void *out)
{
    size_t size = base_types[k->base].size;
    struct tensor_desc one = { k->base, k->op, 1, 1 };
    bool halve = (k->base == UINT32 || k->base == UINT64) && (k->op == MAX || k->op == MIN);
    for (size_t i = 0; i < k->row; i++) {
        uint64_t bits = mix(key + i * 0x10001);
        uint64_t limited = halve ? (bits | 1) & ~(UINT64_C(1) << (8 * size - 1)) : bits | 1;
        unsigned char *at = (unsigned char *)out + i * size;
        if (is_float(k))
            put_real(&one, exact_real(k->op, bits), at);
        else
            put_whole(size, limited, at);
    }
}

static void add(struct tensor *t, uint64_t key, uint64_t index)
{
    if (index < (uint64_t)t->desc.count)
        put_numbers(&t->desc, key ^ mix(index * 64 + (uint64_t)rank), tensor_add(t, index));
}

static void add_real(struct tensor *t, uint64_t index, double x)
{
    if (index < (uint64_t)t->desc.count)
        put_real(&t->desc, x, tensor_add(t, index));
}

static void empty(struct tensor *t, uint64_t key, double density)
{
    (void)t, (void)key, (void)density;
}

static void first(struct tensor *t, uint64_t key, double density)
{
    (void)density;
    add(t, key, 0);
}

static void last(struct tensor *t, uint64_t key, double density)
{
    (void)density;
    add(t, key, (uint64_t)t->desc.count - 1);
}

static void single(struct tensor *t, uint64_t key, double density)
{
    (void)density;
    if (rank == ranks / 2)
        add(t, key, (uint64_t)t->desc.count / 3);
}

/* One element on each rank; none on the last rank. */
static void one_each(struct tensor *t, uint64_t key, double density)
{
    (void)density;
    if (rank != ranks - 1 || ranks == 1)
        add(t, key, (uint64_t)t->desc.count * (uint64_t)rank / (uint64_t)ranks);
}

static void on_one_rank(struct tensor *t, uint64_t key, double density)
{
    (void)density;
    for (int64_t i = 0; rank == ranks - 1 && i < t->desc.count; i += 2)
        add(t, key, (uint64_t)i);
}

static void one_block(struct tensor *t, uint64_t key, double density)
{
    (void)density;
    for (uint64_t i = 64; i < 128; i++)
        add(t, key, i);
}

static void strided(struct tensor *t, uint64_t key, double density)
{
    (void)density;
    for (int64_t i = 0; i < t->desc.count; i += ranks)
        add(t, key, (uint64_t)i);
}

static void disjoint(struct tensor *t, uint64_t key, double density)
{
    (void)density;
    for (int64_t i = rank; i < t->desc.count; i += 2 * ranks)
        add(t, key, (uint64_t)i);
}

static void identical(struct tensor *t, uint64_t key, double density)
{
    (void)density;
    for (int64_t i = 1; i < t->desc.count; i += 3)
        add(t, key, (uint64_t)i);
}

static bool chance(uint64_t key, uint64_t index, double density)
{
    return (double)(mix(key ^ mix(index + ((uint64_t)rank << 40))) >> 11) < density * 0x1p53;
}

static void at_random(struct tensor *t, uint64_t key, double density)
{
    for (int64_t i = 0; i < t->desc.count; i++)
        if (chance(key, (uint64_t)i, density))
            add(t, key, (uint64_t)i);
}

/* Each rank has twice as many elements as the rank before it. */
static void growing(struct tensor *t, uint64_t key, double density)
{
    at_random(t, key, ldexp(density, rank - ranks + 1));
}

static void some_empty(struct tensor *t, uint64_t key, double density)
{
    if (rank % 2 == 0)
        at_random(t, key, density);
}

static void zeros(struct tensor *t, uint64_t key, double density)
{
    (void)density;
    for (int64_t i = rank % 2; i < t->desc.count; i += 3) {
        if (chance(key, (uint64_t)i, 0.5))
            tensor_add(t, (uint64_t)i);
        else
            add(t, key, (uint64_t)i);
    }
}

/* Rows of zeros with one other number. */
static void nearly_zero(struct tensor *t, uint64_t key, double density)
{
    size_t size = base_types[t->desc.base].size;
    for (int64_t i = 0; i < t->desc.count; i++) {
        if (!chance(key, (uint64_t)i, density))
            continue;
        unsigned char *at = tensor_add(t, (uint64_t)i);
        size_t place = (size_t)mix(key ^ (uint64_t)i) % t->desc.row * size;
        put_numbers(&(struct tensor_desc){ t->desc.base, t->desc.op, 1, 1 }, key + (uint64_t)i, at + place);
    }
}

static void nans(struct tensor *t, uint64_t key, double density)
{
    (void)density;
    for (int64_t i = 0; i < t->desc.count; i += 2) {
        if (chance(key, (uint64_t)i, 0.1))
            add_real(t, (uint64_t)i, (double)NAN);
        else
            add(t, key, (uint64_t)i);
    }
}

static void infinities(struct tensor *t, uint64_t key, double density)
{
    (void)density;
    for (int64_t i = 0; i < t->desc.count; i += 3) {
        if (chance(key, (uint64_t)i, 0.2))
            add_real(t, (uint64_t)i, i % 2 == 0 && rank % 2 == 0 ? -(double)INFINITY : (double)INFINITY);
        else
            add(t, key, (uint64_t)i);
    }
}

/* -0.0 on one rank only, and together with a zero, an absent element, a number, and on all ranks. */
static void minus_zeros(struct tensor *t, uint64_t key, double density)
{
    (void)density;
    for (int64_t i = 0; i < t->desc.count; i++) {
        if (i % 5 == 4)
            add_real(t, (uint64_t)i, -0.0);
        else if (i % 5 == 3 && rank % 2 == 0)
            add_real(t, (uint64_t)i, chance(key, (uint64_t)i, 0.5) ? -0.0 : 0.0);
        else if (i % 5 == 2 && rank == ranks - 1)
            add_real(t, (uint64_t)i, -0.0);
        else if (i % 5 == 1)
            add_real(t, (uint64_t)i, rank == 0 ? 1.5 : -0.0);
    }
}

static void minus_zeros_only(struct tensor *t, uint64_t key, double density)
{
    (void)key, (void)density;
    for (int64_t i = 1; i < t->desc.count; i += 4)
        add_real(t, (uint64_t)i, -0.0);
}

static void denormals(struct tensor *t, uint64_t key, double density)
{
    double least = t->desc.base == FLOAT32 ? 0x1p-149 : 0x1p-1074;
    (void)density;
    for (int64_t i = 0; i < t->desc.count; i += 2)
        add_real(t, (uint64_t)i, least * (double)(1 + mix(key ^ (uint64_t)i) % 1000));
}

/* Values that a test for |x| > 1e-8 would drop. */
static void tiny(struct tensor *t, uint64_t key, double density)
{
    (void)density;
    for (int64_t i = 0; i < t->desc.count; i += 2)
        add_real(t, (uint64_t)i, ldexp(1 + (double)(mix(key ^ (uint64_t)i) % 16), -60));
}

/* +x and -x on pairs of ranks; an unpaired rank has no element. The index stays in the result, with value
 * +0.0. */
static void cancelled(struct tensor *t, uint64_t key, double density)
{
    (void)density;
    if (rank == ranks - 1 && ranks % 2 == 1)
        return;
    for (int64_t i = 0; i < t->desc.count; i += 3)
        add_real(t, (uint64_t)i, (rank % 2 == 0 ? 1 : -1) * (double)(1 + mix(key ^ (uint64_t)i) % 9));
}

/* As cancelled, and the last rank has -0.0 at an element whose other sum is +0.0. */
static void cancelled_to_minus_zero(struct tensor *t, uint64_t key, double density)
{
    int pairs = (ranks - 1) / 2;
    (void)density;
    for (int64_t i = 0; i < t->desc.count; i += 3) {
        if (rank == ranks - 1)
            add_real(t, (uint64_t)i, -0.0);
        else if (rank < 2 * pairs)
            add_real(t, (uint64_t)i, (rank % 2 == 0 ? 1 : -1) * (double)(1 + mix(key ^ (uint64_t)i) % 9));
    }
}

static void duplicates(struct tensor *t, uint64_t key, double density)
{
    (void)density;
    for (int64_t i = 0; i < t->desc.count; i += 2)
        for (uint64_t again = mix(key ^ (uint64_t)i) % 3; again < 3; again++)
            add(t, key + again, (uint64_t)i);
}

static void descending(struct tensor *t, uint64_t key, double density)
{
    (void)density;
    for (int64_t i = t->desc.count; i-- > 0;)
        if (chance(key, (uint64_t)i, 0.4))
            add(t, key, (uint64_t)i);
}

/* Indices in any order, some repeated. */
static void shuffled(struct tensor *t, uint64_t key, double density)
{
    for (double left = density * (double)t->desc.count; left > 0; left--)
        add(t, key ^ mix((uint64_t)left),
            mix(key ^ mix((uint64_t)left * 64 + (uint64_t)rank)) % ((uint64_t)t->desc.count));
}

const struct pattern patterns[] = {
    { .name = "empty", .add = empty },
    { .name = "first element", .add = first },
    { .name = "last element", .add = last },
    { .name = "a single element", .add = single },
    { .name = "one element a rank but the last", .add = one_each },
    { .name = "all on one rank", .add = on_one_rank },
    { .name = "all in one block", .add = one_block },
    { .name = "all indices multiples of the number of ranks", .add = strided },
    { .name = "disjoint", .add = disjoint },
    { .name = "identical", .add = identical },
    { .name = "random 1e-5", .add = at_random, .density = 1e-5 },
    { .name = "random 1e-4", .add = at_random, .density = 1e-4 },
    { .name = "random 1e-3", .add = at_random, .density = 1e-3 },
    { .name = "random 1e-2", .add = at_random, .density = 1e-2 },
    { .name = "random 0.1", .add = at_random, .density = 0.1 },
    { .name = "random 0.5", .add = at_random, .density = 0.5 },
    { .name = "full", .add = at_random, .density = 1 },
    { .name = "growing", .add = growing, .density = 1 },
    { .name = "some ranks empty", .add = some_empty, .density = 0.1 },
    { .name = "explicit zeros", .add = zeros },
    { .name = "rows with a single number", .add = nearly_zero, .density = 0.2 },
    { .name = "duplicates", .add = duplicates },
    { .name = "descending", .add = descending },
    { .name = "shuffled", .add = shuffled, .density = 0.5 },
    { .name = "NaN", .add = nans, .floats_only = true, .sums_only = true, .exact_bits = true },
    { .name = "infinities", .add = infinities, .floats_only = true, .sums_only = true, .exact_bits = true },
    { .name = "-0.0", .add = minus_zeros, .floats_only = true, .sums_only = true },
    { .name = "nothing but -0.0", .add = minus_zeros_only, .floats_only = true, .sums_only = true },
    { .name = "denormals", .add = denormals, .floats_only = true, .sums_only = true },
    { .name = "values below 1e-8", .add = tiny, .floats_only = true, .sums_only = true },
    { .name = "cancelled sums", .add = cancelled, .floats_only = true, .sums_only = true },
    { .name = "sums cancelled to -0.0",
      .add = cancelled_to_minus_zero,
      .floats_only = true,
      .sums_only = true },
    { .name = NULL },
};

void tensor_draw(const struct pattern *pattern, const struct tensor_desc *desc, uint64_t seed,
                 struct tensor *tensor)
{
    *tensor = (struct tensor){ .desc = *desc };
    pattern->add(tensor, mix(seed), pattern->density);
}

const struct pattern *pattern_find(const char *name)
{
    const struct pattern *pattern = patterns;
    while (pattern->name != NULL && strcmp(pattern->name, name) != 0)
        pattern++;
    check(pattern->name != NULL, "expected a pattern '%s', found none", name);
    return pattern;
}
