/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests partitioned vectors, restored indices and merged parts: no element is lost, the order is kept, and
 * values stay with their elements. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "teams.h"
#include "vector/merge_bitmaps.h"
#include "vector/partition.h"

enum { MOST_PARTS = 257, ROOM = 3000 };

static const uint32_t parts_table[] = { 1, 2, 3, 7, 8, 16, 100, MOST_PARTS - 1, MOST_PARTS };
static const unsigned grains[] = { 1, 2, 16, 64, 256 };

/* The last counts need 8-byte indices; the very last has more than 2^32 blocks for small grains. */
static const uint64_t counts[] = { 1,          63,         1000,
                                   4096,       100003,     4294967295,
                                   4294967296, 4294967297, ((uint64_t)1 << 38) + 77 };

/* In the vector's order each element must be the next one of its part. */
static void check_parts(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                        const struct sar_spvec *vec, const struct sar_spvec parts[])
{
    size_t next[MOST_PARTS] = { 0 }, bytes = desc->element_size;
    for (size_t i = 0; i < vec->nnz; i++) {
        struct sar_slot place = sar_partition_map_locate(map, sar_index_get(vec->index, desc->index_size, i));
        const struct sar_spvec *part = &parts[place.part];
        size_t k = next[place.part]++;
        assert_true(k < part->nnz);
        assert_int_equal(((const uint32_t *)part->index)[k], place.slot);
        assert_memory_equal((const char *)part->value + k * bytes, (const char *)vec->value + i * bytes,
                            bytes);
    }
    for (uint32_t p = 0; p < map->parts; p++) {
        assert_int_equal(next[p], parts[p].nnz);
        assert_true(spvec_ascends(&parts[p], 4, sar_partition_map_slots(map, p)));
    }
}

/* Slots convert back to indices, values stay, and all parts together hold each index once. This check does
 * not use sar_partition_map_locate. */
static void check_back(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                       const struct sar_spvec *vec, struct sar_spvec parts[], struct sar_arena *arena)
{
    size_t at[MOST_PARTS] = { 0 };
    for (uint32_t p = 0; p < map->parts; p++) {
        struct sar_spvec before = parts[p];
        assert_int_equal(sar_partition_restore_indices(map, desc, p, arena, &parts[p]), SAR_OK);
        assert_ptr_equal(parts[p].value, before.value);
        assert_int_equal(parts[p].nnz, before.nnz);
        assert_true(spvec_ascends(&parts[p], desc->index_size, desc->count));
    }
    for (size_t i = 0; i < vec->nnz; i++) {
        uint64_t index = sar_index_get(vec->index, desc->index_size, i);
        uint32_t p = 0;
        while (p < map->parts &&
               (at[p] == parts[p].nnz || sar_index_get(parts[p].index, desc->index_size, at[p]) != index))
            p++;
        assert_true(p < map->parts);
        at[p]++;
    }
    for (uint32_t p = 0; p < map->parts; p++)
        assert_int_equal(at[p], parts[p].nnz);
}

/* The merged parts equal the vector. */
static void check_together(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                           const struct sar_spvec *vec, const struct sar_spvec parts[],
                           struct sar_arena *arena)
{
    struct sar_spvec out = spvec_alloc(desc, vec->nnz);
    assert_int_equal(sar_partition_merge(map, desc, parts, arena, &out), SAR_OK);
    assert_true(spvec_equal(desc, &out, vec));
    spvec_free(&out);
}

/* The parts of a map as bitmaps. The last byte of slots may be missing if it is empty. */
static void make_bitmaps(const struct sar_partition_map *map, const struct sar_spvec parts[],
                         struct sar_part_bitmap bitmaps[])
{
    for (uint32_t p = 0; p < map->parts; p++) {
        uint64_t slots = sar_partition_map_slots(map, p);
        const uint32_t *slot = parts[p].index;
        unsigned char *bits = exact_alloc(slots / 8 + 1);
        memset(bits, 0, slots / 8 + 1);
        for (size_t i = 0; i < parts[p].nnz; i++)
            bits[slot[i] / 8] |= (unsigned char)(1u << slot[i] % 8);
        bitmaps[p] =
            (struct sar_part_bitmap){ bits, slots / 8 + (slots % 8 != 0), parts[p].value, parts[p].nnz };
    }
}

