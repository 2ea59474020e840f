/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests prices against times of the schemes for the paper's models. bench/simulate computed the times with
 * the distributions of bench/lib/workload.c at 25 Gb/s and 10 us, without work; bench/results stores them.
 * The tensors are skewed, so the fullest of contiguous parts counts. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "generate.h"
#include "scheme/scheme.h"

enum { STRIPS = 3 };

/* The first `end` of all elements, without the strips before, have `share` of a rank's elements, evenly. */
struct strip {
    double end, share;
};

static const struct model {
    const char *name;
    double count, density;
    struct strip strips[STRIPS];
} models[] = {
    { "lstm", 406e6, 0.0113, { { 1.0 / 128, 0.58 }, { 1.0 / 8, 0.22 }, { 1, 0.20 } } },
    { "deepfm", 214e6, 0.0280, { { 0.0233, 0.50 }, { 1.0 / 8, 0.20 }, { 1, 0.30 } } },
    { "nmt", 112e6, 0.0247, { { 0.0206, 0.50 }, { 1.0 / 8, 0.27 }, { 1, 0.23 } } },
};

/* Elements of the union of k ranks in the first `part` of the vector, over those of one rank. */
static double union_of(const struct model *model, double k, double part)
{
    double elements = 0, begin = 0;
    for (int i = 0; i < STRIPS && begin < part; i++) {
        const struct strip *strip = &model->strips[i];
        double density = model->density * strip->share / (strip->end - begin);
        elements += (fmin(strip->end, part) - begin) * -expm1(k * log1p(-density));
        begin = strip->end;
    }
    return elements / model->density;
}

static struct sar_agreed agreed_of(const struct model *model, int ranks)
{
    const double alpha = 10e-6, beta = 8 / 25e9;
    struct sar_agreed a = { .data.nnz_mean = model->count * model->density,
                            .data.nnz_max = model->count * model->density,
                            .call.native = true,
                            .partition.max_imbalance = 1.1,
                            .topo.nodes = ranks,
                            .wire.segment_bytes = 1 << 18,
                            .partition.kind = -1 };
    a.desc = vec_desc_make(SAR_FLOAT, SAR_SUM, (uint64_t)model->count, 1);
    a.machine = (struct sar_machine){
        .ranks = ranks, .alpha = alpha, .beta = beta, .intra_alpha = alpha, .intra_beta = beta
    };
    a.data.densification = sar_densification_independent(model->density, ranks);
    for (int i = 0; i < a.data.densification.points; i++)
        a.data.densification.ratio[i] = union_of(model, a.data.densification.ranks[i], 1);
    a.data.skewness = union_of(model, 1, 1.0 / ranks) * ranks;
    return a;
}

enum { LSTM, DEEPFM, NMT };

static const struct run {
    int model, ranks;
    const struct sar_scheme *scheme;
    double milliseconds;
} runs[] = {
    { LSTM, 16, &sar_scheme_ring, 340.6 },
    { DEEPFM, 16, &sar_scheme_ring, 355.8 },
    { NMT, 16, &sar_scheme_ring, 189.2 },
    { LSTM, 16, &sar_scheme_split_allgather, 168.9 },
    { DEEPFM, 16, &sar_scheme_split_allgather, 184.0 },
    { NMT, 16, &sar_scheme_split_allgather, 92.8 },
    { NMT, 12, &sar_scheme_split_allgather, 80.1 },
    { NMT, 8, &sar_scheme_split_allgather, 56.3 },
    { NMT, 4, &sar_scheme_split_allgather, 26.8 },
    { NMT, 3, &sar_scheme_split_allgather, 21.0 },
    { LSTM, 16, &sar_scheme_oktopk, 111.9 },
    { DEEPFM, 16, &sar_scheme_oktopk, 132.5 },
    { NMT, 16, &sar_scheme_oktopk, 63.5 },
    { NMT, 8, &sar_scheme_oktopk, 33.1 },
    { NMT, 3, &sar_scheme_oktopk, 11.6 },
    { LSTM, 16, &sar_scheme_sparse_ps, 489.7 },
    { DEEPFM, 16, &sar_scheme_sparse_ps, 516.5 },
    { NMT, 16, &sar_scheme_sparse_ps, 270.9 },
    { NMT, 3, &sar_scheme_recursive_doubling, 21.0 },
    { NMT, 6, &sar_scheme_recursive_doubling, 37.8 },
    { NMT, 12, &sar_scheme_recursive_doubling, 64.7 },
    { NMT, 16, &sar_scheme_recursive_doubling, 40.9 },
    { LSTM, 16, &sar_scheme_balanced, 51.8 },
    { DEEPFM, 16, &sar_scheme_balanced, 70.3 },
    { NMT, 16, &sar_scheme_balanced, 31.1 },
};

static void test_simulated_times(void **state)
{
    int off = 0;
    (void)state;
    for (size_t i = 0; i < LENGTH(runs); i++) {
        struct sar_agreed a = agreed_of(&models[runs[i].model], runs[i].ranks);
        double milliseconds = runs[i].scheme->seconds(&a) * 1e3, ratio = milliseconds / runs[i].milliseconds;
        if (fabs(ratio - 1) <= 0.25)
            continue;
        print_error("%s, %d ranks, %s: %.1f ms, not %.1f\n", models[runs[i].model].name, runs[i].ranks,
                    runs[i].scheme->name, milliseconds, runs[i].milliseconds);
        off++;
    }
    assert_int_equal(off, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_simulated_times) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
