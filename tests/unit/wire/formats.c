/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests wire formats: round trips, exact sizes, and payloads that encode does not write. The checks hold for
 * any format, so a new format in the list is tested without further code. */

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

static const uint64_t spans[] = { 0, 1, 7, 8, 9, 63, 64, 65, 255, 256, 257, 1000, 4097 };

/* Elements of 4, 8, 12 and 256 bytes, of 1, 3 and 129, and 4 aligned as 1. */
static const struct {
    enum sar_dtype base;
    size_t row, bytes;
} elements[] = { { SAR_FLOAT, 1, 4 }, { SAR_DOUBLE, 1, 8 }, { SAR_FLOAT, 3, 12 },   { SAR_FLOAT, 64, 256 },
                 { SAR_INT8, 1, 1 },  { SAR_INT8, 3, 3 },   { SAR_INT8, 129, 129 }, { SAR_UINT8, 4, 4 } };

/* A format, a layout and a vector that fits it. */
struct sample {
    const struct sar_wire *wire;
    struct sar_wire_layout layout;
    struct sar_vec_desc shape;
    struct sar_spvec run;
};

enum { VARIANTS = LENGTH(elements) * 4 };

static struct sample sample_make(const struct sar_wire *wire, unsigned variant, uint64_t span,
                                 const struct pattern *pattern)
{
    struct rng rng = { variant + span };
    struct sample s = { .wire = wire };
    size_t kind = variant / 4, room = (size_t)span;
    uint64_t *index = exact_alloc(room * sizeof *index);
    s.shape = vec_desc_make(elements[kind].base, SAR_SUM, span, elements[kind].row);
    s.shape.index_size = variant % 2 == 0 ? 4 : 8;
    s.layout = (struct sar_wire_layout){ .slots = span,
                                         .element_size = s.shape.element_size,
                                         .row_len = s.shape.row_len,
                                         .index_size = s.shape.index_size,
                                         .zero_is_absent = variant / 2 % 2 == 1 };
    size_t nnz = pattern->choose(pattern, span, room, &rng, index);
    s.run = spvec_make(&s.shape, index, nnz, variant % 3 == 0 ? VALUES_INEXACT : VALUES_SPECIAL, &rng);
    free(index);
    return s;
}

static void for_all_samples(uint64_t largest, void (*check)(const struct sample *sample))
{
    for (size_t w = 0; sar_wires[w] != NULL; w++) {
        for (unsigned k = 0; k < VARIANTS * LENGTH(spans) * PATTERNS; k++) {
            uint64_t span = spans[k / VARIANTS % LENGTH(spans)];
            if (span > largest)
                continue;
            struct sample s =
                sample_make(sar_wires[w], k % VARIANTS, span, &patterns[k / VARIANTS / LENGTH(spans)]);
            check(&s);
            spvec_free(&s.run);
        }
    }
}

/* Drop elements of zero bits in place. */
static void strip(const struct sar_vec_desc *shape, struct sar_spvec *run)
{
    size_t kept = 0, size = shape->element_size;
    for (size_t i = 0; i < run->nnz; i++) {
        unsigned char *value = (unsigned char *)run->value + i * size, any = 0;
        for (size_t b = 0; b < size; b++)
            any |= value[b];
        if (any == 0)
            continue;
        sar_index_set(run->index, shape->index_size, kept, sar_index_get(run->index, shape->index_size, i));
        memmove((unsigned char *)run->value + kept++ * size, value, size);
    }
    run->nnz = kept;
}

static struct sar_spvec copy_of(const struct sample *s, const struct sar_spvec *run)
{
    struct sar_spvec copy = spvec_alloc(&s->shape, run->nnz);
    if (run->nnz != 0) {
        memcpy(copy.index, run->index, run->nnz * s->shape.index_size);
        memcpy(copy.value, run->value, run->nnz * s->shape.element_size);
    }
    return copy;
}

/* Elements of zero bits may be dropped if they count as absent. */
static bool arrived_whole(const struct sample *s, const struct sar_spvec *arrived)
{
    struct sar_spvec sent = copy_of(s, &s->run), received = copy_of(s, arrived);
    if (s->layout.zero_is_absent) {
        strip(&s->shape, &sent);
        strip(&s->shape, &received);
    }
    bool whole = spvec_equal(&s->shape, &sent, &received);
    spvec_free(&sent);
    spvec_free(&received);
    return whole;
}

