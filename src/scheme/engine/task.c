/* SPDX-License-Identifier: BSD-3-Clause */
/* The stage loop. It runs compute and post of each stage, then waits for the messages of the stage, with
 * overlap and on_arrival meanwhile. */

#include "scheme/engine/task.h"

#include <string.h>

#include "comm/shm/group.h"
#include "device/exec.h"
#include "scheme/scheme.h"

_Static_assert((int)SAR_STEP_ARENAS == SAR_EXEC_ARENAS, "messages live as long on a device as on the host");

void sar_task_begin(struct sar_task *task)
{
    struct sar_msg_key key = { .fingerprint = task->args.fingerprint, .epoch = task->args.epoch };
    sar_msg_failure(&key, &task->exchange.failure);
    task->engine.stage = task->scheme->stages;
    task->engine.stages_run = task->args.first_phase;
    task->allreduce = (struct sar_dense_allreduce){ .collective.request = MPI_REQUEST_NULL };
    sar_exchange_begin_phase(&task->exchange, task->args.epoch, 0);
}

static bool is_end(const struct sar_stage *stage)
{
    return stage->compute == NULL && stage->post == NULL;
}

static void run_stage(struct sar_task *task)
{
    const struct sar_stage *stage = task->engine.stage;
    struct sar_exchange *exchange = &task->exchange;
    int phase = task->engine.stages_run++;
    task->engine.stage_index = (int)(stage - task->scheme->stages);
    struct sar_span span = sar_task_span(task, "compute");
    if (stage->compute != NULL && exchange->status == SAR_OK)
        sar_exchange_fail(exchange, stage->compute(task));
    if (task->device.exec != NULL)
        sar_exchange_fail(exchange, sar_device_exec_wait(task->device.exec));
    sar_task_span_end(task, &span);
    sar_exchange_begin_phase(exchange, task->args.epoch, phase);
    exchange->wake_on_any = stage->on_arrival != NULL;
    task->repeat_stage = false;
    span = sar_task_span(task, "post");
    if (stage->post != NULL)
        stage->post(task);
    sar_task_span_end(task, &span);
    task->engine.wait_span = sar_task_span(task, "wait");
    task->engine.overlap = stage->overlap;
    task->engine.on_arrival = stage->on_arrival;
    if (!task->repeat_stage)
        task->engine.stage++;
}

void sar_task_run_stages(struct sar_task *task, int n)
{
    for (int i = 0; i < n; i++)
        run_stage(task);
}

/* Advance the messages first, so that they move during the work. */
static void run_overlap(struct sar_task *task)
{
    enum sar_status (*overlap)(struct sar_task *) = task->engine.overlap;
    bool all_complete;
    task->engine.overlap = NULL;
    if (overlap == NULL || task->exchange.status != SAR_OK)
        return;
    sar_exchange_advance(&task->exchange, false, &all_complete);
    struct sar_span span = sar_task_span(task, "meanwhile");
    sar_exchange_fail(&task->exchange, overlap(task));
    sar_task_span_end(task, &span);
}

static void handle_arrivals(struct sar_task *task)
{
    task->exchange.any_arrived = false;
    if (task->engine.on_arrival != NULL && task->exchange.status == SAR_OK)
        sar_exchange_fail(&task->exchange, task->engine.on_arrival(task));
}

void sar_task_advance(struct sar_task *task, bool block, bool *done)
{
    bool all_complete, reduced;
    for (;;) {
        *done = false;
        run_overlap(task);
        sar_exchange_advance(&task->exchange, block, &all_complete);
        if (!all_complete) {
            handle_arrivals(task);
            if (!block)
                return;
            continue;
        }
        enum sar_status status = sar_dense_allreduce_advance(&task->allreduce, block, &reduced);
        sar_exchange_fail(&task->exchange, status);
        if ((status == SAR_OK && !reduced) || !sar_shm_barrier_test(task->comm, block))
            return;
        sar_task_span_end(task, &task->engine.wait_span);
        *done = is_end(task->engine.stage);
        if (*done)
            return;
        run_stage(task);
    }
}

void sar_task_span_end(const struct sar_task *task, struct sar_span *span)
{
    const struct sar_traffic *traffic = &task->exchange.traffic;
    sar_span_end(span, &(struct sar_span_context){ task->comm->id, task->args.epoch,
                                                   task->engine.stages_run - 1, task->engine.stage_index,
                                                   traffic->bytes_sent, traffic->bytes_received });
}

struct sar_vec_desc sar_task_desc(const struct sar_task *task)
{
    struct sar_vec_desc desc = task->agreed->desc;
    desc.absent_is_zero |= task->agreed->call.dense_face && task->minus_zero;
    return desc;
}

enum sar_status sar_task_alloc(struct sar_task *task, size_t n, size_t size, void *memory)
{
    void *allocated;
    SAR_TRY(sar_arena_alloc_zeroed(task->memory.call_arena, n, size, &allocated));
    memcpy(memory, &allocated, sizeof allocated);
    return SAR_OK;
}

void sar_task_next_step_arena(struct sar_task *task)
{
    unsigned index = task->memory.arena_index++;
    task->memory.step_arena = &task->memory.step_arenas[index % SAR_STEP_ARENAS];
    task->exchange.arena = task->memory.step_arena;
    sar_arena_recycle(task->memory.step_arena);
    if (task->device.exec == NULL)
        return;
    sar_device_exec_next_arena(task->device.exec, index);
    task->exchange.arena = task->device.exec->msg_arena;
}

bool sar_task_progress(struct sar_task *task)
{
    bool all_complete;
    sar_exchange_advance(&task->exchange, false, &all_complete);
    return all_complete;
}
