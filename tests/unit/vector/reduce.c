/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the reduction of sorted vectors against a plain one. Vectors and result have memory of exactly their
 * size, so the sanitizers detect every access outside. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "teams.h"
#include "vector/reduce.h"

enum { VECS_MAX = 40 };

/* The window of the vector that contains the indices of a case. */
struct window {
    uint64_t count, start, length;
};

struct trial {
    struct window window;
    struct sar_vec_desc desc;
    enum values values;
    size_t vecs;
    size_t room;     /* maximum number of elements of a vector */
    bool duplicates; /* within a vector */
    uint64_t seed;
};

/* Repeat about a quarter of the indices once or twice. */
static size_t repeat(uint64_t *index, size_t nnz, size_t room, struct rng *rng)
{
    uint64_t *from = exact_alloc(nnz * sizeof *from);
    size_t n = 0;
    memcpy(from, index, nnz * sizeof *from);
    for (size_t i = 0; i < nnz && n < room; i++) {
        size_t times = rng_below(rng, 4) == 0 ? 2 + rng_below(rng, 2) : 1;
        for (size_t k = 0; k < times && n < room; k++)
            index[n++] = from[i];
    }
    free(from);
    return n;
}

/* Make each vector of its own pattern, starting with pattern `first`. */
static void make_vecs(const struct trial *t, size_t first, struct sar_spvec vecs[])
{
    struct rng rng = { t->seed };
    uint64_t *index = exact_alloc(t->room * sizeof *index);
    for (size_t r = 0; r < t->vecs; r++) {
        const struct pattern *pattern = &patterns[(first + r * r) % PATTERNS];
        size_t nnz = pattern->choose(pattern, t->window.length, t->room, &rng, index);
        if (t->duplicates)
            nnz = repeat(index, nnz, t->room, &rng);
        for (size_t i = 0; i < nnz; i++)
            index[i] += t->window.start;
        vecs[r] = spvec_make(&t->desc, index, nnz, t->values, &rng);
    }
    free(index);
}

static uint64_t reference_bound(const struct trial *t, const struct sar_spvec vecs[])
{
    uint64_t sum = 0;
    for (size_t r = 0; r < t->vecs; r++)
        sum += vecs[r].nnz;
    return sum < t->desc.count ? sum : t->desc.count;
}

static void check(const struct trial *t, size_t first)
{
    struct sar_spvec vecs[VECS_MAX];
    struct sar_arena arena = { 0 };
    make_vecs(t, first, vecs);
    size_t bound = sar_reduce_max_nnz(&t->desc, vecs, t->vecs);
    assert_int_equal(bound, reference_bound(t, vecs));
    struct sar_spvec out = spvec_alloc(&t->desc, bound), expected = reference_reduce(&t->desc, vecs, t->vecs);
    assert_int_equal(sar_reduce(&t->desc, vecs, t->vecs, &arena, &out), SAR_OK);
    if (!spvec_equal(&t->desc, &out, &expected))
        fail_msg("%zu vecs of pattern %zu, %llu elements at %llu of %llu, row %zu, base %d, op %d", t->vecs,
                 first, (unsigned long long)t->window.length, (unsigned long long)t->window.start,
                 (unsigned long long)t->window.count, t->desc.row_len, (int)t->desc.dtype, (int)t->desc.op);
    spvec_free(&out);
    spvec_free(&expected);
    for (size_t r = 0; r < t->vecs; r++)
        spvec_free(&vecs[r]);
    sar_arena_free(&arena);
}

static struct trial trial_make(struct window window, enum sar_dtype base, enum sar_op op, size_t row)
{
    struct trial t = { .window = window, .vecs = 3, .room = 1500, .seed = 1 };
    t.desc = vec_desc_make(base, op, window.count, row);
    return t;
}

/* Lengths near the sizes of words, words of words, and tiles; tiles that start off the origin; the end of the
 * range of 4-byte indices, and beyond. */
static const struct window windows[] = {
    { 1, 0, 1 },
    { 2, 0, 2 },
    { 63, 0, 63 },
    { 64, 0, 64 },
    { 65, 0, 65 },
    { 127, 0, 127 },
    { 4095, 0, 4095 },
    { 4096, 0, 4096 },
    { 4097, 0, 4097 },
    { 32767, 0, 32767 },
    { 32768, 0, 32768 },
    { 32769, 0, 32769 },
    { 65537, 32700, 200 },
    { 1000000, 0, 1000000 },
    { 1000000, 999000, 1000 },
    { 4294967295, 4294967295u - 70000, 70000 },
    { 4294967296, 4294967296u - 70000, 70000 },
    { 4294967297, 4294967297u - 70000, 70000 },
    { ((uint64_t)1 << 40) + 12345, (uint64_t)1 << 40, 12345 },
    { (uint64_t)1 << 40, 0, (uint64_t)1 << 40 },
    { (uint64_t)1 << 62, ((uint64_t)1 << 62) - 100000, 100000 },
};

