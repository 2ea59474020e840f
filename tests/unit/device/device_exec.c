/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests payloads to and from a device, on an accelerator that delays its work. Checks the order of kernels
 * and copies, the memory of messages, the amount of pinned memory, and that nothing leaks if any one function
 * fails. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "device/exec.h"
#include "fake_accelerator.h"

enum { NNZ = 100, BYTES = NNZ * (int)sizeof(float), MOST = 1 << 18 };

static int kernels_done;

static void kernel(const struct fake_accel_args *a)
{
    memcpy(a->to, a->from, BYTES);
    kernels_done++;
}

static enum sar_status add_kernel(void *stream, void *to, const void *from)
{
    return fake_accel_queue(stream, kernel, &(struct fake_accel_args){ .to = to, .from = from });
}

/* A payload is a vector's values. */
static enum sar_status encode(const struct sar_device_vec *vector, const struct sar_spvec *run,
                              const struct sar_encoded *payload)
{
    return add_kernel(vector->stream, payload->memory, run->value);
}

static enum sar_status decode(const struct sar_device_vec *vector, const struct sar_encoded *payload,
                              struct sar_spvec *run, struct sar_device_flags *flags)
{
    run->value = payload->memory;
    (void)flags;
    return add_kernel(vector->stream, run->index, payload->memory);
}

static int a_stream;
static const struct sar_device_ctx memory = { &fake_accelerator, 0, &a_stream };
static const struct sar_vec_desc shape = {
    .count = NNZ, .element_size = sizeof(float), .index_size = sizeof(uint32_t), .row_len = 1
};

static struct sar_arena turns[SAR_EXEC_ARENAS], arena; /* kept from call to call */
static float vectors[8][NNZ];

static void begin(struct sar_device_exec *worker, int refuse)
{
    fake_accel_begin(refuse);
    kernels_done = 0;
    sar_device_exec_open(worker, &memory, &arena, turns, MOST);
    for (int v = 0; v < 8; v++)
        for (int i = 0; i < NNZ; i++)
            vectors[v][i] = (float)(v * NNZ + i);
}

static void end(struct sar_device_exec *worker)
{
    sar_device_exec_close(worker);
    sar_arena_reset(&arena);
}

static int clean_up(void **state)
{
    (void)state;
    sar_arena_free(&arena);
    fake_accel_end();
    assert_int_equal(fake_accel_memory.open, 0); /* all is released */
    return 0;
}

static enum sar_status message(struct sar_device_exec *worker, struct sar_encoded *payload)
{
    *payload = (struct sar_encoded){ SAR_CODEC_COO, NULL, BYTES, NNZ };
    return sar_arena_alloc(worker->msg_arena, 1, BYTES, &payload->memory);
}

static enum sar_status send_out(struct sar_device_exec *worker, int v, struct sar_encoded *payload)
{
    struct sar_spvec run = { NULL, vectors[v], NNZ };
    SAR_TRY(message(worker, payload));
    return sar_device_exec_encode(worker, &shape, &run, payload);
}

/* A wait for a payload does not wait for later kernels. */
static void payloads_leave_one_by_one(void **state)
{
    struct sar_device_exec worker;
    struct sar_encoded payload[4];
    (void)state;
    begin(&worker, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(send_out(&worker, i, &payload[i]), SAR_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sar_device_exec_wait_encoded(&worker, payload[i].memory), SAR_OK);
        assert_int_equal(kernels_done, i + 1);
        assert_memory_equal(payload[i].memory, vectors[i], BYTES);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(send_out(&worker, i, &payload[i]), SAR_OK);
    assert_int_equal(sar_device_exec_wait_encoded(&worker, payload[0].memory), SAR_OK);
    assert_memory_equal(payload[0].memory, vectors[0], BYTES);
    assert_int_equal(sar_device_exec_wait(&worker), SAR_OK);
    for (int i = 0; i < 4; i++)
        assert_memory_equal(payload[i].memory, vectors[i], BYTES);
    end(&worker);
}

/* The second payload is on the device before the first was decoded. */
static void payloads_come_beside_kernels(void **state)
{
    struct sar_device_exec worker;
    struct sar_encoded payload[2];
    struct sar_spvec run[2];
    (void)state;
    begin(&worker, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(message(&worker, &payload[i]), SAR_OK);
        memcpy(payload[i].memory, vectors[i], BYTES);
        assert_int_equal(sar_device_exec_decode(&worker, &shape, &payload[i], &run[i]), SAR_OK);
    }
    fake_accel_run(sar_pinned_ring_stream(worker.ring, 1));
    assert_int_equal(kernels_done, 0);
    assert_memory_equal(run[1].value, vectors[1], BYTES);
    assert_int_equal(sar_device_exec_wait(&worker), SAR_OK);
    assert_int_equal(kernels_done, 2);
    for (int i = 0; i < 2; i++)
        assert_memory_equal(run[i].index, vectors[i], BYTES);
    end(&worker);
}

static enum sar_status send_there(struct sar_device_exec *worker, int v, struct sar_encoded *payload)
{
    struct sar_spvec run = { NULL, vectors[v], NNZ };
    *payload = (struct sar_encoded){ SAR_CODEC_COO, NULL, BYTES, NNZ };
    SAR_TRY(sar_device_blocks_alloc(&worker->blocks, BYTES, &payload->memory));
    return sar_device_exec_encode_in_place(worker, &shape, &run, payload);
}

/* A payload decoded in place is waited for like a copied one; then the next call owns the memory. */
static void payloads_stay_there(void **state)
{
    struct sar_device_exec worker;
    struct sar_encoded payload[3];
    struct sar_spvec run;
    int before = fake_accel_memory.arrays_ever;
    (void)state;
    for (int round = 0; round < 3; round++) {
        begin(&worker, 0);
        for (int i = 0; i < 2; i++)
            assert_int_equal(send_there(&worker, i, &payload[i]), SAR_OK);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(sar_device_exec_wait_encoded(&worker, payload[i].memory), SAR_OK);
            assert_int_equal(kernels_done, i + 1);
            assert_memory_equal(payload[i].memory, vectors[i], BYTES);
        }
        assert_int_equal(sar_device_exec_decode_in_place(&worker, &shape, &payload[1], &run), SAR_OK);
        assert_int_equal(kernels_done, 2);
        assert_int_equal(sar_device_exec_wait(&worker), SAR_OK);
        assert_int_equal(kernels_done, 3);
        assert_memory_equal(run.index, vectors[1], BYTES);
        end(&worker);
        assert_int_equal(fake_accel_memory.arrays_ever, before + 2);
    }
}

