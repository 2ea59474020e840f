/* SPDX-License-Identifier: BSD-3-Clause */
/* Splitting a run into parts, putting slots back, and parts together: nothing is lost, the order is kept,
 * values follow. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "tensor/assemble.h"
#include "tensor/partition.h"

enum { MOST_PARTS = 100, ROOM = 3000 };

static const uint32_t parts_table[] = { 1, 2, 3, 7, 8, 16, MOST_PARTS };
static const unsigned grains[] = { 1, 2, 16, 64, 256 };

/* The last ones need 8-byte indices; the very last has more than 2^32 blocks for small grains. */
static const uint64_t counts[] = { 1,          63,         1000,
                                   4096,       100003,     4294967295,
                                   4294967296, 4294967297, ((uint64_t)1 << 38) + 77 };

/* Walk through the run in order: each element must be the next one of its part. */
static void check_parts(const struct sar_map *map, const struct sar_shape *shape, const struct sar_run *run,
                        const struct sar_run parts[])
{
    size_t next[MOST_PARTS] = { 0 }, bytes = shape->element_size;
    for (size_t i = 0; i < run->nnz; i++) {
        struct sar_place place = sar_map_place(map, sar_index_get(run->index, shape->index_size, i));
        const struct sar_run *part = &parts[place.part];
        size_t k = next[place.part]++;
        assert_true(k < part->nnz);
        assert_int_equal(((const uint32_t *)part->index)[k], place.slot);
        assert_memory_equal((const char *)part->value + k * bytes, (const char *)run->value + i * bytes,
                            bytes);
    }
    for (uint32_t p = 0; p < map->parts; p++) {
        assert_int_equal(next[p], parts[p].nnz);
        assert_true(run_ascends(&parts[p], 4, sar_map_slots(map, p)));
    }
}

/* Slots become indices again. Values stay, and all parts together hold each index of the run once: this
 * does not rely on sar_map_place. */
static void check_back(const struct sar_map *map, const struct sar_shape *shape, const struct sar_run *run,
                       struct sar_run parts[], struct sar_arena *arena)
{
    size_t at[MOST_PARTS] = { 0 };
    for (uint32_t p = 0; p < map->parts; p++) {
        struct sar_run before = parts[p];
        assert_int_equal(sar_unpartition(map, shape, p, arena, &parts[p]), SAR_OK);
        assert_ptr_equal(parts[p].value, before.value);
        assert_int_equal(parts[p].nnz, before.nnz);
        assert_true(run_ascends(&parts[p], shape->index_size, shape->count));
    }
    for (size_t i = 0; i < run->nnz; i++) {
        uint64_t index = sar_index_get(run->index, shape->index_size, i);
        uint32_t p = 0;
        while (p < map->parts &&
               (at[p] == parts[p].nnz || sar_index_get(parts[p].index, shape->index_size, at[p]) != index))
            p++;
        assert_true(p < map->parts);
        at[p]++;
    }
    for (uint32_t p = 0; p < map->parts; p++)
        assert_int_equal(at[p], parts[p].nnz);
}

/* All parts together are the run. */
static void check_together(const struct sar_map *map, const struct sar_shape *shape,
                           const struct sar_run *run, const struct sar_run parts[], struct sar_arena *arena)
{
    struct sar_run out = run_room(shape, run->nnz);
    assert_int_equal(sar_assemble(map, shape, parts, arena, &out), SAR_OK);
    assert_true(run_equal(shape, &out, run));
    run_free(&out);
}

/* The same in memory that has room for that and no more. */
static void check_into(const struct sar_map *map, const struct sar_shape *shape, const struct sar_run *run,
                       struct sar_arena *arena)
{
    struct sar_run parts[MOST_PARTS];
    struct sar_run memory = { exact(run->nnz * 4), exact(run->nnz * shape->element_size), 0 };
    size_t before = 0;
    assert_int_equal(sar_partition_into(map, shape, run, arena, &memory, parts), SAR_OK);
    check_parts(map, shape, run, parts);
    for (uint32_t p = 0; p < map->parts; p++) {
        assert_ptr_equal(parts[p].index, (char *)memory.index + before * 4);
        assert_ptr_equal(parts[p].value, (char *)memory.value + before * shape->element_size);
        before += parts[p].nnz;
    }
    free(memory.index);
    free(memory.value);
}

static void check(const struct sar_map *map, const struct sar_shape *shape, const struct pattern *pattern)
{
    struct dice dice = { map->count + map->parts };
    struct sar_run parts[MOST_PARTS];
    struct sar_arena arena = { 0 };
    uint64_t index[ROOM];
    size_t room = shape->row > 100 ? 50 : ROOM;
    size_t nnz = pattern->choose(pattern, map->count, room, &dice, index);
    struct sar_run run = run_make(shape, index, nnz, VALUES_INEXACT, &dice);
    assert_int_equal(sar_partition(map, shape, &run, &arena, parts), SAR_OK);
    check_parts(map, shape, &run, parts);
    check_into(map, shape, &run, &arena);
    check_together(map, shape, &run, parts, &arena);
    check_back(map, shape, &run, parts, &arena);
    run_free(&run);
    sar_arena_free(&arena);
}

