/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests partition maps: each is a bijection from the vector to slots of parts, and is balanced where
 * documented. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "array_length.h"
#include "hash/partition_map.h"

enum { MOST_PARTS = 1000, WHOLE = 4097, SAMPLES = 600, SEED = 42 };

static const uint32_t parts_table[] = { 1, 2, 3, 4, 5, 7, 8, 13, 128, MOST_PARTS };

/* The last counts have more than 2^32 elements, and for small grains more than 2^32 blocks. */
static const uint64_t counts_table[] = { 0,
                                         1,
                                         63,
                                         64,
                                         65,
                                         WHOLE,
                                         4097,
                                         1000000,
                                         1048577,
                                         4294967295,
                                         4294967296,
                                         ((uint64_t)1 << 32) + 12345,
                                         (uint64_t)1 << 40 };

/* Call check for every kind, number of parts and grain. */
static void for_all_maps(uint64_t count, void (*check)(const struct sar_partition_map *map))
{
    for (unsigned kind = 0; kind < SAR_PARTITIONS; kind++) {
        for (size_t p = 0; p < LENGTH(parts_table); p++) {
            for (unsigned grain = 1; grain <= 256; grain *= 2) {
                struct sar_partition_map map =
                    sar_partition_map_make((enum sar_partition_kind)kind, count, parts_table[p], grain, SEED);
                assert_true(map.count == count && map.parts == parts_table[p]);
                check(&map);
            }
        }
    }
}

static struct sar_slot check_place(const struct sar_partition_map *map, uint64_t index)
{
    struct sar_slot place = sar_partition_map_locate(map, index);
    assert_true(place.part < map->parts);
    assert_true(place.slot < sar_partition_map_slots(map, place.part));
    assert_true(sar_partition_map_index(map, place.part, place.slot) == index);
    return place;
}

/* In index order each part must get its slots 0, 1, 2 …, and as many as it reports. */
static void check_whole(const struct sar_partition_map *map)
{
    uint64_t next[MOST_PARTS] = { 0 };
    for (uint64_t i = 0; i < map->count; i++) {
        struct sar_slot place = check_place(map, i);
        assert_true(place.slot == next[place.part]++);
    }
    for (uint32_t p = 0; p < map->parts; p++)
        assert_true(sar_partition_map_slots(map, p) == next[p]);
}

static void test_whole_vectors(void **state)
{
    (void)state;
    for (size_t c = 0; c < LENGTH(counts_table) && counts_table[c] <= WHOLE; c++)
        for_all_maps(counts_table[c], check_whole);
}

/* First and last index, boundaries of stripes, and scattered indices. */
static uint64_t sample(const struct sar_partition_map *map, uint64_t k)
{
    uint64_t line = (uint64_t)map->parts << map->grain_shift;
    switch (k % 4) {
    case 0: return k / 4 % map->count;
    case 1: return map->count - 1 - k / 4 % map->count;
    case 2: return (k / 4 * line + k % 3 + line - 1) % map->count;
    default: return sar_mix64(k) % map->count;
    }
}

/* Slots of a part must ascend: check the slot after each sample. */
static void check_sampled(const struct sar_partition_map *map)
{
    if (map->count == 0)
        return;
    for (uint64_t k = 0; k < SAMPLES; k++) {
        struct sar_slot place = check_place(map, sample(map, k));
        if (place.slot + 1 == sar_partition_map_slots(map, place.part))
            continue;
        uint64_t after = sar_partition_map_index(map, place.part, place.slot + 1);
        assert_true(after > sar_partition_map_index(map, place.part, place.slot) && after < map->count);
        check_place(map, after);
    }
}

static void test_samples(void **state)
{
    (void)state;
    for (size_t c = 0; c < LENGTH(counts_table); c++)
        for_all_maps(counts_table[c], check_sampled);
}

static void check_slots(const struct sar_partition_map *map)
{
    uint64_t sum = 0, most = 0, least = UINT64_MAX;
    for (uint32_t p = 0; p < map->parts; p++) {
        uint64_t slots = sar_partition_map_slots(map, p);
        sum += slots;
        most = slots > most ? slots : most;
        least = slots < least ? slots : least;
    }
    assert_true(sum == map->count);
    assert_true(most <= map->slots_max);
    if (map->kind != SAR_PARTITION_RANGE)
        assert_true(most - least <= (uint64_t)1 << map->grain_shift);
}

/* The caller's blocks: the part of element i is (i / block) mod parts. */
static void check_blocks(uint64_t count, uint32_t parts, uint64_t block)
{
    struct sar_partition_map map = sar_partition_map_of_blocks(count, parts, block);
    for (uint64_t k = 0; k < SAMPLES && count > 0; k++) {
        uint64_t i = sar_mix64(k) % count;
        assert_true(check_place(&map, i).part == i / block % parts);
    }
    if (count <= WHOLE)
        check_whole(&map);
}