/* Merged bitmaps equal the vector. One element too many or too few is noticed. */
static void check_bitmaps(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                          const struct sar_spvec *vec, const struct sar_spvec parts[],
                          struct sar_arena *arena)
{
    struct sar_part_bitmap bitmaps[MOST_PARTS];
    if (!sar_merge_bitmaps_works(map) || map->slots_max > 1 << 20)
        return;
    struct sar_spvec out = spvec_alloc(desc, vec->nnz);
    make_bitmaps(map, parts, bitmaps);
    assert_int_equal(sar_merge_bitmaps(map, desc, bitmaps, arena, &out), SAR_OK);
    assert_true(spvec_equal(desc, &out, vec));
    for (int change = -1; change <= 1; change += 2) {
        bitmaps[map->parts / 2].nnz += (size_t)change;
        assert_int_equal(sar_merge_bitmaps(map, desc, bitmaps, arena, &out), SAR_CORRUPT);
        bitmaps[map->parts / 2].nnz -= (size_t)change;
    }
    for (uint32_t p = 0; p < map->parts; p++)
        free((void *)bitmaps[p].bits);
    spvec_free(&out);
}

/* Partition into memory of exactly the vector's size. */
static void check_into(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                       const struct sar_spvec *vec, struct sar_arena *arena)
{
    struct sar_spvec parts[MOST_PARTS];
    struct sar_spvec memory = { exact_alloc(vec->nnz * 4), exact_alloc(vec->nnz * desc->element_size), 0 };
    size_t before = 0;
    assert_int_equal(sar_partition_into(map, desc, vec, arena, &memory, parts), SAR_OK);
    check_parts(map, desc, vec, parts);
    for (uint32_t p = 0; p < map->parts; p++) {
        assert_ptr_equal(parts[p].index, (char *)memory.index + before * 4);
        assert_ptr_equal(parts[p].value, (char *)memory.value + before * desc->element_size);
        before += parts[p].nnz;
    }
    free(memory.index);
    free(memory.value);
}

static void check(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                  const struct pattern *pattern)
{
    struct rng rng = { map->count + map->parts };
    struct sar_spvec parts[MOST_PARTS];
    struct sar_arena arena = { 0 };
    uint64_t index[ROOM];
    size_t room = desc->row_len > 100 ? 50 : ROOM;
    size_t nnz = pattern->choose(pattern, map->count, room, &rng, index);
    struct sar_spvec vec = spvec_make(desc, index, nnz, VALUES_INEXACT, &rng);
    assert_int_equal(sar_partition_split(map, desc, &vec, &arena, parts), SAR_OK);
    check_parts(map, desc, &vec, parts);
    check_into(map, desc, &vec, &arena);
    check_together(map, desc, &vec, parts, &arena);
    check_bitmaps(map, desc, &vec, parts, &arena);
    check_back(map, desc, &vec, parts, &arena);
    spvec_free(&vec);
    sar_arena_free(&arena);
}

static bool fits(const struct sar_partition_map *map)
{
    return map->slots_max <= (uint64_t)1 << 32;
}

/* Every map, grain, number of parts and count; the patterns alternate. */
static void test_maps(void **state)
{
    size_t turn = 0;
    (void)state;
    for (size_t c = 0; c < LENGTH(counts); c++) {
        for (size_t p = 0; p < LENGTH(parts_table); p++) {
            for (size_t k = 0; k < SAR_PARTITIONS * LENGTH(grains); k++, turn++) {
                struct sar_partition_map map =
                    sar_partition_map_make((enum sar_partition_kind)(k % SAR_PARTITIONS), counts[c],
                                           parts_table[p], grains[k / SAR_PARTITIONS], 42);
                struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, counts[c], 1);
                if (fits(&map))
                    check(&map, &desc, &patterns[turn % PATTERNS]);
            }
        }
    }
}

/* Values of every size, and rows; 8-byte indices where 4 bytes suffice. */
static void test_values_and_indices(void **state)
{
    static const size_t rows[] = { 1, 2, 3, 64, 500 };
    (void)state;
    for (size_t k = 0; k < SAR_PARTITIONS * PATTERNS * LENGTH(rows); k++) {
        enum sar_partition_kind kind = (enum sar_partition_kind)(k % SAR_PARTITIONS);
        unsigned grain = k % 2 == 0 ? 16 : 128;
        struct sar_partition_map map = sar_partition_map_make(kind, 30011, 8, grain, (uint32_t)k);
        for (unsigned variant = 0; variant < 4; variant++) {
            struct sar_vec_desc desc = vec_desc_make(variant % 2 == 0 ? SAR_FLOAT : SAR_INT64, SAR_SUM, 30011,
                                                     rows[k % LENGTH(rows)]);
            desc.index_size = variant < 2 ? 4 : 8;
            check(&map, &desc, &patterns[k % PATTERNS]);
        }
    }
}

