/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the selector on invented machines: its choice, its trials of other schemes, what it learns, and what
 * it reports. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agreed.h"
#include "generate.h"
#include "core/select.h"

/* A call on a machine. */
struct machine_call {
    double gigabits, alpha;
    int ranks;
    double count, density;
    bool dense_face, identical; /* all ranks have equal elements instead of independent ones */
};

/* MPI_Allreduce as in a good MPI for large vectors: every byte is sent and received about twice. */
static struct sar_agreed agreed_of(const struct machine_call *s)
{
    struct sar_agreed a = { .data.nnz_mean = s->count * s->density,
                            .data.nnz_max = s->count * s->density,
                            .call.native = true,
                            .call.dense_face = s->dense_face,
                            .partition.max_imbalance = 1.1,
                            .data.skewness = 1,
                            .topo.nodes = s->ranks,
                            .topo.node_ranks = 1,
                            .wire.segment_bytes = 1 << 18,
                            .partition.kind = -1 };
    double n = s->ranks, beta = 8 / (s->gigabits * 1e9);
    a.desc = vec_desc_make(SAR_FLOAT, SAR_SUM, (uint64_t)s->count, 1);
    a.machine = (struct sar_machine){
        s->ranks, s->alpha, beta,     3e-9,     1e-10, 2 * log2(n) * s->alpha, 2 * (n - 1) / n * beta,
        s->alpha, beta,     s->alpha, s->alpha, 1
    };
    a.data.densification = sar_densification_independent(s->density, s->ranks);
    for (int i = 0; s->identical && i < a.data.densification.points; i++)
        a.data.densification.ratio[i] = 1;
    return a;
}

static const struct sar_config learning = { .model = SAR_MODEL_MEASURED, .learn = true };
static const struct sar_config trusting = { .model = SAR_MODEL_MEASURED, .learn = false };
static const struct sar_config paper = { .model = SAR_MODEL_PAPER, .learn = true };
static const struct sar_cost_history no_history = { .trials = { 0 } };

static struct sar_selection select_for(const struct sar_agreed *agreed, const struct sar_config *config,
                                       const struct sar_cost_history *history,
                                       const struct sar_scheme *forced)
{
    struct sar_selection s;
    assert_int_equal(sar_select(agreed, config, history, forced, NULL, &s), SAR_OK);
    return s;
}

/* Few bytes: schemes with few messages win. Two ranks: one message in each direction is best at any size. Few
 * ranks on a fast network: one step. Many elements with overlap, or many ranks: an owner reduces each
 * element. Nearly dense buffers, or a network as fast as memory: MPI_Allreduce. */
