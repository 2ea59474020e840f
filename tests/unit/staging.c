/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that pass through a ring of pinned blocks, over a device whose work is done only when it is waited
 * for: what comes and goes, what is under way meanwhile, how much memory is pinned, and that nothing is lost
 * when any one function fails. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "device/offload.h"
#include "device/pipe.h"

enum { COUNT = 1000, BLOCK = 512, JOBS = 4096, BLOCKS_IN_ALL = 4096 };

/* Copies that are queued, in one order, and how many of them are done. */
static struct {
    void *to;
    const void *from;
    size_t bytes;
} jobs[JOBS];
static size_t queued, done, most_ahead;
static int functions, refused, pinned, opened;
static size_t pinned_last; /* bytes */

static enum sar_status function(void)
{
    return ++functions == refused ? SAR_DEVICE_FAILED : SAR_OK;
}

static void work_until(size_t last)
{
    most_ahead = queued - done > most_ahead ? queued - done : most_ahead;
    for (; done < last; done++)
        memcpy(jobs[done].to, jobs[done].from, jobs[done].bytes);
}

/* Memory that a device may still be writing to is never given back: the test does so in the end. */
static void *blocks[BLOCKS_IN_ALL];
static size_t blocks_taken;

static enum sar_status allocate_pinned(int place, size_t bytes, void **memory)
{
    (void)place;
    SAR_TRY(function());
    assert_true(blocks_taken < BLOCKS_IN_ALL);
    *memory = blocks[blocks_taken++] = aligned_alloc(64, bytes);
    pinned++;
    pinned_last = bytes;
    return SAR_OK;
}

static void release_pinned(int place, void *memory)
{
    (void)place;
    pinned--;
    for (size_t i = 0; i < blocks_taken; i++)
        if (blocks[i] == memory)
            blocks[i] = NULL;
    free(memory);
}

static int release_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < blocks_taken; i++)
        free(blocks[i]);
    return 0;
}

static enum sar_status copy(int place, void *to, const void *from, size_t bytes, void *stream)
{
    (void)place, (void)stream;
    SAR_TRY(function());
    assert_true(queued < JOBS);
    jobs[queued].to = to;
    jobs[queued].from = from;
    jobs[queued++].bytes = bytes;
    return SAR_OK;
}

static enum sar_status wait_for(int place, void *stream)
{
    (void)place, (void)stream;
    enum sar_status status = function();
    work_until(queued);
    return status;
}

static enum sar_status open_lane(int place, void **lane)
{
    (void)place;
    SAR_TRY(function());
    *lane = malloc(1);
    opened++;
    return SAR_OK;
}

static void close_lane(int place, void *lane)
{
    (void)place;
    free(lane);
    opened--;
}

static enum sar_status make_event(int place, void **event)
{
    (void)place;
    SAR_TRY(function());
    *event = calloc(1, sizeof(size_t));
    opened++;
    return SAR_OK;
}

static enum sar_status record(int place, void *event, void *stream)
{
    (void)place, (void)stream;
    SAR_TRY(function());
    *(size_t *)event = queued;
    return SAR_OK;
}

static enum sar_status follow(int place, void *event, void *stream)
{
    (void)place, (void)event, (void)stream;
    return function();
}

static enum sar_status await(int place, void *event)
{
    (void)place;
    SAR_TRY(function());
    work_until(*(size_t *)event);
    return SAR_OK;
}

static enum sar_status take(int place, size_t bytes, void *stream, void **memory)
{
    (void)place, (void)stream;
    SAR_TRY(function());
    *memory = malloc(bytes);
    opened++;
    return SAR_OK;
}

static void give_back(int place, void *memory, void *stream)
{
    (void)place, (void)stream;
    free(memory);
    opened--;
}

/* What a kernel would do, with the marks a list of indices. */
static enum sar_status compact(const struct sar_vector *vector, const struct sar_marks *marks,
                               const struct sar_run *run)
{
    SAR_TRY(function());
    for (size_t i = 0; i < marks->nnz; i++) {
        uint32_t index = ((const uint32_t *)marks->bits)[i];
        ((uint32_t *)run->index)[i] = index;
        ((double *)run->value)[i] = ((const double *)vector->buf)[index];
    }
    return SAR_OK;
}

