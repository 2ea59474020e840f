/* SPDX-License-Identifier: BSD-3-Clause */
/* Cutting a run into stretches and putting them one behind the other again gives the run. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "generate.h"
#include "tensor/stretch.h"

enum { ROOM = 500, MOST_CUTS = 9 };

static const uint64_t counts[] = { 1, 2, 100, 100003, 4294967296, 4294967297, ((uint64_t)1 << 40) + 7 };

/* Bounds of stretches, some of them empty. */
static void draw_bounds(uint64_t count, size_t cuts, struct dice *dice, uint64_t *bounds)
{
    bounds[0] = 0;
    for (size_t i = 1; i < cuts; i++)
        bounds[i] = bounds[i - 1] + dice_below(dice, (count - bounds[i - 1]) / 2 + 1);
    bounds[cuts] = count;
}

static void check_stretches(const struct sar_shape *shape, const struct sar_run *run, const uint64_t *bounds,
                            size_t cuts, struct sar_arena *arena)
{
    struct sar_run whole = run_room(shape, run->nnz);
    size_t from = 0;
    whole.nnz = 0;
    for (size_t i = 0; i < cuts; i++) {
        uint64_t span = bounds[i + 1] - bounds[i];
        size_t to = sar_run_find(shape, run, from, bounds[i + 1]);
        struct sar_run part = sar_run_slice(shape, run, from, to);
        unsigned size = i % 2 == 0 ? sar_index_size(span) : shape->index_size;
        assert_int_equal(sar_run_rebase(shape, bounds[i], size, arena, &part), SAR_OK);
        assert_true(run_ascends(&part, size, span));
        sar_run_append(shape, &part, size, bounds[i], &whole);
        from = to;
    }
    assert_int_equal(from, run->nnz);
    assert_true(run_equal(shape, run, &whole));
    run_free(&whole);
}

static void test_stretches(void **state)
{
    struct dice dice = { 5 };
    struct sar_arena arena = { 0 };
    uint64_t index[ROOM], bounds[MOST_CUTS + 1];
    (void)state;
    for (size_t c = 0; c < LENGTH(counts); c++)
        for (size_t p = 0; p < PATTERNS; p++)
            for (size_t cuts = 1; cuts <= MOST_CUTS; cuts++) {
                struct sar_shape shape = shape_make((enum sar_base)(p % 2), SAR_SUM, counts[c], 1 + cuts % 3);
                size_t nnz = patterns[p].choose(&patterns[p], counts[c], ROOM, &dice, index);
                struct sar_run run = run_make(&shape, index, nnz, VALUES_SPECIAL, &dice);
                draw_bounds(counts[c], cuts, &dice, bounds);
                check_stretches(&shape, &run, bounds, cuts, &arena);
                sar_arena_reset(&arena);
                run_free(&run);
            }
    sar_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_stretches) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
