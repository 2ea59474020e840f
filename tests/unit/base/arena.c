/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the arena: alignment, overflow, memory kept by reset, and every allocation failing once. Linked with
 * --wrap=malloc. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "array_length.h"
#include "base/arena.h"

static size_t calls;                   /* calls of malloc since set_failure */
static size_t failing_from = SIZE_MAX; /* first call that fails */
static size_t failing_until;           /* first later call that succeeds */

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    size_t call = calls++;
    if (bytes > SIZE_MAX / 4)
        return NULL; /* return NULL as malloc does; the address sanitizer's malloc would abort */
    return call >= failing_from && call < failing_until ? NULL : __real_malloc(bytes);
}

static void set_failure(size_t from, size_t until)
{
    calls = 0;
    failing_from = from;
    failing_until = until;
}

static int no_failure(void **state)
{
    (void)state;
    set_failure(SIZE_MAX, SIZE_MAX);
    return 0;
}

static const size_t sizes[] = { 1, 0, 63, 64, 65, 4096, 16383, 16384, 16385, 100000, 7, 1000000, 3 };

/* Allocate each size and write all of it. */
static void take_all(struct sar_arena *arena, unsigned char *pieces[])
{
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        void *memory = NULL;
        assert_int_equal(sar_arena_alloc(arena, sizes[i], 1, &memory), SAR_OK);
        assert_non_null(memory);
        assert_true((uintptr_t)memory % SAR_ALIGNMENT == 0);
        pieces[i] = memset(memory, (int)i + 1, sizes[i]);
    }
}

static void test_pieces_are_aligned_and_apart(void **state)
{
    struct sar_arena arena = { 0 };
    unsigned char *pieces[LENGTH(sizes)];
    (void)state;
    take_all(&arena, pieces);
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(pieces[i][k], i + 1);
    }
    sar_arena_free(&arena);
}

static void test_zeroed(void **state)
{
    struct sar_arena arena = { 0 };
    (void)state;
    for (int round = 0; round < 3; round++) {
        void *memory;
        assert_int_equal(sar_arena_alloc_zeroed(&arena, 1000, 3, &memory), SAR_OK);
        unsigned char *bytes = memory;
        for (size_t i = 0; i < 3000; i++)
            assert_int_equal(bytes[i], 0);
        memset(memory, 0xff, 3000);
        sar_arena_reset(&arena);
    }
    sar_arena_free(&arena);
}

static void test_sizes_that_overflow(void **state)
{
    static const struct {
        size_t count, size;
    } cases[] = {
        { SIZE_MAX, 1 },
        { SIZE_MAX - 1, 1 },
        { SIZE_MAX - SAR_ALIGNMENT, 1 },
        { SIZE_MAX - 3 * SAR_ALIGNMENT, 1 },
        { SIZE_MAX / 2, 3 },
        { SIZE_MAX / 8 + 1, 8 },
        { 1, SIZE_MAX },
        { SIZE_MAX, SIZE_MAX },
        { (size_t)1 << 32, (size_t)1 << 32 },
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct sar_arena arena = { 0 };
        void *untouched = &arena, *memory = untouched;
        assert_int_equal(sar_arena_alloc(&arena, cases[i].count, cases[i].size, &memory), SAR_NO_MEMORY);
        assert_ptr_equal(memory, untouched);
        assert_int_equal(sar_arena_alloc_zeroed(&arena, cases[i].count, cases[i].size, &memory),
                         SAR_NO_MEMORY);
        assert_int_equal(sar_arena_alloc(&arena, 0, SIZE_MAX, &memory), SAR_OK);
        assert_int_equal(sar_arena_alloc(&arena, SIZE_MAX, 0, &memory), SAR_OK);
        sar_arena_free(&arena);
    }
}

static void test_equal_use_allocates_once(void **state)
{
    struct sar_arena arena = { 0 };
    unsigned char *pieces[LENGTH(sizes)];
    (void)state;
    take_all(&arena, pieces);
    sar_arena_reset(&arena);
    for (int round = 0; round < 5; round++) {
        calls = 0;
        take_all(&arena, pieces);
        sar_arena_reset(&arena);
        assert_int_equal(calls, 0);
    }
    sar_arena_free(&arena);
}

