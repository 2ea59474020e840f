/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests conversion between dense buffers and vectors, against plain loops over bytes. Buffers have exactly
 * their size, and begin at an aligned address or one basic value after it. All tests run with one thread and
 * with several. */

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
#include "vector/dense.h"

/* Counts at the boundaries of the scan's groups and strides. */
static const size_t counts[] = { 0,    1,    2,    15,   16,   17,   31,   32,   33,   63,   64,    65,
                                 4095, 4096, 4097, 4111, 4112, 4113, 8191, 8192, 8193, 9000, 20000, 40961 };

static const double densities[] = { 0, 0.0005, 0.01, 0.1, 0.5, 0.9, 1 };

/* Elements of 2, 4, 8, 12 and 256 bytes, a long row, and rows as long as a value. */
static const struct {
    enum sar_dtype base;
    size_t row;
} elements[] = { { SAR_BF16, 1 },  { SAR_FLOAT, 1 },  { SAR_INT64, 1 },  { SAR_DOUBLE, 1 },
                 { SAR_INT32, 3 }, { SAR_FLOAT, 64 }, { SAR_DOUBLE, 5 }, { SAR_FLOAT, 2 },
                 { SAR_BF16, 2 },  { SAR_BF16, 4 },   { SAR_INT8, 1 },   { SAR_UINT8, 2 },
                 { SAR_UINT8, 3 }, { SAR_INT8, 4 },   { SAR_INT8, 8 },   { SAR_INT8, 13 } };

static struct sar_vec_desc element_shape(size_t kind, size_t count)
{
    return vec_desc_make(elements[kind].base, SAR_SUM, count, elements[kind].row);
}

/* A dense buffer and its position in its memory. */
struct buffer {
    unsigned char *memory, *start;
    size_t bytes;
};

static struct buffer buffer_make(const struct sar_vec_desc *desc, bool shifted)
{
    size_t bytes = (size_t)desc->count * desc->element_size, gap = shifted ? desc->kernels->size : 0;
    unsigned char *memory = memset(exact_alloc(bytes + gap), 0, bytes + gap);
    return (struct buffer){ memory, memory + gap, bytes };
}

/* Set bits in some elements: one bit at any position, all bits, or a random value. The rest is zero. */
static void scatter_bits(const struct sar_vec_desc *desc, double density, struct rng *rng,
                         unsigned char *start)
{
    size_t size = desc->element_size;
    for (size_t i = 0; i < desc->count; i++) {
        unsigned char *element = start + i * size;
        if (rng_unit(rng) >= density)
            continue;
        switch (rng_below(rng, 3)) {
        case 0: element[rng_below(rng, size)] = (unsigned char)(1u << rng_below(rng, 8)); break;
        case 1: memset(element, 0xff, size); break;
        default: values_fill(desc->dtype, VALUES_SPECIAL, element, desc->row_len, rng); break;
        }
    }
}

static bool is_present(const struct sar_vec_desc *desc, const unsigned char *start, size_t i)
{
    for (size_t k = 0; k < desc->element_size; k++) {
        if (start[i * desc->element_size + k] != 0)
            return true;
    }
    return false;
}

static size_t reference_count(const struct sar_vec_desc *desc, const unsigned char *start, size_t n)
{
    size_t counted = 0;
    for (size_t i = 0; i < n; i++)
        counted += is_present(desc, start, i);
    return counted;
}

static void check_run(const struct sar_vec_desc *desc, const unsigned char *start,
                      const struct sar_spvec *vec)
{
    size_t k = 0, size = desc->element_size;
    for (size_t i = 0; i < desc->count; i++) {
        if (!is_present(desc, start, i))
            continue;
        assert_true(k < vec->nnz);
        assert_true(sar_index_get(vec->index, desc->index_size, k) == i);
        assert_true(memcmp((const char *)vec->value + k * size, start + i * size, size) == 0);
        k++;
    }
    assert_int_equal(k, vec->nnz);
}

static void check_compact(const struct sar_vec_desc *desc, const struct buffer *buffer, size_t expected)
{
    struct sar_arena arena = { 0 };
    struct sar_spvec vec;
    assert_int_equal(sar_dense_compact(desc, buffer->start, expected, &arena, &vec), SAR_OK);
    check_run(desc, buffer->start, &vec);
    sar_arena_free(&arena);
}