static void test_decisions(void **state)
{
    const struct sar_scheme *dense = &sar_scheme_dense, *allgather = &sar_scheme_allgather;
    const struct sar_scheme *doubling = &sar_scheme_recursive_doubling, *balanced = &sar_scheme_balanced;
    const struct {
        struct machine_call machine_call;
        const struct sar_scheme *wins;
    } table[] = {
        { { 1, 50e-6, 4, 1e3, 0.01, false, false }, doubling },
        { { 1, 50e-6, 16, 1e3, 0.01, true, false }, doubling },
        { { 10, 10e-6, 1024, 1e3, 0.1, false, false }, doubling },
        { { 100, 2e-6, 64, 1e5, 1e-4, false, false }, doubling },
        { { 400, 1e-6, 16, 1e3, 1e-3, true, false }, doubling },
        { { 1, 50e-6, 2, 1e7, 0.01, false, false }, allgather },
        { { 10, 10e-6, 2, 1e5, 0.1, true, false }, allgather },
        { { 100, 2e-6, 4, 1e9, 1e-4, false, false }, allgather },
        { { 400, 1e-6, 8, 1e7, 1e-4, false, false }, allgather },
        { { 1, 50e-6, 16, 1e7, 0.05, false, false }, balanced },
        { { 1, 50e-6, 16, 1e7, 0.05, true, false }, balanced },
        { { 1, 50e-6, 64, 1e9, 0.01, true, false }, balanced },
        { { 1, 50e-6, 1024, 1e9, 0.1, false, false }, balanced },
        { { 10, 10e-6, 16, 1e7, 0.05, false, false }, balanced },
        { { 10, 10e-6, 64, 1e9, 0.01, false, false }, balanced },
        { { 10, 10e-6, 16, 1e9, 0.05, false, true }, balanced },
        { { 10, 10e-6, 128, 1e8, 0.01, false, true }, balanced },
        { { 100, 2e-6, 32, 1e9, 0.01, false, true }, balanced },
        { { 1, 50e-6, 256, 1e5, 0.9, true, false }, dense },
        { { 10, 10e-6, 16, 1e7, 0.9, true, false }, dense },
        { { 400, 1e-6, 1024, 1e9, 0.9, true, false }, dense },
        { { 400, 1e-6, 8, 1e7, 0.01, true, false }, dense },
        { { 400, 1e-6, 64, 1e7, 0.3, false, false }, dense },
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(table); i++) {
        struct sar_agreed a = agreed_of(&table[i].machine_call);
        struct sar_selection s = select_for(&a, &trusting, &no_history, NULL);
        if (sar_schemes[s.choice] != table[i].wins)
            fail_msg("line %zu: %s at %g s, not %s at %g s", i, sar_schemes[s.choice]->name,
                     s.prices[s.choice].price, table[i].wins->name,
                     s.prices[scheme_index(table[i].wins)].price);
        assert_int_equal(s.scheme, s.choice);
        assert_string_equal(s.reason, "cheapest");
    }
}

/* A small call of a scheme that begins with messages to all ranks hides the agreement behind these: a
 * latency, or as long as both take. */
static void test_speculation(void **state)
{
    const struct {
        double density;
        const struct sar_scheme *scheme;
        bool hides;
    } table[] = {
        { 1e-4, &sar_scheme_allgather, true }, { 1e-4, &sar_scheme_balanced, true },
        { 2e-3, &sar_scheme_balanced, true },  { 2e-3, &sar_scheme_allgather, false },
        { 0.05, &sar_scheme_balanced, false }, { 1e-4, &sar_scheme_recursive_doubling, false },
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(table); i++) {
        struct machine_call machine_call = { 25, 10e-6, 16, 1e6, table[i].density, false, false };
        struct sar_agreed a = agreed_of(&machine_call);
        int at = scheme_index(table[i].scheme);
        double without = select_for(&a, &trusting, &no_history, NULL).prices[at].price;
        a.call.speculates = true;
        double with = select_for(&a, &trusting, &no_history, NULL).prices[at].price;
        assert_float_equal(without - with, table[i].hides ? 10e-6 : 0, 1e-6);
        a.call.check_seconds = 1;
        double first = 10e-6 + a.data.nnz_mean * (double)a.desc.element_size * a.machine.beta +
                       (a.machine.ranks - 1.) * a.machine.overhead;
        with = select_for(&a, &trusting, &no_history, NULL).prices[at].predicted;
        a.call.speculates = false;
        without = select_for(&a, &trusting, &no_history, NULL).prices[at].predicted;
        assert_float_equal(without - with, table[i].hides ? fmin(first, 0.9 * without) : 0, 1e-9);
    }
}

/* MPI_Reduce_scatter_block takes nearly dense coordinates, unless the parts differ in length. Then few ranks
 * own all elements, and would receive them from all ranks in a push. */