static void test_windows_and_patterns(void **state)
{
    (void)state;
    for (size_t w = 0; w < LENGTH(windows); w++) {
        for (size_t first = 0; first < PATTERNS; first++) {
            struct trial t =
                trial_make(windows[w], SAR_FLOAT, (enum sar_op)((w + first) % (SAR_PROD + 1)), 1);
            t.seed = w * 100 + first;
            t.duplicates = first % 2 == 1;
            t.desc.absent_is_zero = first % 3 == 1;
            check(&t, first);
        }
    }
}

static void test_numbers_of_vecs(void **state)
{
    (void)state;
    for (size_t n = 1; n <= VECS_MAX; n += n < 9 ? 1 : 31) {
        for (size_t w = 0; w < LENGTH(windows); w++) {
            struct trial t = trial_make(windows[w], w % 2 == 0 ? SAR_FLOAT : SAR_DOUBLE, SAR_SUM, 1);
            t.vecs = n;
            t.seed = n;
            check(&t, w + n);
        }
    }
}

/* Enough elements to fill whole tiles and their chunks, for every op, since each leaves other data for the
 * next tile. */
static void test_full_vectors(void **state)
{
    static const uint64_t counts[] = { 1023, 1024, 1025, 16384, 32768, 70000, 200000 };
    (void)state;
    for (size_t k = 0; k < LENGTH(counts) * PATTERNS * SAR_OPS; k++) {
        uint64_t count = counts[k % LENGTH(counts)];
        struct window window = { count, 0, count };
        enum sar_op op = (enum sar_op)(k / LENGTH(counts) / PATTERNS);
        enum sar_dtype one = op > SAR_PROD ? SAR_INT8 : SAR_FLOAT;
        struct trial t = trial_make(window, k % 2 == 0 ? one : SAR_INT64, op, 1);
        t.room = count;
        t.vecs = 2 + k % 4;
        t.desc.absent_is_zero = k % 3 == 0;
        check(&t, k / LENGTH(counts));
    }
}

static void test_rows(void **state)
{
    static const size_t rows[] = { 1, 2, 3, 5, 64, 1000 };
    (void)state;
    for (size_t k = 0; k < LENGTH(rows); k++) {
        for (size_t w = 0; w < LENGTH(windows); w++) {
            struct trial t = trial_make(windows[w], w % 3 == 0 ? SAR_DOUBLE : SAR_FLOAT, SAR_SUM, rows[k]);
            t.room = rows[k] < 64 ? 500 : 40;
            t.duplicates = k % 2 == 0;
            t.desc.absent_is_zero = w % 2 == 0;
            check(&t, w);
        }
    }
}

/* Every type and op; absent elements as absent and as zeros; special values including -0.0; rows so long that
 * the first one is copied. */
static void test_types_and_ops(void **state)
{
    static const size_t rows[] = { 1, 3, 130 };
    (void)state;
    for (unsigned k = 0; k < SAR_DTYPES * SAR_OPS; k++) {
        enum sar_dtype base = (enum sar_dtype)(k / SAR_OPS);
        enum sar_op op = (enum sar_op)(k % SAR_OPS);
        for (unsigned variant = 0; variant < 12 && sar_op_kernels_of(base, op) != NULL; variant++) {
            size_t row = rows[variant % LENGTH(rows)];
            struct trial t = trial_make((struct window){ 900, 100, 700 }, base, op, row);
            t.room = row > 3 ? 40 : t.room;
            t.values = variant / 3 % 2 == 0 ? VALUES_INEXACT : VALUES_SPECIAL;
            t.desc.absent_is_zero = variant / 6 == 0;
            t.duplicates = k % 2 == 0;
            t.seed = k;
            check(&t, k + variant);
        }
    }
}

/* Sums rounded once: more of them in a tile than the fp32 buffer holds, rows longer than the buffer, and
 * elements of a single vector. */