/* Estimates that are exact, too small, too large, and absurd. */
static void check_guesses(const struct sar_vec_desc *desc, const struct buffer *buffer)
{
    size_t present = reference_count(desc, buffer->start, (size_t)desc->count);
    size_t guesses[] = { present, 0, 1, present / 2, present + 1, 2 * (size_t)desc->count };
    for (size_t g = 0; g < LENGTH(guesses); g++)
        check_compact(desc, buffer, guesses[g]);
}

/* Every element size, density and count, except long vectors of large elements. */
static void for_all_buffers(void (*check)(const struct sar_vec_desc *desc, const struct buffer *buffer))
{
    for (size_t k = 0; k < LENGTH(elements) * LENGTH(densities) * LENGTH(counts); k++) {
        struct rng rng = { k };
        struct sar_vec_desc desc =
            element_shape(k % LENGTH(elements), counts[k / LENGTH(elements) % LENGTH(counts)]);
        double density = densities[k / LENGTH(elements) / LENGTH(counts)];
        if (desc.element_size * desc.count > 400000)
            continue;
        struct buffer buffer = buffer_make(&desc, rng_below(&rng, 2) == 1);
        desc.index_size = rng_below(&rng, 3) == 0 ? 8 : 4;
        scatter_bits(&desc, density, &rng, buffer.start);
        check(&desc, &buffer);
        free(buffer.memory);
    }
}

static void test_compact(void **state)
{
    (void)state;
    for_all_buffers(check_guesses);
}

/* Every range of 64 elements has the same number of non-zeros, zero to eight, at its begin or end. */
static void test_few_together(void **state)
{
    enum { COUNT = 8192, TOGETHER = 64 };
    (void)state;
    for (size_t k = 0; k < 2 * 2 * 9; k++) {
        size_t few = k / 4, last = TOGETHER - 1;
        struct sar_vec_desc desc = element_shape(k % 2, COUNT);
        struct buffer buffer = buffer_make(&desc, false);
        for (size_t i = 0; i < COUNT / TOGETHER * few; i++) {
            size_t at = k / 2 % 2 == 0 ? i % few : last - i % few;
            buffer.start[(i / few * TOGETHER + at) * desc.element_size] = (unsigned char)(1 + i % 100);
        }
        check_compact(&desc, &buffer, COUNT / TOGETHER * few);
        free(buffer.memory);
    }
}

static void check_counts(const struct sar_vec_desc *desc, const struct buffer *buffer)
{
    static const size_t prefixes[] = { 0, 1, 5, 64, 4096, SIZE_MAX };
    for (size_t p = 0; p < LENGTH(prefixes); p++) {
        size_t n = prefixes[p] < desc->count ? prefixes[p] : (size_t)desc->count;
        assert_int_equal(sar_dense_count_nonzero(desc, buffer->start, n),
                         reference_count(desc, buffer->start, n));
    }
}

static void test_count(void **state)
{
    (void)state;
    for_all_buffers(check_counts);
}

/* Buffers shorter than a group are counted completely. Otherwise the estimate is close, and exact for empty
 * and full buffers. */
static void check_estimates(const struct sar_vec_desc *desc, const struct buffer *buffer)
{
    size_t count = (size_t)desc->count, present = reference_count(desc, buffer->start, count);
    struct sar_quantiles quantiles;
    assert_int_equal(sar_dense_estimate_nonzero(desc, buffer->start, 0, &quantiles), present);
    assert_int_equal(sar_dense_estimate_nonzero(desc, buffer->start, count, &quantiles), present);
    size_t about = sar_dense_estimate_nonzero(desc, buffer->start, count / 2, &quantiles);
    assert_in_range(about, 0, count);
    if (present == 0 || present == count)
        assert_int_equal(about, present);
    if (count > 10000 && desc->row_len == 1)
        assert_true(fabs((double)about - (double)present) < 0.05 * (double)count);
}

static void test_estimate(void **state)
{
    (void)state;
    for_all_buffers(check_estimates);
}

/* Scattering a vector restores its buffer and leaves other elements unchanged. Clearing zeroes its elements
 * and no others. */