/* Three parts of a cyclic map of five blocks of two, computed by hand: blocks 0 and 3, 1 and 4, 2. */
static void test_by_hand(void **state)
{
    static const uint64_t index[] = { 0, 2, 4, 5, 6, 7, 9 };
    static const uint32_t slots[] = { 0, 2, 3, 0, 3, 0, 1 };
    static const size_t nnz[] = { 3, 2, 2 };
    struct sar_partition_map map = sar_partition_map_make(SAR_PARTITION_CYCLIC, 10, 3, 2, 0);
    struct sar_vec_desc desc = vec_desc_make(SAR_INT32, SAR_SUM, 10, 1);
    struct rng rng = { 0 };
    struct sar_spvec vec = spvec_make(&desc, index, LENGTH(index), VALUES_EXACT, &rng), parts[3];
    struct sar_arena arena = { 0 };
    (void)state;
    assert_int_equal(sar_partition_split(&map, &desc, &vec, &arena, parts), SAR_OK);
    for (size_t p = 0, k = 0; p < 3; k += nnz[p], p++) {
        assert_int_equal(parts[p].nnz, nnz[p]);
        assert_memory_equal(parts[p].index, slots + k, nnz[p] * sizeof *slots);
    }
    spvec_free(&vec);
    sar_arena_free(&arena);
}

/* Bitmaps are merged without lists only where vectors of AVX-512 do it: floats at indices of 4 bytes. */
static void test_choice_of_bitmaps(void **state)
{
    struct sar_vec_desc floats = vec_desc_make(SAR_FLOAT, SAR_SUM, 1000, 1), other = floats;
    (void)state;
#if !defined(SAR_NO_CLONES) /* else the library's file has them, and this one not */
    assert_int_equal(sar_merge_bitmaps_is_faster(&floats), sar_has_avx512());
#endif
    other.index_size = 8;
    assert_false(sar_merge_bitmaps_is_faster(&other));
    other = vec_desc_make(SAR_DOUBLE, SAR_SUM, 1000, 1);
    assert_false(sar_merge_bitmaps_is_faster(&other));
}

/* From an element to the next, half the most. */
static const uint64_t segment_steps[] = { 1, 2, 7, 30, 500 };

/* A whole vector and a segment that starts within it, with blocks that are empty, partly filled and full. */
static void check_segment(size_t k, enum sar_dtype type, uint64_t from)
{
    enum { COUNT = 40000, PARTS = 3 };
    struct sar_partition_map map = sar_partition_map_make((enum sar_partition_kind)(k % 2), COUNT, PARTS,
                                                          grains[k / 2 % LENGTH(grains)], 7);
    struct sar_vec_desc desc = vec_desc_make(type, SAR_SUM, COUNT, 1);
    struct rng rng = { k };
    struct sar_spvec parts[PARTS];
    struct sar_arena arena = { 0 };
    uint64_t *index = exact_alloc(COUNT * sizeof *index), step = segment_steps[k / 2 / LENGTH(grains)];
    size_t nnz = 0;
    for (uint64_t i = from * PARTS; i < COUNT; i += 1 + rng_below(&rng, 2 * step - 1))
        index[nnz++] = i;
    struct sar_spvec vec = spvec_make(&desc, index, nnz, VALUES_INEXACT, &rng);
    map.slot_base = from;
    assert_int_equal(sar_partition_split(&map, &desc, &vec, &arena, parts), SAR_OK);
    check_together(&map, &desc, &vec, parts, &arena);
    if (from == 0)
        check_bitmaps(&map, &desc, &vec, parts, &arena);
    spvec_free(&vec);
    sar_arena_free(&arena);
    free(index);
}

static void test_segment(void **state)
{
    (void)state;
    for (size_t k = 0; k < LENGTH(segment_steps) * LENGTH(grains) * 2; k++)
        for (unsigned variant = 0; variant < 4; variant++)
            check_segment(k, variant % 2 == 0 ? SAR_FLOAT : SAR_DOUBLE, variant < 2 ? 4096 : 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps),
        cmocka_unit_test(test_values_and_indices),
        cmocka_unit_test(test_segment),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_choice_of_bitmaps),
    };
    return TEAMS_RUN_SMALL(tests, NULL, NULL);
}