static void test_float16(void **state)
{
    static const size_t rows[] = { 1, 2, 63, 64, 5000 };
    (void)state;
    for (size_t k = 0; k < 2 * PATTERNS * LENGTH(rows) * 4; k++) {
        enum sar_dtype base = k % 2 == 0 ? SAR_BF16 : SAR_FP16;
        size_t row = rows[k / 2 / PATTERNS % LENGTH(rows)], variant = k / 2 / PATTERNS / LENGTH(rows);
        struct window window = { 1000000, 500000, row == 1 ? 20000 : row == 5000 ? 5 : 700 };
        struct trial t = trial_make(window, base, variant % 2 == 0 ? SAR_SUM : SAR_PROD, row);
        t.room = row == 5000 ? 10 : 20000 / row;
        t.vecs = 2 + k % 5;
        t.desc.absent_is_zero = variant / 2 == 0;
        t.duplicates = k % 3 == 0;
        t.seed = k;
        check(&t, k / 2);
    }
}

/* 8-byte indices where 4 bytes suffice. */
static void test_wide_indices(void **state)
{
    (void)state;
    for (size_t first = 0; first < PATTERNS; first++) {
        struct trial t = trial_make((struct window){ 5000, 0, 5000 }, SAR_DOUBLE, SAR_SUM, 1);
        t.desc.index_size = 8;
        t.room = 5000;
        check(&t, first);
    }
}

enum { PAIR_MAX = 4200 /* more than a merge of two vecs lists at a time */ };

/* Sets the indices of one of two vecs: `share` in ten are in both, of the others `turn` in a row in one. */
static size_t pair_indices(size_t n, size_t vec, size_t share, size_t turn, uint64_t base, uint64_t *index)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (i % 10 < share || i / turn % 2 == vec)
            index[count++] = base + 3 * i;
    return count;
}

static void check_pair(struct sar_vec_desc *desc, const uint64_t *const index[2], const size_t nnz[2],
                       struct rng *rng)
{
    struct sar_spvec vecs[2], out, expected;
    struct sar_arena arena = { 0 };
    for (size_t r = 0; r < 2; r++)
        vecs[r] = spvec_make(desc, index[r], nnz[r], VALUES_SPECIAL, rng);
    out = spvec_alloc(desc, sar_reduce_max_nnz(desc, vecs, 2));
    expected = reference_reduce(desc, vecs, 2);
    assert_int_equal(sar_reduce(desc, vecs, 2, &arena, &out), SAR_OK);
    assert_true(spvec_equal(desc, &out, &expected));
    for (size_t r = 0; r < 2; r++)
        spvec_free(&vecs[r]);
    spvec_free(&out);
    spvec_free(&expected);
    sar_arena_free(&arena);
}

/* Two vecs with all types of plain sums: of lengths about vectors and chunks, equal, without a common index,
 * one behind the other, in turns, and with an index twice, late, in the first or the second. */
static void test_pairs(void **state)
{
    static const enum sar_dtype dtypes[] = { SAR_FLOAT, SAR_DOUBLE, SAR_INT32, SAR_UINT64 };
    static const size_t lengths[] = { 1, 2, 15, 16, 17, 31, 33, 64, 2047, 2048, 2049, PAIR_MAX };
    static const size_t shares[] = { 0, 3, 10 }, turns[] = { 1, 7, 40, PAIR_MAX };
    static const uint64_t bases[] = { 0, 1000, UINT32_MAX - 3 * PAIR_MAX };
    uint64_t *index[2] = { exact_alloc((PAIR_MAX + 1) * sizeof(uint64_t)),
                           exact_alloc((PAIR_MAX + 1) * sizeof(uint64_t)) };
    struct rng rng = { 3 };
    (void)state;
    for (size_t k = 0; k < LENGTH(dtypes) * LENGTH(lengths) * LENGTH(shares) * LENGTH(turns); k++) {
        struct sar_vec_desc desc = vec_desc_make(dtypes[k % 4], SAR_SUM, (uint64_t)UINT32_MAX + 1, 1);
        size_t length = lengths[k / 4 % LENGTH(lengths)], rest = k / 4 / LENGTH(lengths), nnz[2];
        for (size_t r = 0; r < 2; r++)
            nnz[r] = pair_indices(length, r, shares[rest % 3], turns[rest / 3], bases[k % 3], index[r]);
        check_pair(&desc, (const uint64_t *const[]){ index[0], index[1] }, nnz, &rng);
        for (size_t r = 0; r < 2 && nnz[r] > 0; r++) {
            size_t longer[2] = { nnz[0] + (r == 0), nnz[1] + (r == 1) };
            index[r][nnz[r]] = index[r][nnz[r] - 1];
            check_pair(&desc, (const uint64_t *const[]){ index[0], index[1] }, longer, &rng);
        }
    }
    free(index[0]);
    free(index[1]);
}

