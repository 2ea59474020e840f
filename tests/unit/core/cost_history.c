/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests repeated selections: a choice stays until another scheme is clearly cheaper, or the tensor is
 * profiled again. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agreed.h"
#include "generate.h"
#include "core/select.h"

static const struct sar_cost_history no_history = { .trials = { 0 } };
static const struct sar_config learning = { .model = SAR_MODEL_MEASURED, .learn = true };

static struct sar_agreed agreed_make(void)
{
    struct sar_machine machine = { 8, 1e-5, 8e-10, 3e-9, 1e-10, 6e-5, 1.4e-9, 1e-5, 8e-10, 1e-5, 1e-5, 1 };
    return agreed_plain(vec_desc_make(SAR_FLOAT, SAR_SUM, 10000000, 1), machine, 1e5);
}

static struct sar_selection select_now(const struct sar_cost_history *history)
{
    struct sar_agreed a = agreed_make();
    struct sar_selection s;
    assert_int_equal(sar_select(&a, &learning, history, NULL, NULL, &s), SAR_OK);
    return s;
}

/* A history in which every scheme has had its trials, and costs its prediction times its factor. */
static struct sar_cost_history history_make(int dear, double factor)
{
    struct sar_cost_history history = { .last_choice = 0 };
    for (int i = 0; i < SAR_SCHEMES_MAX; i++) {
        history.trials[i] = 3;
        history.ratio[i] = i == dear ? factor : 1;
    }
    return history;
}

/* The cheapest scheme that was not selected. */
static int second_to(const struct sar_selection *s)
{
    int second = s->choice == 0;
    for (int i = 0; sar_schemes[i] != NULL; i++)
        if (i != s->choice && s->prices[i].price < s->prices[second].price)
            second = i;
    return second;
}

static void test_the_choice_stays_near_a_tie(void **state)
{
    struct sar_cost_history history = history_make(-1, 1);
    struct sar_selection first = select_now(&history), s;
    int best = first.choice, second = second_to(&first);
    (void)state;
    double tie = first.prices[second].price / first.prices[best].price;
    history = history_make(best, tie * 1.04);
    history.last_choice = best + 1;
    s = select_now(&history);
    assert_int_equal(s.choice, best);
    assert_int_equal(s.scheme, best);
    history.last_choice = 0;
    assert_int_equal(select_now(&history).choice, second);
    history = history_make(best, tie * 1.06);
    history.last_choice = best + 1;
    assert_int_equal(select_now(&history).choice, second);
}

static void test_a_refresh_lets_candidates_run_again(void **state)
{
    struct sar_cost_history history = history_make(-1, 1);
    struct sar_selection s = select_now(&history);
    int best = s.choice;
    (void)state;
    for (int i = 0; sar_schemes[i] != NULL; i++)
        if (i != best)
            history.ratio[i] = 1.15 * s.prices[best].price / s.prices[i].price;
    assert_int_equal(select_now(&history).scheme, best);
    sar_cost_history_refresh(&history);
    int runs = 0;
    for (s = select_now(&history); runs < 50 && history.trials[s.scheme] < 3; s = select_now(&history)) {
        sar_cost_history_add(&history, s.scheme, 1, history.ratio[s.scheme]);
        runs++;
    }
    assert_in_range(runs, 2, 20);
    assert_int_equal(s.scheme, best);
}

/* A program that computes during its calls makes their times unknown: the cheapest scheme runs. */
static void test_no_trial_while_times_are_unknown(void **state)
{
    struct sar_cost_history history = no_history;
    (void)state;
    assert_false(select_now(&history).settled);
    history.untimed = true;
    struct sar_selection s = select_now(&history);
    assert_true(s.settled);
    assert_int_equal(s.scheme, s.choice);
}

/* dense, the first in the list, against the cheapest other scheme. */
static void test_dense_wins_near_ties(void **state)
{
    struct sar_cost_history history = history_make(-1, 1);
    struct sar_selection s = select_now(&history);
    int best = s.choice;
    (void)state;
    assert_true(best != 0 && sar_schemes[0]->on_dense_buffers);
    double tie = s.prices[best].price / s.prices[0].price;
    history = history_make(0, tie * 1.05);
    assert_int_equal(select_now(&history).choice, 0);
    history = history_make(0, tie * 1.2);
    assert_int_equal(select_now(&history).choice, best);
}

/* The minimum of the first three times counts, as one measurement. Others enter a mean: each at most one and
 * a half times the known time, and later ones by a tenth. Without a prediction nothing is recorded. */