static void check_scatter(const struct sar_vec_desc *desc, const struct buffer *buffer)
{
    struct sar_arena arena = { 0 };
    struct sar_spvec vec;
    struct buffer other = buffer_make(desc, false);
    size_t size = desc->element_size;
    assert_int_equal(sar_dense_compact(desc, buffer->start, 0, &arena, &vec), SAR_OK);
    sar_dense_scatter(desc, &vec, other.start);
    assert_true(memcmp(other.start, buffer->start, buffer->bytes) == 0);
    memset(other.start, 0x77, other.bytes);
    sar_dense_scatter(desc, &vec, other.start);
    for (size_t i = 0; i < desc->count; i++) {
        if (is_present(desc, buffer->start, i))
            assert_true(memcmp(other.start + i * size, buffer->start + i * size, size) == 0);
        else
            assert_true(other.start[i * size] == 0x77 && other.start[(i + 1) * size - 1] == 0x77);
    }
    memset(other.start, 0x77, other.bytes);
    sar_dense_clear(desc, &vec, other.start);
    for (size_t i = 0; i < desc->count; i++) {
        unsigned char wanted = is_present(desc, buffer->start, i) ? 0 : 0x77;
        for (size_t b = 0; b < size; b++)
            assert_true(other.start[i * size + b] == wanted);
    }
    sar_arena_free(&arena);
    free(other.memory);
}

static void test_scatter_and_clear(void **state)
{
    (void)state;
    for_all_buffers(check_scatter);
}

/* sar_spvec_drop_zeros keeps the elements that the scan finds, and does not write to the old arrays. */
static void check_drop(const struct sar_vec_desc *desc, const struct buffer *buffer)
{
    struct sar_arena arena = { 0 };
    struct sar_spvec found, all = spvec_alloc(desc, (size_t)desc->count), vec = all, before;
    for (size_t i = 0; i < all.nnz; i++)
        sar_index_set(all.index, desc->index_size, i, i);
    if (all.nnz != 0)
        memcpy(all.value, buffer->start, all.nnz * desc->element_size);
    assert_int_equal(sar_spvec_drop_zeros(desc, &arena, &vec), SAR_OK);
    assert_int_equal(sar_dense_compact(desc, buffer->start, 0, &arena, &found), SAR_OK);
    assert_true(spvec_equal(desc, &vec, &found));
    before = vec;
    assert_int_equal(sar_spvec_drop_zeros(desc, &arena, &vec), SAR_OK);
    assert_true(vec.index == before.index && vec.value == before.value && vec.nnz == before.nnz);
    for (size_t i = 0; i < all.nnz; i++)
        assert_int_equal(sar_index_get(all.index, desc->index_size, i), i);
    spvec_free(&all);
    sar_arena_free(&arena);
}

static void test_drop_zeros(void **state)
{
    (void)state;
    for_all_buffers(check_drop);
}

/* An element is zero if all its bits are. */
static void test_zero_is_decided_by_bits(void **state)
{
    static const float floats[] = { 0, -0.0f, 1e-45f, NAN, 0, 5, 0 };
    static const uint32_t floats_kept[] = { 1, 2, 3, 5 };
    static const double doubles[] = { -0.0, 0, 5e-324, 0, NAN };
    static const uint32_t doubles_kept[] = { 0, 2, 4 };
    struct sar_vec_desc four = vec_desc_make(SAR_FLOAT, SAR_SUM, LENGTH(floats), 1);
    struct sar_vec_desc eight = vec_desc_make(SAR_DOUBLE, SAR_SUM, LENGTH(doubles), 1);
    struct sar_arena arena = { 0 };
    struct sar_spvec vec;
    (void)state;
    assert_int_equal(sar_dense_compact(&four, floats, 0, &arena, &vec), SAR_OK);
    assert_int_equal(vec.nnz, LENGTH(floats_kept));
    assert_memory_equal(vec.index, floats_kept, sizeof floats_kept);
    assert_int_equal(sar_dense_compact(&eight, doubles, 0, &arena, &vec), SAR_OK);
    assert_int_equal(vec.nnz, LENGTH(doubles_kept));
    assert_memory_equal(vec.index, doubles_kept, sizeof doubles_kept);
    sar_arena_free(&arena);
}

/* A -0.0 is found at any position. An integer with its bits, or half of another value, is not mistaken for
 * it. */
