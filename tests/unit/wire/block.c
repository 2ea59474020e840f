/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the block format on rows, byte by byte, against an encoder of this file's own. A block has at most
 * 256 values, whatever their size: rows of 1, 2, 3 and 16 values make blocks of 256, 128, 64 and 16 slots,
 * and longer rows blocks of one. A failure means that messages differ from doc/formats.md. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "teams.h"
#include "wire/wire.h"

enum { SPAN = 523 };

static const struct {
    size_t row;
    uint64_t block; /* slots */
} rows[] = { { 1, 256 }, { 2, 128 }, { 3, 64 },  { 4, 64 },  { 8, 32 },  { 15, 16 }, { 16, 1 },
             { 17, 1 },  { 100, 1 }, { 256, 1 }, { 257, 1 }, { 300, 1 }, { 512, 1 }, { SIZE_MAX, 1 } };

/* In memory and in the message; 16-bit floats have half the bytes there, but the same blocks. */
static const struct {
    enum sar_dtype base;
    size_t bytes;
} types[] = { { SAR_FLOAT, 4 }, { SAR_DOUBLE, 8 }, { SAR_INT16, 2 }, { SAR_INT8, 1 } };

enum { VARIANTS = LENGTH(types) * 4 };

/* A vector, and the message that is expected of it. */
struct sample {
    uint64_t block;
    struct sar_wire_layout layout;
    struct sar_vec_desc shape;
    struct sar_spvec vec;
    uint64_t bytes, blocks;
    unsigned char *payload;
};

static uint64_t slot_at(const struct sample *s, size_t i)
{
    return sar_index_get(s->vec.index, s->layout.index_size, i);
}

/* Sections of the payload: values, then numbers if that leaves them aligned; then the presence bits. */
static unsigned char *numbers_of(const struct sample *s)
{
    uint64_t values = s->block * s->layout.element_size;
    return s->payload + (values % s->layout.index_size == 0 ? s->blocks * values : 0);
}

static unsigned char *values_of(const struct sample *s)
{
    bool first = s->block * s->layout.element_size % s->layout.index_size == 0;
    return s->payload + (first ? 0 : s->blocks * s->layout.index_size);
}

static unsigned char *presence_of(const struct sample *s)
{
    return s->payload + s->blocks * (s->block * s->layout.element_size + s->layout.index_size);
}

/* Numbers the blocks in the order of their first elements. */
static void write_expected(struct sample *s)
{
    bool present = !s->layout.zero_is_absent;
    size_t size = s->layout.element_size;
    for (size_t i = 0; i < s->vec.nnz; i++)
        s->blocks += i == 0 || slot_at(s, i) / s->block != slot_at(s, i - 1) / s->block;
    s->bytes =
        s->blocks * (s->block * size + s->layout.index_size) + (present ? (s->blocks * s->block + 7) / 8 : 0);
    s->payload = memset(exact_alloc(s->bytes), 0, s->bytes);
    for (size_t i = 0, b = SIZE_MAX; i < s->vec.nnz; i++) {
        b += i == 0 || slot_at(s, i) / s->block != slot_at(s, i - 1) / s->block;
        uint64_t at = b * s->block + slot_at(s, i) % s->block;
        uint_store(slot_at(s, i) / s->block, s->layout.index_size, numbers_of(s) + b * s->layout.index_size);
        memcpy(values_of(s) + at * size, (const char *)s->vec.value + i * size, size);
        if (present)
            presence_of(s)[at / 8] |= (unsigned char)(1u << at % 8);
    }
}

static struct sample sample_make(size_t row, unsigned variant, const struct pattern *pattern)
{
    struct rng rng = { row + variant };
    struct sample s = { .block = rows[row].block };
    uint64_t index[SPAN], span = rows[row].row < 100 ? SPAN : 37;
    s.shape = vec_desc_make(types[variant / 4].base, SAR_SUM, span, rows[row].row);
    s.shape.index_size = variant % 2 == 0 ? 4 : 8;
    s.layout = (struct sar_wire_layout){ .slots = span,
                                         .element_size = rows[row].row * types[variant / 4].bytes,
                                         .row_len = rows[row].row,
                                         .index_size = s.shape.index_size,
                                         .zero_is_absent = variant / 2 % 2 == 1 };
    size_t nnz = pattern->choose(pattern, span, span, &rng, index);
    s.vec = spvec_make(&s.shape, index, nnz, VALUES_EXACT, &rng);
    for (size_t i = 0; i < nnz; i++) /* no zeros, which the dense interface may lose */
        *((unsigned char *)s.vec.value + i * s.shape.element_size) |= 1;
    write_expected(&s);
    return s;
}

static void for_all_samples(void (*check)(const struct sample *sample))
{
    for (size_t row = 0; rows[row].row != SIZE_MAX; row++) {
        for (unsigned k = 0; k < VARIANTS * PATTERNS; k++) {
            struct sample s = sample_make(row, k % VARIANTS, &patterns[k / VARIANTS]);
            check(&s);
            spvec_free(&s.vec);
            free(s.payload);
        }
    }
}

static void test_block_lengths(void **state)
{
    (void)state;
    for (size_t row = 0; row < LENGTH(rows); row++)
        assert_int_equal((uint64_t)1 << sar_wire_block_shift(rows[row].row), rows[row].block);
}

static void check_bytes(const struct sample *s)
{
    void *payload = exact_alloc(s->bytes);
    assert_int_equal(sar_wire_bytes(&sar_wire_block, &s->layout, &s->vec), s->bytes);
    sar_wire_block.encode(&s->layout, &s->vec, memset(payload, 0x5a, s->bytes));
    if (memcmp(payload, s->payload, s->bytes) != 0)
        fail_msg("rows of %zu, %zu of %llu", s->shape.row_len, s->vec.nnz,
                 (unsigned long long)s->layout.slots);
    free(payload);
}

