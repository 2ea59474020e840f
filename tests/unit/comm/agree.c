/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the messages of the consistency check: merged in any order and grouping they give one result, which
 * names the lowest ranks. MPI is not started. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "generate.h"
#include "comm/agree.h"

enum { MOST_RANKS = 17, ROUNDS = 400 };

/* Few distinct values, so that ties are common, and sometimes extremes. */
static int64_t random_value(struct rng *rng)
{
    switch (rng_below(rng, 20)) {
    case 0: return INT64_MIN;
    case 1: return INT64_MAX;
    default: return (int64_t)rng_below(rng, 4) - 1;
    }
}

static struct sar_agree_msg random_agree_msg(int rank, struct rng *rng)
{
    struct sar_comm net = { .rank = rank, .ranks = MOST_RANKS };
    int64_t field[SAR_AGREE_FIELDS];
    for (int i = 0; i < SAR_AGREE_FIELDS; i++)
        field[i] = random_value(rng);
    struct sar_agree_msg agree_msg = sar_agree_msg_make(&net, field);
    agree_msg.nnz_sum = agree_msg.nnz_max = (int64_t)rng_below(rng, 4);
    agree_msg.last_call_ns = (int64_t)rng_below(rng, 1000000);
    agree_msg.pull = (struct sar_agree_pull){ (int32_t)rng_below(rng, 3) * 1000, (int32_t)rng_below(rng, 3) };
    agree_msg.spread.equal_segments = (uint8_t)rng_below(rng, 2);
    agree_msg.spread.not_owned = (uint8_t)rng_below(rng, 8);
    agree_msg.spread.quantiles.index[0] = (uint16_t)rng_below(rng, 3);
    agree_msg.spread.quantiles.index[14] = (uint16_t)rng_below(rng, 3);
    agree_msg.early.min = agree_msg.early.max = (uint32_t)rng_below(rng, 3);
    agree_msg.may_block = (uint8_t)rng_below(rng, 2);
    agree_msg.dense_path = (uint8_t)rng_below(rng, 2);
    agree_msg.status = rng_below(rng, 2) == 0 ? SAR_OK : (int32_t)rng_below(rng, SAR_STATUSES);
    agree_msg.status_value = rank * 10;
    return agree_msg;
}

static void assert_same(const struct sar_agree_msg *a, const struct sar_agree_msg *b)
{
    assert_memory_equal(a, b, sizeof *a); /* members fill words of 8 bytes, so there is no padding */
}

static struct sar_agree_msg merged(const struct sar_agree_msg *in, struct sar_agree_msg inout)
{
    sar_agree_msg_merge(in, &inout);
    return inout;
}

static void test_commutative_and_associative(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < ROUNDS * 10; round++) {
        struct rng rng = { round };
        struct sar_agree_msg a = random_agree_msg((int)(round % 3), &rng);
        struct sar_agree_msg b = random_agree_msg((int)((round + 1) % 3), &rng);
        struct sar_agree_msg c = random_agree_msg((int)((round + 2) % 3), &rng);
        struct sar_agree_msg ab = merged(&a, b), ba = merged(&b, a), bc = merged(&b, c);
        assert_same(&ab, &ba);
        struct sar_agree_msg left = merged(&ab, c), right = merged(&a, bc);
        assert_same(&left, &right);
    }
}

/* Merge neighbours, or any two, until one message is left: the tree of any MPI library. */
static struct sar_agree_msg merge_somehow(struct sar_agree_msg *agree_msgs, int n, struct rng *rng)
{
    while (n > 1) {
        int from = (int)rng_below(rng, (uint64_t)n), to = (int)rng_below(rng, (uint64_t)n - 1);
        if (to >= from)
            to++;
        sar_agree_msg_merge(&agree_msgs[from], &agree_msgs[to]);
        agree_msgs[from] = agree_msgs[--n];
    }
    return agree_msgs[0];
}

