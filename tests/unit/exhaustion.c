/* SPDX-License-Identifier: BSD-3-Clause */
/* Every allocation fails for once, and every request to an arena: the caller is told, nothing leaks, and
 * the same call succeeds afterwards with the same outcome. Linked with --wrap for malloc, calloc,
 * realloc, free, sar_arena_take and sar_arena_take_zeroed. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "tensor/assemble.h"
#include "tensor/dense.h"
#include "tensor/ingest.h"
#include "tensor/partition.h"
#include "tensor/reduce.h"
#include "wire/narrow.h"

/* A kind of request and which of them fail: those from number `from` to `until`, the latter excluded. */
struct fault {
    size_t calls, from, until;
};

static struct fault heap = { 0, SIZE_MAX, SIZE_MAX }, takes = { 0, SIZE_MAX, SIZE_MAX };
static long live; /* blocks of the heap not freed */

static bool fails(struct fault *fault)
{
    size_t call = fault->calls++;
    return call >= fault->from && call < fault->until;
}

static void set_fault(struct fault *fault, size_t from, size_t until)
{
    *fault = (struct fault){ 0, from, until };
}

static void *counted(void *memory)
{
    live += memory != NULL;
    return memory;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void __real_free(void *memory);
enum sar_status __real_sar_arena_take(struct sar_arena *arena, size_t count, size_t size, void **memory);
enum sar_status __real_sar_arena_take_zeroed(struct sar_arena *arena, size_t count, size_t size,
                                             void **memory);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void __wrap_free(void *memory);
enum sar_status __wrap_sar_arena_take(struct sar_arena *arena, size_t count, size_t size, void **memory);
enum sar_status __wrap_sar_arena_take_zeroed(struct sar_arena *arena, size_t count, size_t size,
                                             void **memory);

void *__wrap_malloc(size_t bytes)
{
    return fails(&heap) ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    return fails(&heap) ? NULL : counted(__real_calloc(n, bytes));
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    if (fails(&heap))
        return NULL;
    void *moved = __real_realloc(memory, bytes);
    live += memory == NULL && moved != NULL;
    return moved;
}

void __wrap_free(void *memory)
{
    live -= memory != NULL;
    __real_free(memory);
}

enum sar_status __wrap_sar_arena_take(struct sar_arena *arena, size_t count, size_t size, void **memory)
{
    return fails(&takes) ? SAR_NO_MEMORY : __real_sar_arena_take(arena, count, size, memory);
}

enum sar_status __wrap_sar_arena_take_zeroed(struct sar_arena *arena, size_t count, size_t size,
                                             void **memory)
{
    return fails(&takes) ? SAR_NO_MEMORY : __real_sar_arena_take_zeroed(arena, count, size, memory);
}

enum { COUNT = 200000, NNZ = 20000, PARTS = 7, FORMS = 3 /* of values, for each format */ };

/* Inputs, made once while nothing fails. */
static struct {
    struct sar_shape shape;
    struct sar_map map;
    struct sar_run runs[3];
    struct sar_coo unsorted, wide;
    float *dense;
    struct sar_arena arena; /* of messages */
    struct sar_message messages[16][FORMS];
} in;

/* What a call gave, in short: FNV-1a over the runs it made. */
static uint64_t digest(const struct sar_shape *shape, const struct sar_run *run, uint64_t hash)
{
    const unsigned char *index = run->index, *value = run->value;
    hash = (hash ^ run->nnz) * 0x100000001b3;
    for (size_t i = 0; i < run->nnz * shape->index_size; i++)
        hash = (hash ^ index[i]) * 0x100000001b3;
    for (size_t i = 0; i < run->nnz * shape->element_size; i++)
        hash = (hash ^ value[i]) * 0x100000001b3;
    return hash;
}

/* A call of the library that takes its memory from the arena. `variant` is the action's own. */
typedef enum sar_status (*action_fn)(struct sar_arena *arena, size_t variant, uint64_t *outcome);

static enum sar_status ingest(struct sar_arena *arena, size_t variant, uint64_t *outcome)
{
    struct sar_run run;
    long long bad;
    SAR_TRY(sar_ingest(&in.shape, variant == 0 ? &in.unsorted : &in.wide, arena, &run, &bad));
    *outcome = digest(&in.shape, &run, 1);
    return SAR_OK;
}

static enum sar_status partition(struct sar_arena *arena, size_t variant, uint64_t *outcome)
{
    struct sar_run parts[PARTS];
    uint64_t hash = 1;
    SAR_TRY(sar_partition(&in.map, &in.shape, &in.runs[variant], arena, parts));
    for (uint32_t p = 0; p < PARTS; p++) {
        SAR_TRY(sar_unpartition(&in.map, &in.shape, p, arena, &parts[p]));
        hash = digest(&in.shape, &parts[p], hash);
    }
    *outcome = hash;
    return SAR_OK;
}

/* By blocks of many elements, and as runs. */
static enum sar_status assemble(struct sar_arena *arena, size_t variant, uint64_t *outcome)
{
    struct sar_map map = sar_map_make(SAR_PARTITION_HASH, COUNT, PARTS, variant == 0 ? 64 : 1, 3);
    struct sar_run parts[PARTS], out;
    SAR_TRY(sar_partition(&map, &in.shape, &in.runs[0], arena, parts));
    SAR_TRY(sar_run_take(&in.shape, in.runs[0].nnz, arena, &out));
    SAR_TRY(sar_assemble(&map, &in.shape, parts, arena, &out));
    *outcome = digest(&in.shape, &out, 1);
    return SAR_OK;
}

static enum sar_status reduce(struct sar_arena *arena, size_t variant, uint64_t *outcome)
{
    struct sar_shape shape = in.shape;
    struct sar_run out;
    shape.absent_is_zero = variant == 1;
    SAR_TRY(sar_reduce_taken(&shape, in.runs, LENGTH(in.runs), arena, &out));
    *outcome = digest(&shape, &out, 1);
    return SAR_OK;
}

static enum sar_status count_first(struct sar_arena *arena, size_t variant, uint64_t *outcome)
{
    struct sar_reduction reduction;
    struct sar_run out;
    (void)variant;
    SAR_TRY(sar_reduce_count(&in.shape, in.runs, LENGTH(in.runs), in.shape.index_size, arena, &reduction));
    SAR_TRY(sar_run_take(&in.shape, reduction.nnz, arena, &out));
    sar_reduce_write(&reduction, &out);
    *outcome = digest(&in.shape, &out, 1);
    return SAR_OK;
}

static enum sar_status compact(struct sar_arena *arena, size_t variant, uint64_t *outcome)
{
    struct sar_run run;
    SAR_TRY(sar_dense_compact(&in.shape, in.dense, variant == 0 ? 0 : NNZ, arena, &run));
    *outcome = digest(&in.shape, &run, 1);
    return SAR_OK;
}

/* Variants for each format: zeros that may not be lost, that may, and that may with narrow values. */
static struct sar_envelope envelope_of(size_t variant)
{
    bool narrow = variant % FORMS == 2;
    struct sar_layout layout = { COUNT, in.shape.element_size / (narrow ? 2 : 1), in.shape.index_size,
                                 variant % FORMS != 0, narrow ? SAR_VALUES_FP16 : SAR_VALUES_FULL };
    return (struct sar_envelope){ layout, 1, 2, 3 };
}

static enum sar_status round_values(struct sar_arena *arena, size_t variant, uint64_t *outcome)
{
    struct sar_envelope envelope = envelope_of(variant);
    struct sar_run run = in.runs[0];
    SAR_TRY(sar_round_run(&envelope.layout, arena, &run));
    *outcome = digest(&in.shape, &run, 1);
    return SAR_OK;
}

static enum sar_status encode(struct sar_arena *arena, size_t variant, uint64_t *outcome)
{
    struct sar_envelope envelope = envelope_of(variant);
    struct sar_message message;
    SAR_TRY(sar_message_encode(&envelope, sar_wires[variant / FORMS], &in.runs[0], arena, &message));
    struct sar_shape bytes = { .element_size = 1 };
    *outcome = digest(&bytes, &(struct sar_run){ NULL, message.buffer, (size_t)message.bytes }, 1);
    return SAR_OK;
}

static enum sar_status decode(struct sar_arena *arena, size_t variant, uint64_t *outcome)
{
    struct sar_envelope envelope = envelope_of(variant);
    struct sar_run run;
    SAR_TRY(sar_message_decode(&envelope, &in.messages[variant / FORMS][variant % FORMS], arena, &run));
    *outcome = digest(&in.shape, &run, 1);
    return SAR_OK;
}

/* Fail one request after the other, or all from it on, until the call no longer gets so far. A request to
 * the heap that fails alone may be mended by a smaller one. */
static size_t fail_each(action_fn action, size_t variant, struct fault *fault, bool alone, uint64_t wanted)
{
    bool may_be_mended = fault == &heap && alone;
    for (size_t k = 0;; k++) {
        struct sar_arena arena = { 0 };
        uint64_t outcome = 0;
        set_fault(fault, k, alone ? k + 1 : SIZE_MAX);
        enum sar_status status = action(&arena, variant, &outcome);
        bool reached = fault->calls > k;
        set_fault(fault, SIZE_MAX, SIZE_MAX);
        assert_true(status == SAR_NO_MEMORY || (status == SAR_OK && outcome == wanted));
        assert_true(status == SAR_OK ? !reached || may_be_mended : reached);
        assert_int_equal(action(&arena, variant, &outcome), SAR_OK);
        assert_true(outcome == wanted);
        sar_arena_free(&arena);
        if (!reached)
            return k;
    }
}

static void check(action_fn action, size_t variant, size_t least_takes)
{
    struct sar_arena arena = { 0 };
    uint64_t wanted = 0;
    long before = live;
    assert_int_equal(action(&arena, variant, &wanted), SAR_OK);
    sar_arena_free(&arena);
    size_t taken = fail_each(action, variant, &takes, true, wanted);
    assert_true(taken >= least_takes);
    fail_each(action, variant, &takes, false, wanted);
    fail_each(action, variant, &heap, true, wanted);
    size_t blocks = fail_each(action, variant, &heap, false, wanted);
    assert_true((blocks > 0) == (taken > 0));
    assert_int_equal(live, before);
}

static void test_ingest(void **state)
{
    (void)state;
    check(ingest, 0, 2);
    check(ingest, 1, 1);
}

static void test_partition(void **state)
{
    (void)state;
    for (size_t r = 0; r < LENGTH(in.runs); r++)
        check(partition, r, 2 + PARTS);
}

static void test_assemble(void **state)
{
    (void)state;
    check(assemble, 0, 6);
    check(assemble, 1, 7 + PARTS);
}

static void test_reduce(void **state)
{
    (void)state;
    check(reduce, 0, 3);
    check(reduce, 1, 4);
    check(count_first, 0, 7);
}

static void test_compact(void **state)
{
    (void)state;
    check(compact, 0, 4);
    check(compact, 1, 2);
}

/* One of the values becomes a zero and leaves. */
static void test_round(void **state)
{
    (void)state;
    check(round_values, 2, 2);
}

static void test_encode(void **state)
{
    (void)state;
    for (size_t w = 0; sar_wires[w] != NULL; w++) {
        check(encode, FORMS * w, 1);
        check(encode, FORMS * w + 1, 1);
        check(encode, FORMS * w + 2, 2);
    }
}

/* A format may need no memory at all to be read. */
static void test_decode(void **state)
{
    (void)state;
    for (size_t w = 0; sar_wires[w] != NULL; w++) {
        check(decode, FORMS * w, 0);
        check(decode, FORMS * w + 1, 0);
        check(decode, FORMS * w + 2, 1);
    }
}

static struct sar_coo coo_make(enum sar_index_type type, bool ascending, struct dice *dice)
{
    unsigned size = sar_index_type_size(type);
    void *indices = exact(NNZ * (size_t)size), *values = exact(NNZ * in.shape.element_size);
    for (size_t i = 0; i < NNZ; i++)
        sar_index_set(indices, size, i, ascending ? i * 5 : dice_below(dice, COUNT));
    values_fill(in.shape.base, VALUES_INEXACT, values, NNZ, dice);
    return (struct sar_coo){ indices, values, NNZ, type };
}

static int set_up(void **state)
{
    struct dice dice = { 1 };
    uint64_t *index = exact(COUNT * sizeof *index);
    (void)state;
    in.shape = shape_make(SAR_FLOAT, SAR_SUM, COUNT, 1);
    in.map = sar_map_make(SAR_PARTITION_HASH, COUNT, PARTS, 16, 3);
    for (size_t r = 0; r < LENGTH(in.runs); r++) {
        const struct pattern *pattern = &patterns[7 + r];
        size_t nnz = pattern->choose(pattern, COUNT, COUNT, &dice, index);
        in.runs[r] = run_make(&in.shape, index, nnz, VALUES_INEXACT, &dice);
    }
    ((float *)in.runs[0].value)[0] = 1e-20f;
    in.unsorted = coo_make(SAR_INDEX_UINT32, false, &dice);
    in.wide = coo_make(SAR_INDEX_INT64, true, &dice);
    in.dense = memset(exact(COUNT * sizeof *in.dense), 0, COUNT * sizeof *in.dense);
    sar_dense_scatter(&in.shape, &in.runs[2], in.dense);
    for (size_t k = 0; sar_wires[k / FORMS] != NULL; k++) {
        struct sar_envelope envelope = envelope_of(k);
        struct sar_message *message = &in.messages[k / FORMS][k % FORMS];
        if (sar_message_encode(&envelope, sar_wires[k / FORMS], &in.runs[0], &in.arena, message) != SAR_OK)
            return -1;
    }
    free(index);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t r = 0; r < LENGTH(in.runs); r++)
        run_free(&in.runs[r]);
    free((void *)in.unsorted.indices);
    free((void *)in.unsorted.values);
    free((void *)in.wide.indices);
    free((void *)in.wide.values);
    free(in.dense);
    sar_arena_free(&in.arena);
    return live == 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ingest), cmocka_unit_test(test_partition), cmocka_unit_test(test_assemble),
        cmocka_unit_test(test_reduce), cmocka_unit_test(test_compact),   cmocka_unit_test(test_round),
        cmocka_unit_test(test_encode), cmocka_unit_test(test_decode),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
