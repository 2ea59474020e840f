/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the split by hierarchical hashing: on any number of threads, with any amount of parallel and serial
 * memory, the parts are those of sar_partition_split, bit for bit, so that every element is in one part
 * once. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "array_length.h"
#include "generate.h"
#include "teams.h"
#include "vector/partition.h"
#include "vector/partition_hierarchical.h"

/* Many elements, so that the loops are worth several pieces. The thread sanitizer is slow. */
#if defined(__SANITIZE_THREAD__)
enum { MANY = 20000, REPEATS = 3 };
#else
enum { MANY = 40000, REPEATS = 5 };
#endif

enum { MOST_PARTS = 64, SEED = 11 };

static const uint32_t parts_table[] = { 1, 2, 3, 16, MOST_PARTS };

/* Every `step`-th index on average, index 0 included. */
static struct sar_spvec make_vec(const struct sar_vec_desc *desc, size_t most, uint64_t step)
{
    struct rng rng = { step };
    uint64_t *index = exact_alloc(most * sizeof *index);
    size_t nnz = 0;
    for (uint64_t i = 0; i < desc->count && nnz < most; i += 1 + rng_below(&rng, 2 * step - 1))
        index[nnz++] = i;
    struct sar_spvec vec = spvec_make(desc, index, nnz, VALUES_INEXACT, &rng);
    free(index);
    return vec;
}

/* Keeps the elements of one part. */
static void keep_part(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                      struct sar_spvec *vec, uint32_t part)
{
    size_t n = 0, bytes = desc->element_size;
    for (size_t i = 0; i < vec->nnz; i++) {
        uint64_t index = sar_index_get(vec->index, desc->index_size, i);
        if (sar_partition_map_locate(map, index).part != part)
            continue;
        sar_index_set(vec->index, desc->index_size, n, index);
        memmove((char *)vec->value + n++ * bytes, (char *)vec->value + i * bytes, bytes);
    }
    vec->nnz = n;
}

static void check_equal(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                        const struct sar_spvec parts[], const struct sar_spvec expected[])
{
    for (uint32_t p = 0; p < map->parts; p++) {
        assert_int_equal(parts[p].nnz, expected[p].nnz);
        if (parts[p].nnz == 0)
            continue;
        assert_memory_equal(parts[p].index, expected[p].index, parts[p].nnz * sizeof(uint32_t));
        assert_memory_equal(parts[p].value, expected[p].value, parts[p].nnz * desc->element_size);
    }
}

/* Splits on each number of threads, into the arena and into memory of exactly the vector's size. */
static struct sar_hash_stats check(const struct sar_hierarchical_params *params,
                                   const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                                   const struct sar_spvec *vec)
{
    struct sar_spvec expected[MOST_PARTS], parts[MOST_PARTS];
    struct sar_spvec memory = { exact_alloc(vec->nnz * 4), exact_alloc(vec->nnz * desc->element_size), 0 };
    struct sar_hash_stats stats = { 0 };
    struct sar_arena arena = { 0 };
    assert_int_equal(sar_partition_split(map, desc, vec, &arena, expected), SAR_OK);
    for (size_t t = 0; t < LENGTH(teams); t++) {
        if (team_is_left_out(teams[t]))
            continue;
        struct sar_parallel former = sar_parallel_begin((struct sar_parallel){ .threads = teams[t] });
        stats = (struct sar_hash_stats){ 0 };
        assert_int_equal(sar_partition_hierarchical(params, map, desc, vec, &arena, NULL, parts, &stats),
                         SAR_OK);
        check_equal(map, desc, parts, expected);
        assert_int_equal(sar_partition_hierarchical(params, map, desc, vec, &arena, &memory, parts, &stats),
                         SAR_OK);
        check_equal(map, desc, parts, expected);
        assert_ptr_equal(parts[0].index, memory.index);
        assert_ptr_equal(parts[0].value, memory.value);
        assert_int_equal(stats.elements, 2 * vec->nnz);
        assert_true(stats.serial <= stats.elements && stats.reruns <= 2 * SAR_RERUNS_MAX);
        sar_parallel_end(former);
    }
    sar_arena_free(&arena);
    free(memory.index);
    free(memory.value);
    return stats;
}

static void test_counts_and_parts(void **state)
{
    static const uint64_t counts[] = { 1, 63, 5000, MANY * 3, 4294967296, ((uint64_t)1 << 37) + 77 };
    (void)state;
    for (size_t c = 0; c < LENGTH(counts); c++) {
        for (size_t k = 0; k < LENGTH(parts_table) * 2; k++) {
            unsigned grain = k % 2 == 0 ? 1 : 64;
            struct sar_partition_map map = sar_partition_map_make(SAR_PARTITION_HIERARCHICAL, counts[c],
                                                                  parts_table[k / 2], grain, SEED);
            struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, counts[c], 1);
            if (map.slots_max > (uint64_t)1 << 32)
                continue;
            struct sar_spvec vec = make_vec(&desc, MANY, counts[c] / MANY + 1);
            check(NULL, &map, &desc, &vec);
            spvec_free(&vec);
        }
    }
}

