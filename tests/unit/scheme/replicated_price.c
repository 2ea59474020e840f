/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the number of barriers in the price of `shared`: one if each rank reduces everything. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "agreed.h"
#include "generate.h"
#include "scheme/scheme.h"

/* The price in units of barriers, each half an alpha. */
static double barriers(struct sar_agreed a)
{
    const double alpha = 1e-3;
    a.machine.alpha = 0;
    double without = sar_scheme_shared.seconds(&a);
    a.machine.alpha = alpha;
    return (sar_scheme_shared.seconds(&a) - without) / (alpha / 2);
}

static void check_barriers(const struct sar_agreed *a, double wanted)
{
    assert_true(fabs(barriers(*a) - wanted) < 1e-6);
}

/* With few values each rank reduces everything. */
static void test_few_values(void **state)
{
    static const struct {
        int ranks;
        double values, barriers;
    } cases[] = { { 2, 150, 1 }, { 2, 151, 3 }, { 4, 150, 1 }, { 4, 151, 3 }, { 9, 128, 1 }, { 9, 129, 3 } };
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct sar_machine machine = { cases[i].ranks, .gamma = 3e-9, .memory = 1e-10 };
        struct sar_agreed a =
            agreed_plain(vec_desc_make(SAR_FLOAT, SAR_SUM, 100000, 1), machine, cases[i].values);
        check_barriers(&a, cases[i].barriers);
    }
}

/* Few ranks accumulate into dense buffers, if zero is an identity. Many ranks, and ranks with equal elements,
 * reduce parts. */
static void test_folding(void **state)
{
    static const struct {
        int ranks;
        enum sar_op op;
        double ratio; /* of the union to one rank's elements */
        bool disjoint;
        double barriers;
    } cases[] = {
        { 2, SAR_SUM, 2, false, 1 }, { 4, SAR_SUM, 3, false, 1 },  { 4, SAR_MAX, 3, false, 2 },
        { 4, SAR_SUM, 3, true, 2 },  { 16, SAR_SUM, 1, false, 2 }, { 17, SAR_SUM, 17, false, 2 },
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct sar_machine machine = { cases[i].ranks, .gamma = 3e-9, .memory = 1e-10 };
        struct sar_vec_desc shape = vec_desc_make(SAR_FLOAT, cases[i].op, 10000000, 1);
        shape.absent_is_zero = cases[i].op == SAR_MAX;
        struct sar_agreed a = agreed_plain(shape, machine, 100000);
        a.call.dense_face = true;
        a.data.disjoint = cases[i].disjoint;
        a.data.densification = (struct sar_densification){ 2, { 1, cases[i].ranks }, { 1, cases[i].ratio } };
        check_barriers(&a, cases[i].barriers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_few_values), cmocka_unit_test(test_folding) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