static void test_recorded_times(void **state)
{
    struct sar_cost_history history = no_history;
    const double none[] = { 0, -1, INFINITY, NAN };
    (void)state;
    for (size_t i = 0; i < LENGTH(none); i++)
        sar_cost_history_add(&history, 2, none[i], 1);
    assert_memory_equal(&history, &no_history, sizeof history);
    sar_cost_history_add(&history, 2, 0.001, 0.008);
    assert_true(history.trials[2] == 1 && fabs(history.ratio[2] - 8) < 1e-12);
    sar_cost_history_add(&history, 2, 0.001, 0.002);
    assert_true(history.trials[2] == 2 && fabs(history.ratio[2] - 2) < 1e-12);
    sar_cost_history_add(&history, 2, 0.001, 0.012);
    assert_true(history.trials[2] == 3 && fabs(history.ratio[2] - 2) < 1e-12);
    sar_cost_history_add(&history, 2, 0.001, 0.0014);
    assert_true(history.trials[2] == 4 && fabs(history.ratio[2] - 1.7) < 1e-12);
    sar_cost_history_add(&history, 2, 0.001, 0.012);
    assert_true(history.trials[2] == 5 && fabs(history.ratio[2] - 1.7 * 3.5 / 3) < 1e-12);
    history.trials[2] = 100;
    history.ratio[2] = 2;
    sar_cost_history_add(&history, 2, 0.001, 0.001);
    assert_true(history.trials[2] == 101 && fabs(history.ratio[2] - 1.9) < 1e-12);
    assert_true(history.trials[1] == 0 && history.trials[3] == 0);
}

/* Time before the scheme starts: the first measurement loses weight soon; slower ones count by a tenth. */
static void test_pre_scheme_time(void **state)
{
    struct sar_cost_history history = no_history;
    (void)state;
    sar_cost_history_add_pre_scheme(&history, 100e-6);
    assert_true(fabs(history.pre_scheme - 100e-6) < 1e-12);
    sar_cost_history_add_pre_scheme(&history, 10e-6);
    assert_true(fabs(history.pre_scheme - 82e-6) < 1e-12);
    sar_cost_history_add_pre_scheme(&history, 92e-6);
    assert_true(fabs(history.pre_scheme - 83e-6) < 1e-12);
    sar_cost_history_add_pre_scheme(&history, 1);
    assert_true(fabs(history.pre_scheme - 83e-6 * 1.05) < 1e-12);
}

/* The price of every scheme includes that time, except for calls without a consistency check. */
static void test_pre_scheme_time_has_a_price(void **state)
{
    struct sar_cost_history history = no_history;
    struct sar_agreed a = agreed_make();
    struct sar_selection before, after;
    (void)state;
    a.call.dense_face = a.call.dense_skips_agree = true;
    assert_int_equal(sar_select(&a, &learning, &history, NULL, NULL, &before), SAR_OK);
    history.pre_scheme = 1;
    assert_int_equal(sar_select(&a, &learning, &history, NULL, NULL, &after), SAR_OK);
    for (int i = 0; sar_schemes[i] != NULL; i++)
        if (after.prices[i].unsupported_reason == NULL)
            assert_true(fabs(after.prices[i].price - before.prices[i].price -
                             (sar_schemes[i]->on_dense_buffers ? 0 : 1)) < 1e-9);
    assert_true(sar_schemes[after.choice]->on_dense_buffers);
    a.call.dense_skips_agree = false;
    assert_int_equal(sar_select(&a, &learning, &history, NULL, NULL, &after), SAR_OK);
    assert_true(after.prices[0].pre_scheme == 1);
}

/* Schemes are priced again only if the number of elements changes by more than an eighth. */
static void test_predictions_are_remembered(void **state)
{
    struct sar_price_cache known = { .valid = false };
    struct sar_agreed a = agreed_make();
    struct sar_selection first, again;
    double nnz = a.data.nnz_mean;
    (void)state;
    assert_int_equal(sar_select(&a, &learning, &no_history, NULL, &known, &first), SAR_OK);
    a.data.nnz_mean = a.data.nnz_max = nnz * 1.1;
    assert_int_equal(sar_select(&a, &learning, &no_history, NULL, &known, &again), SAR_OK);
    assert_memory_equal(first.prices, again.prices, sizeof first.prices);
    a.data.nnz_mean = a.data.nnz_max = nnz * 1.2;
    assert_int_equal(sar_select(&a, &learning, &no_history, NULL, &known, &again), SAR_OK);
    assert_int_equal(sar_select(&a, &learning, &no_history, NULL, NULL, &first), SAR_OK);
    assert_memory_equal(first.prices, again.prices, sizeof first.prices);
    assert_true(known.nnz_mean == nnz * 1.2);
}

/* The constants of dense may come from a busy machine. It runs once if its messages alone would not make it
 * slow, and otherwise never. */
