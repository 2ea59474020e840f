/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests arrays that pass through a ring of pinned blocks, on an accelerator that delays its work. Checks the
 * data, the copies in progress, the amount of pinned memory, and that nothing leaks if any one function
 * fails. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "device/ops.h"
#include "fake_accelerator.h"

enum { COUNT = 1000, BLOCK = 512 };

/* The mask is a list of indices. */
static void compact_kernel(const struct fake_accel_args *a)
{
    for (size_t i = 0; i < a->run.nnz; i++) {
        uint32_t index = ((const uint32_t *)a->marks.bits)[i];
        ((uint32_t *)a->run.index)[i] = index;
        ((double *)a->run.value)[i] = ((const double *)a->vector.buf)[index];
    }
}

static enum sar_status compact(const struct sar_device_vec *vector, const struct sar_nonzero_mask *marks,
                               const struct sar_spvec *run)
{
    return fake_accel_queue(vector->stream, compact_kernel,
                            &(struct fake_accel_args){ .vector = *vector, .marks = *marks, .run = *run });
}

static void clear_kernel(const struct fake_accel_args *a)
{
    memset(a->vector.buf, 0, COUNT * sizeof(double));
}

static void scatter_kernel(const struct fake_accel_args *a)
{
    for (size_t i = 0; i < a->run.nnz; i++)
        ((double *)a->vector.buf)[((const uint32_t *)a->run.index)[i]] = ((const double *)a->run.value)[i];
}

static enum sar_status scatter(const struct sar_device_vec *vector, const struct sar_spvec runs[], size_t n,
                               bool clear)
{
    if (clear)
        SAR_TRY(
            fake_accel_queue(vector->stream, clear_kernel, &(struct fake_accel_args){ .vector = *vector }));
    for (size_t i = 0; i < n; i++)
        SAR_TRY(fake_accel_queue(vector->stream, scatter_kernel,
                                 &(struct fake_accel_args){ .vector = *vector, .run = runs[i] }));
    return SAR_OK;
}

static const struct sar_device_ctx memory = { &fake_accelerator, 0, NULL };
static const struct sar_vec_desc shape = {
    .count = COUNT, .element_size = sizeof(double), .index_size = sizeof(uint32_t), .row_len = 1
};

/* Check that only cached memory is left, and release it. */
static void end(void)
{
    fake_accel_end();
    assert_int_equal(fake_accel_memory.open, 0);
}

/* Double each element on the host, from one array to another or in place. */
static enum sar_status double_all(double *in, double *out, size_t piece)
{
    struct sar_host_pipeline pipe;
    size_t each = piece / sizeof(double), n = COUNT / each + (COUNT % each != 0);
    enum sar_status status =
        sar_host_pipeline_open(&pipe, &memory, &(struct sar_pipeline_args){ in, out, COUNT * sizeof(double) },
                               piece);
    for (size_t k = 0; k < n && status == SAR_OK; k++) {
        status = sar_host_pipeline_wait(&pipe, k);
        double *at = sar_host_pipeline_chunk(&pipe, k);
        for (size_t i = 0; i < each && k * each + i < COUNT && status == SAR_OK; i++)
            at[i] *= 2;
        if (status == SAR_OK)
            status = sar_host_pipeline_write_back(&pipe, k);
    }
    enum sar_status closed = sar_host_pipeline_close(&pipe);
    return status == SAR_OK ? closed : status;
}

static void fill(double *v)
{
    for (int i = 0; i < COUNT; i++)
        v[i] = i % 3 == 0 ? i + 1 : 0;
}

static void pieces_pass(void **state)
{
    static const size_t sizes[] = { 64, 448, 1 << 13, 1 << 20 };
    double in[COUNT], out[COUNT];
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        fake_accel_begin(0);
        fill(in);
        memset(out, 0, sizeof out);
        assert_int_equal(double_all(in, out, sizes[s]), SAR_OK);
        assert_int_equal(double_all(in, in, sizes[s]), SAR_OK);
        for (int i = 0; i < COUNT; i++)
            assert_true(out[i] == (i % 3 == 0 ? 2 * (i + 1) : 0) && in[i] == out[i]);
        assert_true(fake_accel_memory.pinned <= SAR_PINNED_RING_BLOCKS + 1);
    }
    end();
    assert_int_equal(fake_accel_memory.pinned, 0);
}

/* A block has no room for other data. */
static void powers_of_two_fit(void **state)
{
    (void)state;
    for (size_t bytes = 4096; bytes <= 1 << 16; bytes *= 2) {
        struct sar_host_copy host_copy;
        size_t before = fake_accel_memory.pinned_bytes;
        fake_accel_begin(0);
        assert_int_equal(sar_host_copy_alloc(&memory, NULL, bytes, &host_copy), SAR_OK);
        assert_int_equal(fake_accel_memory.pinned_bytes - before, bytes);
        sar_host_copy_release(&host_copy);
    }
    end();
}

