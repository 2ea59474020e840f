/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests cuts of several vectors at one index: at most `target` elements are below, and no larger cut would
 * fit. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "generate.h"
#include "vector/multiselect.h"

enum { ROOM = 400, VECS_MAX = 9, TRIES = 30 };

static const uint64_t counts[] = { 1, 2, 100, 100003, 4294967297, ((uint64_t)1 << 40) + 7 };

static uint64_t index_at(const struct sar_vec_desc *desc, const struct sar_spvec *vec, size_t i)
{
    return sar_index_get(vec->index, desc->index_size, i);
}

/* The smallest index at or above the cut, and the largest below it. */
static void check_one_index(const struct sar_vec_desc *desc, const struct sar_spvec *vecs, size_t n,
                            const size_t *cut)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t r = 0; r < n; r++) {
        assert_true(cut[r] <= vecs[r].nnz);
        if (cut[r] < vecs[r].nnz && index_at(desc, &vecs[r], cut[r]) < least)
            least = index_at(desc, &vecs[r], cut[r]);
        if (cut[r] > 0 && index_at(desc, &vecs[r], cut[r] - 1) + 1 > most)
            most = index_at(desc, &vecs[r], cut[r] - 1) + 1;
    }
    assert_true(most <= least);
}

/* The number of elements below a cut after the next index. */
static size_t one_more(const struct sar_vec_desc *desc, const struct sar_spvec *vecs, size_t n,
                       const size_t *cut)
{
    uint64_t least = UINT64_MAX;
    size_t below = 0;
    for (size_t r = 0; r < n; r++)
        if (cut[r] < vecs[r].nnz && index_at(desc, &vecs[r], cut[r]) < least)
            least = index_at(desc, &vecs[r], cut[r]);
    for (size_t r = 0; r < n; r++)
        below += cut[r] + (cut[r] < vecs[r].nnz && index_at(desc, &vecs[r], cut[r]) == least);
    return below;
}

static void check_cut(const struct sar_vec_desc *desc, const struct sar_spvec *vecs, size_t n,
                      struct sar_multiselect_target aim)
{
    size_t cut[VECS_MAX], spare[2 * VECS_MAX], below = 0, total = 0;
    sar_multiselect(desc, vecs, n, aim, cut, spare);
    check_one_index(desc, vecs, n, cut);
    for (size_t r = 0; r < n; r++) {
        below += cut[r];
        total += vecs[r].nnz;
    }
    assert_true(below <= aim.target);
    if (below < total && aim.target - below > aim.slack)
        assert_true(one_more(desc, vecs, n, cut) > aim.target);
}

static void test_cuts(void **state)
{
    struct rng rng = { 11 };
    uint64_t index[ROOM];
    (void)state;
    for (size_t c = 0; c < LENGTH(counts); c++)
        for (size_t n = 1; n <= VECS_MAX; n++) {
            struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, counts[c], 1);
            struct sar_spvec vecs[VECS_MAX];
            size_t total = 0;
            for (size_t r = 0; r < n; r++) {
                size_t p = (size_t)rng_below(&rng, PATTERNS);
                size_t nnz = patterns[p].choose(&patterns[p], counts[c], ROOM, &rng, index);
                vecs[r] = spvec_make(&desc, index, nnz, VALUES_SPECIAL, &rng);
                total += nnz;
            }
            for (int i = 0; i < TRIES; i++)
                check_cut(&desc, vecs, n,
                          (struct sar_multiselect_target){ (size_t)rng_below(&rng, total + 2),
                                                           i % 2 == 0 ? 0 : (size_t)rng_below(&rng, 20) });
            for (size_t r = 0; r < n; r++)
                spvec_free(&vecs[r]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_cuts) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