/* Merge all messages at once, in rank order, so that the first is the lowest. */
static struct sar_agree_msg reference_merge(const struct sar_agree_msg *agree_msgs, int n)
{
    struct sar_agree_msg all = agree_msgs[0];
    for (int r = 1; r < n; r++) {
        const struct sar_agree_msg *b = &agree_msgs[r];
        all.nnz_sum += b->nnz_sum;
        all.spread.equal_segments |= b->spread.equal_segments;
        all.spread.not_owned |= b->spread.not_owned;
        if (b->nnz_max > all.nnz_max ||
            (b->nnz_max == all.nnz_max &&
             memcmp(&b->spread.quantiles, &all.spread.quantiles, sizeof all.spread.quantiles) > 0))
            all.spread.quantiles = b->spread.quantiles;
        if (b->nnz_max > all.nnz_max)
            all.nnz_max = b->nnz_max;
        if (b->early.min < all.early.min)
            all.early.min = b->early.min;
        if (b->early.max > all.early.max)
            all.early.max = b->early.max;
        if (b->may_block > all.may_block)
            all.may_block = b->may_block;
        if (b->dense_path > all.dense_path)
            all.dense_path = b->dense_path;
        if (b->last_call_ns > all.last_call_ns)
            all.last_call_ns = b->last_call_ns;
        if (b->pull.permille * 10 + b->pull.parts > all.pull.permille * 10 + all.pull.parts)
            all.pull = b->pull;
        if (b->status > all.status) {
            all.status = b->status;
            all.status_rank = r;
            all.status_value = b->status_value;
        }
        for (int i = 0; i < SAR_AGREE_FIELDS; i++) {
            if (b->field[i].min < all.field[i].min) {
                all.field[i].min = b->field[i].min;
                all.field[i].min_rank = r;
            }
            if (b->field[i].max > all.field[i].max) {
                all.field[i].max = b->field[i].max;
                all.field[i].max_rank = r;
            }
        }
    }
    return all;
}

static void test_any_tree_names_the_lowest_ranks(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct rng rng = { round };
        struct sar_agree_msg agree_msgs[MOST_RANKS], copy[MOST_RANKS];
        int n = 1 + (int)(round % MOST_RANKS);
        for (int r = 0; r < n; r++)
            agree_msgs[r] = random_agree_msg(r, &rng);
        struct sar_agree_msg expected = reference_merge(agree_msgs, n);
        for (int tree = 0; tree < 8; tree++) {
            memcpy(copy, agree_msgs, sizeof copy);
            struct sar_agree_msg all = merge_somehow(copy, n, &rng);
            assert_same(&all, &expected);
        }
    }
}

static void test_one_message(void **state)
{
    static const int64_t field[SAR_AGREE_FIELDS] = { 5, -6, 7, INT64_MAX, 0, -1 };
    struct sar_comm net = { .rank = 3, .ranks = 5 };
    struct sar_agree_msg agree_msg = sar_agree_msg_make(&net, field);
    (void)state;
    assert_int_equal(agree_msg.status, SAR_OK);
    assert_int_equal(agree_msg.status_rank, 3);
    assert_true(agree_msg.nnz_sum == 0 && agree_msg.nnz_max == 0 && agree_msg.may_block == 0 &&
                agree_msg.dense_path == 0);
    assert_true(agree_msg.last_call_ns == 0);
    for (int i = 0; i < SAR_AGREE_FIELDS; i++) {
        assert_true(agree_msg.field[i].min == field[i] && agree_msg.field[i].max == field[i]);
        assert_true(agree_msg.field[i].min_rank == 3 && agree_msg.field[i].max_rank == 3);
    }
}

/* One round has one latency, stages have log2 n of them. */
static void test_rounds(void **state)
{
    (void)state;
    struct sar_machine machine = { .alpha = 1e-5, .overhead = 1e-7, .beta = 1e-10 };
    assert_false(sar_agree_in_one_round(1, &machine));
    assert_false(sar_agree_in_one_round(2, &machine));
    assert_true(sar_agree_in_one_round(4, &machine));
    assert_true(sar_agree_in_one_round(128, &machine));
    assert_false(sar_agree_in_one_round(129, &machine));
    assert_true(sar_agree_seconds(16, &machine) > 1e-5 && sar_agree_seconds(16, &machine) < 2e-5);
    assert_true(sar_agree_seconds(256, &machine) > 8e-5);
    machine.overhead = 4e-6;
    assert_true(sar_agree_in_one_round(8, &machine));
    assert_false(sar_agree_in_one_round(16, &machine));
    machine.overhead = 1e-7;
    machine.beta = 1e-8;
    assert_false(sar_agree_in_one_round(64, &machine));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commutative_and_associative),
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_any_tree_names_the_lowest_ranks),
        cmocka_unit_test(test_one_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
