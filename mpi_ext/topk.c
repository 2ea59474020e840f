/* SPDX-License-Identifier: BSD-3-Clause */
/* Top-k sparsification: what comes before an allreduce. Arrays are worked on where they are, all of a call on
 * the host or all on a device. */

#include "plan/topk.h"

#include <math.h>

#include "device/offload.h"
#include "mpi_ext/arguments.h"
#include "mpi_ext/attribute.h"
#include "mpi_ext/error.h"
#include "mpi_ext/memory.h"
#include "mpi_ext/types.h"
#include "plan/progress.h"
#include "tensor/magnitude.h"

/* Where selected elements go. */
struct output {
    enum sar_index_type type;
    size_t capacity;
    void *indices, *values;
    MPI_Count *nnz;
};

static void blame_unless(bool good, struct sar_call *call, enum sar_status status, double value)
{
    if (!good)
        sar_blame(&call->verdict, status, sar_real_bits(value));
}

/* An array of which elements are read or written. */
static void look_at_array(struct sar_call *call, const void *array, size_t elements, enum sar_status status)
{
    if (elements == 0)
        return;
    sar_look_at_array(&call->verdict, array, status);
    sar_memory_look_at(&call->verdict, &call->memory, array, status);
}

/* Where the first array is, the others are to be. */
static void look_at_vector(struct sar_call *call, int64_t function, const void *first, MPI_Count count,
                           MPI_Datatype datatype)
{
    struct sar_datatype type = sar_datatype_look(datatype);
    int64_t bytes;
    *call = (struct sar_call){
        .field = { [SAR_FIELD_CALL] = function, [SAR_FIELD_DATATYPE] = type.valid ? type.number : 0 },
        .narrow = type.valid && type.narrow,
        .shape = { .row = 1, .element_size = type.extent, .base = type.base }
    };
    bool floats = type.native && sar_magnitude_defined(type.base);
    if (!type.valid || type.row != 1 || !(floats || type.narrow))
        sar_blame(&call->verdict, SAR_BAD_DATATYPE, call->field[SAR_FIELD_DATATYPE]);
    if (count < 0 || __builtin_mul_overflow(count, type.extent, &bytes))
        sar_blame(&call->verdict, SAR_BAD_COUNT, (int64_t)count);
    call->shape.count = (uint64_t)(count > 0 ? count : 0);
    call->shape.index_size = sar_index_size(call->shape.count);
    if (count > 0)
        sar_memory_look(call, first, function == SAR_CALL_DGC ? SAR_BAD_GRADIENT : SAR_BAD_BUF);
}

static bool is_remote(const struct sar_call *call)
{
    return call->memory.accelerator != NULL;
}

static void look_at_output(struct sar_call *call, MPI_Datatype indextype, MPI_Count capacity,
                           struct output *out)
{
    sar_look_at_index_type(call, indextype, &out->type);
    if (capacity < 0)
        sar_blame(&call->verdict, SAR_BAD_CAPACITY, (int64_t)capacity);
    uint64_t most = capacity > 0 ? (uint64_t)capacity : 0;
    out->capacity = (size_t)(most < call->shape.count ? most : call->shape.count);
    look_at_array(call, out->indices, out->capacity, SAR_BAD_INDICES);
    look_at_array(call, out->values, out->capacity, SAR_BAD_VALUES);
    if (out->nnz == NULL)
        sar_blame(&call->verdict, SAR_BAD_OUTPUT, SAR_OUTPUT_NNZ);
}

/* An array of the call, as far as it is used. */
struct array {
    const void *begin;
    size_t bytes;
    enum sar_status status; /* that blames it */
};

static bool overlap(const struct array *a, const struct array *b)
{
    uintptr_t one = (uintptr_t)a->begin, other = (uintptr_t)b->begin;
    if (a->bytes == 0 || b->bytes == 0)
        return false;
    return one < other ? a->bytes > other - one : b->bytes > one - other;
}

/* Each array is memory of its own. Outside a step there are neither gradient nor velocity. */
static void look_at_overlap(struct sar_call *call, const struct sar_dgc *of, const struct output *out)
{
    if (call->verdict.status != SAR_OK)
        return;
    size_t bytes = (size_t)call->shape.count * call->shape.element_size;
    const struct array arrays[] = {
        { of->gradient, of->gradient == NULL ? 0 : bytes, SAR_BAD_GRADIENT },
        { of->velocity, of->velocity == NULL ? 0 : bytes, SAR_BAD_VELOCITY },
        { of->values, bytes, SAR_BAD_RESIDUAL },
        { out->indices, out->capacity * sar_index_type_size(out->type), SAR_BAD_INDICES },
        { out->values, out->capacity * call->shape.element_size, SAR_BAD_VALUES },
    };
    for (size_t i = 1; i < sizeof arrays / sizeof *arrays; i++)
        for (size_t j = 0; j < i; j++)
            if (overlap(&arrays[i], &arrays[j]))
                sar_blame(&call->verdict, arrays[i].status, SAR_FAULT_OVERLAPPING);
}