static void test_bytes(void **state)
{
    (void)state;
    for_all_samples(check_bytes);
}

/* Decodes a copy in memory of exactly this size. */
static enum sar_status decode(const struct sample *s, uint64_t bytes, size_t nnz, bool compare)
{
    struct sar_arena arena = { 0 };
    struct sar_spvec arrived = { NULL, NULL, nnz };
    void *copy = exact_alloc(bytes);
    memcpy(copy, s->payload, bytes < s->bytes ? bytes : s->bytes);
    enum sar_status status = sar_wire_block.decode(&s->layout, copy, bytes, &arena, &arrived);
    if (compare && status == SAR_OK)
        assert_true(spvec_equal(&s->shape, &s->vec, &arrived));
    sar_arena_free(&arena);
    free(copy);
    return status;
}

static void check_decode(const struct sample *s)
{
    size_t nnz = s->vec.nnz;
    assert_int_equal(decode(s, s->bytes, nnz, true), SAR_OK);
    for (uint64_t bytes = s->bytes < 40 ? 0 : s->bytes - 40; bytes < s->bytes; bytes++)
        assert_int_equal(decode(s, bytes, nnz, false), SAR_CORRUPT);
    assert_int_equal(decode(s, s->bytes + 1, nnz, false), SAR_CORRUPT);
    if (nnz > 0)
        assert_int_equal(decode(s, s->bytes, nnz - 1, false), SAR_CORRUPT);
    if (!s->layout.zero_is_absent || nnz == s->layout.slots)
        assert_int_equal(decode(s, s->bytes, nnz + 1, false), SAR_CORRUPT);
}

static void test_decoding(void **state)
{
    (void)state;
    for_all_samples(check_decode);
}

/* A number of a block past the end, one that does not ascend, and presence bits past the last block. */
static void check_damage(const struct sample *s)
{
    unsigned size = s->layout.index_size;
    uint64_t all = (s->layout.slots + s->block - 1) / s->block, bits = s->blocks * s->block;
    if (s->blocks == 0)
        return;
    unsigned char *last = numbers_of(s) + (s->blocks - 1) * size, kept[8];
    memcpy(kept, last, size);
    uint_store(all, size, last);
    assert_int_equal(decode(s, s->bytes, s->vec.nnz, false), SAR_CORRUPT);
    if (s->blocks > 1) {
        memcpy(last, last - size, size);
        assert_int_equal(decode(s, s->bytes, s->vec.nnz, false), SAR_CORRUPT);
    }
    memcpy(last, kept, size);
    if (s->layout.zero_is_absent)
        return;
    presence_of(s)[0] ^= 1;
    assert_int_equal(decode(s, s->bytes, s->vec.nnz, false), SAR_CORRUPT);
    presence_of(s)[0] ^= 1;
    if (bits % 8 == 0)
        return;
    presence_of(s)[bits / 8] |= 0x80;
    assert_int_equal(decode(s, s->bytes, s->vec.nnz, false), SAR_CORRUPT);
    presence_of(s)[bits / 8] &= 0x7f;
}

static void test_damage(void **state)
{
    (void)state;
    for_all_samples(check_damage);
}

/* With d = nnz / slots each block is in use with probability 1 - (1 - d)^B. */
static void check_predictions(const struct sample *s)
{
    double slots = (double)s->layout.slots, block = (double)s->block, in_use = 0;
    double each = block * (double)s->layout.element_size + s->layout.index_size +
                  (s->layout.zero_is_absent ? 0 : block / 8);
    for (double at = 0; at < slots; at += block)
        in_use += 1 - pow(1 - (double)s->vec.nnz / slots, fmin(block, slots - at));
    double found = sar_wire_expected(&sar_wire_block, &s->layout, (double)s->vec.nnz);
    assert_true(fabs(found - in_use * each) <= 1e-9 * found);
    uint64_t least = (s->vec.nnz + s->block - 1) / s->block;
    assert_true(sar_wire_block.min_bytes(&s->layout, s->vec.nnz) <= s->bytes);
    assert_int_equal(sar_wire_block.min_bytes(&s->layout, s->vec.nnz),
                     least * (s->block * s->layout.element_size + s->layout.index_size) +
                         (s->layout.zero_is_absent ? 0 : (least * s->block + 7) / 8));
}

static void test_predictions(void **state)
{
    (void)state;
    for_all_samples(check_predictions);
}

/* Sizes that no message has. */
static void test_overflow(void **state)
{
    unsigned char payload[64] = { 0 };
    (void)state;
    for (size_t row = 0; row < LENGTH(rows); row++) {
        struct sar_wire_layout layout = {
            .slots = UINT64_MAX, .element_size = SIZE_MAX / 16 + 1, .row_len = rows[row].row, .index_size = 8
        };
        struct sar_arena arena = { 0 };
        struct sar_spvec vec = { NULL, NULL, 1 };
        assert_true(sar_wire_block.min_bytes(&layout, UINT64_MAX) == UINT64_MAX);
        assert_true(sar_wire_block.min_bytes(&layout, UINT64_MAX / 256 + 1) == UINT64_MAX);
        assert_int_equal(sar_wire_block.decode(&layout, payload, sizeof payload, &arena, &vec), SAR_CORRUPT);
        sar_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block_lengths), cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_decoding),      cmocka_unit_test(test_damage),
        cmocka_unit_test(test_predictions),   cmocka_unit_test(test_overflow),
    };
    return TEAMS_RUN_SMALL(tests, NULL, NULL);
}
