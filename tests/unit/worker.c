/* SPDX-License-Identifier: BSD-3-Clause */
/* Payloads on their way from and to a device, over one whose streams do nothing until somebody waits for
 * them: what kernels and copies wait for each other, in which memory messages are, how much of it is pinned,
 * and that nothing is lost when any one function fails. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "device/worker.h"

enum { JOBS = 1024, ARRAYS = 1024, NNZ = 100, BYTES = NNZ * (int)sizeof(float), MOST = 1 << 18 };

/* Work in a stream: a copy, by a kernel or not; or, with bytes of 0, a wait for another stream. */
static struct job {
    void *stream, *to, *other;
    const void *from;
    size_t bytes, until;
    bool is_kernel, done;
} jobs[JOBS];
static size_t queued;

struct event {
    void *stream;
    size_t until;
};

static int functions, refused, opened, kernels_done;
static struct array {
    unsigned char *memory;
    size_t bytes;
} pinned[ARRAYS]; /* whatever was, since a device may still be writing to it */
static size_t pinned_n, pinned_now, pinned_most;
static int streams[3];

static enum sar_status function(void)
{
    return ++functions == refused ? SAR_DEVICE_FAILED : SAR_OK;
}

/* All that is in a stream among the first jobs, and what it waits for. */
static void work(void *stream, size_t until)
{
    for (size_t i = 0; i < until; i++) {
        struct job *job = &jobs[i];
        if (job->stream != stream || job->done)
            continue;
        if (job->bytes == 0)
            work(job->other, job->until);
        else
            memcpy(job->to, job->from, job->bytes);
        kernels_done += job->is_kernel;
        job->done = true;
    }
}

static enum sar_status add(struct job job)
{
    SAR_TRY(function());
    assert_true(queued < JOBS);
    jobs[queued++] = job;
    return SAR_OK;
}

static enum sar_status allocate_pinned(int place, size_t bytes, void **memory)
{
    (void)place;
    SAR_TRY(function());
    assert_true(pinned_n < ARRAYS);
    *memory = pinned[pinned_n].memory = aligned_alloc(64, bytes);
    pinned[pinned_n++].bytes = bytes;
    pinned_now += bytes;
    pinned_most = pinned_now > pinned_most ? pinned_now : pinned_most;
    return SAR_OK;
}

static void release_pinned(int place, void *memory)
{
    (void)place;
    for (struct array *a = pinned; a < pinned + pinned_n; a++) {
        pinned_now -= a->memory == memory ? a->bytes : 0;
        a->memory = a->memory == memory ? NULL : a->memory;
    }
    free(memory);
}

static bool is_pinned(const void *at)
{
    const unsigned char *byte = at;
    for (const struct array *a = pinned; a < pinned + pinned_n; a++)
        if (a->memory != NULL && byte >= a->memory && byte < a->memory + a->bytes)
            return true;
    return false;
}

static enum sar_status copy(int place, void *to, const void *from, size_t bytes, void *stream)
{
    (void)place;
    return add((struct job){ .stream = stream, .to = to, .from = from, .bytes = bytes });
}

static enum sar_status wait_for(int place, void *stream)
{
    (void)place;
    work(stream, queued);
    return function();
}

static enum sar_status open_lane(int place, void **lane)
{
    (void)place;
    SAR_TRY(function());
    *lane = calloc(1, sizeof(struct event));
    opened++;
    return SAR_OK;
}

static void close_lane(int place, void *lane)
{
    (void)place;
    free(lane);
    opened--;
}

static enum sar_status record(int place, void *event, void *stream)
{
    (void)place;
    *(struct event *)event = (struct event){ stream, queued };
    return function();
}

static enum sar_status follow(int place, void *event, void *stream)
{
    const struct event *of = event;
    (void)place;
    return add((struct job){ .stream = stream, .other = of->stream, .until = of->until });
}

static enum sar_status await(int place, void *event)
{
    const struct event *of = event;
    (void)place;
    SAR_TRY(function());
    work(of->stream, of->until);
    return SAR_OK;
}

static enum sar_status take(int place, size_t bytes, void *stream, void **memory)
{
    (void)place, (void)stream;
    SAR_TRY(function());
    opened++;
    *memory = malloc(bytes);
    return SAR_OK;
}