static void test_reduce_scatter_of_coordinates(void **state)
{
    const uint64_t count = 10000000;
    const struct {
        double density;
        uint64_t block;
        const struct sar_scheme *wins;
    } table[] = {
        { 0.05, 1, &sar_scheme_balanced },
        { 0.9, 1, &sar_scheme_dense },
        { 0.05, count / 16, &sar_scheme_balanced },
        { 0.9, count / 16, &sar_scheme_dense },
        { 0.9, count / 4, &sar_scheme_balanced },
        { 0.9, 3000, &sar_scheme_dense },
        { 0.9, UINT64_MAX / 2, &sar_scheme_recursive_halving },
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(table); i++) {
        struct machine_call machine_call = { 10, 10e-6, 16, (double)count, table[i].density, false, false };
        struct sar_agreed a = agreed_of(&machine_call);
        a.call.collective = SAR_REDUCE_SCATTER;
        a.call.block = table[i].block;
        struct sar_selection s = select_for(&a, &trusting, &no_history, NULL);
        if (sar_schemes[s.choice] != table[i].wins)
            fail_msg("line %zu: %s at %g s, not %s at %g s", i, sar_schemes[s.choice]->name,
                     s.prices[s.choice].price, table[i].wins->name,
                     s.prices[scheme_index(table[i].wins)].price);
        bool differ = table[i].block > count / 8;
        assert_int_equal(s.prices[scheme_index(&sar_scheme_dense)].unsupported_reason != NULL, differ);
    }
}

/* Sparse schemes read and write dense buffers at the price of memory; in place they write little. */
static void test_dense_buffers_cost_memory(void **state)
{
    struct machine_call machine_call = { 10, 10e-6, 8, 1e6, 0.01, false, false };
    struct sar_agreed a = agreed_of(&machine_call);
    (void)state;
    for (int passes = 0; passes <= 2; passes++) {
        a.call.dense_face = passes > 0;
        a.call.in_place = passes == 1;
        struct sar_selection s = select_for(&a, &trusting, &no_history, NULL);
        for (int i = 0; sar_schemes[i] != NULL; i++) {
            if (s.prices[i].unsupported_reason != NULL)
                continue;
            double wanted = sar_schemes[i]->seconds(&a);
            if (sar_schemes[i] != &sar_scheme_dense)
                wanted += passes * 4e6 * a.machine.memory;
            assert_true(fabs(s.prices[i].predicted - wanted) < 1e-9 * wanted);
        }
    }
}

/* hybrid is not considered where it equals recursive_doubling, unless the user requests it. */
static void test_equivalent_schemes(void **state)
{
    struct machine_call sparse = { 10, 10e-6, 8, 1e6, 1e-4, true, false },
                        dense = { 10, 10e-6, 8, 1e6, 0.2, true, false };
    int hybrid = scheme_index(&sar_scheme_hybrid);
    (void)state;
    struct sar_agreed a = agreed_of(&sparse);
    struct sar_selection s = select_for(&a, &trusting, &no_history, NULL);
    assert_non_null(strstr(s.prices[hybrid].unsupported_reason, "recursive_doubling"));
    s = select_for(&a, &trusting, &no_history, &sar_scheme_hybrid);
    assert_int_equal(s.scheme, hybrid);
    a = agreed_of(&dense);
    s = select_for(&a, &trusting, &no_history, NULL);
    assert_null(s.prices[hybrid].unsupported_reason);
}

/* The paper's equations price two schemes. The unit test of the cost model has the numbers. */
static void test_the_papers_model(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 1024; ranks *= 2) {
        struct machine_call machine_call = { 10, 10e-6, ranks, 1e6, 0.05, true, false };
        struct sar_agreed a = agreed_of(&machine_call);
        struct sar_selection s = select_for(&a, &paper, &no_history, NULL);
        assert_ptr_equal(sar_schemes[s.choice],
                         ranks < 16 ? &sar_scheme_recursive_doubling : &sar_scheme_balanced);
        assert_int_equal(s.scheme, s.choice);
        assert_true(isinf(s.prices[scheme_index(&sar_scheme_dense)].price));
        assert_true(isinf(s.prices[scheme_index(&sar_scheme_allgather)].price));
    }
}

/* With two ranks allgather and recursive doubling send the same messages. Without any costs all schemes
 * tie. */