/* Encode into memory of exactly the size, and check that every byte was written. */
static void *encoded(const struct sample *s, uint64_t bytes)
{
    unsigned char *payload = exact_alloc(bytes), *again = exact_alloc(bytes);
    memset(payload, 0xaa, bytes);
    memset(again, 0x55, bytes);
    s->wire->encode(&s->layout, &s->run, payload);
    s->wire->encode(&s->layout, &s->run, again);
    assert_true(memcmp(payload, again, bytes) == 0);
    free(again);
    return payload;
}

static void check_round_trip(const struct sample *s)
{
    uint64_t bytes = sar_wire_bytes(s->wire, &s->layout, &s->run);
    void *payload = encoded(s, bytes);
    struct sar_arena arena = { 0 };
    struct sar_spvec arrived = { NULL, NULL, s->run.nnz };
    assert_int_equal(s->wire->decode(&s->layout, payload, bytes, &arena, &arrived), SAR_OK);
    if (!arrived_whole(s, &arrived))
        fail_msg("%s, span %llu, nnz %zu, %zu bytes an element, %u an index", s->wire->name,
                 (unsigned long long)s->layout.slots, s->run.nnz, s->layout.element_size,
                 s->layout.index_size);
    sar_arena_free(&arena);
    free(payload);
}

static void test_round_trips(void **state)
{
    (void)state;
    for_all_samples(UINT64_MAX, check_round_trip);
}

/* Decode a copy in memory of exactly `bytes` bytes. It gives a valid vector or an error. */
static enum sar_status try_decode(const struct sample *s, const void *payload, uint64_t bytes, size_t nnz)
{
    void *copy = memcpy(exact_alloc(bytes), payload, bytes);
    struct sar_arena arena = { 0 };
    struct sar_spvec run = { NULL, NULL, nnz };
    enum sar_status status = s->wire->decode(&s->layout, copy, bytes, &arena, &run);
    assert_true(status == SAR_OK || status == SAR_CORRUPT);
    if (status == SAR_OK) {
        assert_true(spvec_ascends(&run, s->layout.index_size, s->layout.slots));
        assert_true(s->layout.zero_is_absent ? run.nnz <= nnz : run.nnz == nnz);
        struct sar_spvec read = copy_of(s, &run);
        spvec_free(&read);
    }
    sar_arena_free(&arena);
    free(copy);
    return status;
}

/* Without presence bits a decoder cannot miss a whole block, since sums may be zero; the header tells the
 * length. */
static bool may_be_whole(const struct sample *s, uint64_t length)
{
    return s->wire == &sar_wire_block && s->layout.zero_is_absent &&
           length % s->wire->min_bytes(&s->layout, 1) == 0;
}

/* Any wrong number of bytes is refused. */
static void check_lengths(const struct sample *s)
{
    uint64_t bytes = sar_wire_bytes(s->wire, &s->layout, &s->run);
    unsigned char *payload = exact_alloc(bytes + 1);
    s->wire->encode(&s->layout, &s->run, payload);
    payload[bytes] = 0;
    for (uint64_t length = 0; length<bytes; length += bytes> 2000 ? 97 : 1)
        assert_true(try_decode(s, payload, length, s->run.nnz) == SAR_CORRUPT || may_be_whole(s, length));
    assert_int_equal(try_decode(s, payload, bytes + 1, s->run.nnz), SAR_CORRUPT);
    free(payload);
}

static void test_truncations_are_refused(void **state)
{
    (void)state;
    for_all_samples(257, check_lengths);
}

/* A wrong number of elements. */
static void check_other_numbers(const struct sample *s)
{
    uint64_t bytes = sar_wire_bytes(s->wire, &s->layout, &s->run);
    size_t numbers[] = { 0,
                         1,
                         s->run.nnz + 1,
                         s->run.nnz - 1,
                         (size_t)s->layout.slots,
                         (size_t)s->layout.slots + 1,
                         SIZE_MAX,
                         SIZE_MAX / s->layout.element_size + 1,
                         (size_t)1 << 62 };
    void *payload = encoded(s, bytes);
    for (size_t i = 0; i < LENGTH(numbers); i++) {
        enum sar_status status = try_decode(s, payload, bytes, numbers[i]);
        if (numbers[i] > s->layout.slots)
            assert_int_equal(status, SAR_CORRUPT);
    }
    free(payload);
}

static void test_wrong_numbers_of_elements(void **state)
{
    (void)state;
    for_all_samples(257, check_other_numbers);
}

