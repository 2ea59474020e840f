/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that prices count rows whole. On a machine on which only bytes cost time, one second each, the price
 * of a call in coordinates is the bytes of the messages that wait for each other: 64 a header, and s + 4 a
 * row of s bytes. A failure means that a scheme's price takes a row for a number. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "agreed.h"
#include "generate.h"
#include "scheme/scheme.h"

enum { RANKS = 8, STEPS = 3 /* log2 */, COUNT = 80000, NNZ = 900, HEADER = 64, INDEX = 4 };

static const size_t rows[] = { 1, 2, 3, 16, 129, 300, 512 };

/* Schemes, and the messages that a rank sends. */
static const struct {
    const struct sar_scheme *scheme;
    int messages;
} cases[] = {
    { &sar_scheme_allgather, RANKS - 1 },
    { &sar_scheme_recursive_doubling, STEPS },
    { &sar_scheme_split_allgather, RANKS - 1 + STEPS },
    { &sar_scheme_split_dense, RANKS - 1 + STEPS },
    { &sar_scheme_ring, 2 * (RANKS - 1) },
    { &sar_scheme_omni, 2 * (RANKS - 1) },
    { &sar_scheme_sparse_ps, 2 * (RANKS - 1) },
    { &sar_scheme_oktopk, 2 * (RANKS - 1) },
};

static struct sar_agreed agreed_make(size_t row, const struct sar_wire *wire)
{
    struct sar_machine machine = { .ranks = RANKS, .beta = 1, .intra_beta = 1 };
    struct sar_agreed a = agreed_plain(vec_desc_make(SAR_FLOAT, SAR_SUM, COUNT, row), machine, NNZ);
    a.partition.kind = SAR_PARTITION_RANGE; /* equal slots of all parts, whatever the grain */
    a.wire.push = a.wire.pull = wire;
    a.wire.segment_bytes = (uint64_t)1 << 60;
    return a;
}

/* Returns the price without that of headers, by the bytes of a row: the rows that count. */
static double rows_priced(size_t i, size_t row, const struct sar_wire *wire, double bytes)
{
    struct sar_agreed a = agreed_make(row, wire);
    return (cases[i].scheme->seconds(&a) - HEADER * cases[i].messages) / bytes;
}

/* Pieces of a row: omni divides those of more than 256 values. */
static double pieces_of(size_t i, size_t row)
{
    return cases[i].scheme == &sar_scheme_omni && row > 256 ? 2 : 1;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

static void test_rows_cost_their_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        double expected = rows_priced(i, 1, &sar_wire_coo, 4 + INDEX);
        assert_true(expected > NNZ && expected < COUNT * RANKS);
        for (size_t r = 0; r < LENGTH(rows); r++) {
            double pieces = pieces_of(i, rows[r]);
            double found = rows_priced(i, rows[r], &sar_wire_coo, 4.0 * (double)rows[r] + INDEX * pieces);
            /* More elements are more equal by chance. */
            if (!near(found, expected) && !(pieces > 1 && found < expected && found > 0.98 * expected))
                fail_msg("%s, rows of %zu: expected %g rows, found %g", cases[i].scheme->name, rows[r],
                         expected, found);
        }
    }
}

/* Blocks of one row: a number and a presence bit for each. */
static void test_blocks_of_one_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        for (size_t r = 0; r < LENGTH(rows); r++) {
            double pieces = pieces_of(i, rows[r]), bytes = 4.0 * (double)rows[r] + INDEX * pieces;
            if (rows[r] <= 128)
                continue;
            assert_true(near(rows_priced(i, rows[r], &sar_wire_block, bytes + 0.125 * pieces),
                             rows_priced(i, rows[r], &sar_wire_coo, bytes)));
        }
    }
}

/* The formats that define schemes, without settings. */
static void test_formats_of_their_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const struct sar_scheme *scheme = cases[i].scheme;
        const struct sar_wire *own = scheme == &sar_scheme_omni        ? &sar_wire_block
                                     : scheme == &sar_scheme_sparse_ps ? &sar_wire_coo
                                                                       : NULL;
        for (size_t r = 0; r < LENGTH(rows) && own != NULL; r++) {
            struct sar_agreed a = agreed_make(rows[r], NULL), forced = agreed_make(rows[r], own);
            assert_true(scheme->seconds(&a) == scheme->seconds(&forced));
        }
    }
}

/* Rounding a value takes 0.15 of the time of an element of one value, however long its row is. */
static void test_rounding_costs_its_values(void **state)
{
    (void)state;
    for (size_t r = 0; r < LENGTH(rows); r++) {
        struct sar_agreed full = agreed_make(rows[r], &sar_wire_coo);
        full.machine.gamma = 3e-9;
        full.machine.memory = 1e-10;
        full.machine.gamma = sar_agreed_element_seconds(&full.machine, &full.desc);
        struct sar_agreed narrow = full;
        narrow.wire.precision = SAR_PRECISION_BF16;
        struct sar_wire_layout layout = sar_agreed_layout(&full, COUNT, 4),
                               less = sar_agreed_layout(&narrow, COUNT, 4);
        double work = sar_agreed_cost(&narrow, false, &less, NNZ).work -
                      sar_agreed_cost(&full, false, &layout, NNZ).work;
        double expected = 0.15 * 3e-9 * NNZ * (double)rows[r];
        assert_true(fabs(work * full.machine.gamma - expected) <= 1e-6 * expected);
        layout.row_len = less.row_len = 1; /* of a slice only its own values count */
        work = sar_agreed_cost(&narrow, false, &less, NNZ).work -
               sar_agreed_cost(&full, false, &layout, NNZ).work;
        assert_true(fabs(work * full.machine.gamma * (double)rows[r] - expected) <= 1e-6 * expected);
    }
}

/* Threads shorten the work on values and on the bytes of rows alike. */
static void test_threads_scale_rows(void **state)
{
    const double ratio = 0.25;
    (void)state;
    for (size_t r = 0; r < LENGTH(rows); r++) {
        struct sar_agreed one = agreed_make(rows[r], NULL);
        struct sar_machine machine = { .ranks = one.machine.ranks, .gamma = 3e-9, .memory = 1e-10 };
        one.machine.memory = machine.memory;
        one.machine.gamma = sar_agreed_element_seconds(&machine, &one.desc);
        struct sar_agreed four = one, faster = one;
        four.machine.gamma *= ratio;
        four.machine.thread_ratio = ratio;
        faster.machine.gamma *= ratio;
        faster.machine.memory *= ratio;
        assert_true(fabs(sar_agreed_value_seconds(&four) - ratio * 3e-9) <= 1e-15);
        assert_true(fabs(sar_scheme_balanced.seconds(&four) / sar_scheme_balanced.seconds(&faster) - 1) <
                    1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_cost_their_bytes),     cmocka_unit_test(test_threads_scale_rows),
        cmocka_unit_test(test_blocks_of_one_row),         cmocka_unit_test(test_formats_of_their_own),
        cmocka_unit_test(test_rounding_costs_its_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