static void test_dense_is_tried_despite_its_constants(void **state)
{
    struct sar_cost_history history = history_make(-1, 1);
    struct sar_agreed a = agreed_make();
    struct sar_selection s;
    (void)state;
    a.call.dense_face = true;
    a.machine.dense_beta *= 1000;
    history.trials[0] = 0;
    assert_int_equal(sar_select(&a, &learning, &history, NULL, NULL, &s), SAR_OK);
    assert_true(s.choice != 0 && s.scheme == s.choice);
    a.data.nnz_mean = a.data.nnz_max = (double)a.desc.count;
    a.data.densification = sar_densification_independent(1, 8);
    assert_int_equal(sar_select(&a, &learning, &history, NULL, NULL, &s), SAR_OK);
    assert_true(s.choice != 0 && s.scheme == 0);
    history.trials[0] = 1;
    history.ratio[0] = 1;
    assert_int_equal(sar_select(&a, &learning, &history, NULL, NULL, &s), SAR_OK);
    assert_true(s.choice != 0 && s.scheme != 0);
}

/* A first call may be a hundred times slower than the next, so it decides nothing. */
static void test_first_call_is_ignored(void **state)
{
    struct sar_cost_history history = no_history;
    struct sar_selection first = select_now(&history);
    (void)state;
    assert_false(sar_schemes[first.choice]->on_dense_buffers);
    sar_cost_history_add(&history, first.choice, first.prices[first.choice].predicted,
                         1000 * first.prices[first.choice].predicted);
    struct sar_selection next = select_now(&history);
    assert_int_equal(next.choice, first.choice);
    for (int i = 0; sar_schemes[i] != NULL; i++)
        assert_true(next.prices[i].price == first.prices[i].price);
}

/* A scheme that is sometimes fast loses to one that always has the same mean. */
static void test_variance_does_not_win(void **state)
{
    struct sar_cost_history history = no_history;
    struct sar_selection s = select_now(&history);
    int steady = s.choice, lucky = second_to(&s), calls[SAR_SCHEMES_MAX] = { 0 };
    (void)state;
    assert_true(s.prices[lucky].price < 1.8 * s.prices[steady].price);
    for (int call = 0; call < 100; call++) {
        s = select_now(&history);
        double times = s.scheme == steady ? 1 : s.scheme != lucky ? 4 : calls[lucky] % 2 == 1 ? 0.7 : 2;
        calls[s.scheme]++;
        sar_cost_history_add(&history, s.scheme, s.prices[s.scheme].predicted,
                             times * s.prices[steady].predicted);
    }
    assert_int_equal(s.choice, steady);
    assert_in_range(calls[lucky], 2, 30);
}

/* Select when MPI_Allreduce is expected to take `times` times the best other scheme. The others take `factor`
 * times their prediction and have been tried this often. */
static struct sar_selection select_beside(double times, double factor, uint32_t trials, double ratio)
{
    struct sar_agreed a = agreed_make();
    struct sar_selection s;
    struct sar_cost_history history = history_make(-1, 1);
    for (int i = 0; i < SAR_SCHEMES_MAX; i++) {
        history.trials[i] = sar_select_trials(0);
        history.ratio[i] = factor;
    }
    a.call.dense_face = true;
    a.machine.dense_beta = 0;
    a.machine.dense_alpha = 1e9;
    assert_int_equal(sar_select(&a, &learning, &history, NULL, NULL, &s), SAR_OK);
    a.machine.dense_alpha = times * s.prices[s.choice].price;
    history.trials[0] = trials;
    history.ratio[0] = ratio;
    assert_int_equal(sar_select(&a, &learning, &history, NULL, NULL, &s), SAR_OK);
    return s;
}

/* If the others are ten times faster than predicted, MPI_Allreduce may be too. */
static void test_dense_is_tried_near_ties(void **state)
{
    (void)state;
    assert_int_equal(select_beside(2.9, 1, 0, 0).scheme, 0);
    assert_int_not_equal(select_beside(3.1, 1, 0, 0).scheme, 0);
    assert_int_equal(select_beside(29, 0.1, 0, 0).scheme, 0);
    assert_int_not_equal(select_beside(31, 0.1, 0, 0).scheme, 0);
    assert_int_not_equal(select_beside(31, 10, 0, 0).scheme, 0);
    assert_int_equal(select_beside(29, 0.1, 1, 0.05).scheme, 0);
    assert_int_not_equal(select_beside(29, 0.1, 1, 0.1).scheme, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_times),
        cmocka_unit_test(test_pre_scheme_time),
        cmocka_unit_test(test_pre_scheme_time_has_a_price),
        cmocka_unit_test(test_predictions_are_remembered),
        cmocka_unit_test(test_first_call_is_ignored),
        cmocka_unit_test(test_variance_does_not_win),
        cmocka_unit_test(test_the_choice_stays_near_a_tie),
        cmocka_unit_test(test_no_trial_while_times_are_unknown),
        cmocka_unit_test(test_a_refresh_lets_candidates_run_again),
        cmocka_unit_test(test_dense_is_tried_despite_its_constants),
        cmocka_unit_test(test_dense_wins_near_ties),
        cmocka_unit_test(test_dense_is_tried_near_ties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
