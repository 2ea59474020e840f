/* SPDX-License-Identifier: BSD-3-Clause */
/* Vectors in parcels: elements go in as far as there is room, come out as they were, and make the vector in
 * their own place. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "tensor/dense.h"
#include "tensor/parcel.h"
#include "tensor/stretch.h"

enum { MOST = 300, PIECES = 3, GUARD = 0x5c };

static const uint64_t counts[] = { 1, 2, 3, 31, 64, 257, MOST };

/* A vector's memory, with a byte behind it that nobody may write to. */
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

static void check_layout(const struct sar_shape *shape, const struct sar_parcel *parcel, const char *memory)
{
    size_t bytes = (size_t)shape->count * shape->element_size, each = shape->element_size + shape->index_size;
    const char *end = (const char *)parcel->index + parcel->room * shape->index_size;
    assert_int_equal(*parcel->nnz, SAR_PARCEL_WHOLE);
    assert_false(sar_parcel_is_sparse(parcel));
    assert_ptr_equal(parcel->value, memory);
    assert_int_equal((uintptr_t)parcel->index % shape->index_size, 0);
    assert_true((const char *)parcel->index >= memory + parcel->room * shape->element_size);
    assert_true(parcel->room == 0 || end <= memory + bytes);
    assert_true(parcel->room + 2 > bytes / each);
}

static void check_run(const struct sar_shape *shape, const struct sar_run *run)
{
    size_t bytes = (size_t)shape->count * shape->element_size;
    char *memory = take(bytes), *expected = calloc(bytes, 1),
         *spare = malloc(run->nnz * shape->index_size + 1);
    uint64_t nnz;
    struct sar_parcel parcel = sar_parcel_make(shape, memory, &nnz);
    struct sar_run pieces[PIECES];
    check_layout(shape, &parcel, memory);
    for (size_t i = 0; i < PIECES; i++)
        pieces[i] = sar_run_slice(shape, run, run->nnz * i / PIECES, run->nnz * (i + 1) / PIECES);
    bool fits = sar_parcel_fill(shape, pieces, PIECES, &parcel);
    assert_int_equal(fits, run->nnz <= parcel.room);
    assert_int_equal(fits, sar_parcel_is_sparse(&parcel));
    if (fits) {
        struct sar_run found = sar_parcel_run(&parcel);
        assert_true(run_equal(shape, run, &found));
        assert_true(sar_parcel_fill(shape, &found, 1, &parcel));
        assert_true(run_equal(shape, run, &found));
        sar_dense_scatter(shape, run, expected);
        sar_parcel_expand(shape, &parcel, spare);
        assert_false(sar_parcel_is_sparse(&parcel));
        assert_memory_equal(memory, expected, bytes);
    }
    give_back(memory, bytes);
    free(expected);
    free(spare);
}

/* Indices of 8 bytes, too, which vectors have that are larger than these. */
static void test_parcels(void **state)
{
    struct dice dice = { 7 };
    uint64_t index[MOST];
    (void)state;
    for (size_t c = 0; c < LENGTH(counts); c++)
        for (size_t p = 0; p < PATTERNS; p++)
            for (unsigned variant = 0; variant < 12; variant++) {
                struct sar_shape shape = shape_make(variant % 2 == 0 ? SAR_FLOAT : SAR_DOUBLE, SAR_SUM,
                                                    counts[c], 1 + variant % 3);
                shape.index_size = variant < 6 ? 4 : 8;
                size_t nnz = patterns[p].choose(&patterns[p], counts[c], MOST, &dice, index);
                struct sar_run run = run_make(&shape, index, nnz, VALUES_SPECIAL, &dice);
                check_run(&shape, &run);
                run_free(&run);
            }
}

/* Up to the room's last element, for halves and rows of them, whose values need to be followed by a gap. */
static void test_room(void **state)
{
    struct dice dice = { 9 };
    uint64_t index[MOST];
    (void)state;
    for (size_t c = 0; c < LENGTH(counts); c++)
        for (size_t row = 1; row <= 3; row++)
            for (size_t nnz = 0; nnz <= counts[c]; nnz++) {
                struct sar_shape shape = shape_make(SAR_BF16, SAR_SUM, counts[c], row);
                for (size_t i = 0; i < nnz; i++)
                    index[i] = counts[c] - nnz + i;
                struct sar_run run = run_make(&shape, index, nnz, VALUES_SPECIAL, &dice);
                check_run(&shape, &run);
                run_free(&run);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_parcels), cmocka_unit_test(test_room) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