/* Takes the run at once, since it may be changed as soon as what is queued is done. */
static enum sar_status scatter(const struct sar_vector *vector, const struct sar_run runs[], size_t n,
                               bool clear)
{
    SAR_TRY(function());
    if (clear)
        memset(vector->buf, 0, COUNT * sizeof(double));
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < runs[r].nnz; i++)
            ((double *)vector->buf)[((const uint32_t *)runs[r].index)[i]] =
                ((const double *)runs[r].value)[i];
    return SAR_OK;
}

static const struct sar_lanes lanes = { open_lane, close_lane, make_event, close_lane, record,
                                        follow,    await,      take,       give_back };
static const struct sar_accelerator accelerator = { .version = SAR_ACCELERATOR_VERSION,
                                                    .allocate_pinned = allocate_pinned,
                                                    .release_pinned = release_pinned,
                                                    .copy = copy,
                                                    .wait = wait_for,
                                                    .compact = compact,
                                                    .scatter = scatter,
                                                    .lanes = &lanes };
static const struct sar_memory memory = { &accelerator, 0, NULL };
static const struct sar_shape shape = {
    .count = COUNT, .element_size = sizeof(double), .index_size = sizeof(uint32_t), .row = 1
};

static void begin(int refuse)
{
    queued = done = most_ahead = 0;
    functions = 0;
    refused = refuse;
}

/* Nothing is open but what is kept for later calls, which goes now. */
static void end(void)
{
    begin(0);
    sar_staging_cleanup();
    sar_mirror_cleanup();
    assert_int_equal(opened, 0);
}

/* Each element doubled on the host, from one array to another or in place. */
static enum sar_status double_all(double *in, double *out, size_t piece)
{
    struct sar_pipe pipe;
    size_t each = piece / sizeof(double), n = COUNT / each + (COUNT % each != 0);
    enum sar_status status =
        sar_pipe_open(&pipe, &memory, &(struct sar_course){ in, out, COUNT * sizeof(double) }, piece);
    for (size_t k = 0; k < n && status == SAR_OK; k++) {
        status = sar_pipe_bring(&pipe, k);
        double *at = sar_pipe_piece(&pipe, k);
        for (size_t i = 0; i < each && k * each + i < COUNT && status == SAR_OK; i++)
            at[i] *= 2;
        if (status == SAR_OK)
            status = sar_pipe_send(&pipe, k);
    }
    enum sar_status closed = sar_pipe_close(&pipe);
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
        begin(0);
        fill(in);
        memset(out, 0, sizeof out);
        assert_int_equal(double_all(in, out, sizes[s]), SAR_OK);
        assert_int_equal(double_all(in, in, sizes[s]), SAR_OK);
        for (int i = 0; i < COUNT; i++)
            assert_true(out[i] == (i % 3 == 0 ? 2 * (i + 1) : 0) && in[i] == out[i]);
        assert_true(pinned <= SAR_STAGING_BLOCKS + 1);
    }
    end();
    assert_int_equal(pinned, 0);
}

/* A block has no room for anything else. */
static void powers_of_two_fit(void **state)
{
    (void)state;
    for (size_t bytes = 4096; bytes <= 1 << 16; bytes *= 2) {
        struct sar_mirror mirror;
        begin(0);
        assert_int_equal(sar_mirror_take(&memory, NULL, bytes, &mirror), SAR_OK);
        assert_int_equal(pinned_last, bytes);
        sar_mirror_release(&mirror);
    }
    end();
}

