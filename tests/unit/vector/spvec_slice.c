/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that the slices of a vector, appended to each other, are the vector. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "generate.h"
#include "teams.h"
#include "vector/spvec.h"

enum { ROOM = 500, MOST_CUTS = 9 };

static const uint64_t counts[] = { 1, 2, 100, 100003, 4294967296, 4294967297, ((uint64_t)1 << 40) + 7 };

/* Bounds of slices, some of them empty. */
static void draw_bounds(uint64_t count, size_t cuts, struct rng *rng, uint64_t *bounds)
{
    bounds[0] = 0;
    for (size_t i = 1; i < cuts; i++)
        bounds[i] = bounds[i - 1] + rng_below(rng, (count - bounds[i - 1]) / 2 + 1);
    bounds[cuts] = count;
}

static void check_slices(const struct sar_vec_desc *desc, const struct sar_spvec *vec, const uint64_t *bounds,
                         size_t cuts, struct sar_arena *arena)
{
    struct sar_spvec whole = spvec_alloc(desc, vec->nnz);
    size_t from = 0;
    whole.nnz = 0;
    for (size_t i = 0; i < cuts; i++) {
        uint64_t span = bounds[i + 1] - bounds[i];
        size_t to = sar_spvec_lower_bound(desc, vec, from, bounds[i + 1]);
        struct sar_spvec part = sar_spvec_slice(desc, vec, from, to);
        unsigned size = i % 2 == 0 ? sar_index_size(span) : desc->index_size;
        assert_int_equal(sar_spvec_rebase(desc, bounds[i], size, arena, &part), SAR_OK);
        assert_true(spvec_ascends(&part, size, span));
        sar_spvec_append(desc, &part, size, bounds[i], &whole);
        from = to;
    }
    assert_int_equal(from, vec->nnz);
    assert_true(spvec_equal(desc, vec, &whole));
    spvec_free(&whole);
}

static void test_slices(void **state)
{
    struct rng rng = { 5 };
    struct sar_arena arena = { 0 };
    uint64_t index[ROOM], bounds[MOST_CUTS + 1];
    (void)state;
    for (size_t c = 0; c < LENGTH(counts); c++)
        for (size_t p = 0; p < PATTERNS; p++)
            for (size_t cuts = 1; cuts <= MOST_CUTS; cuts++) {
                struct sar_vec_desc desc =
                    vec_desc_make((enum sar_dtype)(p % 2), SAR_SUM, counts[c], 1 + cuts % 3);
                size_t nnz = patterns[p].choose(&patterns[p], counts[c], ROOM, &rng, index);
                struct sar_spvec vec = spvec_make(&desc, index, nnz, VALUES_SPECIAL, &rng);
                draw_bounds(counts[c], cuts, &rng, bounds);
                check_slices(&desc, &vec, bounds, cuts, &arena);
                sar_arena_reset(&arena);
                spvec_free(&vec);
            }
    sar_arena_free(&arena);
}

static void check_copy(const struct sar_vec_desc *desc, const struct sar_spvec *vec,
                       void (*copy)(const struct sar_vec_desc *, const struct sar_spvec *,
                                    struct sar_spvec *))
{
    struct sar_spvec to = spvec_alloc(desc, vec->nnz);
    copy(desc, vec, &to);
    assert_true(spvec_equal(desc, vec, &to));
    spvec_free(&to);
}

/* Vectors of several pieces are copied, shifted and appended. */
static void test_long_vectors(void **state)
{
    enum { NNZ = 150001 };
    uint64_t *index = exact_alloc(NNZ * sizeof *index);
    (void)state;
    for (size_t k = 0; k < 8; k++) {
        struct rng rng = { k };
        struct sar_arena arena = { 0 };
        uint64_t count = k % 2 == 0 ? 10 * NNZ : (uint64_t)1 << 40, bounds[] = { 0, 7 * NNZ, count };
        struct sar_vec_desc desc =
            vec_desc_make(k < 4 ? SAR_FLOAT : SAR_INT8, SAR_SUM, count, 1 + k / 2 % 2 * 2);
        for (size_t i = 0; i < NNZ; i++)
            index[i] = i * 10;
        struct sar_spvec vec = spvec_make(&desc, index, NNZ, VALUES_INEXACT, &rng);
        check_copy(&desc, &vec, sar_spvec_copy);
        check_copy(&desc, &vec, sar_spvec_copy_nt);
        check_slices(&desc, &vec, bounds, 2, &arena);
        sar_arena_free(&arena);
        spvec_free(&vec);
    }
    free(index);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_slices), cmocka_unit_test(test_long_vectors) };
    return TEAMS_RUN(tests, NULL, NULL);
}
