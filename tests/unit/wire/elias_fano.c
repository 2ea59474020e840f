/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the payload of the format elias_fano bit by bit against a plain encoder of doc/formats.md: all
 * numbers of low bits, elements close together and far apart, any number of elements, and several threads. A
 * failure means that a fast loop writes or reads other bits. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "teams.h"
#include "wire/elias_fano.h"

enum { MOST = 5000 };

static void set_bit(unsigned char *bits, uint64_t at, uint64_t bit)
{
    bits[at / 8] |= (unsigned char)(bit << (at % 8));
}

/* The low bits of each slot, packed, and then bit (slot >> l) + i for element i. */
static void encode_plainly(const struct sar_elias_fano_sizes *s, const void *index, unsigned size, size_t nnz,
                           unsigned char *low)
{
    memset(low, 0, s->low + s->high);
    for (size_t i = 0; i < nnz; i++) {
        uint64_t slot = sar_index_get(index, size, i);
        for (unsigned bit = 0; bit < s->low_bits; bit++)
            set_bit(low, (uint64_t)i * s->low_bits + bit, slot >> bit & 1);
        set_bit(low + s->low, (slot >> s->low_bits) + i, 1);
    }
}

static void check(const struct sar_wire_layout *layout, void *index, size_t nnz)
{
    struct sar_elias_fano_sizes s = sar_elias_fano_sizes_make(layout, nnz);
    uint64_t bytes = s.values + s.low + s.high;
    unsigned char *payload = exact_alloc(bytes), *expected = exact_alloc(s.low + s.high);
    struct sar_spvec vec = { index, exact_alloc(s.values), nnz }, read = { NULL, NULL, nnz };
    struct sar_arena arena = { 0 };
    memset(vec.value, 7, s.values);
    memset(payload, 0xaa, bytes);
    assert_int_equal(sar_wire_bytes(&sar_wire_elias_fano, layout, &vec), bytes);
    sar_wire_elias_fano.encode(layout, &vec, payload);
    encode_plainly(&s, index, layout->index_size, nnz, expected);
    if (nnz > 0 && memcmp(payload + s.values, expected, s.low + s.high) != 0)
        fail_msg("other bits of %zu elements in %llu slots, %u low bits, %u an index", nnz,
                 (unsigned long long)layout->slots, s.low_bits, layout->index_size);
    assert_int_equal(sar_wire_elias_fano.decode(layout, payload, bytes, &arena, &read), SAR_OK);
    assert_memory_equal(read.index, index, nnz * layout->index_size);
    sar_arena_free(&arena);
    free(vec.value);
    free(payload);
    free(expected);
}

/* Elements at gaps of at most `gap` slots. With `jump`, the slots that are left over are divided among gaps
 * after every 64th element. */
static void try(uint64_t slots, size_t nnz, uint64_t gap, bool jump, unsigned size)
{
    struct sar_wire_layout layout = { slots, 4, 1, size, false, SAR_PRECISION_FULL };
    struct rng rng = { slots + nnz };
    void *index = exact_alloc(nnz * size);
    uint64_t slot = rng_below(&rng, gap), spare = jump ? slots - nnz * gap : 0;
    for (size_t i = 0; i < nnz; i++) {
        sar_index_set(index, size, i, slot);
        slot += 1 + (gap > 1 ? rng_below(&rng, gap) : 0);
        slot += i % 64 == 63 ? spare / (nnz / 64 + 1) : 0;
    }
    if (nnz == 0 || sar_index_get(index, size, nnz - 1) < slots)
        check(&layout, index, nnz);
    free(index);
}

static void try_all(size_t nnz, unsigned size)
{
    for (unsigned bits = 0; bits < 31 && (uint64_t)nnz << bits < UINT32_MAX; bits++) {
        uint64_t slots = ((uint64_t)nnz << bits) + 1;
        try(slots, nnz, (uint64_t)1 << (bits > 0 ? bits - 1 : 0), false, size);
        try(slots, nnz, 1, false, size); /* all at the beginning */
        try(slots, nnz, 1 + (1u << bits) / 4, true, size);
    }
}

static void test_bits(void **state)
{
    static const size_t numbers[] = { 0,  1,  7,  8,  9,   23,  24,  25,   63,  64,
                                      65, 71, 72, 73, 127, 129, 200, 1000, MOST };
    (void)state;
    for (size_t team = 0; team < LENGTH(teams); team++) {
        if (team_is_left_out(teams[team]))
            continue;
        team_set_small(teams[team]);
        for (size_t i = 0; i < LENGTH(numbers); i++)
            for (unsigned size = 4; size <= 8; size += 4)
                try_all(numbers[i], size);
    }
    team_set_small(1);
}

/* A payload whose number of high bits is right and whose slots do not ascend is refused. */
static void test_descending_slots(void **state)
{
    enum { NNZ = 300 };
    struct sar_wire_layout layout = { 64 * NNZ, 4, 1, 4, false, SAR_PRECISION_FULL };
    struct sar_elias_fano_sizes s = sar_elias_fano_sizes_make(&layout, NNZ);
    uint32_t index[NNZ];
    (void)state;
    for (size_t at = 1; at < NNZ; at++) {
        unsigned char *payload = exact_alloc(s.values + s.low + s.high);
        struct sar_spvec read = { NULL, NULL, NNZ };
        struct sar_arena arena = { 0 };
        for (uint32_t i = 0; i < NNZ; i++)
            index[i] = 64 * i;
        index[at] = index[at - 1]; /* as its neighbour */
        memset(payload, 0, s.values);
        encode_plainly(&s, index, 4, NNZ, payload + s.values);
        assert_int_equal(sar_wire_elias_fano.decode(&layout, payload, s.values + s.low + s.high, &arena,
                                                    &read),
                         SAR_CORRUPT);
        sar_arena_free(&arena);
        free(payload);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_descending_slots),
    };
    return cmocka_run_group_tests(tests, NULL, teams_end);
}
