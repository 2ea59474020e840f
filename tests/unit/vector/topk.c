/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests selection of the largest elements against a sort, and the velocity and residual after a step of DGC
 * against the formula. All tests run with one thread and with several. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "teams.h"
#include "vector/half.h"
#include "vector/magnitude.h"
#include "vector/topk.h"

/* Counts at the boundaries of groups and blocks. */
static const size_t counts[] = { 0, 1, 2, 15, 16, 17, 1023, 1024, 1025, 3000, 5121 };
static const enum sar_dtype floats[] = { SAR_FLOAT, SAR_DOUBLE, SAR_BF16, SAR_FP16 };

struct element {
    uint64_t magnitude;
    size_t index;
};

/* Order by descending magnitude, then by index. */
static int by_magnitude(const void *a, const void *b)
{
    const struct element *x = a, *y = b;
    if (x->magnitude != y->magnitude)
        return x->magnitude < y->magnitude ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

static int by_index(const void *a, const void *b)
{
    const struct element *x = a, *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

/* Sort all elements; returns the number to select. These come first, in ascending order of index. */
static size_t choose(const struct sar_dgc *of, uint64_t least, size_t capacity, struct element *e)
{
    size_t n = 0, count = (size_t)of->count;
    for (size_t i = 0; i < count; i++)
        e[i] = (struct element){ sar_magnitude(of->dtype, of->values, i), i };
    qsort(e, count, sizeof *e, by_magnitude);
    while (n < count && n < capacity && e[n].magnitude >= least && e[n].magnitude > 0)
        n++;
    qsort(e, n, sizeof *e, by_index);
    return n;
}

static void check_selection(const struct sar_vec_desc *desc, const struct sar_dgc *of, uint64_t least,
                            size_t capacity)
{
    struct sar_arena arena = { 0 };
    struct sar_topk topk;
    struct element *expected = exact_alloc(((size_t)of->count + 1) * sizeof *expected);
    assert_int_equal(sar_topk_open(desc, capacity, &arena, &topk), SAR_OK);
    sar_topk_select(&topk, of, least);
    size_t n = choose(of, least, capacity, expected), bytes = desc->element_size;
    assert_int_equal(topk.vec.nnz, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(sar_index_get(topk.vec.index, desc->index_size, i), expected[i].index);
        assert_memory_equal((char *)topk.vec.value + i * bytes,
                            (char *)of->values + expected[i].index * bytes, bytes);
    }
    free(expected);
    sar_arena_free(&arena);
}

/* A magnitude that some element has. */
static uint64_t any_magnitude(const struct sar_dgc *of, struct rng *rng)
{
    return of->count == 0 ? 1 : sar_magnitude(of->dtype, of->values, rng_below(rng, of->count));
}

static void check_selections(enum sar_dtype base, size_t count, enum values kind, unsigned index_size)
{
    struct rng rng = { count * 10 + kind };
    struct sar_vec_desc desc = vec_desc_make(base, SAR_SUM, count, 1);
    struct sar_dgc of = { .dtype = base, .count = count, .values = exact_alloc(count * desc.element_size) };
    size_t capacities[] = { 0, 1, 7, count / 20, count / 3, count };
    values_fill(base, kind, of.values, count, &rng);
    desc.index_size = index_size;
    for (size_t i = 0; i < LENGTH(capacities); i++) {
        check_selection(&desc, &of, 0, capacities[i]);
        check_selection(&desc, &of, any_magnitude(&of, &rng), capacities[i]);
        check_selection(&desc, &of, sar_magnitude_infinite(base), capacities[i]);
    }
    free(of.values);
}

static void test_the_largest_are_selected(void **state)
{
    (void)state;
    for (size_t b = 0; b < LENGTH(floats); b++)
        for (size_t c = 0; c < LENGTH(counts); c++)
            for (int kind = VALUES_INEXACT; kind <= VALUES_EXACT; kind++) {
                check_selections(floats[b], counts[c], (enum values)kind, 4);
                check_selections(floats[b], counts[c], (enum values)kind, 8);
            }
}

static int descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

static void test_the_kth_largest(void **state)
{
    enum { N = 700 };
    struct rng rng = { 5 };
    uint64_t magnitudes[N], sorted[N];
    (void)state;
    for (size_t b = 0; b < LENGTH(floats); b++) {
        for (size_t k = 1; k <= N; k += 1 + rng_below(&rng, 60)) {
            uint64_t limit = k % 2 == 0 ? sar_magnitude_max(floats[b]) : 9;
            for (int i = 0; i < N; i++)
                magnitudes[i] = sorted[i] = rng_below(&rng, limit);
            qsort(sorted, N, sizeof *sorted, descending);
            assert_int_equal(sar_magnitude_select(floats[b], magnitudes, N, k), sorted[k - 1]);
        }
    }
}

/* The smallest magnitude not below a number. */
static void test_magnitudes_of_numbers(void **state)
{
    static const double numbers[] = { 0,    1e-320,   1e-45,   1e-40,  5.9e-8,  6e-5,  0.1,
                                      1,    1 + 1e-9, 1.5,     1.0003, 65504,   65519, 65521,
                                      1e10, 3.39e38,  3.41e38, 1e300,  INFINITY };
    (void)state;
    for (size_t b = 0; b < LENGTH(floats); b++) {
        for (size_t i = 0; i < LENGTH(numbers); i++) {
            uint64_t magnitude = sar_magnitude_ceil(floats[b], numbers[i]);
            assert_true(sar_magnitude_to_double(floats[b], magnitude) >= numbers[i]);
            assert_true(magnitude == 0 || sar_magnitude_to_double(floats[b], magnitude - 1) < numbers[i]);
        }
        uint64_t last = sar_magnitude_max(floats[b]), infinite = sar_magnitude_infinite(floats[b]);
        assert_true(infinite < last && isinf(sar_magnitude_to_double(floats[b], last)));
        assert_true(isfinite(sar_magnitude_to_double(floats[b], infinite - 1)));
    }
    assert_false(sar_magnitude_defined(SAR_INT32));
}

static void test_samples(void **state)
{
    enum { COUNT = 1000 };
    float values[COUNT];
    uint64_t magnitudes[COUNT], again[COUNT];
    struct sar_dgc of = { .dtype = SAR_FLOAT, .count = COUNT, .values = values };
    (void)state;
    for (int i = 0; i < COUNT; i++)
        values[i] = i % 2 == 0 ? (float)i : -(float)i;
    sar_dgc_sample(&of, COUNT, 1, magnitudes);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(magnitudes[i], sar_magnitude(SAR_FLOAT, values, i));
    for (size_t n = 0; n < COUNT; n += 37) {
        sar_dgc_sample(&of, n, 7, magnitudes);
        sar_dgc_sample(&of, n, 7, again);
        assert_memory_equal(magnitudes, again, n * sizeof *magnitudes);
        for (size_t i = 0; i < n; i++)
            assert_in_range((size_t)sar_magnitude_to_double(SAR_FLOAT, magnitudes[i]), i * (COUNT / n),
                            (i + 1) * (COUNT / n + 1));
    }
}

static float wide(enum sar_dtype base, const uint16_t *v, size_t i)
{
    return sar_float_from_bits(base == SAR_BF16 ? sar_from_bf16(v[i]) : sar_from_fp16(v[i]));
}

static uint16_t narrow(enum sar_dtype base, float value)
{
    return base == SAR_BF16 ? sar_to_bf16(sar_float_bits(value)) : sar_to_fp16(sar_float_bits(value));
}

/* Compute one element by the formula, rounded after each operation. */
static void reference_step(const struct sar_dgc *of, size_t i)
{
    if (of->dtype == SAR_FLOAT) {
        float *velocity = of->velocity, *value = of->values;
        volatile float kept = (float)of->momentum * velocity[i];
        volatile float added = (float)of->scale * ((const float *)of->gradient)[i];
        velocity[i] = kept + added;
        value[i] += velocity[i];
    } else if (of->dtype == SAR_DOUBLE) {
        double *velocity = of->velocity, *value = of->values;
        volatile double kept = of->momentum * velocity[i];
        volatile double added = of->scale * ((const double *)of->gradient)[i];
        velocity[i] = kept + added;
        value[i] += velocity[i];
    } else {
        uint16_t *velocity = of->velocity, *value = of->values;
        volatile float kept = (float)of->momentum * wide(of->dtype, velocity, i);
        volatile float added = (float)of->scale * wide(of->dtype, of->gradient, i);
        velocity[i] = narrow(of->dtype, kept + added);
        value[i] = narrow(of->dtype, wide(of->dtype, value, i) + wide(of->dtype, velocity, i));
    }
}

static void test_dgc_step_matches_formula(void **state)
{
    enum { COUNT = 2500, WIDEST = 8 };
    static char gradient[COUNT * WIDEST], velocity[2][COUNT * WIDEST], value[2][COUNT * WIDEST];
    static uint64_t foreseen[COUNT];
    (void)state;
    for (size_t b = 0; b < LENGTH(floats); b++) {
        struct rng rng = { b + 1 };
        struct sar_dgc ours = { floats[b], COUNT, value[0], gradient, velocity[0], 0.9, 0.37, false },
                       theirs = ours;
        size_t bytes = vec_desc_make(floats[b], SAR_SUM, COUNT, 1).element_size * COUNT;
        values_fill(floats[b], VALUES_INEXACT, gradient, COUNT, &rng);
        values_fill(floats[b], VALUES_INEXACT, velocity[0], COUNT, &rng);
        values_fill(floats[b], VALUES_INEXACT, value[0], COUNT, &rng);
        theirs.values = memcpy(value[1], value[0], bytes);
        theirs.velocity = memcpy(velocity[1], velocity[0], bytes);
        sar_dgc_sample(&ours, COUNT, 1, foreseen);
        sar_dgc_update(&ours, 0, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            reference_step(&theirs, i);
            assert_int_equal(foreseen[i], sar_magnitude(floats[b], ours.values, i));
        }
        assert_memory_equal(value[0], value[1], bytes);
        assert_memory_equal(velocity[0], velocity[1], bytes);
    }
}

static void set_bits(void *element, size_t bytes, uint64_t bits)
{
    uint16_t half = (uint16_t)bits;
    uint32_t word = (uint32_t)bits;
    memcpy(element, bytes == 2 ? (void *)&half : bytes == 4 ? (void *)&word : (void *)&bits, bytes);
}

/* One of three selected elements is finite. */
static void check_clearing(enum sar_dtype base, bool masking)
{
    enum { COUNT = 7, SELECTED = 3, WIDEST = 8 };
    static const char zeros[WIDEST] = { 0 };
    uint64_t places[SELECTED] = { 1, 3, 5 };
    _Alignas(uint64_t) char value[COUNT * WIDEST], velocity[COUNT * WIDEST];
    _Alignas(uint64_t) char before[COUNT * WIDEST], chosen[SELECTED * WIDEST];
    struct sar_vec_desc desc = vec_desc_make(base, SAR_SUM, COUNT, 1);
    struct sar_dgc of = { .dtype = base, .count = COUNT, .values = value, .velocity = velocity };
    struct sar_spvec vec = { places, chosen, SELECTED };
    size_t bytes = desc.element_size;
    of.masking = masking;
    desc.index_size = sizeof *places;
    memset(value, 0x11, sizeof value);
    memset(velocity, 0x11, sizeof velocity);
    set_bits(value + 3 * bytes, bytes, sar_magnitude_infinite(base));
    set_bits(value + 5 * bytes, bytes, sar_magnitude_max(base));
    memcpy(before, velocity, sizeof before);
    for (size_t i = 0; i < SELECTED; i++)
        memcpy(chosen + i * bytes, value + places[i] * bytes, bytes);
    sar_dgc_clear(&of, &desc, &vec);
    for (size_t i = 0; i < COUNT; i++) {
        bool selected = i % 2 == 1, gone = selected && (masking || i != places[0]);
        assert_memory_equal(value + i * bytes, selected ? zeros : before, bytes);
        assert_memory_equal(velocity + i * bytes, gone ? zeros : before, bytes);
    }
}

static void test_non_finite_elements_are_cleared(void **state)
{
    (void)state;
    for (size_t b = 0; b < LENGTH(floats); b++) {
        check_clearing(floats[b], false);
        check_clearing(floats[b], true);
    }
}

enum { LONG = 700007 };

/* Values with velocities and gradients, and the memory that they are in. */
static struct sar_dgc long_dgc(enum sar_dtype base, bool corrects)
{
    size_t bytes = base_size(base) * LONG;
    struct rng rng = { 7 };
    struct sar_dgc of = { base, LONG, exact_alloc(bytes), exact_alloc(bytes), exact_alloc(bytes), 0.9,
                          0.5,  true };
    values_fill(base, VALUES_INEXACT, of.values, LONG, &rng);
    values_fill(base, corrects ? VALUES_INEXACT : VALUES_SPECIAL, (void *)of.gradient, LONG, &rng);
    memset(of.velocity, 0, bytes);
    if (corrects)
        return of;
    memcpy(of.values, of.gradient, bytes);
    free((void *)of.gradient);
    of.gradient = NULL;
    return of;
}

static void dgc_free(struct sar_dgc *of)
{
    free(of->values);
    free((void *)of->gradient);
    free(of->velocity);
}

/* Returns the result of one step with so many threads. */
static struct sar_topk step_with(int threads, const struct sar_dgc *of, struct rng aim,
                                 struct sar_arena *arena)
{
    struct sar_vec_desc desc = vec_desc_make(of->dtype, SAR_SUM, LONG, 1);
    size_t capacities[] = { 0, 100, LONG / 50, LONG / 3, LONG };
    struct sar_topk topk;
    uint64_t least = rng_below(&aim, 4) == 0 ? 1 : any_magnitude(of, &aim);
    size_t capacity = capacities[rng_below(&aim, LENGTH(capacities))];
    struct sar_parallel former = sar_parallel_begin((struct sar_parallel){ .threads = threads });
    assert_int_equal(sar_topk_open(&desc, capacity, arena, &topk), SAR_OK);
    sar_topk_select(&topk, of, least);
    sar_dgc_clear(of, &desc, &topk.vec);
    sar_parallel_end(former);
    return topk;
}

/* Selections, values and velocities have the bytes that one thread makes. */
static void check_long(enum sar_dtype base, bool corrects)
{
    struct sar_dgc ours = long_dgc(base, corrects), alone = long_dgc(base, corrects);
    size_t bytes = base_size(base);
    for (uint64_t k = 0; k < 8; k++) {
        struct sar_arena arenas[2] = { { 0 }, { 0 } };
        struct rng aim = { k * 10 + (uint64_t)base };
        struct sar_topk expected = step_with(1, &alone, aim, &arenas[0]),
                        topk = step_with(sar_parallel_threads(), &ours, aim, &arenas[1]);
        assert_true(topk.threshold == expected.threshold);
        assert_int_equal(topk.vec.nnz, expected.vec.nnz);
        assert_true(memcmp(topk.vec.index, expected.vec.index, topk.vec.nnz * sizeof(uint32_t)) == 0);
        assert_true(memcmp(topk.vec.value, expected.vec.value, topk.vec.nnz * bytes) == 0);
        assert_true(memcmp(ours.values, alone.values, LONG * bytes) == 0);
        assert_true(memcmp(ours.velocity, alone.velocity, LONG * bytes) == 0);
        sar_arena_free(&arenas[0]);
        sar_arena_free(&arenas[1]);
    }
    dgc_free(&ours);
    dgc_free(&alone);
}

static void test_long_vectors(void **state)
{
    (void)state;
    for (size_t b = 0; b < LENGTH(floats); b++) {
        check_long(floats[b], false);
        check_long(floats[b], true);
    }
}

static void test_long_selections_and_samples(void **state)
{
    uint64_t *magnitudes = exact_alloc(LONG * sizeof *magnitudes), *alone = exact_alloc(LONG * sizeof *alone);
    (void)state;
    for (size_t k = 0; k < 2 * LENGTH(floats); k++) {
        struct sar_dgc of = long_dgc(floats[k / 2], k % 2 == 0);
        size_t n = k == 0 ? LONG : LONG / 5, at = 1 + n / (k + 2);
        struct sar_parallel former = sar_parallel_begin((struct sar_parallel){ .threads = 1 });
        sar_dgc_sample(&of, n, 3, alone);
        sar_parallel_end(former);
        sar_dgc_sample(&of, n, 3, magnitudes);
        assert_true(memcmp(magnitudes, alone, n * sizeof *alone) == 0);
        qsort(alone, n, sizeof *alone, descending);
        assert_true(sar_magnitude_select(of.dtype, magnitudes, n, at) == alone[at - 1]);
        dgc_free(&of);
    }
    free(magnitudes);
    free(alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_largest_are_selected),
        cmocka_unit_test(test_the_kth_largest),
        cmocka_unit_test(test_magnitudes_of_numbers),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_dgc_step_matches_formula),
        cmocka_unit_test(test_non_finite_elements_are_cleared),
        cmocka_unit_test(test_long_vectors),
        cmocka_unit_test(test_long_selections_and_samples),
    };
    return TEAMS_RUN(tests, NULL, NULL);
}