/* Two NaNs of one index: the sum has the bits of one of them, made quiet. Compilers may exchange operands. */
static void test_pairs_of_nans(void **state)
{
    enum { N = 40 };
    enum { QUIET = 0x400000 };
    uint32_t index[N], bits[2][N], found[N];
    struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, 1000, 1);
    struct sar_spvec vecs[2], out;
    struct sar_arena arena = { 0 };
    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        index[i] = i;
        bits[0][i] = 0x7f800001 + i;
        bits[1][i] = 0xff900002 + i;
    }
    for (size_t r = 0; r < 2; r++)
        vecs[r] = (struct sar_spvec){ index, bits[r], N };
    assert_int_equal(sar_reduce_alloc(&desc, vecs, 2, &arena, &out), SAR_OK);
    assert_int_equal(out.nnz, N);
    memcpy(found, out.value, sizeof found);
    for (uint32_t i = 0; i < N; i++)
        assert_true(found[i] == (bits[0][i] | QUIET) || found[i] == (bits[1][i] | QUIET));
    sar_arena_free(&arena);
}

/* Three and more vecs of plain sums, at densities with each way to find positions. */
static void test_densities(void **state)
{
    static const enum sar_dtype dtypes[] = { SAR_FLOAT, SAR_DOUBLE, SAR_UINT32, SAR_INT64 };
    static const uint64_t slots[] = { 1, 4, 5, 6, 15, 17, 40, 70, 127, 129 };
    (void)state;
    for (size_t k = 0; k < 4 * LENGTH(slots) * PATTERNS; k++) {
        uint64_t length = slots[k / 4 % LENGTH(slots)] * 3000;
        struct window window = { 5000000, 4000000 - k * 1000, length };
        struct trial t = trial_make(window, dtypes[k % 4], SAR_SUM, 1);
        t.vecs = 3 + k % 5;
        t.values = VALUES_SPECIAL;
        t.duplicates = k % 8 > 5;
        t.seed = k;
        check(&t, k / 4 / LENGTH(slots));
    }
}

/* Reduce one element, at `index` of 1000, over the vectors that have a value. */
static float reduce_one(uint32_t index, enum sar_op op, bool absent_is_zero, const float *const values[3])
{
    struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, op, 1000, 1);
    struct sar_spvec vecs[3], out;
    struct sar_arena arena = { 0 };
    float result;
    desc.absent_is_zero = absent_is_zero;
    for (size_t r = 0; r < 3; r++)
        vecs[r] = (struct sar_spvec){ &index, (void *)values[r], values[r] != NULL };
    assert_int_equal(sar_reduce_alloc(&desc, vecs, 3, &arena, &out), SAR_OK);
    assert_int_equal(out.nnz, 1);
    assert_int_equal(*(uint32_t *)out.index, index);
    memcpy(&result, out.value, sizeof result);
    sar_arena_free(&arena);
    return result;
}

/* The result of a dense MPI_Allreduce, computed by hand. NULL: the vector does not have the element. */
static void test_absent_elements_by_hand(void **state)
{
    static const float minus_zero = -0.0f, minus_two = -2, two = 2, three = 3;
    static const struct {
        enum sar_op op;
        const float *values[3];
        float as_nothing, as_zero;
    } cases[] = {
        { SAR_MAX, { &minus_two, NULL, NULL }, -2, 0 },
        { SAR_MAX, { &minus_two, &three, NULL }, 3, 3 },
        { SAR_MAX, { &minus_two, &minus_two, &minus_two }, -2, -2 },
        { SAR_MIN, { NULL, &three, &two }, 2, 0 },
        { SAR_MIN, { &two, &three, &two }, 2, 2 },
        { SAR_PROD, { &two, &three, NULL }, 6, 0 },
        { SAR_PROD, { &minus_two, NULL, NULL }, -2, -0.0f },
        { SAR_PROD, { &minus_two, &three, &two }, -12, -12 },
        { SAR_SUM, { &minus_zero, NULL, NULL }, -0.0f, 0 },
        { SAR_SUM, { NULL, &minus_zero, &minus_zero }, -0.0f, 0 },
        { SAR_SUM, { &minus_zero, &minus_zero, &minus_zero }, -0.0f, -0.0f },
        { SAR_SUM, { &two, NULL, &minus_two }, 0, 0 },
    };
    (void)state;
    for (size_t i = 0; i < 3 * LENGTH(cases); i++) {
        const uint32_t index = (uint32_t[]){ 0, 7, 999 }[i / LENGTH(cases)];
        size_t k = i % LENGTH(cases);
        float nothing = reduce_one(index, cases[k].op, false, cases[k].values);
        float zero = reduce_one(index, cases[k].op, true, cases[k].values);
        assert_memory_equal(&nothing, &cases[k].as_nothing, sizeof nothing);
        assert_memory_equal(&zero, &cases[k].as_zero, sizeof zero);
    }
}

