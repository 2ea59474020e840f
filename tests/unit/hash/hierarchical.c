/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests hierarchical hashing: no occurrence is lost or changed, by one thread or by eight that race for
 * cells. Out-of-memory is reported. Linked with --wrap=malloc. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "array_length.h"
#include "hash/hierarchical.h"

/* The thread sanitizer detects a race at once, and is slow. */
#if defined(__SANITIZE_THREAD__)
enum { RACES = 30, VARIANT_STEP = 10 };
#else
enum { RACES = 300, VARIANT_STEP = 1 };
#endif

enum { THREADS = 8, CHUNK = 16, SEED = 5 };

static atomic_size_t calls;
static size_t failing_from = SIZE_MAX;

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    return atomic_fetch_add(&calls, 1) >= failing_from ? NULL : __real_malloc(bytes);
}

/* Many threads take small ranges in turn, so that they access the same cells. */
struct crew {
    size_t n;
    sar_range_fn *body;
    void *context;
    pthread_barrier_t start;
};

struct member {
    struct crew *crew;
    size_t number;
    pthread_t thread;
};

static void *work(void *argument)
{
    const struct member *member = argument;
    struct crew *crew = member->crew;
    pthread_barrier_wait(&crew->start);
    for (size_t begin = member->number * CHUNK; begin < crew->n; begin += THREADS * CHUNK) {
        size_t end = begin + CHUNK < crew->n ? begin + CHUNK : crew->n;
        crew->body(crew->context, begin, end);
    }
    return NULL;
}

