/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests dense buffers written from vectors: each byte is as a plain loop writes it, and no byte outside the
 * buffer changes. Some buffers are so large that nontemporal stores write them. Also tests updates of changed
 * elements, and vectors with common elements that are reduced during the write. All tests run with one thread
 * and with several. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "teams.h"
#include "vector/dense.h"
#include "vector/spvec.h"

enum { MARGIN = 64, VECS_MAX = 5, ROOM = 60000 };

static const unsigned char DIRT = 0x5a;

static const struct {
    enum sar_dtype base;
    size_t row;
} elements[] = {
    { SAR_FLOAT, 1 },  { SAR_DOUBLE, 1 },   { SAR_FP16, 1 }, { SAR_INT32, 3 }, { SAR_FLOAT, 16 },
    { SAR_FLOAT, 64 }, { SAR_DOUBLE, 513 }, { SAR_INT8, 1 }, { SAR_UINT8, 3 }, { SAR_UINT8, 8 }
};

static const size_t bytes[] = { 0, 1000, 100000, 700000, 4 << 20, (4 << 20) + 4096, (6 << 20) + 12345 };

/* Cut a vector at a random element. */
static size_t cut(const struct sar_vec_desc *desc, const struct sar_spvec *vec, struct rng *rng,
                  struct sar_spvec *pieces)
{
    size_t n = 1 + (size_t)rng_below(rng, VECS_MAX), from = 0;
    for (size_t i = 0; i < n; i++) {
        size_t to = i + 1 == n ? vec->nnz : from + (size_t)rng_below(rng, vec->nnz - from + 1);
        pieces[i] = sar_spvec_slice(desc, vec, from, to);
        from = to;
    }
    return n;
}

static void check_bytes(const struct sar_vec_desc *desc, const struct sar_spvec *vec,
                        const unsigned char *buf)
{
    size_t size = desc->element_size, done = 0;
    unsigned char *zeros = exact_alloc(MARGIN + (size_t)desc->count * size);
    memset(zeros, 0, (size_t)desc->count * size);
    for (size_t i = 0; i < vec->nnz; i++) {
        size_t at = (size_t)sar_index_get(vec->index, desc->index_size, i) * size;
        assert_true(memcmp(buf + done, zeros, at - done) == 0);
        assert_true(memcmp(buf + at, (const char *)vec->value + i * size, size) == 0);
        done = at + size;
    }
    assert_true(memcmp(buf + done, zeros, (size_t)desc->count * size - done) == 0);
    free(zeros);
}

static void check_margin(const unsigned char *margin)
{
    for (size_t i = 0; i < MARGIN; i++)
        assert_int_equal(margin[i], DIRT);
}

/* Change the values of some elements of a vector, or remove the elements. */
static void make_old(const struct sar_vec_desc *desc, const struct sar_spvec *vec, struct rng *rng,
                     unsigned char *buf)
{
    for (size_t i = 0; i < vec->nnz; i++) {
        unsigned char *at = buf + (size_t)sar_index_get(vec->index, desc->index_size, i) * desc->element_size;
        memset(at, rng_below(rng, 2) == 0 ? 0 : DIRT, desc->element_size);
    }
}

/* `shift` is the offset of the buffer from an aligned address, in basic values. */
static void check(struct sar_vec_desc desc, size_t pattern, size_t shift, struct rng *rng)
{
    size_t all = (size_t)desc.count * desc.element_size, gap = MARGIN + shift * desc.kernels->size;
    uint64_t *index = exact_alloc(ROOM * sizeof *index);
    size_t most = ROOM * 4 / desc.element_size;
    size_t nnz = desc.count == 0 ? 0
                                 : patterns[pattern].choose(&patterns[pattern], desc.count,
                                                            most < ROOM ? most : ROOM, rng, index);
    struct sar_spvec vec = spvec_make(&desc, index, nnz, VALUES_INEXACT, rng), pieces[VECS_MAX];
    unsigned char *memory = exact_alloc(gap + all + MARGIN);
    memset(memory, DIRT, gap + all + MARGIN);
    sar_dense_expand(&desc, pieces, cut(&desc, &vec, rng, pieces), memory + gap);
    check_bytes(&desc, &vec, memory + gap);
    make_old(&desc, &vec, rng, memory + gap);
    sar_dense_update(&desc, pieces, cut(&desc, &vec, rng, pieces), memory + gap);
    check_bytes(&desc, &vec, memory + gap);
    check_margin(memory + gap - MARGIN);
    check_margin(memory + gap + all);
    free(memory);
    free(index);
    spvec_free(&vec);
}

