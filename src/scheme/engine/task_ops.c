/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on the vectors of a task: encode, decode, reduce and copy, on the host or on the device. Each
 * is a span in traces. */

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "device/exec.h"
#include "scheme/engine/task_device.h"
#include "vector/reduce.h"
#include "vector/reduce_bitmap.h"
#include "vector/spvec.h"
#include "wire/round16.h"

static void report_wire(const char **reported, const char *name)
{
    if (*reported == NULL)
        *reported = name;
    else if (strcmp(*reported, name) != 0)
        *reported = "mixed";
}

/* Counts work of the host only: a device does its work later. The dense format visits every value of the
 * part. */
static struct sar_span_work coding_work(const struct sar_task *task, const char *kind,
                                        const struct sar_wire_layout *layout, const struct sar_msg *message)
{
    struct sar_msg_header header;
    if (task->device.exec != NULL || !sar_msg_read_header(message->buffer, &header) ||
        header.wire == SAR_MSG_VALUES)
        return (struct sar_span_work){ 0 };
    const struct sar_wire *wire = sar_wires[header.wire];
    size_t size = layout->precision == SAR_PRECISION_FULL ? layout->element_size : 2 * layout->element_size;
    size_t row_len = size / (task->agreed->desc.element_size / task->agreed->desc.row_len);
    struct sar_span_work work =
        sar_span_work_make(kind, header.nnz, size,
                           wire == &sar_wire_dense ? layout->slots * row_len : layout->slots);
    work.format = wire->name;
    return work;
}

static struct sar_msg_key key_of(const struct sar_task *task, struct sar_wire_layout layout)
{
    return (struct sar_msg_key){ layout, task->args.fingerprint, task->args.epoch, task->minus_zero };
}

