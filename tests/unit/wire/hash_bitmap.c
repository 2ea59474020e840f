/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the payload of the format hash_bitmap bit by bit against a plain encoder of doc/formats.md: any
 * number of slots, all densities, and several threads. Allocations end where the payload ends. A failure
 * means that a fast loop writes other bits, or behind the bitmap. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "teams.h"
#include "wire/wire.h"

static void check(const struct sar_wire_layout *layout, void *index, size_t nnz)
{
    size_t values = nnz * layout->element_size, bitmap = (size_t)(layout->slots + 7) / 8;
    unsigned char *payload = exact_alloc(values + bitmap), *expected = exact_alloc(bitmap);
    struct sar_spvec vec = { index, exact_alloc(values), nnz }, read = { NULL, NULL, nnz };
    struct sar_arena arena = { 0 };
    memset(vec.value, 7, values);
    memset(payload, 0xaa, values + bitmap);
    memset(expected, 0, bitmap);
    for (size_t i = 0; i < nnz; i++) {
        uint64_t slot = sar_index_get(index, layout->index_size, i);
        expected[slot / 8] |= (unsigned char)(1u << (slot % 8));
    }
    sar_wire_hash_bitmap.encode(layout, &vec, payload);
    if (memcmp(payload + values, expected, bitmap) != 0)
        fail_msg("other bits of %zu elements in %llu slots", nnz, (unsigned long long)layout->slots);
    assert_int_equal(sar_wire_hash_bitmap.decode(layout, payload, values + bitmap, &arena, &read), SAR_OK);
    assert_memory_equal(read.index, index, nnz * layout->index_size);
    sar_arena_free(&arena);
    free(vec.value);
    free(payload);
    free(expected);
}

/* Each slot is present with a probability of share / 1000. */
static void try(uint64_t slots, uint64_t share, unsigned size)
{
    struct sar_wire_layout layout = { slots, 4, 1, size, false, SAR_PRECISION_FULL };
    struct rng rng = { slots + share };
    void *room = malloc(slots * size + 1), *index;
    size_t nnz = 0;
    assert_non_null(room);
    for (uint64_t slot = 0; slot < slots; slot++)
        if (rng_below(&rng, 1000) < share)
            sar_index_set(room, size, nnz++, slot);
    index = exact_alloc(nnz * size);
    memcpy(index, room, nnz * size);
    free(room);
    check(&layout, index, nnz);
    free(index);
}

static void test_bits(void **state)
{
    static const uint64_t spans[] = { 1,   8,   31,  32,  33,   63,   64,   65,
                                      255, 256, 257, 511, 1000, 4097, 8191, 40000 };
    static const uint64_t shares[] = { 1, 10, 50, 150, 300, 500, 900, 990, 1000 };
    (void)state;
    for (size_t team = 0; team < LENGTH(teams); team++) {
        if (team_is_left_out(teams[team]))
            continue;
        team_set_small(teams[team]);
        for (size_t i = 0; i < LENGTH(spans) * LENGTH(shares); i++)
            for (unsigned size = 4; size <= 8; size += 4)
                try(spans[i % LENGTH(spans)], shares[i / LENGTH(spans)], size);
    }
    team_set_small(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_bits) };
    return cmocka_run_group_tests(tests, NULL, teams_end);
}