static void on_threads(size_t n, sar_range_fn *body, void *context)
{
    struct crew crew = { .n = n, .body = body, .context = context };
    struct member members[THREADS];
    if (n == 0)
        return;
    assert_int_equal(pthread_barrier_init(&crew.start, NULL, THREADS), 0);
    for (size_t i = 0; i < THREADS; i++) {
        members[i].crew = &crew;
        members[i].number = i;
        assert_int_equal(pthread_create(&members[i].thread, NULL, work, &members[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(members[i].thread, NULL);
    pthread_barrier_destroy(&crew.start);
}

/* An input. `different` is the number of distinct indices; 1 gives only element 0. */
struct sample {
    const char *name;
    size_t nnz;
    uint64_t count, different;
    enum sar_partition_kind kind;
};

static const struct sample samples[] = {
    { "nothing", 0, 1000, 1, SAR_PARTITION_HASH },
    { "nothing of nothing", 0, 0, 1, SAR_PARTITION_HASH },
    { "element 0", 1, 1000, 1, SAR_PARTITION_HASH },
    { "a vector of one", 1, 1, 1, SAR_PARTITION_HASH },
    { "two times element 0", 2, 1, 1, SAR_PARTITION_HASH },
    { "sparse", 3000, 100000, 100000, SAR_PARTITION_HASH },
    { "all of the vector", 3000, 3000, 3000, SAR_PARTITION_HASH },
    { "all in one part", 3000, (uint64_t)1 << 30, 4000, SAR_PARTITION_RANGE },
    { "all equal", 3000, 100000, 1, SAR_PARTITION_HASH },
    { "often equal", 3000, 100000, 50, SAR_PARTITION_HASH },
    { "a vector of 2^40", 3000, (uint64_t)1 << 40, (uint64_t)1 << 40, SAR_PARTITION_HASH },
};

/* A prime step gives distinct indices if there are enough. */
static uint64_t make_index(const struct sample *sample, size_t i)
{
    return i * 2654435761u % sample->different;
}

static struct sar_hash_input make_input(const struct sample *sample, unsigned index_size)
{
    void *index = malloc(sample->nnz * index_size + 1);
    float *value = malloc(sample->nnz * sizeof *value + 1);
    assert_true(index != NULL && value != NULL);
    for (size_t i = 0; i < sample->nnz; i++) {
        if (index_size == 4)
            ((uint32_t *)index)[i] = (uint32_t)make_index(sample, i);
        else
            ((uint64_t *)index)[i] = make_index(sample, i);
        value[i] = (float)i;
    }
    return (struct sar_hash_input){ index, value, index_size, sizeof *value, sample->nnz };
}

static void free_input(struct sar_hash_input *input)
{
    free((void *)input->index);
    free((void *)input->value);
}

/* Each input position is in the output once, in the part of its index, with its index and value. */
static void check_output(const struct sar_partition_map *map, const struct sar_hash_input *input,
                         const struct sar_hash_output *out)
{
    unsigned char *seen = calloc(input->nnz + 1, 1);
    struct sar_hash_input lists = { .index = out->index, .index_size = input->index_size };
    assert_non_null(seen);
    assert_int_equal(out->first[0], 0);
    assert_int_equal(out->first[map->parts], input->nnz);
    for (uint32_t p = 0; p < map->parts; p++) {
        assert_true(out->first[p] <= out->first[p + 1]);
        for (size_t i = out->first[p]; i < out->first[p + 1]; i++) {
            size_t position = out->position[i];
            uint64_t index = sar_hash_index(&lists, i);
            assert_true(position < input->nnz && seen[position]++ == 0);
            assert_true(index == sar_hash_index(input, position));
            assert_int_equal(sar_partition_map_locate(map, index).part, p);
            assert_true(((float *)out->value)[i] == ((const float *)input->value)[position]);
        }
    }
    assert_true(out->serial_count <= input->nnz && out->reruns <= SAR_RERUNS_MAX);
    free(seen);
}

static struct sar_hash_output hash(const struct sar_hierarchical_params *how,
                                   const struct sar_partition_map *map, const struct sar_hash_input *input,
                                   struct sar_arena *arena)
{
    struct sar_hash_output out;
    assert_int_equal(sar_hierarchical_hash(how, map, input, arena, &out), SAR_OK);
    check_output(map, input, &out);
    return out;
}

/* Run all variants of one input: k, cells, second level, memory, order. */
static void check_variants(const struct sar_partition_map *map, const struct sar_hash_input *input,
                           struct sar_arena *arena)
{
    for (unsigned variant = 0; variant < SAR_HASHES_MAX * 16; variant += VARIANT_STEP) {
        struct sar_hierarchical_params how = sar_hierarchical_params_make(input->nnz, map->parts, variant);
        how.hashes = variant % SAR_HASHES_MAX + 1;
        how.cell_size = variant & 8 ? 8 : 4;
        how.paper = variant & 16;
        how.sorted = variant & 32;
        if (variant & 64) {
            how.parallel_cells = 1;
            how.serial_cells = 0;
        }
        hash(&how, map, input, arena);
        how.parallel_for = on_threads;
        hash(&how, map, input, arena);
        sar_arena_reset(arena);
    }
}

static void test_nothing_is_lost(void **state)
{
    static const uint32_t parts[] = { 1, 3, 64 };
    struct sar_arena arena = { 0 };
    (void)state;
    for (size_t k = 0; k < LENGTH(samples); k++) {
        unsigned index_size = samples[k].count > UINT32_MAX || k % 2 ? 8 : 4;
        struct sar_hash_input input = make_input(&samples[k], index_size);
        for (size_t p = 0; p < LENGTH(parts); p++) {
            struct sar_partition_map map =
                sar_partition_map_make(samples[k].kind, samples[k].count, parts[p], 1, SEED);
            check_variants(&map, &input, &arena);
        }
        free_input(&input);
    }
    sar_arena_free(&arena);
}

/* Race for few cells, repeatedly: a check followed by a separate write would lose occurrences. */
static void test_races(void **state)
{
    const struct sample sample = { "", 2000, 1 << 20, 1 << 20, SAR_PARTITION_HASH };
    struct sar_hash_input input = make_input(&sample, 4);
    struct sar_partition_map map = sar_partition_map_make(SAR_PARTITION_HASH, sample.count, 2, 1, SEED);
    struct sar_arena arena = { 0 };
    (void)state;
    for (unsigned repeat = 0; repeat < RACES; repeat++) {
        struct sar_hierarchical_params how = sar_hierarchical_params_make(input.nnz, 2, repeat);
        how.parallel_cells = 1000;
        how.serial_cells = repeat % 3 ? 2000 : 1;
        how.cell_size = repeat % 2 ? 4 : 8;
        how.paper = repeat % 5 < 2;
        how.parallel_for = on_threads;
        unsigned reruns = hash(&how, &map, &input, &arena).reruns;
        assert_true(repeat % 3 ? reruns == 0 : reruns > 0);
        sar_arena_reset(&arena);
    }
    sar_arena_free(&arena);
    free_input(&input);
}

static void test_sorted_output_is_the_same_from_run_to_run(void **state)
{
    const struct sample sample = { "", 5000, 1 << 20, 2000, SAR_PARTITION_HASH };
    struct sar_hash_input input = make_input(&sample, 4);
    struct sar_partition_map map = sar_partition_map_make(SAR_PARTITION_HASH, sample.count, 7, 16, SEED);
    struct sar_hierarchical_params how = sar_hierarchical_params_make(input.nnz, 7, 1);
    struct sar_arena arena = { 0 };
    (void)state;
    how.sorted = true;
    struct sar_hash_output first = hash(&how, &map, &input, &arena);
    for (uint32_t p = 0; p < 7; p++) {
        for (size_t i = first.first[p] + 1; i < first.first[p + 1]; i++) {
            uint32_t before = ((uint32_t *)first.index)[i - 1], here = ((uint32_t *)first.index)[i];
            assert_true(before < here || (before == here && first.position[i - 1] < first.position[i]));
        }
    }
    for (uint32_t repeat = 0; repeat < 5; repeat++) {
        how.parallel_for = on_threads;
        how.seed = repeat;
        struct sar_hash_output again = hash(&how, &map, &input, &arena);
        assert_memory_equal(again.position, first.position, input.nnz * sizeof *again.position);
        assert_memory_equal(again.index, first.index, input.nnz * 4);
    }
    sar_arena_free(&arena);
    free_input(&input);
}

static void test_positions_only(void **state)
{
    struct sar_hash_input input = make_input(&samples[5], 4);
    struct sar_partition_map map = sar_partition_map_make(SAR_PARTITION_HASH, samples[5].count, 4, 1, SEED);
    struct sar_hierarchical_params how = sar_hierarchical_params_make(input.nnz, 4, 1);
    struct sar_arena arena = { 0 };
    struct sar_hash_output out;
    struct sar_hash_input bare = input;
    (void)state;
    bare.value = NULL;
    assert_int_equal(sar_hierarchical_hash(&how, &map, &bare, &arena, &out), SAR_OK);
    assert_null(out.value);
    out.value = malloc(input.nnz * sizeof(float));
    assert_non_null(out.value);
    for (size_t i = 0; i < input.nnz; i++)
        ((float *)out.value)[i] = ((const float *)input.value)[out.position[i]];
    check_output(&map, &input, &out);
    free(out.value);
    sar_arena_free(&arena);
    free_input(&input);
}

/* Skewed input needs a rerun, in memory proportional to nnz and not to nnz times parts. */
static void test_skew_costs_little_memory(void **state)
{
    const struct sample sample = { "", 100000, 1 << 20, 1, SAR_PARTITION_HASH };
    struct sar_hash_input input = make_input(&sample, 4);
    struct sar_partition_map map = sar_partition_map_make(SAR_PARTITION_HASH, sample.count, 1000, 1, SEED);
    struct sar_arena arena = { 0 };
    (void)state;
    for (int paper = 0; paper < 2; paper++) {
        struct sar_hierarchical_params how = sar_hierarchical_params_make(input.nnz, 1000, 1);
        how.paper = paper;
        unsigned reruns = hash(&how, &map, &input, &arena).reruns;
        assert_in_range(reruns, 1, paper ? SAR_RERUNS_MAX : 1);
        assert_in_range(arena.used, input.nnz * 4, input.nnz * (paper ? 200 : 48));
        sar_arena_free(&arena);
    }
    free_input(&input);
}

/* Two parallel cells and three serial ones, followed by memory that must not change. */
static void test_full_serial_memory_is_not_exceeded(void **state)
{
    enum { PARALLEL = 2, CELLS = 5, GUARD = 11, BEHIND = 0x5a5a5a5a };
    static const size_t first[] = { 0, CELLS }, serial[] = { PARALLEL };
    uint32_t cells[CELLS + GUARD] = { 0 }, index[20] = { 0 };
    unsigned long long appends[] = { 0 };
    struct sar_hash_memory memory = {
        .first = first, .first_serial = serial, .serial_count = appends, .cells = cells
    };
    struct sar_partition_map map = sar_partition_map_make(SAR_PARTITION_HASH, 1, 1, 1, SEED);
    struct sar_hash_input input = { .index = index, .index_size = 4, .nnz = 20 };
    (void)state;
    memory.params = sar_hierarchical_params_make(20, 1, SEED);
    for (size_t i = CELLS; i < CELLS + GUARD; i++)
        cells[i] = BEHIND;
    for (size_t i = 0; i < 20; i++)
        sar_hash_insert(&memory, &map, &input, i);
    assert_true(cells[0] != 0 && cells[1] != 0);
    assert_true(appends[0] == 18);
    assert_true(sar_hash_overflowed(&memory, 1));
    for (size_t i = CELLS; i < CELLS + GUARD; i++)
        assert_int_equal(cells[i], BEHIND);
    appends[0] = CELLS - PARALLEL;
    assert_false(sar_hash_overflowed(&memory, 1));
}

static void test_layout(void **state)
{
    static const unsigned long long totals[] = { 0, 1, 10, 1000000 };
    struct sar_hierarchical_params how = sar_hierarchical_params_make(1000, 4, 1);
    size_t first[5], serial[4];
    (void)state;
    assert_int_equal(sar_hash_layout(&how, 4, 0, NULL, first, serial), SAR_OK);
    for (size_t p = 0; p < 4; p++) {
        assert_int_equal(serial[p] - first[p], 500);
        assert_int_equal(first[p + 1] - serial[p], 50);
    }
    for (unsigned run = 1; run <= SAR_RERUNS_MAX; run++) {
        assert_int_equal(sar_hash_layout(&how, 4, run, totals, first, serial), SAR_OK);
        for (size_t p = 0; p < 4; p++) {
            assert_int_equal(serial[p] - first[p], totals[p] << run);
            assert_true(run < SAR_RERUNS_MAX || first[p + 1] - serial[p] >= totals[p]);
        }
    }
    how.parallel_cells = UINT32_MAX;
    how.serial_cells = SIZE_MAX - UINT32_MAX;
    assert_int_equal(sar_hash_layout(&how, 4, 0, NULL, first, serial), SAR_NO_MEMORY);
    how.serial_cells = SIZE_MAX / 3;
    assert_int_equal(sar_hash_layout(&how, 4, 0, NULL, first, serial), SAR_NO_MEMORY);
}

static void test_every_allocation_fails(void **state)
{
    const struct sample sample = { "", 20000, 1 << 20, 1, SAR_PARTITION_HASH };
    struct sar_hash_input input = make_input(&sample, 8);
    struct sar_partition_map map = sar_partition_map_make(SAR_PARTITION_HASH, sample.count, 16, 1, SEED);
    struct sar_hierarchical_params how = sar_hierarchical_params_make(input.nnz, 16, 1);
    enum sar_status status = SAR_NO_MEMORY;
    size_t failures = 0;
    (void)state;
    how.sorted = true;
    for (; status != SAR_OK; failures++) {
        struct sar_arena arena = { 0 };
        struct sar_hash_output out = { .reruns = 77 };
        calls = 0;
        failing_from = failures;
        status = sar_hierarchical_hash(&how, &map, &input, &arena, &out);
        failing_from = SIZE_MAX;
        assert_true(status == SAR_OK || (status == SAR_NO_MEMORY && out.reruns == 77));
        sar_arena_free(&arena);
        assert_true(failures < 100);
    }
    assert_true(failures > 3);
    free_input(&input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_lost),
        cmocka_unit_test(test_races),
        cmocka_unit_test(test_sorted_output_is_the_same_from_run_to_run),
        cmocka_unit_test(test_positions_only),
        cmocka_unit_test(test_skew_costs_little_memory),
        cmocka_unit_test(test_full_serial_memory_is_not_exceeded),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_every_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