/* 1e8 + 1 is 1e8: the sums show the order of ranks. */
static void test_the_order_is_that_of_the_vecs(void **state)
{
    static const float big = 1e8f, one = 1, minus = -1e8f;
    static const float *const orders[][3] = { { &big, &one, &minus },
                                              { &big, &minus, &one },
                                              { &one, &big, &minus } };
    static const float sums[] = { 0, 1, 0 };
    (void)state;
    for (size_t i = 0; i < LENGTH(sums); i++)
        assert_true(reduce_one(7, SAR_SUM, false, orders[i]) == sums[i]);
}

/* Equal indices within a vector are reduced in order, before those of the next vector. */
static void test_the_order_within_a_run(void **state)
{
    static const uint64_t index[] = { 5, 5, 5 };
    struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, 100, 1);
    struct rng rng = { 1 };
    struct sar_arena arena = { 0 };
    struct sar_spvec vecs[2], out;
    (void)state;
    vecs[0] = spvec_make(&desc, index, 3, VALUES_EXACT, &rng);
    vecs[1] = spvec_make(&desc, index, 1, VALUES_EXACT, &rng);
    memcpy(vecs[0].value, (const float[]){ 1e8f, 1, -1e8f }, 3 * sizeof(float));
    memcpy(vecs[1].value, (const float[]){ 1 }, sizeof(float));
    assert_int_equal(sar_reduce_alloc(&desc, vecs, 2, &arena, &out), SAR_OK);
    assert_int_equal(out.nnz, 1);
    assert_true(*(float *)out.value == 1);
    spvec_free(&vecs[0]);
    spvec_free(&vecs[1]);
    sar_arena_free(&arena);
}

/* One arena serves several calls, and its old content does not change the next result. */
static void test_a_used_arena(void **state)
{
    struct trial t = trial_make((struct window){ 100000, 0, 100000 }, SAR_FLOAT, SAR_SUM, 1);
    struct sar_arena arena = { 0 };
    struct sar_spvec vecs[VECS_MAX], out;
    void *dirt;
    (void)state;
    for (size_t round = 0; round < 20; round++) {
        t.seed = round;
        t.desc.absent_is_zero = round % 3 == 0;
        make_vecs(&t, round, vecs);
        struct sar_spvec expected = reference_reduce(&t.desc, vecs, t.vecs);
        assert_int_equal(sar_reduce_alloc(&t.desc, vecs, t.vecs, &arena, &out), SAR_OK);
        assert_true(spvec_equal(&t.desc, &out, &expected));
        spvec_free(&expected);
        for (size_t r = 0; r < t.vecs; r++)
            spvec_free(&vecs[r]);
        sar_arena_reset(&arena);
        assert_int_equal(sar_arena_alloc(&arena, 1, 600000, &dirt), SAR_OK);
        memset(dirt, 0xa5, 600000);
        sar_arena_reset(&arena);
    }
    sar_arena_free(&arena);
}

static void test_nothing(void **state)
{
    struct trial t = trial_make((struct window){ 1000, 0, 0 }, SAR_INT32, SAR_SUM, 1);
    (void)state;
    for (t.vecs = 0; t.vecs < 4; t.vecs++)
        check(&t, 0);
}

static void test_bounds(void **state)
{
    struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, 100, 1);
    struct sar_spvec vecs[3] = { { NULL, NULL, 40 }, { NULL, NULL, 0 }, { NULL, NULL, 59 } };
    (void)state;
    assert_int_equal(sar_reduce_max_nnz(&desc, vecs, 0), 0);
    assert_int_equal(sar_reduce_max_nnz(&desc, vecs, 1), 40);
    assert_int_equal(sar_reduce_max_nnz(&desc, vecs, 3), 99);
    vecs[1].nnz = 2;
    assert_int_equal(sar_reduce_max_nnz(&desc, vecs, 3), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows_and_patterns),
        cmocka_unit_test(test_numbers_of_vecs),
        cmocka_unit_test(test_full_vectors),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_types_and_ops),
        cmocka_unit_test(test_float16),
        cmocka_unit_test(test_wide_indices),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_pairs_of_nans),
        cmocka_unit_test(test_densities),
        cmocka_unit_test(test_absent_elements_by_hand),
        cmocka_unit_test(test_the_order_is_that_of_the_vecs),
        cmocka_unit_test(test_the_order_within_a_run),
        cmocka_unit_test(test_a_used_arena),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_bounds),
    };
    return TEAMS_RUN_SMALL(tests, NULL, NULL);
}