/* Allocate this number of bytes, and reset. */
static void use_once(struct sar_arena *arena, size_t bytes)
{
    void *memory;
    sar_arena_reset(arena);
    assert_int_equal(sar_arena_alloc(arena, 1, bytes, &memory), SAR_OK);
}

static size_t calls_of_use(struct sar_arena *arena, size_t bytes)
{
    calls = 0;
    use_once(arena, bytes);
    return calls;
}

enum { LARGE_USE = 1 << 26, SMALLER_USE = 1 << 20, SMALL_USE = 100 };

/* A single large call keeps its memory only for a time, and later only the maximum of the following calls. */
static void test_reset_releases_excess_memory(void **state)
{
    struct sar_arena arena = { 0 };
    (void)state;
    use_once(&arena, LARGE_USE);
    assert_int_equal(calls_of_use(&arena, LARGE_USE), 0);
    for (int use = 0; use < SAR_TRIM_USES; use++)
        assert_int_equal(calls_of_use(&arena, use == 7 ? SMALLER_USE : SMALL_USE), 0);
    assert_int_equal(calls_of_use(&arena, SMALLER_USE), 1);
    for (int use = 0; use < SAR_TRIM_USES; use++)
        assert_int_equal(calls_of_use(&arena, SMALLER_USE), 0);
    assert_int_equal(calls_of_use(&arena, LARGE_USE), 1);
    sar_arena_free(&arena);
}

/* Layers of a network, one of which is large. */
static void test_uses_that_take_turns(void **state)
{
    struct sar_arena arena = { 0 };
    (void)state;
    use_once(&arena, LARGE_USE);
    calls = 0;
    for (int use = 0; use < 4 * SAR_TRIM_USES; use++)
        use_once(&arena, use % SAR_TRIM_USES == SAR_TRIM_USES - 1 ? LARGE_USE : SMALL_USE);
    assert_int_equal(calls, 0);
    sar_arena_free(&arena);
}

/* Data allocated before the mark stay unchanged. A second equal use allocates nothing, and the arena holds no
 * more than the peak. */
static void test_return_to_a_mark(void **state)
{
    struct sar_arena arena = { 0 };
    unsigned char *pieces[LENGTH(sizes)], *later[LENGTH(sizes)];
    size_t most = 0;
    (void)state;
    for (int round = 0; round < 3; round++) {
        calls = 0;
        struct sar_arena_mark start = sar_arena_mark(&arena);
        take_all(&arena, pieces);
        sar_arena_rewind(&arena, start);
        assert_int_equal(arena.used, 0);
        take_all(&arena, pieces);
        struct sar_arena_mark mark = sar_arena_mark(&arena);
        for (int again = 0; again < 3; again++) {
            take_all(&arena, later);
            most = arena.used;
            sar_arena_rewind(&arena, mark);
        }
        for (size_t i = 0; i < LENGTH(sizes); i++)
            for (size_t k = 0; k < sizes[i]; k++)
                assert_int_equal(pieces[i][k], i + 1);
        assert_true(arena.used < most && (calls == 0) == (round > 0));
        sar_arena_reset(&arena);
    }
    sar_arena_free(&arena);
}

static void test_an_unused_arena(void **state)
{
    struct sar_arena arena = { 0 };
    (void)state;
    sar_arena_reset(&arena);
    sar_arena_free(&arena);
    sar_arena_free(&arena);
    void *memory;
    assert_int_equal(sar_arena_alloc(&arena, 1, 1, &memory), SAR_OK);
    sar_arena_free(&arena);
    assert_int_equal(sar_arena_alloc(&arena, 1, 1, &memory), SAR_OK);
    sar_arena_free(&arena);
}

/* Allocate and reset until one call fails. Earlier pieces must keep their data. */
static enum sar_status use(struct sar_arena *arena)
{
    unsigned char *given[LENGTH(sizes)];
    for (int round = 0; round < 3; round++) {
        enum sar_status status = SAR_OK;
        size_t taken = 0;
        while (taken < LENGTH(sizes) && status == SAR_OK) {
            void *memory;
            status = sar_arena_alloc(arena, sizes[taken], 1, &memory);
            if (status == SAR_OK) {
                given[taken] = memset(memory, (int)taken, sizes[taken]);
                taken++;
            }
        }
        for (size_t i = 0; i < taken; i++) {
            if (sizes[i] > 0)
                assert_true(given[i][0] == i && given[i][sizes[i] - 1] == i);
        }
        SAR_TRY(status);
        sar_arena_reset(arena);
    }
    return SAR_OK;
}

