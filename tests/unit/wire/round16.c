/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests 16-bit floats: each of them, the midpoints between them, and all sorts of floats, against a reference
 * that computes with numbers instead of bits. Also tests their messages. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "teams.h"
#include "wire/round16.h"

enum { ALL = 1 << 16, KINDS = 2 };

/* A 16-bit format; one bit of the significand is not stored. */
static const struct format {
    const char *name;
    enum sar_wire_precision values;
    int significand, least, most; /* bits; exponents of the smallest and the largest normal number */
} formats[KINDS] = { { "bf16", SAR_PRECISION_BF16, 8, -126, 127 },
                     { "fp16", SAR_PRECISION_FP16, 11, -14, 15 } };

static struct sar_wire_layout layout_of(const struct format *format, uint64_t span)
{
    return (struct sar_wire_layout){
        .slots = span, .element_size = 2, .row_len = 1, .index_size = 4, .precision = format->values
    };
}

/* The number that the bits represent. */
static double meaning(const struct format *format, uint32_t bits)
{
    int stored = format->significand - 1, exponent = (int)(bits >> stored & (0x7fffu >> stored));
    double sign = bits >> 15 == 0 ? 1 : -1, fraction = (double)(bits & ((1u << stored) - 1));
    if (exponent == 0x7fff >> stored)
        return fraction == 0 ? sign * INFINITY : NAN;
    if (exponent == 0)
        return sign * ldexp(fraction, format->least - stored);
    return sign * ldexp(fraction + ldexp(1, stored), exponent - 1 + format->least - stored);
}

/* The nearest number of a format; ties go to even. */
static double nearest(const struct format *format, double value)
{
    int exponent;
    if (!isfinite(value) || value == 0)
        return value;
    frexp(value, &exponent);
    exponent = exponent - 1 < format->least ? format->least : exponent - 1;
    double unit = ldexp(1, exponent - (format->significand - 1)), rounded = rint(value / unit) * unit;
    return fabs(rounded) < ldexp(1, format->most + 1) ? copysign(rounded, value) : copysign(INFINITY, value);
}

static bool same(double found, double expected)
{
    if (isnan(expected))
        return isnan(found);
    return found == expected && signbit(found) == signbit(expected);
}

/* Round n floats by all functions, in memory of exactly their size. */
static void check_rounding(const struct format *format, const float *in, size_t n)
{
    struct sar_wire_layout layout = layout_of(format, n);
    struct sar_arena arena = { 0 };
    float *copy = memcpy(exact_alloc(n * sizeof *in), in, n * sizeof *in);
    struct sar_spvec rounded = { NULL, copy, n }, narrow = rounded, there;
    assert_int_equal(sar_round16_spvec(&layout, &arena, &rounded), SAR_OK);
    assert_int_equal(sar_round16_encode(&layout, &arena, &narrow), SAR_OK);
    there = narrow;
    assert_int_equal(sar_round16_decode(&layout, &arena, &there), SAR_OK);
    assert_true(memcmp(there.value, rounded.value, n * sizeof *in) == 0);
    assert_true(memcmp(copy, in, n * sizeof *in) == 0);
    sar_round16_values(format->values, copy, n);
    assert_true(memcmp(copy, rounded.value, n * sizeof *in) == 0);
    for (size_t i = 0; i < n; i++) {
        double expected = nearest(format, in[i]), found = ((float *)rounded.value)[i];
        if (!same(found, expected) || !same(meaning(format, ((uint16_t *)narrow.value)[i]), expected))
            fail_msg("%s: %a became %a, not %a", format->name, (double)in[i], found, expected);
    }
    free(copy);
    sar_arena_free(&arena);
}

static void test_every_pattern(void **state)
{
    (void)state;
    for (const struct format *f = formats; f < formats + KINDS; f++) {
        struct sar_arena arena = { 0 };
        uint16_t all[ALL];
        for (uint32_t bits = 0; bits < ALL; bits++)
            all[bits] = (uint16_t)bits;
        struct sar_wire_layout layout = layout_of(f, ALL);
        struct sar_spvec run = { NULL, all, ALL };
        assert_int_equal(sar_round16_decode(&layout, &arena, &run), SAR_OK);
        for (uint32_t bits = 0; bits < ALL; bits++)
            assert_true(same(((float *)run.value)[bits], meaning(f, bits)));
        assert_int_equal(sar_round16_encode(&layout, &arena, &run), SAR_OK);
        for (uint32_t bits = 0; bits < ALL; bits++)
            assert_true(((uint16_t *)run.value)[bits] == bits || isnan(meaning(f, bits)));
        sar_arena_free(&arena);
    }
}