static void look_at_share(struct sar_call *call, const struct sar_share *share)
{
    blame_unless(share->ratio > 0 && share->ratio <= 1, call, SAR_BAD_RATIO, share->ratio);
    blame_unless(share->sample > 0 && share->sample <= 1, call, SAR_BAD_SAMPLE, share->sample);
}

/* Numbers of 16 bits are known once the knobs are, and so is the stream. */
static void interpret(struct sar_call *call, const struct sar_context *context, struct sar_dgc *of)
{
    static const enum sar_base bases[] = { [SAR_ELEMENT_BF16] = SAR_BF16, [SAR_ELEMENT_FP16] = SAR_FP16 };
    int element = context == NULL ? SAR_ELEMENT_INTEGER : context->policy.config.element;
    sar_memory_use_stream(call, context == NULL ? NULL : context->stream);
    if (call->narrow && element == SAR_ELEMENT_INTEGER)
        sar_blame(&call->verdict, SAR_BAD_DATATYPE, call->field[SAR_FIELD_DATATYPE]);
    else if (call->narrow)
        call->shape.base = bases[element];
    of->base = call->shape.base;
    of->count = call->shape.count;
}

static void deliver(const struct sar_topk *topk, const struct output *out)
{
    const struct sar_run *run = &topk->run;
    unsigned size = sar_index_type_size(out->type);
    for (size_t i = 0; i < run->nnz; i++)
        sar_index_set(out->indices, size, i, sar_index_get(run->index, topk->shape.index_size, i));
    if (run->nnz > 0)
        memcpy(out->values, run->value, run->nnz * topk->shape.element_size);
    *out->nnz = (MPI_Count)run->nnz;
}

int PMPIX_Sparse_topk_threshold(const void *buf, MPI_Count count, MPI_Datatype datatype, double ratio,
                                double sample, int seed, MPI_Comm comm, double *threshold)
{
    static const char function[] = "MPIX_Sparse_topk_threshold";
    struct sar_context *context;
    struct sar_call call;
    struct sar_share share = { ratio, sample, (uint32_t)seed };
    struct sar_dgc of = { .values = (void *)(uintptr_t)buf };
    uint64_t least;
    look_at_vector(&call, SAR_CALL_TOPK, buf, count, datatype);
    look_at_array(&call, buf, (size_t)call.shape.count, SAR_BAD_BUF);
    look_at_share(&call, &share);
    if (threshold == NULL)
        sar_blame(&call.verdict, SAR_BAD_OUTPUT, SAR_OUTPUT_THRESHOLD);
    int code = sar_attribute_need(comm, function, &context);
    if (code != MPI_SUCCESS)
        return code;
    interpret(&call, context, &of);
    sar_progress_drain(context);
    sar_topk_find(context, &call, &of, &share, &least);
    if (call.verdict.status == SAR_OK)
        *threshold = sar_magnitude_number(of.base, least);
    return sar_raise(comm, function, &call.verdict, NULL);
}

/* On a device. Elements go from there to the caller's arrays, which are there too. */
static enum sar_status select_remote(const struct sar_call *call, const struct sar_dgc *of, uint64_t least,
                                     const struct output *out)
{
    struct sar_cutoff cutoff = { least, out->capacity };
    struct sar_shape shape = call->shape;
    struct sar_run run = { out->indices, out->values, out->capacity };
    shape.index_size = sar_index_type_size(out->type);
    SAR_TRY(sar_offload_select(&call->memory, &shape, of, &cutoff, &run));
    *out->nnz = (MPI_Count)run.nnz;
    return SAR_OK;
}

/* On success, the elements are delivered. */
static enum sar_status select_alone(const struct sar_call *call, const struct sar_dgc *of, uint64_t least,
                                    const struct output *out)
{
    struct sar_arena arena = { 0 };
    struct sar_topk topk;
    enum sar_status status = sar_topk_open(&call->shape, out->capacity, &arena, &topk);
    if (status == SAR_OK) {
        sar_topk_run(&topk, of, least);
        deliver(&topk, out);
    }
    sar_arena_free(&arena);
    return status;
}