static void test_no_elements(void **state)
{
    struct sar_partition_map map = sar_partition_map_make(SAR_PARTITION_HIERARCHICAL, 0, 3, 1, SEED);
    struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, 0, 1);
    struct sar_spvec vec = make_vec(&desc, 0, 1);
    (void)state;
    struct sar_hash_stats stats = check(NULL, &map, &desc, &vec);
    assert_int_equal(stats.serial + stats.reruns, 0);
    spvec_free(&vec);
}

/* With one parallel cell a part, and no serial ones or enough for all. All elements but one go to serial
 * memory, or the algorithm runs again. */
static void test_tiny_memory(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < 16 * LENGTH(parts_table); variant++) {
        uint32_t parts = parts_table[variant / 16];
        struct sar_vec_desc desc = vec_desc_make(variant & 8 ? SAR_DOUBLE : SAR_FLOAT, SAR_SUM, MANY * 4, 1);
        struct sar_partition_map map =
            sar_partition_map_make(SAR_PARTITION_HIERARCHICAL, desc.count, parts, 1, SEED);
        struct sar_spvec vec = make_vec(&desc, MANY / 2, 4);
        struct sar_hierarchical_params params = sar_hierarchical_params_make(vec.nnz, parts, variant);
        bool serial = variant & 1;
        params.hashes = variant % SAR_HASHES_MAX + 1;
        params.cell_size = variant & 2 ? 8 : 4;
        params.paper = variant & 4;
        params.parallel_cells = 1;
        params.serial_cells = serial ? vec.nnz : 0;
        struct sar_hash_stats stats = check(&params, &map, &desc, &vec);
        assert_true(serial ? stats.reruns == 0 : stats.reruns >= 2);
        assert_true(!serial || stats.serial == stats.elements - 2 * parts);
        spvec_free(&vec);
    }
}

/* Threads race for cells in memory that is nearly full, repeatedly. */
static void test_races(void **state)
{
    struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, MANY * 4, 1);
    struct sar_partition_map map = sar_partition_map_make(SAR_PARTITION_HIERARCHICAL, desc.count, 2, 1, SEED);
    struct sar_spvec vec = make_vec(&desc, MANY / 2, 4);
    (void)state;
    for (unsigned repeat = 0; repeat < REPEATS; repeat++) {
        struct sar_hierarchical_params params = sar_hierarchical_params_make(vec.nnz, 2, repeat);
        params.parallel_cells = vec.nnz / 2;
        params.serial_cells = vec.nnz;
        assert_true(check(&params, &map, &desc, &vec).serial > 0);
    }
    spvec_free(&vec);
}

/* One part has all elements: the paper's memory overflows. */
static void test_skew(void **state)
{
    struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, MANY * 8, 1);
    struct sar_partition_map map =
        sar_partition_map_make(SAR_PARTITION_HIERARCHICAL, desc.count, 16, 1, SEED);
    struct sar_spvec vec = make_vec(&desc, MANY, 1);
    (void)state;
    keep_part(&map, &desc, &vec, 3);
    assert_true(check(NULL, &map, &desc, &vec).reruns == 2);
    spvec_free(&vec);
}

static void test_rows_and_indices(void **state)
{
    static const size_t rows[] = { 1, 2, 3, 64 };
    (void)state;
    for (size_t k = 0; k < LENGTH(rows) * 4; k++) {
        struct sar_vec_desc desc =
            vec_desc_make(k % 2 == 0 ? SAR_FLOAT : SAR_INT64, SAR_SUM, 30011, rows[k / 4]);
        struct sar_partition_map map =
            sar_partition_map_make(SAR_PARTITION_HIERARCHICAL, desc.count, 7, 1, SEED);
        desc.index_size = k / 2 % 2 == 0 ? 4 : 8;
        struct sar_spvec vec = make_vec(&desc, 5000, 3);
        check(NULL, &map, &desc, &vec);
        spvec_free(&vec);
    }
}

/* A segment: slots count from its first stripe. */
static void test_segment(void **state)
{
    enum { PARTS = 3, FROM = 4096 };
    struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, MANY * 2, 1);
    struct sar_partition_map map =
        sar_partition_map_make(SAR_PARTITION_HIERARCHICAL, desc.count, PARTS, 1, SEED);
    struct sar_spvec vec = make_vec(&desc, MANY, 2);
    size_t from = sar_spvec_lower_bound(&desc, &vec, 0, (uint64_t)FROM * PARTS);
    struct sar_spvec slice = sar_spvec_slice(&desc, &vec, from, vec.nnz);
    (void)state;
    map.slot_base = FROM;
    check(NULL, &map, &desc, &slice);
    spvec_free(&vec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_and_parts),
        cmocka_unit_test(test_no_elements),
        cmocka_unit_test(test_tiny_memory),
        cmocka_unit_test(test_races),
        cmocka_unit_test(test_skew),
        cmocka_unit_test(test_rows_and_indices),
        cmocka_unit_test(test_segment),
    };
    return cmocka_run_group_tests(tests, NULL, teams_end);
}