static void test_expand(void **state)
{
    struct rng rng = { 3 };
    (void)state;
    for (size_t k = 0; k < LENGTH(elements) * LENGTH(bytes) * PATTERNS; k++) {
        size_t kind = k % LENGTH(elements), size = bytes[k / LENGTH(elements) % LENGTH(bytes)];
        struct sar_vec_desc desc = vec_desc_make(elements[kind].base, SAR_SUM, 1, elements[kind].row);
        desc.count = size / desc.element_size;
        desc.index_size = rng_below(&rng, 4) == 0 ? 8 : 4;
        check(desc, k / LENGTH(elements) / LENGTH(bytes), (size_t)rng_below(&rng, 20), &rng);
    }
}

static size_t make_vecs(const struct sar_vec_desc *desc, struct rng *rng, struct sar_spvec vecs[])
{
    size_t n = 1 + (size_t)rng_below(rng, SAR_DENSE_ACCUMULATE_MAX),
           most = ROOM / 4 / desc->element_size / n + 1;
    uint64_t *index = exact_alloc(most * sizeof *index);
    for (size_t r = 0; r < n; r++) {
        const struct pattern *pattern = &patterns[rng_below(rng, PATTERNS)];
        size_t nnz = desc->count == 0 ? 0 : pattern->choose(pattern, desc->count, most, rng, index);
        vecs[r] = spvec_make(desc, index, nnz, VALUES_INEXACT, rng);
    }
    free(index);
    return n;
}

static void check_fold(struct sar_vec_desc desc, size_t shift, struct rng *rng)
{
    size_t all = (size_t)desc.count * desc.element_size, gap = MARGIN + shift * desc.element_size;
    struct sar_spvec vecs[SAR_DENSE_ACCUMULATE_MAX];
    size_t n = make_vecs(&desc, rng, vecs);
    struct sar_spvec expected = reference_reduce(&desc, vecs, n);
    unsigned char *memory = exact_alloc(gap + all + MARGIN);
    memset(memory, DIRT, gap + all + MARGIN);
    if (sar_dense_can_accumulate(&desc, memory + gap, n)) {
        sar_dense_accumulate(&desc, vecs, n, NULL, memory + gap);
        check_bytes(&desc, &expected, memory + gap);
        memset(memory + gap, 0, all);
        make_old(&desc, &vecs[n - 1], rng, memory + gap);
        sar_dense_accumulate(&desc, vecs, n, &vecs[n - 1], memory + gap);
        check_bytes(&desc, &expected, memory + gap);
    }
    check_margin(memory + gap - MARGIN);
    check_margin(memory + gap + all);
    free(memory);
    spvec_free(&expected);
    for (size_t r = 0; r < n; r++)
        spvec_free(&vecs[r]);
}

static void test_fold(void **state)
{
    static const enum sar_op ops[] = { SAR_SUM, SAR_BOR, SAR_BXOR };
    static const struct {
        enum sar_dtype base;
        size_t row;
    } kinds[] = { { SAR_FLOAT, 1 }, { SAR_DOUBLE, 1 }, { SAR_UINT32, 1 }, { SAR_INT64, 1 },
                  { SAR_INT8, 1 },  { SAR_FLOAT, 16 }, { SAR_UINT16, 4 }, { SAR_DOUBLE, 2 } };
    struct rng rng = { 4 };
    (void)state;
    for (size_t k = 0; k < 3 * LENGTH(kinds) * LENGTH(bytes); k++) {
        size_t kind = k % LENGTH(kinds), size = bytes[k / LENGTH(kinds) % LENGTH(bytes)];
        enum sar_op op =
            sar_op_kernels_of(kinds[kind].base, SAR_BOR) == NULL ? SAR_SUM : ops[rng_below(&rng, 3)];
        struct sar_vec_desc desc = vec_desc_make(kinds[kind].base, op, 1, kinds[kind].row);
        desc.count = size / desc.element_size;
        desc.index_size = rng_below(&rng, 4) == 0 ? 8 : 4;
        check_fold(desc, (size_t)rng_below(&rng, 20), &rng);
    }
}