/* Memory that cannot be pinned does as well. */
static void any_memory_serves(void **state)
{
    double in[COUNT], out[COUNT];
    struct sar_mirror mirror;
    (void)state;
    begin(1);
    fill(in);
    assert_int_equal(sar_mirror_take(&memory, in, sizeof in, &mirror), SAR_OK);
    assert_int_equal(pinned, 0);
    mirror.in = true;
    assert_int_equal(sar_mirrors_read(&memory, &mirror, 1), SAR_OK);
    memcpy(out, mirror.host, sizeof out);
    assert_memory_equal(in, out, sizeof in);
    sar_mirror_release(&mirror);
    end();
}

/* While a piece is worked on the next two are queued already. */
static void pieces_come_ahead(void **state)
{
    double in[COUNT];
    struct sar_pipe pipe;
    (void)state;
    begin(0);
    fill(in);
    assert_int_equal(sar_pipe_open(&pipe, &memory, &(struct sar_course){ in, in, sizeof in }, BLOCK), SAR_OK);
    for (size_t k = 0; k < 10; k++) {
        assert_int_equal(sar_pipe_bring(&pipe, k), SAR_OK);
        assert_true(done <= queued - 2);
        assert_memory_equal(sar_pipe_piece(&pipe, k), (char *)in + k * BLOCK, BLOCK);
        assert_int_equal(sar_pipe_send(&pipe, k), SAR_OK);
    }
    assert_int_equal(sar_pipe_close(&pipe), SAR_OK);
    end();
}

/* The elements of `in` come to the host, and go to `out`. */
static enum sar_status bring_and_write(const double *in, double *out)
{
    static uint32_t marked[COUNT];
    struct sar_marks marks = { marked, 0 };
    struct sar_arena arena = { 0 };
    struct sar_arrival arrival = { .here = 0 };
    struct sar_load load = { &memory, &shape, (void *)(uintptr_t)in, &marks, &arena, BLOCK };
    struct sar_destination to = { &memory, &shape, out, BLOCK };
    for (uint32_t i = 0; i < COUNT; i++)
        if (in[i] != 0)
            marked[marks.nnz++] = i;
    enum sar_status status = sar_offload_compact(&load, &arrival);
    struct sar_run runs[] = { { arrival.run.index, arrival.run.value, 0 }, arrival.run };
    if (status == SAR_OK)
        status = sar_offload_write(&to, &(struct sar_delivery){ .runs = runs, .n = 2, .clear = true });
    if (arrival.memory.accelerator != NULL)
        sar_arrival_end(&arrival);
    sar_arena_free(&arena);
    return status;
}

static void elements_pass(void **state)
{
    double in[COUNT], out[COUNT];
    (void)state;
    for (int round = 0; round < 4; round++) {
        int before = pinned + opened;
        begin(0);
        fill(in);
        memset(out, 1, sizeof out);
        if (round == 2)
            memset(in, 0, sizeof in);
        assert_int_equal(bring_and_write(in, out), SAR_OK);
        assert_memory_equal(in, out, sizeof in);
        assert_true(round == 0 || pinned + opened == before);
        assert_true(round != 0 || most_ahead > 2);
    }
    end();
    assert_int_equal(pinned, 0);
}

/* One function fails, the next time all is well. */
static void each_function_may_fail(void **state)
{
    double in[COUNT], out[COUNT];
    int failures = 0;
    (void)state;
    for (int which = 0; which < 2; which++) {
        for (int n = 1, last = n; n <= last; n++) {
            begin(n);
            fill(in);
            enum sar_status status = which == 0 ? bring_and_write(in, out) : double_all(in, out, BLOCK);
            last = functions >= n ? n + 1 : n;
            if (status == SAR_OK && which == 0)
                assert_memory_equal(in, out, sizeof in);
            failures += status != SAR_OK;
            begin(0);
            assert_int_equal(bring_and_write(in, out), SAR_OK);
            assert_memory_equal(in, out, sizeof in);
            end();
        }
    }
    assert_true(failures > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_pass),       cmocka_unit_test(powers_of_two_fit),
        cmocka_unit_test(any_memory_serves), cmocka_unit_test(pieces_come_ahead),
        cmocka_unit_test(elements_pass),     cmocka_unit_test(each_function_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, release_all);
}
