/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests allocation failures: every heap allocation and every arena request fails once. The caller gets an
 * error, nothing leaks, and the next call succeeds with the same result. Linked with --wrap for malloc,
 * calloc, realloc, free, sar_arena_alloc and sar_arena_alloc_zeroed. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "teams.h"
#include "vector/dense.h"
#include "vector/canonicalize.h"
#include "vector/partition.h"
#include "vector/partition_hierarchical.h"
#include "vector/reduce.h"
#include "vector/reduce_bitmap.h"
#include "vector/topk.h"
#include "wire/round16.h"

/* A sort of request, and the numbers of those that fail: `from` to `until`, the latter excluded. Threads of a
 * team count their requests together. */
struct fault {
    atomic_size_t calls;
    size_t from, until;
};

static struct fault heap = { 0, SIZE_MAX, SIZE_MAX }, takes = { 0, SIZE_MAX, SIZE_MAX };
static atomic_long live; /* heap blocks not freed */

static bool fails(struct fault *fault)
{
    size_t call = atomic_fetch_add(&fault->calls, 1);
    return call >= fault->from && call < fault->until;
}

static void set_fault(struct fault *fault, size_t from, size_t until)
{
    fault->calls = 0;
    fault->from = from;
    fault->until = until;
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
enum sar_status __real_sar_arena_alloc(struct sar_arena *arena, size_t count, size_t size, void **memory);
enum sar_status __real_sar_arena_alloc_zeroed(struct sar_arena *arena, size_t count, size_t size,
                                              void **memory);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void __wrap_free(void *memory);
enum sar_status __wrap_sar_arena_alloc(struct sar_arena *arena, size_t count, size_t size, void **memory);
enum sar_status __wrap_sar_arena_alloc_zeroed(struct sar_arena *arena, size_t count, size_t size,
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

enum sar_status __wrap_sar_arena_alloc(struct sar_arena *arena, size_t count, size_t size, void **memory)
{
    return fails(&takes) ? SAR_NO_MEMORY : __real_sar_arena_alloc(arena, count, size, memory);
}

enum sar_status __wrap_sar_arena_alloc_zeroed(struct sar_arena *arena, size_t count, size_t size,
                                              void **memory)
{
    return fails(&takes) ? SAR_NO_MEMORY : __real_sar_arena_alloc_zeroed(arena, count, size, memory);
}

enum { COUNT = 400000, NNZ = 40000, PARTS = 7, FORMS = 3 /* variants of values for each format */ };

/* Inputs, made once while no allocation fails. */
static struct {
    struct sar_vec_desc desc;
    struct sar_partition_map map;
    struct sar_spvec vecs[3];
    struct sar_coo_args unsorted, wide;
    float *dense;
    struct sar_arena arena; /* memory of the messages */
    struct sar_msg messages[16][FORMS];
} in;

/* Hash of a call's result: FNV-1a over its vectors. */
static uint64_t digest(const struct sar_vec_desc *desc, const struct sar_spvec *vec, uint64_t hash)
{
    const unsigned char *index = vec->index, *value = vec->value;
    hash = (hash ^ vec->nnz) * 0x100000001b3;
    for (size_t i = 0; i < vec->nnz * desc->index_size; i++)
        hash = (hash ^ index[i]) * 0x100000001b3;
    for (size_t i = 0; i < vec->nnz * desc->element_size; i++)
        hash = (hash ^ value[i]) * 0x100000001b3;
    return hash;
}

/* A library call that allocates from the arena. The action defines `variant`. */
typedef enum sar_status (*action_fn)(struct sar_arena *arena, size_t variant, uint64_t *result);

static enum sar_status canonicalize(struct sar_arena *arena, size_t variant, uint64_t *result)
{
    struct sar_spvec vec;
    long long bad;
    SAR_TRY(sar_canonicalize(&in.desc, variant == 0 ? &in.unsorted : &in.wide, arena, &vec, &bad));
    *result = digest(&in.desc, &vec, 1);
    return SAR_OK;
}

static enum sar_status partition(struct sar_arena *arena, size_t variant, uint64_t *result)
{
    struct sar_spvec parts[PARTS];
    uint64_t hash = 1;
    SAR_TRY(sar_partition_split(&in.map, &in.desc, &in.vecs[variant], arena, parts));
    for (uint32_t p = 0; p < PARTS; p++) {
        SAR_TRY(sar_partition_restore_indices(&in.map, &in.desc, p, arena, &parts[p]));
        hash = digest(&in.desc, &parts[p], hash);
    }
    *result = hash;
    return SAR_OK;
}

/* With the paper's memory; and with so little that the algorithm runs again. */
static enum sar_status hierarchical(struct sar_arena *arena, size_t variant, uint64_t *result)
{
    struct sar_hierarchical_params params = sar_hierarchical_params_make(in.vecs[variant].nnz, PARTS, 1);
    struct sar_spvec parts[PARTS];
    struct sar_hash_stats stats = { 0 };
    uint64_t hash = 1;
    params.parallel_cells = variant == 0 ? params.parallel_cells : 1;
    params.serial_cells = variant == 0 ? params.serial_cells : 0;
    SAR_TRY(sar_partition_hierarchical(&params, &in.map, &in.desc, &in.vecs[variant], arena, NULL, parts,
                                       &stats));
    for (uint32_t p = 0; p < PARTS; p++)
        hash = digest(&in.desc, &parts[p], hash);
    *result = hash;
    return SAR_OK;
}

/* Merge by blocks of many elements, and as unrelated vectors. */
static enum sar_status assemble(struct sar_arena *arena, size_t variant, uint64_t *result)
{
    struct sar_partition_map map =
        sar_partition_map_make(SAR_PARTITION_HASH, COUNT, PARTS, variant == 0 ? 64 : 1, 3);
    struct sar_spvec parts[PARTS], out;
    SAR_TRY(sar_partition_split(&map, &in.desc, &in.vecs[0], arena, parts));
    SAR_TRY(sar_spvec_alloc(&in.desc, in.vecs[0].nnz, arena, &out));
    SAR_TRY(sar_partition_merge(&map, &in.desc, parts, arena, &out));
    *result = digest(&in.desc, &out, 1);
    return SAR_OK;
}

static enum sar_status reduce(struct sar_arena *arena, size_t variant, uint64_t *result)
{
    struct sar_vec_desc desc = in.desc;
    struct sar_spvec out;
    desc.absent_is_zero = variant == 1;
    SAR_TRY(sar_reduce_alloc(&desc, in.vecs, LENGTH(in.vecs), arena, &out));
    *result = digest(&desc, &out, 1);
    return SAR_OK;
}

static enum sar_status count_first(struct sar_arena *arena, size_t variant, uint64_t *result)
{
    struct sar_reduction reduction;
    struct sar_spvec out;
    (void)variant;
    SAR_TRY(sar_reduce_count(&in.desc, in.vecs, LENGTH(in.vecs), in.desc.index_size, arena, &reduction));
    SAR_TRY(sar_spvec_alloc(&in.desc, reduction.nnz, arena, &out));
    sar_reduce_write(&reduction, &out);
    *result = digest(&in.desc, &out, 1);
    return SAR_OK;
}

static enum sar_status reduce_to_bitmap(struct sar_arena *arena, size_t variant, uint64_t *result)
{
    struct sar_bitmap_reduction reduction;
    struct sar_spvec out = { NULL, NULL, 0 };
    void *bitmap;
    (void)variant;
    SAR_TRY(sar_reduce_bitmap_count(&in.desc, in.vecs, LENGTH(in.vecs), arena, &reduction));
    SAR_TRY(sar_arena_alloc(arena, sar_bitmap_bytes(COUNT), 1, &bitmap));
    SAR_TRY(sar_spvec_alloc(&in.desc, reduction.nnz, arena, &out));
    sar_reduce_bitmap_write(&reduction, out.value, bitmap);
    struct sar_wire_layout layout = { COUNT, in.desc.element_size, 1, 4, false, SAR_PRECISION_FULL };
    SAR_TRY(sar_bitmap_decode(&layout, bitmap, reduction.nnz, out.index));
    *result = digest(&in.desc, &out, 1);
    return SAR_OK;
}

static enum sar_status compact(struct sar_arena *arena, size_t variant, uint64_t *result)
{
    struct sar_spvec vec;
    SAR_TRY(sar_dense_compact(&in.desc, in.dense, variant == 0 ? 0 : NNZ, arena, &vec));
    *result = digest(&in.desc, &vec, 1);
    return SAR_OK;
}

/* Variants for each format: zeros that must stay, zeros that may be dropped, and these with 16-bit values. */
static struct sar_msg_key msg_key_of(size_t variant)
{
    bool narrow = variant % FORMS == 2;
    struct sar_wire_layout layout = { COUNT,
                                      in.desc.element_size / (narrow ? 2 : 1),
                                      in.desc.row_len,
                                      in.desc.index_size,
                                      variant % FORMS != 0,
                                      narrow ? SAR_PRECISION_FP16 : SAR_PRECISION_FULL };
    return (struct sar_msg_key){ layout, 1, 2, 3 };
}

static enum sar_status select_largest(struct sar_arena *arena, size_t variant, uint64_t *result)
{
    struct sar_topk topk;
    struct sar_dgc of = { .dtype = SAR_FLOAT, .count = COUNT, .values = in.dense };
    SAR_TRY(sar_topk_open(&in.desc, variant == 0 ? 10 : NNZ, arena, &topk));
    sar_topk_select(&topk, &of, 1);
    *result = digest(&in.desc, &topk.vec, topk.threshold);
    return SAR_OK;
}

static enum sar_status round_values(struct sar_arena *arena, size_t variant, uint64_t *result)
{
    struct sar_msg_key msg_key = msg_key_of(variant);
    struct sar_spvec vec = in.vecs[0];
    SAR_TRY(sar_round16_spvec(&msg_key.layout, arena, &vec));
    *result = digest(&in.desc, &vec, 1);
    return SAR_OK;
}

static enum sar_status encode(struct sar_arena *arena, size_t variant, uint64_t *result)
{
    struct sar_msg_key msg_key = msg_key_of(variant);
    struct sar_msg message;
    SAR_TRY(sar_msg_encode(&msg_key, sar_wires[variant / FORMS], &in.vecs[0], arena, &message));
    struct sar_vec_desc bytes = { .element_size = 1 };
    *result = digest(&bytes, &(struct sar_spvec){ NULL, message.buffer, (size_t)message.bytes }, 1);
    return SAR_OK;
}

static enum sar_status decode(struct sar_arena *arena, size_t variant, uint64_t *result)
{
    struct sar_msg_key msg_key = msg_key_of(variant);
    struct sar_spvec vec;
    SAR_TRY(sar_msg_decode(&msg_key, &in.messages[variant / FORMS][variant % FORMS], arena, &vec));
    *result = digest(&in.desc, &vec, 1);
    return SAR_OK;
}

/* Fail one request after the other, or all from it on, until the call makes fewer requests. A smaller request
 * may replace a failed heap request. */
static size_t fail_each(action_fn action, size_t variant, struct fault *fault, bool alone, uint64_t wanted)
{
    bool may_be_mended = fault == &heap && alone;
    for (size_t k = 0;; k++) {
        struct sar_arena arena = { 0 };
        uint64_t result = 0;
        set_fault(fault, k, alone ? k + 1 : SIZE_MAX);
        enum sar_status status = action(&arena, variant, &result);
        bool reached = fault->calls > k;
        set_fault(fault, SIZE_MAX, SIZE_MAX);
        assert_true(status == SAR_NO_MEMORY || (status == SAR_OK && result == wanted));
        assert_true(status == SAR_OK ? !reached || may_be_mended : reached);
        assert_int_equal(action(&arena, variant, &result), SAR_OK);
        assert_true(result == wanted);
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

static void test_canonicalize(void **state)
{
    (void)state;
    check(canonicalize, 0, 2);
    check(canonicalize, 1, 1);
}

static void test_partition(void **state)
{
    (void)state;
    for (size_t r = 0; r < LENGTH(in.vecs); r++)
        check(partition, r, 2 + PARTS);
}

static void test_hierarchical(void **state)
{
    (void)state;
    check(hierarchical, 0, 7);
    check(hierarchical, 1, 12);
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
    check(reduce_to_bitmap, 0, 5);
}

static void test_compact(void **state)
{
    (void)state;
    check(compact, 0, 4);
    check(compact, 1, 2);
}

static void test_select(void **state)
{
    (void)state;
    check(select_largest, 0, 3);
    check(select_largest, 1, 3);
}

/* One value becomes zero and is dropped. */
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

/* Decoding some formats allocates nothing. */
static void test_decode(void **state)
{
    (void)state;
    for (size_t w = 0; sar_wires[w] != NULL; w++) {
        check(decode, FORMS * w, 0);
        check(decode, FORMS * w + 1, 0);
        check(decode, FORMS * w + 2, 1);
    }
}

static struct sar_coo_args coo_make(enum sar_index_type type, bool ascending, struct rng *rng)
{
    unsigned size = sar_index_type_size(type);
    void *indices = exact_alloc(NNZ * (size_t)size), *values = exact_alloc(NNZ * in.desc.element_size);
    for (size_t i = 0; i < NNZ; i++)
        sar_index_set(indices, size, i, ascending ? i * 5 : rng_below(rng, COUNT));
    values_fill(in.desc.dtype, VALUES_INEXACT, values, NNZ, rng);
    return (struct sar_coo_args){ indices, values, NNZ, type };
}

static int set_up(void **state)
{
    struct rng rng = { 1 };
    uint64_t *index = exact_alloc(COUNT * sizeof *index);
    (void)state;
    in.desc = vec_desc_make(SAR_FLOAT, SAR_SUM, COUNT, 1);
    in.map = sar_partition_map_make(SAR_PARTITION_HASH, COUNT, PARTS, 16, 3);
    for (size_t r = 0; r < LENGTH(in.vecs); r++) {
        const struct pattern *pattern = &patterns[7 + r];
        size_t nnz = pattern->choose(pattern, COUNT, COUNT, &rng, index);
        in.vecs[r] = spvec_make(&in.desc, index, nnz, VALUES_INEXACT, &rng);
    }
    ((float *)in.vecs[0].value)[0] = 1e-20f;
    in.unsorted = coo_make(SAR_INDEX_UINT32, false, &rng);
    in.wide = coo_make(SAR_INDEX_INT64, true, &rng);
    in.dense = memset(exact_alloc(COUNT * sizeof *in.dense), 0, COUNT * sizeof *in.dense);
    sar_dense_scatter(&in.desc, &in.vecs[2], in.dense);
    for (size_t k = 0; sar_wires[k / FORMS] != NULL; k++) {
        struct sar_msg_key msg_key = msg_key_of(k);
        struct sar_msg *message = &in.messages[k / FORMS][k % FORMS];
        if (sar_msg_encode(&msg_key, sar_wires[k / FORMS], &in.vecs[0], &in.arena, message) != SAR_OK)
            return -1;
    }
    free(index);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t r = 0; r < LENGTH(in.vecs); r++)
        spvec_free(&in.vecs[r]);
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
        cmocka_unit_test(test_canonicalize), cmocka_unit_test(test_partition),
        cmocka_unit_test(test_assemble),     cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_compact),      cmocka_unit_test(test_round),
        cmocka_unit_test(test_encode),       cmocka_unit_test(test_decode),
        cmocka_unit_test(test_select),       cmocka_unit_test(test_hierarchical),
    };
    return TEAMS_RUN(tests, set_up, tear_down);
}