static void test_negative_zero(void **state)
{
    enum { MOST = 70 };
    (void)state;
    for (size_t n = 0; n <= MOST; n++) {
        float floats[MOST + 1] = { 0 };
        double doubles[MOST + 1] = { 0 };
        for (size_t i = 0; i < n; i++) {
            floats[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? -1e-45f : 0;
            doubles[i] = i % 3 == 0 ? -INFINITY : i % 3 == 1 ? -2 - 0x1p-21 : 0;
        }
        floats[n] = doubles[n] = -0.0f;
        assert_false(sar_dense_has_negative_zero(SAR_FLOAT, floats, n));
        assert_false(sar_dense_has_negative_zero(SAR_DOUBLE, doubles, n));
        for (size_t place = 0; place < n; place++) {
            float kept4 = floats[place];
            double kept8 = doubles[place];
            floats[place] = doubles[place] = -0.0f;
            assert_true(sar_dense_has_negative_zero(SAR_FLOAT, floats, n));
            assert_true(sar_dense_has_negative_zero(SAR_DOUBLE, doubles, n));
            for (unsigned base = SAR_INT8; base <= SAR_UINT64; base++)
                assert_false(sar_dense_has_negative_zero((enum sar_dtype)base, doubles, n));
            floats[place] = kept4;
            doubles[place] = kept8;
        }
    }
}

/* It is found during compaction, at the boundaries of the scan's blocks, also in a row, and not after the
 * last element. */
static void test_negative_zero_in_a_buffer(void **state)
{
    enum { COUNT = 9001, ROWS = 4 };
    static const size_t places[] = { 0, 1, 4095, 4096, 4097, 8191, 8192, COUNT - 1, COUNT };
    static float floats[(COUNT + 1) * ROWS];
    (void)state;
    for (size_t k = 0; k < LENGTH(places) * ROWS; k++) {
        size_t row = k % ROWS + 1, place = places[k / ROWS];
        struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, COUNT, row);
        struct sar_arena arena = { 0 };
        struct sar_spvec vec;
        for (size_t i = 0; i < LENGTH(floats); i++)
            floats[i] = i / row % 5 == 0 ? -1 : 0;
        floats[place * row + row - 1] = -0.0f;
        assert_int_equal(sar_dense_compact(&desc, floats, k * 300, &arena, &vec), SAR_OK);
        assert_int_equal(sar_dense_has_negative_zero(SAR_FLOAT, vec.value, vec.nnz * row), place < COUNT);
        sar_arena_free(&arena);
    }
}

/* A sign bit alone, in both 16-bit types. */
static void test_negative_zero_of_float16(void **state)
{
    uint16_t halves[] = { 0, 0x8001, 0x7fff, 0xffff, 0x8000 };
    (void)state;
    for (unsigned base = SAR_BF16; base <= SAR_FP16; base++) {
        assert_false(sar_dense_has_negative_zero((enum sar_dtype)base, halves, LENGTH(halves) - 1));
        assert_true(sar_dense_has_negative_zero((enum sar_dtype)base, halves, LENGTH(halves)));
    }
}

/* The low half of a double may look like a float's -0.0, and two floats like a double's. */
static void test_half_values_are_not_negative_zeros(void **state)
{
    static const uint64_t low_half = 0x3ff0000080000000;
    static const uint32_t pair[] = { 0x00000001, 0x80000001, 0x00000000, 0x3f800000 };
    (void)state;
    assert_false(sar_dense_has_negative_zero(SAR_DOUBLE, &low_half, 1));
    assert_false(sar_dense_has_negative_zero(SAR_FLOAT, pair, 4));
}

enum spread { EVEN, FIRST_HALF, LAST_ELEMENTS, NOTHING, SPREADS };

/* Set elements of a buffer with a density of 0.01 or 0.7, in all of it or in some part. */
static void fill_spread(const struct sar_vec_desc *desc, enum spread spread, double density,
                        unsigned char *start)
{
    struct rng rng = { spread };
    size_t count = (size_t)desc->count, from = spread == LAST_ELEMENTS ? count - 9999 : 0,
           to = spread == NOTHING      ? 0
                : spread == FIRST_HALF ? count / 2
                                       : count;
    for (size_t i = from; i < to; i++)
        if (rng_unit(&rng) < density)
            start[i * desc->element_size + i % desc->element_size] = (unsigned char)(1 + i % 200);
}