/* Blocks of another allocator, which returns more than requested. */
static int allocated_blocks;
static size_t largest;

static void *alloc_block(struct sar_allocator *allocator, size_t *bytes)
{
    (void)allocator;
    if (calls++ >= failing_from)
        return NULL;
    allocated_blocks++;
    largest = *bytes > largest ? *bytes : largest;
    *bytes += 4096;
    return __real_malloc(*bytes);
}

static void take_back(struct sar_allocator *allocator, void *memory)
{
    (void)allocator;
    allocated_blocks--;
    free(memory);
}

/* Later use takes one block, until it needs less. */
static void test_a_allocator_of_blocks(void **state)
{
    struct sar_allocator allocator = { alloc_block, take_back };
    struct sar_arena arena = { .allocator = &allocator };
    unsigned char *pieces[LENGTH(sizes)];
    void *memory;
    (void)state;
    for (int round = 0; round < 3; round++) {
        take_all(&arena, pieces);
        for (size_t i = 0; i < LENGTH(sizes); i++)
            for (size_t k = 0; k < sizes[i]; k++)
                assert_int_equal(pieces[i][k], i + 1);
        assert_true(round == 0 ? allocated_blocks > 1 : allocated_blocks == 1);
        sar_arena_release(&arena);
        assert_int_equal(allocated_blocks, 0);
    }
    for (int round = 0; round < 2; round++) {
        largest = 0;
        assert_int_equal(sar_arena_alloc(&arena, 1, 100, &memory), SAR_OK);
        sar_arena_release(&arena);
    }
    assert_true(largest < 1 << 16);
    set_failure(0, SIZE_MAX);
    assert_int_equal(sar_arena_alloc(&arena, 1, 100, &memory), SAR_NO_MEMORY);
    sar_arena_free(&arena);
    assert_int_equal(allocated_blocks, 0);
}

/* Reset allocates in advance, and a failed allocation is retried with a smaller block. Both may hide a single
 * failure, which then must have no effect. */
static void test_one_allocation_fails(void **state)
{
    struct sar_arena arena = { 0 };
    (void)state;
    size_t failed = 0, fail = 0;
    for (;; fail++) {
        set_failure(fail, fail + 1);
        enum sar_status status = use(&arena);
        bool reached = calls > fail;
        failed += status == SAR_NO_MEMORY;
        assert_true(status == SAR_OK || (status == SAR_NO_MEMORY && reached));
        set_failure(SIZE_MAX, SIZE_MAX);
        assert_int_equal(use(&arena), SAR_OK);
        sar_arena_free(&arena);
        if (!reached)
            break;
    }
    assert_true(fail >= 3 && failed >= 1);
}

static void test_all_later_allocations_fail(void **state)
{
    struct sar_arena arena = { 0 };
    (void)state;
    for (size_t fail = 0;; fail++) {
        set_failure(fail, SIZE_MAX);
        enum sar_status status = use(&arena);
        bool reached = calls > fail;
        sar_arena_free(&arena);
        if (!reached) {
            assert_int_equal(status, SAR_OK);
            break;
        }
        assert_int_equal(status, SAR_NO_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_pieces_are_aligned_and_apart, no_failure),
        cmocka_unit_test_setup(test_zeroed, no_failure),
        cmocka_unit_test_setup(test_sizes_that_overflow, no_failure),
        cmocka_unit_test_setup(test_equal_use_allocates_once, no_failure),
        cmocka_unit_test_setup(test_reset_releases_excess_memory, no_failure),
        cmocka_unit_test_setup(test_uses_that_take_turns, no_failure),
        cmocka_unit_test_setup(test_return_to_a_mark, no_failure),
        cmocka_unit_test_setup(test_an_unused_arena, no_failure),
        cmocka_unit_test_setup_teardown(test_a_allocator_of_blocks, no_failure, no_failure),
        cmocka_unit_test_setup_teardown(test_one_allocation_fails, no_failure, no_failure),
        cmocka_unit_test_setup_teardown(test_all_later_allocations_fail, no_failure, no_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