/* Flip every bit once; of long payloads every fifth bit. */
static void check_flips(const struct sample *s)
{
    uint64_t bytes = sar_wire_bytes(s->wire, &s->layout, &s->run);
    unsigned char *payload = encoded(s, bytes);
    for (uint64_t bit = 0; bytes <= 160 && bit < 8 * bytes; bit += bytes <= 24 ? 1 : 5) {
        payload[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        try_decode(s, payload, bytes, s->run.nnz);
        payload[bit / 8] ^= (unsigned char)(1u << (bit % 8));
    }
    assert_int_equal(try_decode(s, payload, bytes, s->run.nnz), SAR_OK);
    free(payload);
}

static void test_single_bit_flips(void **state)
{
    (void)state;
    for_all_samples(65, check_flips);
}

/* Random bytes. */
static void check_noise(const struct sample *s)
{
    struct rng rng = { s->run.nnz };
    uint64_t bytes = sar_wire_bytes(s->wire, &s->layout, &s->run);
    unsigned char *payload = exact_alloc(bytes);
    for (unsigned round = 0; round < 4; round++) {
        for (uint64_t i = 0; i < bytes; i++)
            payload[i] = round < 3 ? (unsigned char)(rng_next(&rng) & rng_next(&rng)) : 0xff;
        try_decode(s, payload, bytes, s->run.nnz);
    }
    free(payload);
}

static void test_noise(void **state)
{
    (void)state;
    for_all_samples(1000, check_noise);
}

/* Decode into memory of exactly this many indices, and compare them with the bits set. */
static enum sar_status list_bits(const struct sar_wire_layout *layout, const unsigned char *bitmap,
                                 size_t nnz)
{
    void *index = exact_alloc(nnz * layout->index_size);
    enum sar_status status = sar_bitmap_decode(layout, bitmap, nnz, index);
    for (uint64_t i = 0, k = 0; status == SAR_OK && i < layout->slots; i++) {
        if (bitmap[i / 8] >> (i % 8) & 1)
            assert_int_equal(sar_index_get(index, layout->index_size, k++), i);
    }
    free(index);
    return status;
}

/* One bit more or less than announced, or beyond the span. */
static void check_bitmap(uint64_t span, unsigned index_size, size_t gap)
{
    struct sar_wire_layout layout = { span, 4, 1, index_size, false, SAR_PRECISION_FULL };
    uint64_t bytes = sar_bitmap_bytes(span);
    unsigned char *memory = exact_alloc(bytes + gap), *bitmap = memory + gap;
    struct rng rng = { span };
    size_t nnz = 0;
    memset(bitmap, 0, bytes);
    for (uint64_t i = 0; i < span; i++)
        bitmap[i / 8] |= (unsigned char)(rng_below(&rng, 2) << (i % 8));
    for (uint64_t i = 0; i < span; i++)
        nnz += bitmap[i / 8] >> (i % 8) & 1;
    assert_int_equal(list_bits(&layout, bitmap, nnz), SAR_OK);
    assert_int_equal(list_bits(&layout, bitmap, nnz + 1), SAR_CORRUPT);
    for (size_t fewer = 1; fewer <= nnz; fewer++)
        assert_int_equal(list_bits(&layout, bitmap, nnz - fewer), SAR_CORRUPT);
    for (uint64_t i = span; i < 8 * bytes; i++) {
        bitmap[i / 8] |= (unsigned char)(1u << (i % 8));
        assert_int_equal(list_bits(&layout, bitmap, nnz), SAR_CORRUPT);
        assert_int_equal(list_bits(&layout, bitmap, nnz + 1), SAR_CORRUPT);
        bitmap[i / 8] &= (unsigned char)~(1u << (i % 8));
    }
    free(memory);
}

/* Every span, at every alignment. */
static void test_bitmaps(void **state)
{
    (void)state;
    for (uint64_t span = 0; span <= 130; span++) {
        for (size_t gap = 0; gap < 8; gap++)
            check_bitmap(span, gap % 2 == 0 ? 4 : 8, gap);
    }
}

/* The paper: a bitmap makes a message smaller from 3.1 % on with 4-byte indices (1 in 32), from 1.6 % with
 * 8-byte ones. It is smaller than the dense vector up to a density of 1 - 1/(8 s), 97 % for floats. */
static void test_where_formats_cross(void **state)
{
    (void)state;
    for (unsigned k = 0; k < VARIANTS; k++) {
        struct sar_wire_layout layout = { .slots = 3 << 19,
                                          .element_size = elements[k / 4].bytes,
                                          .row_len = elements[k / 4].row,
                                          .index_size = k % 2 == 0 ? 4 : 8,
                                          .zero_is_absent = true };
        struct sar_wire_price fewest = { 1, 0, false };
        uint64_t low = layout.slots / 8 / layout.index_size,
                 high = layout.slots - layout.slots / 8 / layout.element_size;
        const struct sar_wire *coo = &sar_wire_coo, *bitmap = &sar_wire_hash_bitmap, *dense = &sar_wire_dense;
        assert_true(coo->min_bytes(&layout, low - 1) < bitmap->min_bytes(&layout, low - 1));
        assert_true(coo->min_bytes(&layout, low) == bitmap->min_bytes(&layout, low));
        assert_true(coo->min_bytes(&layout, low + 1) > bitmap->min_bytes(&layout, low + 1));
        assert_true(bitmap->min_bytes(&layout, high - 1) < dense->min_bytes(&layout, high - 1));
        assert_true(bitmap->min_bytes(&layout, high + 1) > dense->min_bytes(&layout, high + 1));
        for (uint64_t nnz = low - 1; nnz < high; nnz = nnz < low + 1 ? nnz + 1 : 2 * nnz)
            assert_true(sar_wire_expected(sar_wire_cheapest_expected(&layout, (double)nnz, fewest), &layout,
                                          (double)nnz) <=
                        fmin((double)coo->min_bytes(&layout, nnz), (double)bitmap->min_bytes(&layout, nnz)));
        assert_true(k / 4 != 0 || high * 100 / layout.slots >= 95);
    }
}

/* The cheapest format has the fewest bytes and the least work, which is free if values are rounded; ties go
 * to the first. */
static void test_the_cheapest(void **state)
{
    static const struct sar_wire_price prices[] = { { 1, 0, 0 },         { 0, 1, 0 }, { 8e-9, 3e-9, 0 },
                                                    { 2e-11, 3e-9, 0 },  { 0, 0, 0 }, { 8e-9, 3e-9, 64 },
                                                    { 2e-11, 3e-9, 256 } };
    (void)state;
    for (unsigned k = 0; k < VARIANTS * LENGTH(prices) * 300; k++) {
        struct sar_wire_price price = prices[k / VARIANTS % LENGTH(prices)];
        size_t kind = k % VARIANTS / 4;
        struct sar_wire_layout layout = { .slots = 30000,
                                          .element_size = elements[kind].bytes,
                                          .row_len = elements[kind].row,
                                          .index_size = k % 2 == 0 ? 4 : 8,
                                          .zero_is_absent = k / 2 % 2 == 1,
                                          .precision = k % 3 == 0 ? SAR_PRECISION_BF16 : SAR_PRECISION_FULL };
        uint64_t nnz = k / VARIANTS / LENGTH(prices) * 100;
        const struct sar_wire *cheapest = sar_wire_cheapest_expected(&layout, (double)nnz, price);
        double least = INFINITY;
        const struct sar_wire *best = NULL;
        for (size_t w = 0; sar_wires[w] != NULL; w++) {
            double work = price.block > 0
                              ? sar_wire_pull_cost(sar_wires[w], &layout, (double)nnz, price.block)
                              : sar_wire_cost(sar_wires[w], &layout, (double)nnz);
            work = layout.precision == SAR_PRECISION_FULL ? work : 0;
            double cost =
                sar_wire_expected(sar_wires[w], &layout, (double)nnz) * price.beta + work * price.gamma;
            if (cost < least)
                best = sar_wires[w];
            least = fmin(least, cost);
        }
        assert_ptr_equal(cheapest, best);
    }
}

/* Lists of slots cost less to put in place in long blocks; bits cost as much in any. */
static void test_work_of_blocks(void **state)
{
    struct sar_wire_layout layout = { 100000, 4, 1, 4, false, SAR_PRECISION_FULL };
    (void)state;
    for (size_t w = 0; sar_wires[w] != NULL; w++) {
        double in_64 = sar_wire_pull_cost(sar_wires[w], &layout, 8000, 64),
               in_256 = sar_wire_pull_cost(sar_wires[w], &layout, 8000, 256), blocks = 100000 / 64. * 3 / 4;
        bool has_list = sar_wires[w] != &sar_wire_hash_bitmap;
        double more = has_list ? sar_wire_merge_work(0, blocks) : 0;
        assert_true(fabs(in_64 - in_256 - more) < 1e-6 * in_64);
        assert_true(!has_list || in_256 > sar_wire_merge_work(8000, 0));
    }
}

/* Sizes and work grow with the number of elements; sizes saturate and do not wrap around. */
static void test_sizes_and_work_grow(void **state)
{
    (void)state;
    for (size_t w = 0; sar_wires[w] != NULL; w++) {
        struct sar_wire_layout small = { 10000, 12, 3, 4, false, SAR_PRECISION_FULL },
                               vast = { UINT64_MAX, 256, 64, 8, false, SAR_PRECISION_FULL };
        for (uint64_t nnz = 1; nnz <= small.slots; nnz += 7) {
            assert_true(sar_wires[w]->min_bytes(&small, nnz) >= sar_wires[w]->min_bytes(&small, nnz - 1));
            assert_true(sar_wire_pull_cost(sar_wires[w], &small, (double)nnz, 64) >=
                        sar_wire_pull_cost(sar_wires[w], &small, (double)nnz - 1, 64));
            assert_true(sar_wire_cost(sar_wires[w], &small, (double)nnz) >=
                        sar_wire_cost(sar_wires[w], &small, (double)nnz - 1));
        }
        assert_true(sar_wire_cost(sar_wires[w], &small, 0) >= 0 &&
                    isfinite(sar_wire_cost(sar_wires[w], &vast, 1e18)));
        assert_true(sar_wires[w]->min_bytes(&vast, UINT64_MAX) == UINT64_MAX);
        assert_true(sar_wires[w]->min_bytes(&vast, UINT64_MAX / 256 + 1) == UINT64_MAX);
    }
}

static void test_names(void **state)
{
    (void)state;
    for (size_t w = 0; sar_wires[w] != NULL; w++) {
        assert_ptr_equal(sar_wire_find(sar_wires[w]->name), sar_wires[w]);
        assert_true(strlen(sar_wires[w]->summary) > 10);
    }
    assert_null(sar_wire_find("auto"));
    assert_null(sar_wire_find(""));
    assert_null(sar_wire_find("co"));
}

/* Payloads and decoded elements are equal for every team. */
static void check_on_teams(const struct sample *s)
{
    uint64_t bytes = sar_wire_bytes(s->wire, &s->layout, &s->run);
    team_set_small(1);
    void *expected = encoded(s, bytes);
    for (size_t team = 0; team < LENGTH(teams); team++) {
        if (team_is_left_out(teams[team]))
            continue;
        team_set_small(teams[team]);
        void *payload = encoded(s, bytes);
        assert_memory_equal(payload, expected, bytes);
        free(payload);
        check_round_trip(s);
    }
    team_set_small(1);
    free(expected);
}

/* All numbers of elements around those of a word, so that the last word of a list has any number. */
static void test_few_elements(void **state)
{
    static const size_t steps[] = { 1, 3, 100 };
    (void)state;
    for (size_t w = 0; sar_wires[w] != NULL; w++) {
        for (size_t k = 0; k < 130 * LENGTH(steps); k++) {
            struct rng rng = { k };
            size_t nnz = k / LENGTH(steps), step = steps[k % LENGTH(steps)];
            struct sample s = { .wire = sar_wires[w] };
            uint64_t index[130];
            for (size_t i = 0; i < nnz; i++)
                index[i] = i * step;
            s.shape = vec_desc_make(SAR_FLOAT, SAR_SUM, nnz * step, 1);
            s.layout = (struct sar_wire_layout){
                .slots = nnz * step, .element_size = 4, .row_len = 1, .index_size = s.shape.index_size
            };
            s.run = spvec_make(&s.shape, index, nnz, VALUES_INEXACT, &rng);
            check_round_trip(&s);
            spvec_free(&s.run);
        }
    }
}

/* Long enough for many pieces, also of a bitmap where elements are floats and doubles. */
static void test_teams(void **state)
{
    enum { SPAN = 100003, SHORT_SPAN = 5003, LONG_VARIANTS = 8 };
    (void)state;
    for (size_t w = 0; sar_wires[w] != NULL; w++) {
        for (unsigned k = 0; k < VARIANTS * PATTERNS; k++) {
            uint64_t span = k % VARIANTS < LONG_VARIANTS ? SPAN : SHORT_SPAN;
            struct sample s = sample_make(sar_wires[w], k % VARIANTS, span, &patterns[k / VARIANTS]);
            check_on_teams(&s);
            spvec_free(&s.run);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_teams),
        cmocka_unit_test(test_few_elements),
        cmocka_unit_test(test_truncations_are_refused),
        cmocka_unit_test(test_wrong_numbers_of_elements),
        cmocka_unit_test(test_single_bit_flips),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_bitmaps),
        cmocka_unit_test(test_where_formats_cross),
        cmocka_unit_test(test_the_cheapest),
        cmocka_unit_test(test_work_of_blocks),
        cmocka_unit_test(test_sizes_and_work_grow),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, teams_end);
}