/* Behind what is queued in that stream. */
static void give_back(int place, void *memory, void *stream)
{
    (void)place;
    work(stream, queued);
    free(memory);
    opened--;
}

static enum sar_status add_kernel(void *stream, void *to, const void *from)
{
    return add((struct job){ .stream = stream, .to = to, .from = from, .bytes = BYTES, .is_kernel = true });
}

/* A payload is a run's values. */
static enum sar_status encode(const struct sar_vector *vector, const struct sar_run *run,
                              const struct sar_payload *payload)
{
    return add_kernel(vector->stream, payload->memory, run->value);
}

static enum sar_status decode(const struct sar_vector *vector, const struct sar_payload *payload,
                              struct sar_run *run, struct sar_findings *findings)
{
    run->value = payload->memory;
    (void)findings;
    return add_kernel(vector->stream, run->index, payload->memory);
}

static const struct sar_lanes lanes = { open_lane, close_lane, open_lane, close_lane, record,
                                        follow,    await,      take,      give_back };
static const struct sar_accelerator accelerator = { .version = SAR_ACCELERATOR_VERSION,
                                                    .allocate_pinned = allocate_pinned,
                                                    .release_pinned = release_pinned,
                                                    .copy = copy,
                                                    .wait = wait_for,
                                                    .encode = encode,
                                                    .decode = decode,
                                                    .lanes = &lanes };
static const struct sar_memory memory = { &accelerator, 0, &streams[0] };
static const struct sar_shape shape = {
    .count = NNZ, .element_size = sizeof(float), .index_size = sizeof(uint32_t), .row = 1
};

static struct sar_arena turns[SAR_WORKER_TURNS], arena; /* these stay from call to call */
static float vectors[8][NNZ];

static void begin(struct sar_worker *worker, int refuse)
{
    queued = 0;
    kernels_done = functions = 0;
    refused = refuse;
    sar_worker_open(worker, &memory, &arena, turns, MOST);
    for (int v = 0; v < 8; v++)
        for (int i = 0; i < NNZ; i++)
            vectors[v][i] = (float)(v * NNZ + i);
}

static void end(struct sar_worker *worker)
{
    sar_worker_end(worker);
    sar_arena_reset(&arena);
}

static int clean_up(void **state)
{
    (void)state;
    refused = 0;
    sar_arena_free(&arena);
    sar_staging_cleanup();
    sar_mirror_cleanup();
    assert_int_equal(opened, 0); /* nothing is left */
    return 0;
}

static int free_lost(void **state)
{
    (void)state;
    for (size_t i = 0; i < pinned_n; i++)
        free(pinned[i].memory);
    return 0;
}

static enum sar_status message(struct sar_worker *worker, struct sar_payload *payload)
{
    *payload = (struct sar_payload){ SAR_PACKING_COO, NULL, BYTES, NNZ };
    return sar_arena_take(worker->messages, 1, BYTES, &payload->memory);
}

static enum sar_status send_out(struct sar_worker *worker, int v, struct sar_payload *payload)
{
    struct sar_run run = { NULL, vectors[v], NNZ };
    SAR_TRY(message(worker, payload));
    return sar_worker_encode(worker, &shape, &run, payload);
}