static void test_ties_go_to_the_earlier(void **state)
{
    struct machine_call machine_call = { 10, 10e-6, 2, 1e6, 0.001, false, false };
    struct sar_agreed a = agreed_of(&machine_call);
    (void)state;
    struct sar_selection s = select_for(&a, &trusting, &no_history, NULL);
    int allgather = scheme_index(&sar_scheme_allgather),
        doubling = scheme_index(&sar_scheme_recursive_doubling);
    assert_true(s.prices[allgather].price == s.prices[doubling].price);
    assert_int_equal(s.choice, allgather < doubling ? allgather : doubling);
    a.machine = (struct sar_machine){ .ranks = 8 };
    s = select_for(&a, &trusting, &no_history, NULL);
    assert_int_equal(s.choice, 0);
    a.machine.dense_alpha = 1;
    s = select_for(&a, &trusting, &no_history, NULL);
    assert_int_equal(s.choice, scheme_index(&sar_scheme_dense) == 0 ? 1 : 0);
}

static void test_a_scheme_asked_for_runs(void **state)
{
    struct machine_call machine_call = { 1, 50e-6, 16, 1e7, 0.05, false, false };
    struct sar_agreed a = agreed_of(&machine_call);
    struct sar_cost_history history = { .ratio = { 9, 9, 9, 9 }, .trials = { 1, 2, 3, 4 } };
    (void)state;
    a.topo.shared_memory = true;
    a.topo.nodes = 1;
    a.topo.node_ranks = 16;
    struct sar_selection unforced = select_for(&a, &trusting, &no_history, NULL);
    for (int i = 0; sar_schemes[i] != NULL; i++) {
        if (!sar_scheme_serves(sar_schemes[i], SAR_ALLREDUCE))
            continue;
        struct sar_selection s = select_for(&a, &learning, &history, sar_schemes[i]);
        assert_int_equal(s.scheme, i);
        assert_int_equal(s.choice, unforced.choice);
        assert_string_equal(s.reason, "asked for");
        assert_int_equal(s.forced_by, SAR_SOURCE_DEFAULT);
        assert_true(s.prices[i].price == s.prices[i].predicted);
    }
}

/* If the requested scheme cannot run, the cheapest one does. */
static void test_a_scheme_asked_for_that_cannot_run(void **state)
{
    struct machine_call machine_call = { 10, 10e-6, 2, 1e13, 1e-9, false, false };
    struct sar_agreed a = agreed_of(&machine_call);
    (void)state;
    struct sar_selection s = select_for(&a, &trusting, &no_history, &sar_scheme_balanced);
    assert_non_null(s.prices[scheme_index(&sar_scheme_balanced)].unsupported_reason);
    assert_int_equal(s.scheme, s.choice);
    assert_null(s.prices[s.scheme].unsupported_reason);
    assert_non_null(strstr(s.reason, "in place of"));
}

/* Types and ops that only MPI supports go to MPI under every setting. */
static void test_unsupported_types_and_ops(void **state)
{
    struct machine_call machine_call = { 1, 50e-6, 16, 1e6, 0.01, true, false };
    struct sar_agreed a = agreed_of(&machine_call);
    const struct sar_config *configs[] = { &learning, &trusting, &paper };
    (void)state;
    a.call.native = false;
    for (size_t c = 0; c < LENGTH(configs); c++) {
        for (int forced = -1; forced < 0 || sar_schemes[forced] != NULL; forced++) {
            struct sar_selection s =
                select_for(&a, configs[c], &no_history, forced < 0 ? NULL : sar_schemes[forced]);
            assert_ptr_equal(sar_schemes[s.scheme], &sar_scheme_dense);
            assert_string_equal(s.reason, "only one");
            for (int i = 0; sar_schemes[i] != NULL; i++)
                assert_true((s.prices[i].unsupported_reason == NULL) == (i == s.scheme));
        }
    }
}

