/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests who owns which slice of a row: each value has one owner in each row group, slices have at least 16
 * bytes and differ by one value, ranks of a node have shares of a row, and the chosen number of columns costs
 * least. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agreed.h"
#include "generate.h"
#include "scheme/engine/owner.h"

enum { MOST_RANKS = 33, MOST_ROW = 600 };

static struct sar_vec_desc desc_of(size_t value_size, size_t row_len)
{
    return (struct sar_vec_desc){ .row_len = row_len, .element_size = row_len * value_size };
}

static void check_slices(const struct sar_columns *c, const struct sar_vec_desc *desc, int group)
{
    size_t next = 0, value_size = desc->element_size / desc->row_len, shortest = SIZE_MAX, longest = 0;
    int first = sar_columns_first_owner(c, group), end = sar_columns_first_owner(c, group + 1);
    assert_true(end > first && end - first <= sar_columns_max_slices(c));
    for (int rank = first; rank < end; rank++) {
        struct sar_slice slice = sar_columns_slice(c, rank);
        assert_int_equal(sar_columns_group(c, rank), group);
        assert_int_equal(slice.begin, next);
        assert_true(slice.len > 0 && slice.len <= sar_columns_max_slice_len(c));
        next += slice.len;
        assert_true(slice.len * value_size >= 16 || !sar_columns_sliced(c));
        shortest = slice.len < shortest ? slice.len : shortest;
        longest = slice.len > longest ? slice.len : longest;
    }
    assert_int_equal(next, c->row_len);
    assert_true(longest - shortest <= 1);
}

static void check_group(const struct sar_columns *c, const struct sar_vec_desc *desc, int group)
{
    int first = sar_columns_first_owner(c, group), end = sar_columns_first_owner(c, group + 1);
    check_slices(c, desc, group);
    for (int receiver = 0; receiver < c->ranks; receiver++)
        assert_in_range(sar_columns_list_sender(c, group, receiver), first, end - 1);
}

static void test_each_value_has_one_owner(void **state)
{
    static const size_t value_sizes[] = { 1, 2, 4, 8, 16 };
    static const size_t rows[] = { 1, 2, 3, 7, 15, 16, 17, 24, 64, 100, 512, MOST_ROW };
    (void)state;
    for (size_t v = 0; v < 5; v++)
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
            for (int ranks = 1; ranks <= MOST_RANKS; ranks++)
                for (uint64_t columns = 1; columns <= (uint64_t)ranks + 2; columns++) {
                    struct sar_vec_desc desc = desc_of(value_sizes[v], rows[r]);
                    struct sar_columns c = sar_columns_make(&desc, ranks, 1, columns);
                    assert_in_range(sar_columns_max_slices(&c), 1, columns);
                    assert_int_equal(sar_columns_first_owner(&c, c.groups), ranks);
                    for (int group = 0; group < c.groups; group++)
                        check_group(&c, &desc, group);
                }
}

/* In two_level all groups have the shares of a row, which lie one after the other. */
static void check_shares(const struct sar_columns *c, int shares)
{
    size_t next = 0;
    assert_int_equal(c->shares, sar_columns_sliced(c) ? shares : 1);
    assert_int_equal(c->ranks % c->groups, 0);
    for (int share = 0; share < c->shares; share++) {
        struct sar_slice slice = sar_columns_share_slice(c, share);
        assert_int_equal(slice.begin, next);
        next += slice.len;
        for (int group = 0; group < c->groups; group++) {
            struct sar_owner_range owners = sar_columns_owners(c, group, share);
            assert_int_equal(sar_columns_slice(c, owners.first).begin, slice.begin);
            assert_int_equal((owners.end - owners.first) * c->groups * c->shares, c->ranks);
            for (int i = owners.first; i < owners.end; i++)
                assert_int_equal(sar_columns_share(c, i), share);
            assert_in_range(sar_columns_list_sender(c, group, owners.first), owners.first, owners.end - 1);
        }
    }
    assert_int_equal(next, c->row_len);
}