/* The midpoint of two neighbours, and the floats on both sides of it. */
static void test_middles(void **state)
{
    static float in[6 * ALL];
    (void)state;
    for (const struct format *f = formats; f < formats + KINDS; f++) {
        size_t n = 0;
        for (uint32_t bits = 0; bits + 1 < ALL / 2; bits++) {
            double low = meaning(f, bits), high = meaning(f, bits + 1);
            if (!isfinite(low) || isnan(high))
                continue;
            high = isfinite(high) ? high : ldexp(1, f->most + 1);
            float middle = (float)((low + high) / 2);
            in[n++] = middle;
            in[n++] = nextafterf(middle, 0);
            in[n++] = nextafterf(middle, INFINITY);
            for (int i = 0; i < 3; i++, n++)
                in[n] = -in[n - 3];
        }
        check_rounding(f, in, n);
    }
}

static void test_floats_of_all_kinds(void **state)
{
    enum { STEP = 1021, N = UINT32_MAX / STEP };
    static float in[N];
    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        uint32_t bits = i * STEP;
        memcpy(&in[i], &bits, sizeof bits);
    }
    for (const struct format *f = formats; f < formats + KINDS; f++)
        check_rounding(f, in, N);
}

/* Every length up to several vectors, to test the remainder of the vector loop. */
static void test_lengths(void **state)
{
    struct rng rng = { 5 };
    float in[100];
    (void)state;
    values_fill(SAR_FLOAT, VALUES_INEXACT, in, LENGTH(in), &rng);
    for (const struct format *f = formats; f < formats + KINDS; f++)
        for (size_t n = 0; n <= LENGTH(in); n++)
            check_rounding(f, in, n);
}

/* If zeros count as absent, elements that round to zero are dropped; negative zeros stay. */
static void test_underflow(void **state)
{
    uint32_t index[] = { 1, 4, 5, 7, 9 };
    float value[] = { 1, 1e-20f, -1e-20f, 0x1p-24f, 0 };
    struct sar_spvec old = { index, value, 5 }, run = old, kept = old;
    struct sar_arena arena = { 0 };
    struct sar_wire_layout layout = layout_of(&formats[1], 10);
    (void)state;
    assert_int_equal(sar_round16_spvec(&layout, &arena, &kept), SAR_OK);
    assert_int_equal(kept.nnz, 5);
    assert_ptr_equal(kept.index, index);
    layout.zero_is_absent = true;
    assert_int_equal(sar_round16_spvec(&layout, &arena, &run), SAR_OK);
    assert_int_equal(run.nnz, 3);
    assert_memory_equal(run.index, ((uint32_t[]){ 1, 5, 7 }), 3 * sizeof index[0]);
    assert_memory_equal(run.value, ((float[]){ 1, -0.0f, 0x1p-24f }), 3 * sizeof value[0]);
    assert_true(index[1] == 4 && value[1] == 1e-20f);
    sar_arena_free(&arena);
}

/* A row stays if any of its values is not zero. */
static void test_rows_that_underflow(void **state)
{
    uint32_t index[] = { 2, 3, 6 };
    float value[] = { 1e-20f, 0, 0, 1, 1e-20f, 1e-20f };
    struct sar_spvec run = { index, value, 3 };
    struct sar_arena arena = { 0 };
    struct sar_wire_layout layout = layout_of(&formats[1], 10);
    (void)state;
    layout.element_size = 4;
    layout.zero_is_absent = true;
    assert_int_equal(sar_round16_spvec(&layout, &arena, &run), SAR_OK);
    assert_int_equal(run.nnz, 1);
    assert_int_equal(*(uint32_t *)run.index, 3);
    assert_memory_equal(run.value, ((float[]){ 0, 1 }), 2 * sizeof value[0]);
    sar_arena_free(&arena);
}