static void test_calls_that_no_scheme_takes(void **state)
{
    struct machine_call machine_call = { 1, 50e-6, 4, 0x1p62, 1e-15, false, false };
    struct sar_agreed a = agreed_of(&machine_call);
    struct sar_selection s = { .scheme = 77 };
    (void)state;
    a.call.native = false;
    assert_int_equal(sar_select(&a, &trusting, &no_history, NULL, NULL, &s), SAR_UNSUPPORTED);
    assert_int_equal(sar_select(&a, &trusting, &no_history, &sar_scheme_dense, NULL, &s), SAR_UNSUPPORTED);
    assert_int_equal(s.scheme, 77);
}

/* Simulate consecutive calls in which scheme i takes actual[i]; counts the runs of each scheme. First calls
 * of the schemes in the bit set `cold` take ten times as long. */
static struct sar_selection play(const struct sar_agreed *a, const double *actual, unsigned cold, int calls,
                                 struct sar_cost_history *history, int *ran)
{
    struct sar_selection s;
    for (int call = 0; call < calls; call++) {
        s = select_for(a, &learning, history, NULL);
        bool slow = ran[s.scheme]++ == 0 && (cold >> s.scheme & 1) != 0;
        sar_cost_history_add(history, s.scheme, s.prices[s.scheme].predicted,
                             actual[s.scheme] * (slow ? 10 : 1));
    }
    return s;
}

/* A call with close candidates: allgather and recursive doubling tie, the others cost more. */
static const struct machine_call close_machine_call = { 10, 10e-6, 2, 1e6, 0.01, false, false };

/* Every scheme within 1.8 times the best price has three consecutive trials; those within 1.2 have more. */
static void test_trials(void **state)
{
    struct sar_agreed a = agreed_of(&close_machine_call);
    struct sar_selection first = select_for(&a, &trusting, &no_history, NULL), s;
    struct sar_cost_history history = no_history;
    double actual[SAR_SCHEMES_MAX] = { 0 };
    int ran[SAR_SCHEMES_MAX] = { 0 }, due[SAR_SCHEMES_MAX], calls = 20;
    int trials = (int)sar_select_trials(5 * first.prices[first.choice].price);
    (void)state;
    for (int i = 0; sar_schemes[i] != NULL; i++) {
        double off = first.prices[i].price / first.prices[first.choice].price;
        actual[i] = 5 * first.prices[i].predicted;
        due[i] = off <= 1.2 ? trials : off <= 1.8 ? 3 : 0;
        calls += due[i];
    }
    play(&a, actual, 0, 3, &history, ran);
    assert_int_equal(ran[first.choice], 3);
    s = play(&a, actual, 0, calls - 3, &history, ran);
    for (int i = 0; sar_schemes[i] != NULL; i++)
        assert_int_equal(ran[i], due[i] + (i == first.choice ? 20 : 0));
    assert_int_equal(s.scheme, first.choice);
    assert_string_equal(s.reason, "cheapest");
}

/* A candidate that is faster than predicted wins finally, even if its first call is slow. A scheme far from
 * the best is not tried. */
static void check_that_the_faster_wins(bool cold)
{
    struct sar_agreed a = agreed_of(&close_machine_call);
    struct sar_selection first = select_for(&a, &trusting, &no_history, NULL), last;
    for (int faster = 0; sar_schemes[faster] != NULL; faster++) {
        struct sar_cost_history history = no_history;
        double actual[SAR_SCHEMES_MAX] = { 0 };
        int ran[SAR_SCHEMES_MAX] = { 0 };
        bool candidate = first.prices[faster].price <= 1.8 * first.prices[first.choice].price;
        for (int i = 0; sar_schemes[i] != NULL; i++)
            actual[i] = first.prices[i].predicted * (i == faster ? 0.3 : 1);
        last = play(&a, actual, cold ? 1u << faster : 0, 100, &history, ran);
        assert_int_equal(last.choice, candidate ? faster : first.choice);
        assert_int_equal(last.scheme, last.choice);
        assert_true(candidate || ran[faster] == 0);
    }
}