/* Buffers of several waves of several pieces: the arrays have the bytes that one thread makes. Scratch memory
 * goes back to the arena. */
static void check_waves(size_t kind, enum spread spread, double density)
{
    enum { BYTES = 9 << 20 };
    struct sar_vec_desc desc = element_shape(kind, 1);
    desc.count = BYTES / desc.element_size + 77;
    struct buffer buffer = buffer_make(&desc, kind % 2 == 0);
    struct sar_arena arenas[2] = { { 0 }, { 0 } };
    struct sar_spvec vec, alone;
    fill_spread(&desc, spread, density, buffer.start);
    size_t present = reference_count(&desc, buffer.start, (size_t)desc.count);
    assert_int_equal(sar_dense_count_nonzero(&desc, buffer.start, (size_t)desc.count), present);
    assert_int_equal(sar_dense_compact(&desc, buffer.start, present, &arenas[0], &vec), SAR_OK);
    check_run(&desc, buffer.start, &vec);
    if (present > 0 && sar_parallel_threads() > 1)
        assert_in_range(arenas[0].used, 0,
                        (present * 9 / 8 + 4200) * (desc.element_size + desc.index_size) + 200);
    struct sar_parallel former = sar_parallel_begin((struct sar_parallel){ .threads = 1 });
    assert_int_equal(sar_dense_compact(&desc, buffer.start, 0, &arenas[1], &alone), SAR_OK);
    sar_parallel_end(former);
    assert_true(spvec_equal(&desc, &vec, &alone));
    sar_arena_free(&arenas[0]);
    sar_arena_free(&arenas[1]);
    free(buffer.memory);
}

static void test_waves(void **state)
{
    static const size_t kinds[] = { 0, 1, 2, 4, 15 };
    (void)state;
    for (size_t k = 0; k < LENGTH(kinds); k++) {
        for (int spread = 0; spread < SPREADS; spread++)
            check_waves(kinds[k], (enum spread)spread, 0.01);
        check_waves(kinds[k], EVEN, 0.7);
        check_waves(kinds[k], FIRST_HALF, 0.7);
    }
}

/* Long vectors in any pieces: scattered, cleared and searched, with or without zeros to drop. */
static void test_long_vectors(void **state)
{
    enum { COUNT = 300007 };
    static const size_t kinds[] = { 0, 1, 3, 4, 10 };
    (void)state;
    for (size_t k = 0; k < LENGTH(kinds); k++) {
        struct sar_vec_desc desc = element_shape(kinds[k], COUNT);
        struct buffer buffer = buffer_make(&desc, false);
        struct rng rng = { k };
        scatter_bits(&desc, 0.4, &rng, buffer.start);
        check_scatter(&desc, &buffer);
        check_drop(&desc, &buffer);
        memset(buffer.start, 1, buffer.bytes);
        check_drop(&desc, &buffer);
        memset(buffer.start, 0, buffer.bytes);
        assert_false(sar_dense_has_negative_zero(desc.dtype, buffer.start, COUNT));
        buffer.start[buffer.bytes / 3 * 2 / 8 * 8 + 7] = 0x80;
        if (desc.dtype != SAR_INT8 && desc.dtype != SAR_INT32 && desc.element_size == 8)
            assert_true(sar_dense_has_negative_zero(desc.dtype, buffer.start, COUNT));
        free(buffer.memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compact),
        cmocka_unit_test(test_few_together),
        cmocka_unit_test(test_count),
        cmocka_unit_test(test_estimate),
        cmocka_unit_test(test_scatter_and_clear),
        cmocka_unit_test(test_drop_zeros),
        cmocka_unit_test(test_zero_is_decided_by_bits),
        cmocka_unit_test(test_negative_zero),
        cmocka_unit_test(test_negative_zero_in_a_buffer),
        cmocka_unit_test(test_negative_zero_of_float16),
        cmocka_unit_test(test_half_values_are_not_negative_zeros),
        cmocka_unit_test(test_waves),
        cmocka_unit_test(test_long_vectors),
    };
    return TEAMS_RUN(tests, NULL, NULL);
}
