/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests parts and slots of batches against sar_partition_map_locate: indices close together, far apart, and
 * in groups with gaps of any length between them. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "generate.h"
#include "vector/partition_locate.h"

static const uint32_t parts_table[] = { 1, 2, 3, 7, 16, 100, 1023, 1024, 1025, 5000 };
static const unsigned grains[] = { 1, 4, 32, 256 };
static const size_t sizes[] = { 1, 15, 16, 17, 64, 100, 1000, SAR_LOCATE_BATCH };
static const uint32_t gaps[] = { 0, 1, 30, 1000, 100000 }; /* at most, between two elements */

/* Ascending indices that end at `last`. One gap in 50 is long if there is room. */
static void make_indices(uint32_t *index, size_t n, uint32_t last, uint32_t gap, struct rng *rng)
{
    uint64_t at = last;
    for (size_t i = n; i-- > 0;) {
        index[i] = (uint32_t)at;
        uint64_t step = 1 + (gap == 0 ? 0 : rng_below(rng, gap));
        if (rng_below(rng, 50) == 0)
            step += rng_below(rng, 50000000);
        at = at >= step + i ? at - step : at - 1;
    }
}

static void check_slots(const struct sar_partition_map *map, const uint32_t *index, size_t n)
{
    static struct sar_slots_batch batch;
    const struct sar_vec_desc desc = { .count = map->count, .element_size = 4, .index_size = 4 };
    sar_locate_slots(map, &desc, index - 3, 3, n, &batch);
    for (size_t i = 0; i < n; i++) {
        struct sar_slot expected = sar_partition_map_locate(map, index[i]);
        assert_int_equal(batch.part[i], expected.part);
        assert_int_equal(batch.slot[i], (uint32_t)expected.slot);
    }
}

static void check_runs(const struct sar_partition_map *map, const uint32_t *index, size_t n)
{
    static struct sar_runs_batch runs;
    if (map->kind == SAR_PARTITION_RANGE || !map->blocks_fit_32 || map->parts < 2)
        return;
    sar_locate_runs(map, index, n, &runs);
    assert_in_range(runs.n, 1, n);
    assert_int_equal(runs.start[0], 0);
    assert_int_equal(runs.start[runs.n], n);
    for (size_t r = 0; r < runs.n; r++) {
        assert_true(runs.start[r] < runs.start[r + 1]);
        for (size_t i = runs.start[r]; i < runs.start[r + 1]; i++) {
            struct sar_slot expected = sar_partition_map_locate(map, index[i]);
            assert_int_equal(index[i] >> map->grain_shift, runs.block[r]);
            assert_int_equal(runs.part[r], expected.part);
            assert_int_equal(index[i] + runs.to_slot[r], (uint32_t)expected.slot);
        }
    }
}

static void try_map(const struct sar_partition_map *map, struct rng *rng)
{
    static uint32_t index[3 + SAR_LOCATE_BATCH];
    for (size_t s = 0; s < LENGTH(sizes); s++)
        for (size_t g = 0; g < LENGTH(gaps); g++) {
            uint32_t last = (uint32_t)(map->count - 1 - rng_below(rng, 5));
            make_indices(index + 3, sizes[s], last, gaps[g], rng);
            check_slots(map, index + 3, sizes[s]);
            check_runs(map, index + 3, sizes[s]);
        }
}

static void test_batches(void **state)
{
    struct rng rng = { 17 };
    (void)state;
    for (int kind = SAR_PARTITION_HASH; kind <= SAR_PARTITION_RANGE; kind++)
        for (size_t p = 0; p < LENGTH(parts_table); p++)
            for (size_t g = 0; g < LENGTH(grains); g++) {
                struct sar_partition_map map =
                    sar_partition_map_make((enum sar_partition_kind)kind, UINT32_MAX - 1000 * p,
                                           parts_table[p], grains[g], 5);
                try_map(&map, &rng);
            }
}

/* Slots of a segment count from its begin. */
static void test_slot_base(void **state)
{
    struct rng rng = { 18 };
    (void)state;
    struct sar_partition_map map = sar_partition_map_make(SAR_PARTITION_HASH, UINT64_C(1) << 32, 16, 32, 6);
    map.slot_base = 32 * UINT64_C(1000);
    try_map(&map, &rng);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_batches), cmocka_unit_test(test_slot_base) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