static void test_history_change_the_choice(void **state)
{
    (void)state;
    check_that_the_faster_wins(false);
    check_that_the_faster_wins(true);
}

/* A scheme that becomes slow is replaced by one with a better measured time. */
static void test_recording_after_the_trials(void **state)
{
    struct sar_agreed a = agreed_of(&close_machine_call);
    struct sar_selection first = select_for(&a, &trusting, &no_history, NULL), last;
    struct sar_cost_history history = no_history;
    double actual[SAR_SCHEMES_MAX] = { 0 };
    int ran[SAR_SCHEMES_MAX] = { 0 };
    (void)state;
    for (int i = 0; sar_schemes[i] != NULL; i++)
        actual[i] = first.prices[i].predicted;
    play(&a, actual, 0, 20, &history, ran);
    actual[first.choice] *= 10;
    last = play(&a, actual, 0, 20, &history, ran);
    assert_int_not_equal(last.scheme, first.choice);
}

/* Without learning, and under the paper's model, measured times change nothing. */
static void test_no_learning(void **state)
{
    const struct sar_config *configs[] = { &trusting, &paper };
    struct sar_agreed a = agreed_of(&close_machine_call);
    (void)state;
    for (size_t c = 0; c < LENGTH(configs); c++) {
        struct sar_selection without = select_for(&a, configs[c], &no_history, NULL);
        struct sar_cost_history history = no_history;
        for (int i = 0; sar_schemes[i] != NULL; i++)
            sar_cost_history_add(&history, i, 1, i == without.choice ? 1000 : 0.001);
        struct sar_selection with = select_for(&a, configs[c], &history, NULL);
        assert_int_equal(with.scheme, without.scheme);
        assert_true(with.prices[with.scheme].price == without.prices[with.scheme].price);
    }
}

/* Equal arguments give equal selections: the function keeps no state. */
static void test_a_pure_function(void **state)
{
    static const struct machine_call machine_calls[] = { { 1, 50e-6, 16, 1e7, 0.05, true, false },
                                                         { 400, 1e-6, 3, 1e5, 0.3, false, false },
                                                         { 10, 10e-6, 2, 1e6, 0.01, false, false } };
    struct sar_selection first[LENGTH(machine_calls)];
    struct sar_cost_history history = { .ratio = { 1, 2, 0.5, 1.1 }, .trials = { 1, 0, 3, 2 } };
    (void)state;
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < LENGTH(machine_calls); i++) {
            struct sar_agreed a = agreed_of(&machine_calls[i]);
            struct sar_selection s = select_for(&a, &learning, &history, NULL);
            if (round == 0)
                first[i] = s;
            assert_true(s.scheme == first[i].scheme && s.choice == first[i].choice &&
                        s.reason == first[i].reason);
            for (int k = 0; sar_schemes[k] != NULL; k++)
                assert_true(s.prices[k].price == first[i].prices[k].price);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_decisions),
                                        cmocka_unit_test(test_speculation),
                                        cmocka_unit_test(test_reduce_scatter_of_coordinates),
                                        cmocka_unit_test(test_dense_buffers_cost_memory),
                                        cmocka_unit_test(test_equivalent_schemes),
                                        cmocka_unit_test(test_the_papers_model),
                                        cmocka_unit_test(test_ties_go_to_the_earlier),
                                        cmocka_unit_test(test_a_scheme_asked_for_runs),
                                        cmocka_unit_test(test_a_scheme_asked_for_that_cannot_run),
                                        cmocka_unit_test(test_unsupported_types_and_ops),
                                        cmocka_unit_test(test_calls_that_no_scheme_takes),
                                        cmocka_unit_test(test_trials),
                                        cmocka_unit_test(test_history_change_the_choice),
                                        cmocka_unit_test(test_recording_after_the_trials),
                                        cmocka_unit_test(test_no_learning),
                                        cmocka_unit_test(test_a_pure_function) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