static void test_ranks_of_a_node_share_rows(void **state)
{
    static const size_t rows[] = { 1, 7, 16, 64, 100, 512, MOST_ROW };
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
        for (int nodes = 1; nodes <= 12; nodes++)
            for (int shares = 2; shares <= 8; shares++)
                for (uint64_t columns = 1; columns <= (uint64_t)(nodes * shares) + 2; columns++) {
                    struct sar_vec_desc desc = desc_of(sizeof(float), rows[r]);
                    struct sar_columns c = sar_columns_make(&desc, nodes * shares, shares, columns);
                    assert_in_range(sar_columns_max_slices(&c), 1, columns);
                    check_shares(&c, shares);
                    for (int group = 0; group < c.groups; group++)
                        check_slices(&c, &desc, group);
                }
}

/* A datatype of size 0, with an operation of the user's. */
static void test_rows_of_no_bytes_have_one_owner(void **state)
{
    struct sar_vec_desc desc = desc_of(0, 1);
    struct sar_columns c = sar_columns_make(&desc, 8, 1, 4);
    (void)state;
    assert_int_equal(c.groups, 8);
    assert_false(sar_columns_sliced(&c));
}

/* Gathers slices of rows of `row` floats, scatters them one by one, and joins all at once. */
static void check_join(size_t row, size_t n, int ranks)
{
    float *values = calloc(n * row, sizeof *values), *scattered = calloc(n * row, sizeof *scattered),
          *joined = calloc(n * row, sizeof *joined);
    struct sar_spvec *slices = calloc((size_t)ranks, sizeof *slices), rows = { NULL, values, n };
    struct sar_vec_desc desc = desc_of(sizeof(float), row);
    struct sar_columns c = sar_columns_make(&desc, ranks, 1, (uint64_t)ranks);
    struct sar_owner_range owners = sar_columns_owners(&c, 0, 0);
    for (size_t i = 0; i < n * row; i++)
        values[i] = (float)i + 0.5f;
    for (int i = owners.first; i < owners.end; i++) {
        struct sar_slice slice = sar_columns_slice(&c, i);
        struct sar_spvec *part = &slices[i - owners.first];
        *part = (struct sar_spvec){ NULL, malloc(n * slice.len * sizeof(float)), n };
        sar_columns_gather(&desc, slice, &rows, part->value);
        sar_columns_scatter(&desc, slice, part, scattered);
    }
    sar_columns_join(&c, &desc, 0, owners, slices, joined);
    assert_memory_equal(scattered, values, n * row * sizeof *values);
    assert_memory_equal(joined, values, n * row * sizeof *values);
    for (int i = owners.first; i < owners.end; i++)
        free(slices[i - owners.first].value);
    free(values), free(scattered), free(joined), free(slices);
}

/* Slices of 16, 32, 64 and 128 bytes and others; more slices than are joined at once; rows of several
 * tiles. */
static void test_slices_join_to_rows(void **state)
{
    (void)state;
    check_join(7, 5, 2);
    check_join(64, 1000, 16);
    check_join(64, 1000, 8);
    check_join(64, 1001, 4);
    check_join(512, 37, 16);
    check_join(512, 9, 5);
    check_join(512, 33, 128);
    check_join(600, 65, 100);
}

static struct sar_agreed lstm(int ranks, uint64_t columns)
{
    struct sar_machine machine = { ranks, 10e-6, 0.32e-9, 4e-9, 1e-10, 2e-4,
                                   1e-9,  10e-6, 0.32e-9, 1e-6, 1e-6,  1 };
    struct sar_agreed a = agreed_plain(vec_desc_make(SAR_FLOAT, SAR_SUM, 793470, 512), machine, 8966);
    a.machine.gamma = sar_agreed_element_seconds(&machine, &a.desc);
    a.topo.nodes = ranks;
    a.wire.segment_bytes = SAR_U64_AUTO;
    a.partition.columns = columns;
    return a;
}

/* Compares the choice with each number of slices that a setting can force. Groups of unequal numbers of ranks
 * that were not priced may gain a little. */