enum { EACH = 64 / sizeof(float), STEP = 21 /* one in so many cache lines has an element */ };

/* The expected element at a position, counted from the start of a cache line. */
static float sparse_line_value(size_t at)
{
    size_t line = at / EACH, k = line / STEP;
    return line % STEP != 0 ? 7 : at % EACH == (k + EACH - 1) % EACH ? (float)(k + 1) : 0;
}

/* Cache lines without elements keep their data, except the last ones if they do not fill a block. The buffer
 * starts within a line. */
static void check_sparse_lines(size_t begin, bool folded)
{
    enum { COUNT = (5 << 20) / sizeof(float), NNZ = COUNT / EACH / STEP + 1, TAIL = 4096 };
    struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, COUNT, 1);
    struct sar_spvec vec = spvec_alloc(&desc, NNZ);
    unsigned char *memory = exact_alloc((COUNT + EACH) * sizeof(float) + 64);
    float *line = (void *)(memory + (-(uintptr_t)memory % 64)), *buf = line + begin;
    for (size_t k = 0; k < NNZ; k++) {
        ((uint32_t *)vec.index)[k] = (uint32_t)(k * STEP * EACH + (k + EACH - 1) % EACH - begin);
        ((float *)vec.value)[k] = (float)(k + 1);
    }
    for (size_t i = 0; i < COUNT; i++)
        buf[i] = (i + begin) / EACH % STEP == 0 ? 0 : 7;
    if (folded)
        sar_dense_accumulate(&desc, &vec, 1, &vec, buf);
    else
        sar_dense_update(&desc, &vec, 1, buf);
    for (size_t at = begin; at < COUNT - TAIL; at++)
        assert_true(line[at] == sparse_line_value(at));
    free(memory);
    spvec_free(&vec);
}

static void test_lines_without_elements(void **state)
{
    (void)state;
    for (size_t begin = 0; begin < EACH; begin += 5) {
        check_sparse_lines(begin, false);
        check_sparse_lines(begin, true);
    }
}

/* Ops for which zero is no identity, and accumulators wider than the results. */
static void test_ops_without_accumulation(void **state)
{
    struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, 1, 1);
    (void)state;
    assert_true(sar_dense_can_accumulate(&desc, NULL, SAR_DENSE_ACCUMULATE_MAX));
    assert_false(sar_dense_can_accumulate(&desc, NULL, SAR_DENSE_ACCUMULATE_MAX + 1));
    assert_false(sar_dense_can_accumulate(&desc, (const void *)(uintptr_t)2, 2));
    desc.absent_is_zero = true;
    assert_false(sar_dense_can_accumulate(&desc, NULL, 2));
    desc = vec_desc_make(SAR_FLOAT, SAR_MAX, 1, 1);
    assert_false(sar_dense_can_accumulate(&desc, NULL, 2));
    desc = vec_desc_make(SAR_BF16, SAR_SUM, 1, 1);
    assert_false(sar_dense_can_accumulate(&desc, NULL, 2));
    desc = vec_desc_make(SAR_FLOAT, SAR_SUM, 1, 3);
    assert_false(sar_dense_can_accumulate(&desc, NULL, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_expand), cmocka_unit_test(test_fold),
                                        cmocka_unit_test(test_lines_without_elements),
                                        cmocka_unit_test(test_ops_without_accumulation) };
    return TEAMS_RUN_SMALL(tests, NULL, NULL);
}