static bool fits(const struct sar_map *map)
{
    return map->span <= (uint64_t)1 << 32;
}

/* Every kind, grain, number of parts and count; the patterns take turns. */
static void test_maps(void **state)
{
    size_t turn = 0;
    (void)state;
    for (size_t c = 0; c < LENGTH(counts); c++) {
        for (size_t p = 0; p < LENGTH(parts_table); p++) {
            for (size_t k = 0; k < SAR_PARTITIONS * LENGTH(grains); k++, turn++) {
                struct sar_map map = sar_map_make((enum sar_partition)(k % SAR_PARTITIONS), counts[c],
                                                  parts_table[p], grains[k / SAR_PARTITIONS], 42);
                struct sar_shape shape = shape_make(SAR_FLOAT, SAR_SUM, counts[c], 1);
                if (fits(&map))
                    check(&map, &shape, &patterns[turn % PATTERNS]);
            }
        }
    }
}

/* Values of every size, and rows; 8-byte indices where 4 would do. */
static void test_values_and_indices(void **state)
{
    static const size_t rows[] = { 1, 2, 3, 64, 500 };
    (void)state;
    for (size_t k = 0; k < SAR_PARTITIONS * PATTERNS * LENGTH(rows); k++) {
        enum sar_partition kind = (enum sar_partition)(k % SAR_PARTITIONS);
        struct sar_map map = sar_map_make(kind, 30011, 8, 16, (uint32_t)k);
        for (unsigned variant = 0; variant < 4; variant++) {
            struct sar_shape shape =
                shape_make(variant % 2 == 0 ? SAR_FLOAT : SAR_INT64, SAR_SUM, 30011, rows[k % LENGTH(rows)]);
            shape.index_size = variant < 2 ? 4 : 8;
            check(&map, &shape, &patterns[k % PATTERNS]);
        }
    }
}

/* Three parts of a cyclic map of five blocks of two, worked out by hand: blocks 0 and 3, 1 and 4, 2. */
static void test_by_hand(void **state)
{
    static const uint64_t index[] = { 0, 2, 4, 5, 6, 7, 9 };
    static const uint32_t slots[] = { 0, 2, 3, 0, 3, 0, 1 };
    static const size_t nnz[] = { 3, 2, 2 };
    struct sar_map map = sar_map_make(SAR_PARTITION_CYCLIC, 10, 3, 2, 0);
    struct sar_shape shape = shape_make(SAR_INT32, SAR_SUM, 10, 1);
    struct dice dice = { 0 };
    struct sar_run run = run_make(&shape, index, LENGTH(index), VALUES_EXACT, &dice), parts[3];
    struct sar_arena arena = { 0 };
    (void)state;
    assert_int_equal(sar_partition(&map, &shape, &run, &arena, parts), SAR_OK);
    for (size_t p = 0, k = 0; p < 3; k += nnz[p], p++) {
        assert_int_equal(parts[p].nnz, nnz[p]);
        assert_memory_equal(parts[p].index, slots + k, nnz[p] * sizeof *slots);
    }
    run_free(&run);
    sar_arena_free(&arena);
}

/* A segment from a line in the middle on, filled so that blocks have none of their slots to all of them. */
static void test_segment(void **state)
{
    enum { COUNT = 40000, PARTS = 3, FROM = 4096 };
    static const uint64_t steps[] = { 1, 2, 7, 30, 500 };
    (void)state;
    for (size_t k = 0; k < LENGTH(steps) * LENGTH(grains) * 2; k++) {
        struct sar_map map =
            sar_map_make((enum sar_partition)(k % 2), COUNT, PARTS, grains[k / 2 % LENGTH(grains)], 7);
        struct sar_shape shape = shape_make(SAR_DOUBLE, SAR_SUM, COUNT, 1);
        struct dice dice = { k };
        struct sar_run parts[PARTS];
        struct sar_arena arena = { 0 };
        uint64_t *index = exact(COUNT * sizeof *index), step = steps[k / 2 / LENGTH(grains)];
        size_t nnz = 0;
        for (uint64_t i = FROM * PARTS; i < COUNT; i += 1 + dice_below(&dice, 2 * step - 1))
            index[nnz++] = i;
        struct sar_run run = run_make(&shape, index, nnz, VALUES_INEXACT, &dice);
        map.base = FROM;
        assert_int_equal(sar_partition(&map, &shape, &run, &arena, parts), SAR_OK);
        check_together(&map, &shape, &run, parts, &arena);
        run_free(&run);
        sar_arena_free(&arena);
        free(index);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps),
        cmocka_unit_test(test_values_and_indices),
        cmocka_unit_test(test_segment),
        cmocka_unit_test(test_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