/* Messages of some kilobytes in alternating arenas. */
static size_t take_messages(struct sar_device_exec *worker, int n)
{
    size_t are_pinned = 0;
    for (int turn = 0; turn < 2 * SAR_EXEC_ARENAS; turn++) {
        sar_device_exec_next_arena(worker, (unsigned)turn);
        for (int i = 0; i < n; i++) {
            void *piece;
            assert_int_equal(sar_arena_alloc(worker->msg_arena, 1, 4000, &piece), SAR_OK);
            memset(piece, turn, 4000);
            are_pinned += fake_accel_is_pinned(piece);
        }
    }
    return are_pinned;
}

/* The number of bytes is known after the first call. */
static void messages_are_pinned(void **state)
{
    struct sar_device_exec worker;
    size_t before = 0;
    (void)state;
    for (int round = 0; round < 5; round++) {
        before = round < 2 ? fake_accel_memory.pinned_ever : before;
        begin(&worker, 0);
        size_t are_pinned = take_messages(&worker, 10);
        assert_true(round == 0 || are_pinned == 2 * SAR_EXEC_ARENAS * 10);
        end(&worker);
    }
    assert_int_equal(fake_accel_memory.pinned_ever, before);
}

/* Memory above the limit is not pinned; finally tensors of two sizes do not release each other's memory. */
static void pinned_memory_is_bounded(void **state)
{
    struct sar_device_exec worker;
    size_t before = 0;
    (void)state;
    for (int round = 0; round < 400; round++) {
        before = round < 390 ? fake_accel_memory.pinned_ever : before;
        begin(&worker, 0);
        size_t are_pinned = take_messages(&worker, round % 2 == 0 ? 15 : 30);
        assert_true(are_pinned < 2 * SAR_EXEC_ARENAS * 30);
        end(&worker);
        assert_true(fake_accel_memory.pinned_bytes <= MOST);
    }
    assert_true(fake_accel_memory.pinned_most <= MOST && fake_accel_memory.pinned_most > MOST / 2);
    assert_int_equal(fake_accel_memory.pinned_ever, before);
}

static enum sar_status work_both_ways(struct sar_device_exec *worker)
{
    struct sar_encoded payload[2];
    struct sar_spvec run;
    for (int turn = 0; turn < 4; turn++) {
        sar_device_exec_next_arena(worker, (unsigned)turn);
        for (int i = 0; i < 2; i++)
            SAR_TRY(send_out(worker, i, &payload[i]));
        for (int i = 0; i < 2; i++)
            SAR_TRY(sar_device_exec_wait_encoded(worker, payload[i].memory));
        SAR_TRY(sar_device_exec_decode(worker, &shape, &payload[1], &run));
        SAR_TRY(sar_device_exec_wait(worker));
        assert_memory_equal(run.value, vectors[1], BYTES);
        SAR_TRY(send_there(worker, 2, &payload[0]));
        SAR_TRY(sar_device_exec_decode_in_place(worker, &shape, &payload[0], &run));
        SAR_TRY(sar_device_exec_wait(worker));
        assert_memory_equal(run.value, vectors[2], BYTES);
    }
    return SAR_OK;
}

static void each_function_may_fail(void **state)
{
    struct sar_device_exec worker;
    int failures = 0;
    (void)state;
    for (int n = 1, last = n; n <= last; n++) {
        begin(&worker, n);
        failures += work_both_ways(&worker) != SAR_OK;
        end(&worker);
        last = fake_accel_work.functions >= n ? n + 1 : n;
        begin(&worker, 0);
        assert_int_equal(work_both_ways(&worker), SAR_OK);
        end(&worker);
        clean_up(NULL);
    }
    assert_true(failures > 40);
}

static int begin_all(void **state)
{
    (void)state;
    fake_accelerator.encode = encode;
    fake_accelerator.decode = decode;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(payloads_leave_one_by_one, clean_up),
        cmocka_unit_test_teardown(payloads_come_beside_kernels, clean_up),
        cmocka_unit_test_teardown(payloads_stay_there, clean_up),
        cmocka_unit_test_teardown(messages_are_pinned, clean_up),
        cmocka_unit_test_teardown(pinned_memory_is_bounded, clean_up),
        cmocka_unit_test_teardown(each_function_may_fail, clean_up),
    };
    return cmocka_run_group_tests(tests, begin_all, fake_accel_free_lost);
}