/* Unpinned memory works too. */
static void any_memory_serves(void **state)
{
    double in[COUNT], out[COUNT];
    struct sar_host_copy host_copy;
    (void)state;
    fake_accel_begin(1);
    fill(in);
    assert_int_equal(sar_host_copy_alloc(&memory, in, sizeof in, &host_copy), SAR_OK);
    assert_int_equal(fake_accel_memory.pinned, 0);
    host_copy.copy_in = true;
    assert_int_equal(sar_host_copies_read(&memory, &host_copy, 1), SAR_OK);
    memcpy(out, host_copy.host, sizeof out);
    assert_memory_equal(in, out, sizeof in);
    sar_host_copy_release(&host_copy);
    end();
}

/* During the work on a piece the next two are already queued. */
static void pieces_come_ahead(void **state)
{
    double in[COUNT];
    struct sar_host_pipeline pipe;
    (void)state;
    fake_accel_begin(0);
    fill(in);
    assert_int_equal(sar_host_pipeline_open(&pipe, &memory, &(struct sar_pipeline_args){ in, in, sizeof in },
                                            BLOCK),
                     SAR_OK);
    for (size_t k = 0; k < 10; k++) {
        assert_int_equal(sar_host_pipeline_wait(&pipe, k), SAR_OK);
        assert_int_equal(fake_accel_work.queued, k + 3 + k); /* copies to the host, and back */
        assert_true(fake_accel_work.waiting >= 2);
        assert_memory_equal(sar_host_pipeline_chunk(&pipe, k), (char *)in + k * BLOCK, BLOCK);
        assert_int_equal(sar_host_pipeline_write_back(&pipe, k), SAR_OK);
    }
    assert_int_equal(sar_host_pipeline_close(&pipe), SAR_OK);
    end();
}

/* Copy the elements of `in` to the host, and write them to `out`. */
static enum sar_status copy_in_and_out(const double *in, double *out)
{
    static uint32_t marked[COUNT];
    struct sar_nonzero_mask marks = { marked, 0 };
    struct sar_arena arena = { 0 };
    struct sar_d2h_copy arrival = { .arrived = 0 };
    struct sar_pack_args load = { &memory, &shape, (void *)(uintptr_t)in, &marks, &arena, BLOCK };
    struct sar_scatter_dst to = { &memory, &shape, out, BLOCK };
    for (uint32_t i = 0; i < COUNT; i++)
        if (in[i] != 0)
            marked[marks.nnz++] = i;
    enum sar_status status = sar_device_compact(&load, &arrival);
    struct sar_spvec runs[] = { { arrival.host.index, arrival.host.value, 0 }, arrival.host };
    if (status == SAR_OK)
        status = sar_device_scatter(&to, &(struct sar_scatter_src){ .vecs = runs, .n = 2, .clear = true });
    if (arrival.ctx.accelerator != NULL)
        sar_d2h_copy_close(&arrival);
    sar_arena_free(&arena);
    return status;
}

static void elements_pass(void **state)
{
    double in[COUNT], out[COUNT];
    (void)state;
    for (int round = 0; round < 4; round++) {
        struct fake_accel_memory before = fake_accel_memory;
        fake_accel_begin(0);
        fill(in);
        memset(out, 1, sizeof out);
        if (round == 2)
            memset(in, 0, sizeof in);
        assert_int_equal(copy_in_and_out(in, out), SAR_OK);
        assert_memory_equal(in, out, sizeof in);
        assert_true(round == 0 || fake_accel_memory.pinned == before.pinned);
        assert_true(round == 0 || fake_accel_memory.open == before.open);
        assert_true(round == 2 ||
                    fake_accel_work.most_waiting > 2 * SAR_PINNED_RING_BLOCKS); /* two copies a block */
    }
    end();
    assert_int_equal(fake_accel_memory.pinned, 0);
}

/* One function fails; the next call succeeds. */
static void each_function_may_fail(void **state)
{
    double in[COUNT], out[COUNT];
    int failures = 0;
    (void)state;
    for (int which = 0; which < 2; which++) {
        for (int n = 1, last = n; n <= last; n++) {
            fake_accel_begin(n);
            fill(in);
            enum sar_status status = which == 0 ? copy_in_and_out(in, out) : double_all(in, out, BLOCK);
            last = fake_accel_work.functions >= n ? n + 1 : n;
            if (status == SAR_OK && which == 0)
                assert_memory_equal(in, out, sizeof in);
            failures += status != SAR_OK;
            fake_accel_begin(0);
            assert_int_equal(copy_in_and_out(in, out), SAR_OK);
            assert_memory_equal(in, out, sizeof in);
            end();
        }
    }
    assert_true(failures > 40);
}

static int begin_all(void **state)
{
    (void)state;
    fake_accelerator.compact = compact;
    fake_accelerator.scatter = scatter;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_pass),       cmocka_unit_test(powers_of_two_fit),
        cmocka_unit_test(any_memory_serves), cmocka_unit_test(pieces_come_ahead),
        cmocka_unit_test(elements_pass),     cmocka_unit_test(each_function_may_fail),
    };
    return cmocka_run_group_tests(tests, begin_all, fake_accel_free_lost);
}