int PMPIX_Sparse_topk_select(const void *buf, MPI_Count count, MPI_Datatype datatype, double threshold,
                             MPI_Comm comm, MPI_Datatype indextype, MPI_Count capacity, void *indices,
                             void *values, MPI_Count *nnz)
{
    static const char function[] = "MPIX_Sparse_topk_select";
    struct sar_context *context = NULL;
    struct sar_call call;
    struct output out = { .indices = indices, .values = values, .nnz = nnz };
    struct sar_dgc of = { .values = (void *)(uintptr_t)buf };
    char sentence[SAR_SENTENCE];
    struct sar_verdict verdict = { .status = sar_attribute_peek(comm, &context, sentence) };
    if (verdict.status != SAR_OK)
        return sar_raise(verdict.status == SAR_BAD_COMM ? MPI_COMM_NULL : comm, function, &verdict, sentence);
    look_at_vector(&call, SAR_CALL_TOPK, buf, count, datatype);
    look_at_array(&call, buf, (size_t)call.shape.count, SAR_BAD_BUF);
    blame_unless(threshold >= 0, &call, SAR_BAD_THRESHOLD, threshold);
    look_at_output(&call, indextype, capacity, &out);
    look_at_overlap(&call, &of, &out);
    interpret(&call, context, &of);
    if (call.verdict.status == SAR_OK) {
        uint64_t least = sar_magnitude_from(of.base, threshold);
        call.verdict.status =
            is_remote(&call) ? select_remote(&call, &of, least, &out) : select_alone(&call, &of, least, &out);
    }
    return sar_raise(comm, function, &call.verdict, NULL);
}

static void look_at_how(struct sar_call *call, const MPIX_Sparse_dgc_t *how, struct sar_dgc *of,
                        struct sar_share *share)
{
    if (how == NULL) {
        sar_blame(&call->verdict, SAR_BAD_HOW, SAR_FAULT_NULL);
        return;
    }
    *share = (struct sar_share){ how->ratio, how->sample, (uint32_t)how->seed };
    look_at_share(call, share);
    blame_unless(how->momentum >= 0 && how->momentum < 1, call, SAR_BAD_MOMENTUM, how->momentum);
    blame_unless(isfinite(how->scale), call, SAR_BAD_SCALE, how->scale);
    of->momentum = how->momentum;
    of->scale = how->scale;
    of->masking = how->masking != 0;
}

static void look_at_tensor(struct sar_call *call, const struct sar_dgc *of)
{
    size_t count = (size_t)call->shape.count;
    look_at_array(call, of->gradient, count, SAR_BAD_GRADIENT);
    look_at_array(call, of->velocity, count, SAR_BAD_VELOCITY);
    look_at_array(call, of->values, count, SAR_BAD_RESIDUAL);
}

/* Once all ranks' arguments are looked at. */
static void step_here(struct sar_context *context, struct sar_call *call, const struct sar_dgc *of,
                      const struct sar_share *share, const struct output *out)
{
    struct sar_topk topk;
    sar_topk_step(context, call, of, share, out->capacity, &topk);
    if (call->verdict.status != SAR_OK)
        return;
    deliver(&topk, out);
    sar_dgc_clear(of, &topk.shape, &topk.run);
}

static void step_remote(struct sar_context *context, struct sar_call *call, const struct sar_dgc *of,
                        const struct sar_share *share, const struct output *out)
{
    uint64_t least;
    sar_topk_find(context, call, of, share, &least);
    if (call->verdict.status == SAR_OK)
        call->verdict.status = select_remote(call, of, least, out);
}

int PMPIX_Sparse_dgc_step(const void *gradient, void *velocity, void *residual, MPI_Count count,
                          MPI_Datatype datatype, const MPIX_Sparse_dgc_t *how, MPI_Comm comm,
                          MPI_Datatype indextype, MPI_Count capacity, void *indices, void *values,
                          MPI_Count *nnz)
{
    static const char function[] = "MPIX_Sparse_dgc_step";
    struct sar_context *context;
    struct sar_call call;
    struct sar_share share = { 0 };
    struct output out = { .indices = indices, .values = values, .nnz = nnz };
    struct sar_dgc of = { .values = residual, .gradient = gradient, .velocity = velocity };
    look_at_vector(&call, SAR_CALL_DGC, gradient, count, datatype);
    look_at_tensor(&call, &of);
    look_at_how(&call, how, &of, &share);
    look_at_output(&call, indextype, capacity, &out);
    look_at_overlap(&call, &of, &out);
    int code = sar_attribute_need(comm, function, &context);
    if (code != MPI_SUCCESS)
        return code;
    interpret(&call, context, &of);
    sar_progress_drain(context);
    (is_remote(&call) ? step_remote : step_here)(context, &call, &of, &share, &out);
    return sar_raise(comm, function, &call.verdict, NULL);
}

#pragma weak MPIX_Sparse_topk_threshold = PMPIX_Sparse_topk_threshold
#pragma weak MPIX_Sparse_topk_select = PMPIX_Sparse_topk_select
#pragma weak MPIX_Sparse_dgc_step = PMPIX_Sparse_dgc_step
