/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests packed vectors: elements fit up to the capacity, are read back unchanged, and expand to the vector in
 * place. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "vector/dense.h"
#include "vector/packed_vec.h"
#include "vector/spvec.h"

enum { MOST = 300, PIECES = 3, GUARD = 0x5c };

static const uint64_t counts[] = { 1, 2, 3, 31, 64, 257, MOST };

/* A vector's memory, followed by a byte that must not change. */
static char *take(size_t bytes)
{
    char *memory = aligned_alloc(64, (bytes + 64) / 64 * 64);
    assert_non_null(memory);
    memset(memory, GUARD, bytes + 1);
    return memory;
}

static void give_back(char *memory, size_t bytes)
{
    assert_int_equal(memory[bytes], GUARD);
    free(memory);
}

static void check_layout(const struct sar_vec_desc *desc, const struct sar_packed_vec *packed,
                         const char *memory)
{
    size_t bytes = (size_t)desc->count * desc->element_size, each = desc->element_size + desc->index_size;
    const char *end = (const char *)packed->index + packed->capacity * desc->index_size;
    assert_int_equal(*packed->nnz, SAR_PACKED_VEC_DENSE);
    assert_false(sar_packed_vec_is_sparse(packed));
    assert_ptr_equal(packed->value, memory);
    assert_int_equal((uintptr_t)packed->index % desc->index_size, 0);
    assert_true((const char *)packed->index >= memory + packed->capacity * desc->element_size);
    assert_true(packed->capacity == 0 || end <= memory + bytes);
    assert_true(packed->capacity + 2 > bytes / each);
}

static void check_run(const struct sar_vec_desc *desc, const struct sar_spvec *vec)
{
    size_t bytes = (size_t)desc->count * desc->element_size;
    char *memory = take(bytes), *expected = calloc(bytes, 1),
         *spare = malloc(vec->nnz * desc->index_size + 1);
    uint64_t nnz;
    struct sar_packed_vec packed = sar_packed_vec_layout(desc, memory, &nnz);
    struct sar_spvec pieces[PIECES];
    check_layout(desc, &packed, memory);
    for (size_t i = 0; i < PIECES; i++)
        pieces[i] = sar_spvec_slice(desc, vec, vec->nnz * i / PIECES, vec->nnz * (i + 1) / PIECES);
    bool fits = sar_packed_vec_fill(desc, pieces, PIECES, &packed);
    assert_int_equal(fits, vec->nnz <= packed.capacity);
    assert_int_equal(fits, sar_packed_vec_is_sparse(&packed));
    if (fits) {
        struct sar_spvec found = sar_packed_vec_spvec(&packed);
        assert_true(spvec_equal(desc, vec, &found));
        assert_true(sar_packed_vec_fill(desc, &found, 1, &packed));
        assert_true(spvec_equal(desc, vec, &found));
        sar_dense_scatter(desc, vec, expected);
        sar_packed_vec_expand(desc, &packed, spare);
        assert_false(sar_packed_vec_is_sparse(&packed));
        assert_memory_equal(memory, expected, bytes);
    }
    give_back(memory, bytes);
    free(expected);
    free(spare);
}

/* Also 8-byte indices, which longer vectors need. */
static void test_packed_vectors(void **state)
{
    struct rng rng = { 7 };
    uint64_t index[MOST];
    (void)state;
    for (size_t c = 0; c < LENGTH(counts); c++)
        for (size_t p = 0; p < PATTERNS; p++)
            for (unsigned variant = 0; variant < 12; variant++) {
                struct sar_vec_desc desc = vec_desc_make(variant % 2 == 0 ? SAR_FLOAT : SAR_DOUBLE, SAR_SUM,
                                                         counts[c], 1 + variant % 3);
                desc.index_size = variant < 6 ? 4 : 8;
                size_t nnz = patterns[p].choose(&patterns[p], counts[c], MOST, &rng, index);
                struct sar_spvec vec = spvec_make(&desc, index, nnz, VALUES_SPECIAL, &rng);
                check_run(&desc, &vec);
                spvec_free(&vec);
            }
}

/* Up to the last element of the capacity, for 16-bit floats and rows of them, whose values need padding. */
static void test_room(void **state)
{
    struct rng rng = { 9 };
    uint64_t index[MOST];
    (void)state;
    for (size_t c = 0; c < LENGTH(counts); c++)
        for (size_t row = 1; row <= 3; row++)
            for (size_t nnz = 0; nnz <= counts[c]; nnz++) {
                struct sar_vec_desc desc = vec_desc_make(SAR_BF16, SAR_SUM, counts[c], row);
                for (size_t i = 0; i < nnz; i++)
                    index[i] = counts[c] - nnz + i;
                struct sar_spvec vec = spvec_make(&desc, index, nnz, VALUES_SPECIAL, &rng);
                check_run(&desc, &vec);
                spvec_free(&vec);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_packed_vectors), cmocka_unit_test(test_room) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
