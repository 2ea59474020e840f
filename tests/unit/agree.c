/* SPDX-License-Identifier: BSD-3-Clause */
/* Ballots: merged in any order and grouping they give the same outcome, which names the lowest ranks. MPI
 * itself is not started. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "generate.h"
#include "net/agree.h"

enum { MOST_RANKS = 17, ROUNDS = 400 };

/* Few different values, so that ties are common; now and then the extremes. */
static int64_t random_value(struct dice *dice)
{
    switch (dice_below(dice, 20)) {
    case 0: return INT64_MIN;
    case 1: return INT64_MAX;
    default: return (int64_t)dice_below(dice, 4) - 1;
    }
}

static struct sar_ballot random_ballot(int rank, struct dice *dice)
{
    struct sar_net net = { .rank = rank, .ranks = MOST_RANKS };
    int64_t field[SAR_FIELDS];
    for (int i = 0; i < SAR_FIELDS; i++)
        field[i] = random_value(dice);
    struct sar_ballot ballot = sar_ballot_make(&net, field);
    ballot.nnz_sum = ballot.nnz_max = (int64_t)dice_below(dice, 1000);
    ballot.seconds = (int64_t)dice_below(dice, 1000000);
    ballot.busy = (int64_t)dice_below(dice, 2);
    ballot.staged = (int64_t)dice_below(dice, 2);
    ballot.status = dice_below(dice, 2) == 0 ? SAR_OK : (int64_t)dice_below(dice, SAR_STATUSES);
    ballot.status_value = rank * 10;
    return ballot;
}

static void assert_same(const struct sar_ballot *a, const struct sar_ballot *b)
{
    assert_memory_equal(a, b, sizeof *a); /* nothing but int64_t inside, hence no padding */
}

static struct sar_ballot merged(const struct sar_ballot *in, struct sar_ballot inout)
{
    sar_ballot_merge(in, &inout);
    return inout;
}

static void test_commutative_and_associative(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < ROUNDS * 10; round++) {
        struct dice dice = { round };
        struct sar_ballot a = random_ballot((int)(round % 3), &dice);
        struct sar_ballot b = random_ballot((int)((round + 1) % 3), &dice);
        struct sar_ballot c = random_ballot((int)((round + 2) % 3), &dice);
        struct sar_ballot ab = merged(&a, b), ba = merged(&b, a), bc = merged(&b, c);
        assert_same(&ab, &ba);
        struct sar_ballot left = merged(&ab, c), right = merged(&a, bc);
        assert_same(&left, &right);
    }
}

/* Merge neighbours, or any two, until one ballot is left: whatever tree an MPI library builds. */
static struct sar_ballot merge_somehow(struct sar_ballot *ballots, int n, struct dice *dice)
{
    while (n > 1) {
        int from = (int)dice_below(dice, (uint64_t)n), to = (int)dice_below(dice, (uint64_t)n - 1);
        if (to >= from)
            to++;
        sar_ballot_merge(&ballots[from], &ballots[to]);
        ballots[from] = ballots[--n];
    }
    return ballots[0];
}

/* What a look at all ballots at once finds; ranks in order, so that the first is the lowest. */
static struct sar_ballot obvious_merge(const struct sar_ballot *ballots, int n)
{
    struct sar_ballot all = ballots[0];
    for (int r = 1; r < n; r++) {
        const struct sar_ballot *b = &ballots[r];
        all.nnz_sum += b->nnz_sum;
        if (b->nnz_max > all.nnz_max)
            all.nnz_max = b->nnz_max;
        if (b->busy > all.busy)
            all.busy = b->busy;
        if (b->staged > all.staged)
            all.staged = b->staged;
        if (b->seconds > all.seconds)
            all.seconds = b->seconds;
        if (b->status > all.status) {
            all.status = b->status;
            all.status_rank = r;
            all.status_value = b->status_value;
        }
        for (int i = 0; i < SAR_FIELDS; i++) {
            if (b->field[i].low < all.field[i].low) {
                all.field[i].low = b->field[i].low;
                all.field[i].low_rank = r;
            }
            if (b->field[i].high > all.field[i].high) {
                all.field[i].high = b->field[i].high;
                all.field[i].high_rank = r;
            }
        }
    }
    return all;
}

static void test_any_tree_names_the_lowest_ranks(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct dice dice = { round };
        struct sar_ballot ballots[MOST_RANKS], copy[MOST_RANKS];
        int n = 1 + (int)(round % MOST_RANKS);
        for (int r = 0; r < n; r++)
            ballots[r] = random_ballot(r, &dice);
        struct sar_ballot expected = obvious_merge(ballots, n);
        for (int tree = 0; tree < 8; tree++) {
            memcpy(copy, ballots, sizeof copy);
            struct sar_ballot all = merge_somehow(copy, n, &dice);
            assert_same(&all, &expected);
        }
    }
}

static void test_a_ballot(void **state)
{
    static const int64_t field[SAR_FIELDS] = { 5, -6, 7, INT64_MAX, 0, -1 };
    struct sar_net net = { .rank = 3, .ranks = 5 };
    struct sar_ballot ballot = sar_ballot_make(&net, field);
    (void)state;
    assert_int_equal(ballot.status, SAR_OK);
    assert_int_equal(ballot.status_rank, 3);
    assert_true(ballot.nnz_sum == 0 && ballot.nnz_max == 0 && ballot.busy == 0 && ballot.staged == 0);
    assert_true(ballot.seconds == 0);
    for (int i = 0; i < SAR_FIELDS; i++) {
        assert_true(ballot.field[i].low == field[i] && ballot.field[i].high == field[i]);
        assert_true(ballot.field[i].low_rank == 3 && ballot.field[i].high_rank == 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commutative_and_associative),
        cmocka_unit_test(test_any_tree_names_the_lowest_ranks),
        cmocka_unit_test(test_a_ballot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