static void check_cheapest(struct sar_agreed a)
{
    struct sar_owner_cost_terms chosen = sar_owner_columns_terms(&a, 1);
    double price = sar_owner_seconds(&a, &chosen);
    uint64_t ranks = (uint64_t)a.machine.ranks;
    for (uint64_t columns = 1; columns <= ranks; columns++) {
        struct sar_agreed forced = a;
        forced.partition.columns = columns;
        struct sar_owner_cost_terms terms = sar_owner_columns_terms(&forced, 1);
        uint64_t power = columns % 3 == 0 ? columns / 3 : columns;
        bool priced = ranks % columns == 0 || (power & (power - 1)) == 0;
        if (price > (priced ? 1 : 1.02) * sar_owner_seconds(&a, &terms))
            fail_msg("%llu ranks, %g rows of %zu: %llu slices cost %g, the %d that were chosen %g",
                     (unsigned long long)ranks, a.data.nnz_mean, a.desc.row_len, (unsigned long long)columns,
                     sar_owner_seconds(&a, &terms), sar_columns_max_slices(&chosen.columns), price);
        assert_int_equal(terms.map.parts, terms.columns.groups);
    }
}

static void test_the_cheapest_is_chosen(void **state)
{
    static const int numbers[] = { 2, 3, 5, 6, 7, 8, 12, 13, 16, 20, 24, 32, 36, 48, 64, 96, 128 };
    static const double batches[] = { 400, 2000, 8966, 40000 };
    static const size_t widths[] = { 16, 64, 512 };
    (void)state;
    for (size_t i = 0; i < LENGTH(numbers); i++) {
        struct sar_agreed a = lstm(numbers[i], SAR_U64_AUTO);
        struct sar_owner_cost_terms chosen = sar_owner_columns_terms(&a, 1);
        bool fullest_part_weighs = numbers[i] >= 16 && numbers[i] <= 64; /* more than the work on slices */
        assert_true(!fullest_part_weighs || sar_columns_sliced(&chosen.columns));
        for (size_t b = 0; b < LENGTH(batches); b++) {
            for (size_t w = 0; w < LENGTH(widths); w++) {
                a.desc = vec_desc_make(SAR_FLOAT, SAR_SUM, 793470, widths[w]);
                a.data.nnz_mean = a.data.nnz_max = batches[b];
                check_cheapest(a);
            }
        }
    }
}

/* On nodes, too, in which each rank has a share of every row. */
static void test_the_cheapest_is_chosen_on_nodes(void **state)
{
    (void)state;
    for (int node_ranks = 2; node_ranks <= 16; node_ranks *= 2) {
        int ranks = 16 * node_ranks;
        struct sar_agreed a = lstm(ranks, SAR_U64_AUTO);
        a.topo = (struct sar_agreed_topo){ 16, node_ranks, true };
        struct sar_owner_cost_terms chosen = sar_owner_columns_terms(&a, node_ranks);
        for (uint64_t columns = 1; columns <= (uint64_t)ranks; columns *= 2) {
            struct sar_agreed forced = a;
            forced.partition.columns = columns;
            struct sar_owner_cost_terms terms = sar_owner_columns_terms(&forced, node_ranks);
            assert_true(sar_owner_seconds(&a, &chosen) <= sar_owner_seconds(&a, &terms));
            assert_int_equal(terms.map.parts, terms.columns.groups);
            assert_int_equal(sar_columns_sliced(&terms.columns), columns >= (uint64_t)node_ranks);
        }
        a.topo.nodes = 17;
        chosen = sar_owner_columns_terms(&a, node_ranks);
        assert_false(sar_columns_sliced(&chosen.columns));
    }
}

static void test_single_values_have_one_column(void **state)
{
    struct sar_agreed a = lstm(16, 16);
    (void)state;
    a.desc.row_len = 1;
    a.desc.element_size = sizeof(float);
    assert_int_equal(sar_owner_columns_terms(&a, 1).columns.groups, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_value_has_one_owner),
        cmocka_unit_test(test_ranks_of_a_node_share_rows),
        cmocka_unit_test(test_rows_of_no_bytes_have_one_owner),
        cmocka_unit_test(test_slices_join_to_rows),
        cmocka_unit_test(test_the_cheapest_is_chosen),
        cmocka_unit_test(test_the_cheapest_is_chosen_on_nodes),
        cmocka_unit_test(test_single_values_have_one_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
