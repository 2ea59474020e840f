/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on the vectors of a task: encode, decode, reduce and copy, on the host or on the device. Each
 * is a span in traces. */

#include <string.h>

#include "device/exec.h"
#include "scheme/engine/device_task.h"
#include "scheme/engine/task.h"
#include "vector/spvec.h"
#include "wire/round16.h"
#include "vector/reduce.h"

static void report_wire(const char **reported, const char *name)
{
    if (*reported == NULL)
        *reported = name;
    else if (strcmp(*reported, name) != 0)
        *reported = "mixed";
}

/* Counts work of the host only: a device does its work later. Formats that hold values of absent elements
 * visit every row of the part. */
static struct sar_span_work coding_work(const struct sar_task *task, const char *kind,
                                        const struct sar_wire_layout *layout, const struct sar_msg *message)
{
    struct sar_msg_header header;
    if (task->device.exec != NULL || !sar_msg_read_header(message->buffer, &header))
        return (struct sar_span_work){ 0 };
    const struct sar_wire *wire = sar_wires[header.wire];
    bool values = wire == &sar_wire_dense || wire == &sar_wire_block;
    struct sar_span_work work =
        sar_span_work_make(kind, header.nnz, task->agreed->desc.element_size,
                           values ? layout->slots * task->agreed->desc.row_len : layout->slots);
    work.format = wire->name;
    return work;
}

static enum sar_status encode(struct sar_task *task, bool pull, struct sar_wire_layout layout,
                              const struct sar_spvec *vec, struct sar_msg *message)
{
    struct sar_msg_key key = sar_task_msg_key(task, layout);
    const struct sar_wire *wire;
    if (task->device.exec != NULL) {
        SAR_TRY(sar_device_task_encode(task, pull, layout, vec, message, &wire));
    } else {
        wire = sar_agreed_wire(task->agreed, pull, task->preferred_wire[pull], &layout, vec);
        SAR_TRY(sar_msg_encode(&key, wire, vec, task->memory.step_arena, message));
    }
    report_wire(pull ? &task->report.pull_wire : &task->report.push_wire, wire->name);
    return SAR_OK;
}

enum sar_status sar_task_encode(struct sar_task *task, bool pull, struct sar_wire_layout layout,
                                struct sar_spvec *vec, struct sar_msg *message)
{
    struct sar_span span = sar_task_span(task, "encode");
    SAR_TRY(sar_round16_spvec(&layout, task->memory.step_arena, vec));
    if (message == NULL)
        return SAR_OK;
    SAR_TRY(encode(task, pull, layout, vec, message));
    if (span.start_ns != 0)
        span.work = coding_work(task, "encode", &layout, message);
    sar_task_span_end(task, &span);
    return SAR_OK;
}

enum sar_status sar_task_decode_message(struct sar_task *task, struct sar_wire_layout layout,
                                        const struct sar_msg *message, struct sar_spvec *vec)
{
    struct sar_msg_key key = sar_task_msg_key(task, layout);
    struct sar_span span = sar_task_span(task, "decode");
    SAR_TRY(task->device.exec != NULL ? sar_device_task_decode(task, &key, message, vec)
                                      : sar_msg_decode(&key, message, task->memory.step_arena, vec));
    task->minus_zero |= key.user_word != 0;
    if (span.start_ns != 0)
        span.work = coding_work(task, "decode", &layout, message);
    sar_task_span_end(task, &span);
    return SAR_OK;
}

enum sar_status sar_task_decode(struct sar_task *task, struct sar_wire_layout layout, int channel,
                                struct sar_spvec *vec)
{
    return sar_task_decode_message(task, layout, &task->exchange.arrived[channel], vec);
}

struct sar_span_work sar_task_work(const char *kind, const struct sar_vec_desc *desc,
                                   const struct sar_spvec vecs[], size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += vecs[i].nnz;
    return sar_span_work_make(kind, sum, desc->element_size, desc->count);
}

static void end_reduction(const struct sar_task *task, struct sar_span *span, const struct sar_vec_desc *desc,
                          const struct sar_spvec vecs[], size_t n)
{
    if (span->start_ns != 0 && task->device.exec == NULL)
        span->work = sar_task_work("reduce", desc, vecs, n);
    sar_task_span_end(task, span);
}

static enum sar_status reduce(struct sar_task *task, const struct sar_vec_desc *desc,
                              const struct sar_spvec vecs[], size_t n, struct sar_spvec *out)
{
    if (task->device.exec != NULL)
        return sar_device_exec_reduce(task->device.exec, desc, vecs, n, out);
    SAR_TRY(sar_spvec_alloc(desc, sar_reduce_max_nnz(desc, vecs, n), task->memory.step_arena, out));
    return sar_reduce(desc, vecs, n, task->memory.step_arena, out);
}

enum sar_status sar_task_reduce(struct sar_task *task, const struct sar_vec_desc *desc,
                                const struct sar_spvec vecs[], size_t n, struct sar_spvec *out)
{
    struct sar_span span = sar_task_span(task, "reduce");
    SAR_TRY(reduce(task, desc, vecs, n, out));
    end_reduction(task, &span, desc, vecs, n);
    return SAR_OK;
}

enum sar_status sar_task_reserve(struct sar_task *task, size_t nnz, struct sar_spvec *vec)
{
    struct sar_output_need need = { &task->agreed->desc, nnz, task->result.early_write };
    return task->output->reserve(task->output, &need, vec);
}

enum sar_status sar_task_reduce_to_output(struct sar_task *task, const struct sar_vec_desc *desc,
                                          const struct sar_spvec vecs[], size_t n)
{
    struct sar_spvec out = { NULL, NULL, 0 };
    struct sar_span span = sar_task_span(task, "deliver");
    SAR_TRY(sar_task_reserve(task, sar_reduce_max_nnz(desc, vecs, n), &out));
    SAR_TRY(sar_reduce(desc, vecs, n, task->memory.call_arena, &out));
    task->result.vec = out;
    end_reduction(task, &span, desc, vecs, n);
    return SAR_OK;
}

void sar_task_round_output(struct sar_task *task)
{
    const struct sar_agreed *agreed = task->agreed;
    sar_round16_values(agreed->wire.precision, task->result.vec.value,
                       task->result.vec.nnz * agreed->desc.row_len);
}

void sar_task_copy(const struct sar_task *task, const struct sar_vec_desc *desc, const struct sar_spvec *from,
                   struct sar_spvec *to, bool non_temporal)
{
    struct sar_span span = sar_task_span(task, "copy");
    if (non_temporal)
        sar_spvec_copy_nt(desc, from, to);
    else
        sar_spvec_copy(desc, from, to);
    span.work = sar_span_work_make("copy", from->nnz, desc->element_size, 0);
    sar_task_span_end(task, &span);
}

void sar_task_append(const struct sar_task *task, const struct sar_spvec *vec, unsigned index_size,
                     uint64_t base, struct sar_spvec *out)
{
    const struct sar_vec_desc *desc = &task->agreed->desc;
    struct sar_span span = sar_task_span(task, "copy");
    sar_spvec_append(desc, vec, index_size, base, out);
    span.work = sar_span_work_make("append", vec->nnz, desc->element_size, 0);
    sar_task_span_end(task, &span);
}