/* Whoever waits for a payload waits for no kernel behind it. */
static void payloads_leave_one_by_one(void **state)
{
    struct sar_worker worker;
    struct sar_payload payload[4];
    (void)state;
    begin(&worker, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(send_out(&worker, i, &payload[i]), SAR_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sar_worker_await(&worker, payload[i].memory), SAR_OK);
        assert_int_equal(kernels_done, i + 1);
        assert_memory_equal(payload[i].memory, vectors[i], BYTES);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(send_out(&worker, i, &payload[i]), SAR_OK);
    assert_int_equal(sar_worker_await(&worker, payload[0].memory), SAR_OK);
    assert_memory_equal(payload[0].memory, vectors[0], BYTES);
    assert_int_equal(sar_worker_wait(&worker), SAR_OK);
    for (int i = 0; i < 4; i++)
        assert_memory_equal(payload[i].memory, vectors[i], BYTES);
    end(&worker);
}

/* The second one is on the device before the first was decoded. */
static void payloads_come_beside_kernels(void **state)
{
    struct sar_worker worker;
    struct sar_payload payload[2];
    struct sar_run run[2];
    (void)state;
    begin(&worker, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(message(&worker, &payload[i]), SAR_OK);
        memcpy(payload[i].memory, vectors[i], BYTES);
        assert_int_equal(sar_worker_decode(&worker, &shape, &payload[i], &run[i]), SAR_OK);
    }
    work(sar_staging_lane(worker.lanes, 1), queued);
    assert_int_equal(kernels_done, 0);
    assert_memory_equal(run[1].value, vectors[1], BYTES);
    assert_int_equal(sar_worker_wait(&worker), SAR_OK);
    assert_int_equal(kernels_done, 2);
    for (int i = 0; i < 2; i++)
        assert_memory_equal(run[i].index, vectors[i], BYTES);
    end(&worker);
}

/* Messages of a few turns, each of some kilobytes. */
static size_t take_messages(struct sar_worker *worker, int n)
{
    size_t are_pinned = 0;
    for (int turn = 0; turn < 2 * SAR_WORKER_TURNS; turn++) {
        sar_worker_turn(worker, (unsigned)turn);
        for (int i = 0; i < n; i++) {
            void *piece;
            assert_int_equal(sar_arena_take(worker->messages, 1, 4000, &piece), SAR_OK);
            memset(piece, turn, 4000);
            are_pinned += is_pinned(piece);
        }
    }
    return are_pinned;
}

/* How many bytes these are is known after the first call. */
static void messages_are_pinned(void **state)
{
    struct sar_worker worker;
    size_t before = 0;
    (void)state;
    for (int round = 0; round < 5; round++) {
        before = round < 2 ? pinned_n : before;
        begin(&worker, 0);
        size_t are_pinned = take_messages(&worker, 10);
        assert_true(round == 0 || are_pinned == 2 * SAR_WORKER_TURNS * 10);
        end(&worker);
    }
    assert_int_equal(pinned_n, before);
}

/* What is beyond the bound is not pinned; in the end tensors of two sizes leave each other's memory alone. */
static void pinned_memory_is_bounded(void **state)
{
    struct sar_worker worker;
    size_t before = 0;
    (void)state;
    for (int round = 0; round < 400; round++) {
        before = round < 390 ? pinned_n : before;
        begin(&worker, 0);
        size_t are_pinned = take_messages(&worker, round % 2 == 0 ? 15 : 30);
        assert_true(are_pinned < 2 * SAR_WORKER_TURNS * 30);
        end(&worker);
        assert_true(pinned_now <= MOST);
    }
    assert_true(pinned_most <= MOST && pinned_most > MOST / 2);
    assert_int_equal(pinned_n, before);
}

static enum sar_status work_both_ways(struct sar_worker *worker)
{
    struct sar_payload payload[2];
    struct sar_run run;
    for (int turn = 0; turn < 4; turn++) {
        sar_worker_turn(worker, (unsigned)turn);
        for (int i = 0; i < 2; i++)
            SAR_TRY(send_out(worker, i, &payload[i]));
        for (int i = 0; i < 2; i++)
            SAR_TRY(sar_worker_await(worker, payload[i].memory));
        SAR_TRY(sar_worker_decode(worker, &shape, &payload[1], &run));
        SAR_TRY(sar_worker_wait(worker));
        assert_memory_equal(run.value, vectors[1], BYTES);
    }
    return SAR_OK;
}

static void each_function_may_fail(void **state)
{
    struct sar_worker worker;
    int failures = 0;
    (void)state;
    for (int n = 1, last = n; n <= last; n++) {
        begin(&worker, n);
        failures += work_both_ways(&worker) != SAR_OK;
        end(&worker);
        last = functions >= n ? n + 1 : n;
        begin(&worker, 0);
        assert_int_equal(work_both_ways(&worker), SAR_OK);
        end(&worker);
        clean_up(NULL);
    }
    assert_true(failures > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(payloads_leave_one_by_one, clean_up),
        cmocka_unit_test_teardown(payloads_come_beside_kernels, clean_up),
        cmocka_unit_test_teardown(messages_are_pinned, clean_up),
        cmocka_unit_test_teardown(pinned_memory_is_bounded, clean_up),
        cmocka_unit_test_teardown(each_function_may_fail, clean_up),
    };
    return cmocka_run_group_tests(tests, NULL, free_lost);
}