static void test_blocks(void **state)
{
    static const uint64_t blocks[] = { 1, 2, 3, 64, 100, 1000, 4096, 1000003, 4294967297, UINT64_MAX / 2 };
    (void)state;
    for (size_t c = 0; c < LENGTH(counts_table); c++)
        for (size_t p = 0; p < LENGTH(parts_table); p++)
            for (size_t b = 0; b < LENGTH(blocks); b++)
                check_blocks(counts_table[c], parts_table[p], blocks[b]);
}

static void test_slots(void **state)
{
    (void)state;
    for (size_t c = 0; c < LENGTH(counts_table); c++)
        for_all_maps(counts_table[c], check_slots);
}

/* No part is empty if there are enough blocks. */
static void test_onto(void **state)
{
    (void)state;
    for (size_t p = 0; p < LENGTH(parts_table); p++) {
        for (unsigned kind = 0; kind < SAR_PARTITIONS; kind++) {
            struct sar_partition_map map =
                sar_partition_map_make((enum sar_partition_kind)kind, parts_table[p] * 64, parts_table[p], 64,
                                       SEED);
            for (uint32_t part = 0; part < map.parts; part++)
                assert_true(sar_partition_map_slots(&map, part) == 64);
        }
    }
}

static void test_division(void **state)
{
    static const uint32_t edges[] = { 1,   2,     3,     5,          255,        256,
                                      257, 65535, 65537, 0x7fffffff, 0x80000000, 0x80000001 };
    (void)state;
    for (uint32_t k = 0; k < 3000; k++) {
        uint32_t divisor = k < LENGTH(edges) ? edges[k] : k < 2000 ? k : sar_mix32(k) | 1;
        struct sar_partition_map map = sar_partition_map_make(SAR_PARTITION_HASH, 1, divisor, 1, SEED);
        for (uint32_t i = 0; i < 300; i++) {
            uint32_t block = i < 100 ? i * divisor - i % 3 : sar_mix32(i * 3000 + k);
            assert_int_equal(sar_partition_map_divide(&map, block), block / divisor);
        }
        assert_int_equal(sar_partition_map_divide(&map, UINT32_MAX), UINT32_MAX / divisor);
    }
}

/* A distribution of non-zeros: returns index i of nnz, ascending and distinct. */
struct pattern {
    const char *name;
    uint64_t (*index)(uint64_t i, uint32_t parts, unsigned grain);
};

static uint64_t every_nth(uint64_t i, uint32_t parts, unsigned grain)
{
    (void)grain;
    return i * parts;
}

static uint64_t every_nth_block(uint64_t i, uint32_t parts, unsigned grain)
{
    return i / grain * grain * parts + i % grain;
}

static uint64_t every_16th(uint64_t i, uint32_t parts, unsigned grain)
{
    (void)parts, (void)grain;
    return i * 16;
}

static uint64_t every_4096th(uint64_t i, uint32_t parts, unsigned grain)
{
    (void)parts, (void)grain;
    return i * 4096;
}

static uint64_t prefix(uint64_t i, uint32_t parts, unsigned grain)
{
    (void)parts, (void)grain;
    return i;
}

static uint64_t scattered(uint64_t i, uint32_t parts, unsigned grain)
{
    (void)parts, (void)grain;
    return i * 20 + sar_mix32((uint32_t)i) % 20;
}

/* Gaps grow with the index, as between ranks of words in a text. */
static uint64_t zipf(uint64_t i, uint32_t parts, unsigned grain)
{
    (void)parts, (void)grain;
    return i + i / 100 * (i / 100);
}

static const struct pattern patterns[] = {
    { "every n-th", every_nth },
    { "every n-th block", every_nth_block },
    { "every 16th", every_16th },
    { "every 4096th", every_4096th },
    { "prefix", prefix },
    { "scattered", scattered },
    { "Zipf", zipf },
};

/* The paper's imbalance ratio: the largest part over the mean. */
static double imbalance(enum sar_partition_kind kind, const struct pattern *pattern, uint64_t nnz,
                        uint32_t parts, unsigned grain)
{
    uint64_t load[MOST_PARTS] = { 0 }, most = 0;
    uint64_t count = pattern->index(nnz - 1, parts, grain) + 1;
    struct sar_partition_map map = sar_partition_map_make(kind, count, parts, grain, SEED);
    for (uint64_t i = 0; i < nnz; i++)
        load[sar_partition_map_locate(&map, pattern->index(i, parts, grain)).part]++;
    for (uint32_t p = 0; p < parts; p++)
        most = load[p] > most ? load[p] : most;
    return (double)most * parts / (double)nnz;
}