static void check_message(const struct sar_msg_key *expected, const struct sar_wire *wire,
                          const struct sar_vec_desc *shape, struct sar_spvec *run)
{
    struct sar_arena arena = { 0 };
    struct sar_msg_key msg_key = *expected;
    struct sar_msg message;
    struct sar_spvec arrived;
    assert_int_equal(sar_round16_spvec(&msg_key.layout, &arena, run), SAR_OK);
    assert_int_equal(sar_msg_encode(&msg_key, wire, run, &arena, &message), SAR_OK);
    assert_int_equal(message.bytes, SAR_MSG_HEADER_BYTES + sar_wire_bytes(wire, &msg_key.layout, run));
    assert_int_equal(sar_msg_decode(&msg_key, &message, &arena, &arrived), SAR_OK);
    if (!spvec_equal(shape, run, &arrived))
        fail_msg("%s, span %llu, %zu elements of %zu bytes", wire->name,
                 (unsigned long long)msg_key.layout.slots, run->nnz, msg_key.layout.element_size);
    sar_arena_free(&arena);
}

/* Rows of 1, 2 and 3, indices of both sizes, with and without zeros that may be dropped. */
static void test_messages(void **state)
{
    enum { SPAN = 1000, VARIANTS = KINDS * 3 * 2 * 2 };
    (void)state;
    for (size_t w = 0; sar_wires[w] != NULL; w++) {
        for (unsigned k = 0; k < VARIANTS * PATTERNS; k++) {
            struct rng rng = { k };
            const struct pattern *pattern = &patterns[k / VARIANTS];
            struct sar_vec_desc shape = vec_desc_make(SAR_FLOAT, SAR_SUM, SPAN, 1 + k / KINDS % 3);
            uint64_t index[SPAN];
            shape.index_size = k / (KINDS * 3) % 2 == 0 ? 4 : 8;
            struct sar_wire_layout layout = { .slots = SPAN,
                                              .element_size = shape.row_len * 2,
                                              .row_len = shape.row_len,
                                              .index_size = shape.index_size,
                                              .zero_is_absent = k / (KINDS * 6) % 2 == 0,
                                              .precision = formats[k % KINDS].values };
            size_t nnz = pattern->choose(pattern, SPAN, SPAN, &rng, index);
            struct sar_spvec made =
                spvec_make(&shape, index, nnz, k % 5 < 2 ? VALUES_INEXACT : VALUES_SPECIAL, &rng);
            struct sar_spvec run = made;
            check_message(&(struct sar_msg_key){ layout, 1, 2, 3 }, sar_wires[w], &shape, &run);
            spvec_free(&made);
        }
    }
}

/* A message with another value type is refused, even with the same size. */
static void test_other_values(void **state)
{
    uint32_t index[] = { 3 };
    float value[] = { 1 };
    struct sar_spvec run = { index, value, 1 }, arrived;
    (void)state;
    for (size_t w = 0; sar_wires[w] != NULL; w++) {
        for (int from = SAR_PRECISION_FULL; from <= SAR_PRECISION_FP16; from++) {
            for (int to = SAR_PRECISION_FULL; to <= SAR_PRECISION_FP16; to++) {
                struct sar_arena arena = { 0 };
                struct sar_wire_layout sent = { 8,     from == SAR_PRECISION_FULL ? 4 : 2, 1, 4,
                                                false, (enum sar_wire_precision)from };
                struct sar_wire_layout expected = { 8,     to == SAR_PRECISION_FULL ? 4 : 2, 1, 4,
                                                    false, (enum sar_wire_precision)to };
                struct sar_msg_key here = { sent, 1, 2, 0 }, there = { expected, 1, 2, 0 };
                struct sar_msg message;
                assert_int_equal(sar_msg_encode(&here, sar_wires[w], &run, &arena, &message), SAR_OK);
                assert_int_equal(sar_msg_decode(&there, &message, &arena, &arrived),
                                 from == to ? SAR_OK : SAR_CORRUPT);
                sar_arena_free(&arena);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest conversions[] = {
        cmocka_unit_test(test_every_pattern),
        cmocka_unit_test(test_middles),
        cmocka_unit_test(test_floats_of_all_kinds),
    };
    const struct CMUnitTest vectors[] = {
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_underflow),
        cmocka_unit_test(test_rows_that_underflow),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_other_values),
    };
    int failures = cmocka_run_group_tests(conversions, NULL, NULL);
    return failures + TEAMS_RUN_SMALL(vectors, NULL, NULL);
}