static enum sar_status encode(struct sar_task *task, bool pull, struct sar_wire_layout layout,
                              const struct sar_spvec *vec, struct sar_msg *message)
{
    struct sar_msg_key key = key_of(task, layout);
    const struct sar_wire *wire;
    if (task->device.exec != NULL) {
        wire = sar_agreed_device_wire(task->agreed, pull, &layout, vec->nnz);
        SAR_TRY(sar_task_encode_on_device(task, &key, wire, vec, message));
    } else {
        wire = sar_agreed_wire(task->agreed, pull, &task->wire_policy[pull], &layout, vec);
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

/* Decodes one of n messages. */
static enum sar_status decode(struct sar_task *task, struct sar_wire_layout layout,
                              const struct sar_msg *message, size_t n, struct sar_spvec *vec)
{
    struct sar_msg_key key = key_of(task, layout);
    struct sar_span span = sar_task_span(task, "decode");
    SAR_TRY(task->device.exec != NULL ? sar_task_decode_on_device(task, &key, message, vec)
                                      : sar_msg_decode(&key, message, task->memory.step_arena, vec));
    task->minus_zero |= key.user_word != 0;
    if (span.start_ns != 0)
        span.work = coding_work(task, "decode", &layout, message);
    span.work.parts = n;
    sar_task_span_end(task, &span);
    return SAR_OK;
}

enum sar_status sar_task_decode(struct sar_task *task, struct sar_wire_layout layout,
                                const struct sar_msg *message, struct sar_spvec *vec)
{
    return decode(task, layout, message, 1, vec);
}

/* The parts of one loop. */
struct parts_loop {
    struct sar_task *task;
    bool pull;
    struct sar_task_part *parts;
};

/* True if a loop over the parts is faster than loops within them. */
static bool has_loop(const struct sar_task *task, size_t bytes, size_t n)
{
    return task->device.exec == NULL && n > 1 && sar_parallel_pieces(bytes) > 1 &&
           2 * n > (size_t)sar_parallel_threads();
}

static enum sar_status encode_one(void *arg, size_t i)
{
    const struct parts_loop *loop = arg;
    struct sar_task *task = loop->task;
    struct sar_task_part *part = &loop->parts[i];
    struct sar_msg_key key = key_of(task, part->layout);
    SAR_TRY(sar_round16_spvec(&part->layout, task->memory.step_arena, part->vec));
    if (part->message == NULL)
        return SAR_OK;
    part->wire =
        sar_agreed_wire(task->agreed, loop->pull, &task->wire_policy[loop->pull], &part->layout, part->vec);
    return sar_msg_encode(&key, part->wire, part->vec, task->memory.step_arena, part->message);
}

static enum sar_status decode_one(void *arg, size_t i)
{
    const struct parts_loop *loop = arg;
    struct sar_task_part *part = &loop->parts[i];
    struct sar_msg_key key = key_of(loop->task, part->layout);
    SAR_TRY(sar_msg_decode(&key, part->message, loop->task->memory.step_arena, part->vec));
    part->minus_zero = key.user_word != 0;
    return SAR_OK;
}

static enum sar_status encode_in_turn(struct sar_task *task, bool pull, struct sar_task_part parts[],
                                      size_t n)
{
    for (size_t i = 0; i < n; i++)
        SAR_TRY(sar_task_encode(task, pull, parts[i].layout, parts[i].vec, parts[i].message));
    return SAR_OK;
}

static size_t bytes_of(const struct sar_task_part *part)
{
    return part->vec->nnz * (part->layout.element_size + part->layout.index_size);
}

size_t sar_task_parts_together(const struct sar_task *task, const struct sar_task_part *part, size_t n)
{
    size_t threads = (size_t)sar_parallel_threads(), together = n < threads ? n : threads;
    return has_loop(task, together * bytes_of(part), together) ? together : 1;
}

enum sar_status sar_task_encode_parts(struct sar_task *task, bool pull, struct sar_task_part parts[],
                                      size_t n)
{
    struct parts_loop loop = { task, pull, parts };
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += bytes_of(&parts[i]);
    if (!has_loop(task, bytes, n))
        return encode_in_turn(task, pull, parts, n);
    struct sar_span span = sar_task_span(task, "encode");
    SAR_TRY(sar_parallel_for(n, encode_one, &loop));
    for (size_t i = 0; i < n; i++)
        if (parts[i].message != NULL)
            report_wire(pull ? &task->report.pull_wire : &task->report.push_wire, parts[i].wire->name);
    sar_task_span_end(task, &span);
    return SAR_OK;
}

static enum sar_status decode_in_turn(struct sar_task *task, struct sar_task_part parts[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (n > 1)
            sar_task_progress(task);
        SAR_TRY(decode(task, parts[i].layout, parts[i].message, n, parts[i].vec));
    }
    return SAR_OK;
}

enum sar_status sar_task_decode_parts(struct sar_task *task, struct sar_task_part parts[], size_t n)
{
    struct parts_loop loop = { task, true, parts };
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += parts[i].message->bytes;
    if (!has_loop(task, bytes, n))
        return decode_in_turn(task, parts, n);
    struct sar_span span = sar_task_span(task, "decode");
    SAR_TRY(sar_parallel_for(n, decode_one, &loop));
    for (size_t i = 0; i < n; i++)
        task->minus_zero |= parts[i].minus_zero;
    sar_task_span_end(task, &span);
    return SAR_OK;
}

enum sar_status sar_task_open_bitmap(struct sar_task *task, struct sar_wire_layout layout,
                                     const struct sar_msg *message, struct sar_part_bitmap *part, bool *other)
{
    struct sar_msg_key key = key_of(task, layout);
    struct sar_msg_content content;
    SAR_TRY(sar_msg_open(&key, message, &content));
    *other = content.wire != &sar_wire_hash_bitmap || layout.precision != SAR_PRECISION_FULL;
    if (*other)
        return SAR_OK;
    task->minus_zero |= content.user_word != 0;
    return sar_hash_bitmap_open(&layout, content.payload, content.bytes, (size_t)content.nnz, part);
}

enum sar_status sar_task_hash_list(struct sar_task *task, const struct sar_spvec *vec,
                                   struct sar_list_hash *hash)
{
    *hash = (struct sar_list_hash){ 0, NULL };
    if (task->device.exec != NULL)
        return sar_device_exec_hash_indices(task->device.exec, vec, &hash->on_device);
    hash->value = sar_msg_index_hash(vec);
    return SAR_OK;
}

enum sar_status sar_task_encode_values(struct sar_task *task, struct sar_wire_layout layout,
                                       const struct sar_spvec *vec, uint32_t *index_hash,
                                       struct sar_msg *message)
{
    struct sar_msg_key key = key_of(task, layout);
    struct sar_list_hash hash;
    struct sar_span span = sar_task_span(task, "encode");
    SAR_TRY(sar_task_hash_list(task, vec, &hash));
    if (hash.on_device != NULL)
        SAR_TRY(sar_device_exec_fetch_hash(task->device.exec, hash.on_device, &hash.value));
    SAR_TRY(task->device.exec != NULL
                ? sar_task_encode_values_on_device(task, &key, vec, hash.value, message)
                : sar_msg_encode_values(&key, hash.value, vec, task->memory.step_arena, message));
    *index_hash = hash.value;
    report_wire(&task->report.pull_wire, "values");
    span.work = sar_span_work_make("copy", vec->nnz, layout.element_size, 0);
    sar_task_span_end(task, &span);
    return SAR_OK;
}

enum sar_status sar_task_decode_values(struct sar_task *task, struct sar_wire_layout layout,
                                       const struct sar_list_hash *hash, const struct sar_msg *message,
                                       struct sar_spvec *vec)
{
    struct sar_msg_key key = key_of(task, layout);
    struct sar_span span = sar_task_span(task, "decode");
    SAR_TRY(task->device.exec != NULL
                ? sar_task_decode_values_on_device(task, &key, hash, message, vec)
                : sar_msg_decode_values(&key, hash->value, message, task->memory.step_arena, vec));
    task->minus_zero |= key.user_word != 0;
    sar_task_span_end(task, &span);
    return SAR_OK;
}

enum sar_status sar_task_encode_deferral(struct sar_task *task, struct sar_wire_layout layout,
                                         const struct sar_msg_size *size, struct sar_msg *message)
{
    struct sar_msg_key key = key_of(task, layout);
    return sar_msg_encode_deferral(&key, size, task->memory.step_arena, message);
}

enum sar_status sar_task_read_size(const struct sar_task *task, struct sar_wire_layout layout,
                                   const struct sar_msg *message, struct sar_msg_size *size)
{
    struct sar_msg_key key = key_of(task, layout);
    return sar_msg_read_size(&key, message, size);
}

/* Sums of two vectors have costs of their own. */
const char *sar_task_sum_format(size_t n)
{
    return n == 2 ? "pair" : NULL;
}

struct sar_span_work sar_task_work(const char *kind, const struct sar_vec_desc *desc,
                                   const struct sar_spvec vecs[], size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += vecs[i].nnz;
    struct sar_span_work work = sar_span_work_make(kind, sum, desc->element_size, desc->count);
    work.format = sar_task_sum_format(n);
    return work;
}

static void end_reduction(const struct sar_task *task, struct sar_span *span, const char *format,
                          const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n)
{
    if (span->start_ns != 0 && task->device.exec == NULL)
        span->work = sar_task_work("reduce", desc, vecs, n);
    if (format != NULL)
        span->work.format = format;
    sar_task_span_end(task, span);
}

enum sar_status sar_task_reduce(struct sar_task *task, const struct sar_vec_desc *desc,
                                const struct sar_spvec vecs[], size_t n, struct sar_spvec *out)
{
    struct sar_span span = sar_task_span(task, "reduce");
    if (task->device.exec != NULL) {
        SAR_TRY(sar_device_exec_reduce(task->device.exec, desc, vecs, n, out));
    } else {
        SAR_TRY(sar_spvec_alloc(desc, sar_reduce_max_nnz(desc, vecs, n), task->memory.step_arena, out));
        SAR_TRY(sar_reduce(desc, vecs, n, task->memory.step_arena, out));
    }
    end_reduction(task, &span, NULL, desc, vecs, n);
    return SAR_OK;
}

/* Returns true if a message of the reduced vecs is expected to be in the format hash_bitmap. The estimate
 * assumes independent vecs; the format is chosen again when the elements are counted. */
static bool expects_bitmap(const struct sar_task *task, const struct sar_wire_layout *layout,
                           const struct sar_spvec vecs[], size_t n)
{
    double slots = (double)layout->slots, elements = 0;
    for (size_t i = 0; i < n; i++)
        elements += (double)vecs[i].nnz;
    return sar_agreed_expected_wire(task->agreed, true, &task->wire_policy[1], layout,
                                    -slots * expm1(-elements / slots)) == &sar_wire_hash_bitmap;
}

/* Writes the values and the bitmap to the payload. */
static enum sar_status write_encoded(struct sar_task *task, const struct sar_wire_layout *layout,
                                     const struct sar_bitmap_reduction *reduction, struct sar_spvec *out,
                                     struct sar_msg *message)
{
    struct sar_msg_key key = key_of(task, *layout);
    *out = (struct sar_spvec){ NULL, NULL, reduction->nnz };
    SAR_TRY(sar_msg_begin(&key, &sar_wire_hash_bitmap, out, false, task->memory.step_arena, message));
    out->value = sar_msg_payload(message);
    sar_reduce_bitmap_write(reduction, out->value,
                            (unsigned char *)out->value + reduction->nnz * layout->element_size);
    return SAR_OK;
}

enum sar_status sar_task_reduce_encoded(struct sar_task *task, const struct sar_wire_layout *layout,
                                        const struct sar_vec_desc *desc, const struct sar_spvec vecs[],
                                        size_t n, bool *clustered, struct sar_spvec *out,
                                        struct sar_msg *message)
{
    struct sar_bitmap_reduction reduction;
    message->buffer = NULL;
    if (*clustered || task->device.exec != NULL || layout->precision != SAR_PRECISION_FULL ||
        !sar_reduces_to_bitmap(desc, vecs, n) || !expects_bitmap(task, layout, vecs, n))
        return SAR_OK;
    struct sar_span span = sar_task_span(task, "reduce");
    SAR_TRY(sar_reduce_bitmap_count(desc, vecs, n, task->memory.step_arena, &reduction));
    *clustered = reduction.clustered;
    if (*clustered || sar_agreed_expected_wire(task->agreed, true, &task->wire_policy[1], layout,
                                               (double)reduction.nnz) != &sar_wire_hash_bitmap)
        return SAR_OK;
    SAR_TRY(write_encoded(task, layout, &reduction, out, message));
    report_wire(&task->report.pull_wire, sar_wire_hash_bitmap.name);
    end_reduction(task, &span, sar_wire_hash_bitmap.name, desc, vecs, n);
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
    end_reduction(task, &span, NULL, desc, vecs, n);
    return SAR_OK;
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

struct sar_vec_desc sar_task_output_desc(const struct sar_task *task)
{
    struct sar_vec_desc desc = task->agreed->desc;
    if (!task->agreed->call.dense_face)
        desc.index_size = task->output->index_size;
    return desc;
}

enum sar_status sar_task_add_output_parts(struct sar_task *task, size_t times,
                                          const struct sar_partition_map *map, const struct sar_spvec parts[])
{
    struct sar_device_exec *exec = task->device.exec;
    struct sar_vec_desc desc = sar_task_output_desc(task);
    if (exec->output_parts == NULL)
        SAR_TRY(sar_task_alloc(task, times * map->parts, sizeof *exec->output_parts, &exec->output_parts));
    task->result.parts = exec->output_parts;
    for (uint32_t p = 0; p < map->parts; p++) {
        struct sar_map_part part = { *map, p };
        struct sar_spvec vec = parts[p];
        if (vec.nnz == 0)
            continue;
        SAR_TRY(sar_device_exec_slots_to_indices(exec, &desc, &part, &vec));
        exec->output_parts[task->result.n_parts++] = vec;
        task->result.vec.nnz += vec.nnz;
    }
    return SAR_OK;
}