static double bound(uint64_t nnz, uint32_t parts, unsigned grain)
{
    return 1 + 3 * sqrt(2 * parts * log(parts) * grain / (double)nnz) + (double)parts * grain / (double)nnz;
}

static void test_hash_balances(void **state)
{
    static const uint32_t parts[] = { 2, 3, 8, 13, 16, 128 };
    static const unsigned grains[] = { 1, 16, 64, 256 };
    const uint64_t nnz = 200000;
    (void)state;
    for (size_t k = 0; k < LENGTH(patterns); k++) {
        for (size_t p = 0; p < LENGTH(parts); p++) {
            for (size_t g = 0; g < LENGTH(grains); g++) {
                double found = imbalance(SAR_PARTITION_HASH, &patterns[k], nnz, parts[p], grains[g]);
                if (found > bound(nnz, parts[p], grains[g]))
                    fail_msg("%s over %u parts by %u: %g", patterns[k].name, parts[p], grains[g], found);
            }
        }
    }
}

/* The paper's limit: imbalance below 1.1 at 16 parts with single indices, for every pattern. */
static void test_hash_is_within_the_papers_limit(void **state)
{
    (void)state;
    for (size_t k = 0; k < LENGTH(patterns); k++)
        assert_true(imbalance(SAR_PARTITION_HASH, &patterns[k], 200000, 16, 1) < 1.1);
}

/* Purpose of the hash: without it, a constant stride puts everything into one part. */
static void test_cyclic_and_range_do_not(void **state)
{
    (void)state;
    assert_true(imbalance(SAR_PARTITION_CYCLIC, &patterns[0], 20000, 16, 1) == 16);
    assert_true(imbalance(SAR_PARTITION_CYCLIC, &patterns[1], 20480, 16, 64) == 16);
    assert_true(imbalance(SAR_PARTITION_CYCLIC, &patterns[4], 20000, 16, 1) == 1);
    assert_true(imbalance(SAR_PARTITION_RANGE, &patterns[6], 100000, 16, 1) > 1.5);
}

static void test_seeds_give_different_maps(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed < 50; seed++) {
        struct sar_partition_map one = sar_partition_map_make(SAR_PARTITION_HASH, 100000, 8, 1, 0);
        struct sar_partition_map other = sar_partition_map_make(SAR_PARTITION_HASH, 100000, 8, 1, seed);
        unsigned equal = 0;
        for (uint64_t i = 0; i < 8000; i++)
            equal += sar_partition_map_locate(&one, i).part == sar_partition_map_locate(&other, i).part;
        assert_in_range(equal, 600, 1400);
    }
}

/* Over the seeds, two indices share a part with probability at most 1 / parts. */
static void test_universal(void **state)
{
    (void)state;
    for (uint32_t pair = 0; pair < 20; pair++) {
        uint64_t a = sar_mix32(pair) % 1000000, b = (a + 1 + sar_mix32(~pair) % 999999) % 1000000;
        unsigned met = 0;
        for (uint32_t seed = 0; seed < 8000; seed++) {
            struct sar_partition_map map =
                sar_partition_map_make(SAR_PARTITION_HASH, 1000000, 8, 1, sar_mix32(seed));
            met += sar_partition_map_locate(&map, a).part == sar_partition_map_locate(&map, b).part;
        }
        assert_in_range(met, 0, 1150);
    }
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(sar_partition_names[SAR_PARTITION_HASH], "hash");
    assert_string_equal(sar_partition_names[SAR_PARTITION_CYCLIC], "cyclic");
    assert_string_equal(sar_partition_names[SAR_PARTITION_RANGE], "range");
    assert_string_equal(sar_partition_names[SAR_PARTITION_HIERARCHICAL], "hierarchical");
    for (int kind = 0; kind < SAR_PARTITIONS; kind++) {
        struct sar_partition_map map = sar_partition_map_make((enum sar_partition_kind)kind, 100, 3, 1, SEED);
        assert_string_equal(sar_partition_map_name(&map), sar_partition_names[kind]);
    }
    assert_null(sar_partition_names[SAR_PARTITIONS]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_vectors),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_onto),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_division),
        cmocka_unit_test(test_hash_balances),
        cmocka_unit_test(test_hash_is_within_the_papers_limit),
        cmocka_unit_test(test_cyclic_and_range_do_not),
        cmocka_unit_test(test_seeds_give_different_maps),
        cmocka_unit_test(test_universal),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
