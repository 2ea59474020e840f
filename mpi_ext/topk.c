/* SPDX-License-Identifier: BSD-3-Clause */
/* Top-k sparsification, before an allreduce: threshold, selection, and one step of Deep Gradient
 * Compression. The arrays of a call are all in host memory or all on one device, and are processed there.
 * A selection or a step passes over the vector once; a threshold reads a sample, which it gathers from all
 * ranks. */

#include "core/global_topk.h"

#include <math.h>

#include "device/ops.h"
#include "mpi_ext/arguments.h"
#include "mpi_ext/attribute.h"
#include "mpi_ext/error.h"
#include "mpi_ext/user_buffers.h"
#include "mpi_ext/datatypes.h"
#include "core/progress.h"
#include "vector/magnitude.h"

/* Output arguments of a selection. */
struct selected_arrays {
    enum sar_index_type index_type;
    size_t capacity;
    void *indices, *values;
    MPI_Count *nnz;
};

static void error_unless(bool good, struct sar_call_args *call, enum sar_status status, double value)
{
    if (!good)
        sar_error_set(&call->result.error, status, sar_error_bits_of(value));
}

static void check_array(struct sar_call_args *call, const void *array, size_t elements,
                        enum sar_status status)
{
    if (elements == 0)
        return;
    sar_args_check_array(&call->result.error, array, status);
    sar_user_buffers_check(&call->result.error, &call->device.memory, array, status);
}

/* The memory of the first array is the memory of the call. */
static void check_vector(struct sar_call_args *call, int64_t function, const void *first, MPI_Count count,
                         MPI_Datatype datatype)
{
    struct sar_datatype type = sar_datatype_classify(datatype);
    int64_t bytes;
    *call = (struct sar_call_args){
        .sig.field = { [SAR_AGREE_FUNCTION] = function, [SAR_AGREE_DATATYPE] = type.valid ? type.id : 0 },
        .sig.int16_as_float = type.valid && type.is_int16,
        .sig.desc = { .row_len = 1, .element_size = type.extent, .dtype = type.dtype }
    };
    bool floats = type.native && sar_magnitude_defined(type.dtype);
    if (!type.valid || type.row_len != 1 || !(floats || type.is_int16))
        sar_error_set(&call->result.error, SAR_BAD_DATATYPE, call->sig.field[SAR_AGREE_DATATYPE]);
    if (count < 0 || __builtin_mul_overflow(count, type.extent, &bytes))
        sar_error_set(&call->result.error, SAR_BAD_COUNT, (int64_t)count);
    call->sig.desc.count = (uint64_t)(count > 0 ? count : 0);
    call->sig.desc.index_size = sar_index_size(call->sig.desc.count);
    if (count > 0)
        sar_user_buffers_locate(call, first, function == SAR_FUNCTION_DGC ? SAR_BAD_GRADIENT : SAR_BAD_BUF);
}

static bool is_on_device(const struct sar_call_args *call)
{
    return call->device.memory.accelerator != NULL;
}

static void check_output(struct sar_call_args *call, MPI_Datatype indextype, MPI_Count capacity,
                         struct selected_arrays *out)
{
    sar_args_check_index_type(call, indextype, &out->index_type);
    if (capacity < 0)
        sar_error_set(&call->result.error, SAR_BAD_CAPACITY, (int64_t)capacity);
    uint64_t wanted = capacity > 0 ? (uint64_t)capacity : 0;
    out->capacity = (size_t)(wanted < call->sig.desc.count ? wanted : call->sig.desc.count);
    check_array(call, out->indices, out->capacity, SAR_BAD_INDICES);
    check_array(call, out->values, out->capacity, SAR_BAD_VALUES);
    if (out->nnz == NULL)
        sar_error_set(&call->result.error, SAR_BAD_OUTPUT, SAR_NULL_NNZ);
}

/* The used part of an array of the call. */
struct array {
    const void *begin;
    size_t bytes;
    enum sar_status status; /* error if it overlaps an earlier array */
};

static bool overlap(const struct array *a, const struct array *b)
{
    uintptr_t one = (uintptr_t)a->begin, other = (uintptr_t)b->begin;
    if (a->bytes == 0 || b->bytes == 0)
        return false;
    return one < other ? a->bytes > other - one : b->bytes > one - other;
}

/* No two arrays may overlap. Only MPIX_Sparse_dgc_step has a gradient and a velocity. */
static void check_overlap(struct sar_call_args *call, const struct sar_dgc *dgc,
                          const struct selected_arrays *out)
{
    if (call->result.error.status != SAR_OK)
        return;
    size_t bytes = (size_t)call->sig.desc.count * call->sig.desc.element_size;
    const struct array arrays[] = {
        { dgc->gradient, dgc->gradient == NULL ? 0 : bytes, SAR_BAD_GRADIENT },
        { dgc->velocity, dgc->velocity == NULL ? 0 : bytes, SAR_BAD_VELOCITY },
        { dgc->values, bytes, SAR_BAD_RESIDUAL },
        { out->indices, out->capacity * sar_index_type_size(out->index_type), SAR_BAD_INDICES },
        { out->values, out->capacity * call->sig.desc.element_size, SAR_BAD_VALUES },
    };
    for (size_t i = 1; i < sizeof arrays / sizeof *arrays; i++)
        for (size_t j = 0; j < i; j++)
            if (overlap(&arrays[i], &arrays[j]))
                sar_error_set(&call->result.error, arrays[i].status, SAR_FAULT_OVERLAPPING);
}

static void check_topk_params(struct sar_call_args *call, const struct sar_topk_params *params)
{
    error_unless(params->ratio > 0 && params->ratio <= 1, call, SAR_BAD_RATIO, params->ratio);
    error_unless(params->sample_fraction > 0 && params->sample_fraction <= 1, call, SAR_BAD_SAMPLE,
                 params->sample_fraction);
}

/* The settings of the communicator give the type of 16-bit elements, and the stream. */
static void resolve_types(struct sar_call_args *call, const struct sar_comm_state *comm_state,
                          struct sar_dgc *dgc)
{
    static const enum sar_dtype bases[] = { [SAR_ELEMENT_BF16] = SAR_BF16, [SAR_ELEMENT_FP16] = SAR_FP16 };
    int element = comm_state == NULL ? SAR_ELEMENT_INTEGER : comm_state->settings.policy.config.element;
    sar_user_buffers_set_stream(call, comm_state == NULL ? NULL : comm_state->device.stream);
    if (call->sig.int16_as_float && element == SAR_ELEMENT_INTEGER)
        sar_error_set(&call->result.error, SAR_BAD_DATATYPE, call->sig.field[SAR_AGREE_DATATYPE]);
    else if (call->sig.int16_as_float)
        call->sig.desc.dtype = bases[element];
    dgc->dtype = call->sig.desc.dtype;
    dgc->count = call->sig.desc.count;
}

static void copy_out(const struct sar_topk *topk, const struct selected_arrays *out)
{
    const struct sar_spvec *vec = &topk->vec;
    unsigned size = sar_index_type_size(out->index_type);
    for (size_t i = 0; i < vec->nnz; i++)
        sar_index_set(out->indices, size, i, sar_index_get(vec->index, topk->desc.index_size, i));
    if (vec->nnz > 0)
        memcpy(out->values, vec->value, vec->nnz * topk->desc.element_size);
    *out->nnz = (MPI_Count)vec->nnz;
}

int PMPIX_Sparse_topk_threshold(const void *buf, MPI_Count count, MPI_Datatype datatype, double ratio,
                                double sample, int seed, MPI_Comm comm, double *threshold)
{
    static const char function[] = "MPIX_Sparse_topk_threshold";
    struct sar_comm_state *comm_state;
    struct sar_call_args call;
    struct sar_topk_params params = { ratio, sample, (uint32_t)seed };
    struct sar_dgc dgc = { .values = (void *)(uintptr_t)buf };
    uint64_t threshold_bits;
    check_vector(&call, SAR_FUNCTION_TOPK, buf, count, datatype);
    check_array(&call, buf, (size_t)call.sig.desc.count, SAR_BAD_BUF);
    check_topk_params(&call, &params);
    if (threshold == NULL)
        sar_error_set(&call.result.error, SAR_BAD_OUTPUT, SAR_NULL_THRESHOLD);
    int code = sar_comm_state_get(comm, function, &comm_state);
    if (code != MPI_SUCCESS)
        return code;
    resolve_types(&call, comm_state, &dgc);
    sar_progress_drain(comm_state);
    struct sar_parallel former = sar_comm_state_begin_work(comm_state);
    sar_global_topk_threshold(comm_state, &call, &dgc, &params, &threshold_bits);
    sar_parallel_end(former);
    if (call.result.error.status == SAR_OK)
        *threshold = sar_magnitude_to_double(dgc.dtype, threshold_bits);
    return sar_error_raise(comm, function, &call.result.error, NULL);
}

static enum sar_status select_on_device(const struct sar_call_args *call, const struct sar_dgc *dgc,
                                        uint64_t threshold_bits, const struct selected_arrays *out)
{
    struct sar_topk_limit limit = { threshold_bits, out->capacity };
    struct sar_vec_desc desc = call->sig.desc;
    struct sar_spvec vec = { out->indices, out->values, out->capacity };
    desc.index_size = sar_index_type_size(out->index_type);
    SAR_TRY(sar_device_select(&call->device.memory, &desc, dgc, &limit, &vec));
    *out->nnz = (MPI_Count)vec.nnz;
    return SAR_OK;
}

static enum sar_status select_on_host(const struct sar_call_args *call, const struct sar_dgc *dgc,
                                      uint64_t threshold_bits, const struct selected_arrays *out)
{
    struct sar_arena arena = { 0 };
    struct sar_topk topk;
    enum sar_status status = sar_topk_open(&call->sig.desc, out->capacity, &arena, &topk);
    if (status == SAR_OK) {
        sar_topk_select(&topk, dgc, threshold_bits);
        copy_out(&topk, out);
    }
    sar_arena_free(&arena);
    return status;
}

int PMPIX_Sparse_topk_select(const void *buf, MPI_Count count, MPI_Datatype datatype, double threshold,
                             MPI_Comm comm, MPI_Datatype indextype, MPI_Count capacity, void *indices,
                             void *values, MPI_Count *nnz)
{
    static const char function[] = "MPIX_Sparse_topk_select";
    struct sar_comm_state *comm_state;
    struct sar_call_args call;
    struct selected_arrays out = { .indices = indices, .values = values, .nnz = nnz };
    struct sar_dgc dgc = { .values = (void *)(uintptr_t)buf };
    int code = sar_comm_state_find(comm, function, &comm_state);
    if (code != MPI_SUCCESS)
        return code;
    check_vector(&call, SAR_FUNCTION_TOPK, buf, count, datatype);
    check_array(&call, buf, (size_t)call.sig.desc.count, SAR_BAD_BUF);
    error_unless(threshold >= 0, &call, SAR_BAD_THRESHOLD, threshold);
    check_output(&call, indextype, capacity, &out);
    check_overlap(&call, &dgc, &out);
    resolve_types(&call, comm_state, &dgc);
    if (call.result.error.status == SAR_OK) {
        uint64_t threshold_bits = sar_magnitude_ceil(dgc.dtype, threshold);
        struct sar_parallel former = sar_comm_state_begin_work(comm_state);
        call.result.error.status = is_on_device(&call) ? select_on_device(&call, &dgc, threshold_bits, &out)
                                                       : select_on_host(&call, &dgc, threshold_bits, &out);
        sar_parallel_end(former);
    }
    return sar_error_raise(comm, function, &call.result.error, NULL);
}

static void check_dgc_params(struct sar_call_args *call, const MPIX_Sparse_dgc_t *how, struct sar_dgc *dgc,
                             struct sar_topk_params *params)
{
    if (how == NULL) {
        sar_error_set(&call->result.error, SAR_BAD_HOW, SAR_FAULT_NULL);
        return;
    }
    *params = (struct sar_topk_params){ how->ratio, how->sample, (uint32_t)how->seed };
    check_topk_params(call, params);
    error_unless(how->momentum >= 0 && how->momentum < 1, call, SAR_BAD_MOMENTUM, how->momentum);
    error_unless(isfinite(how->scale), call, SAR_BAD_SCALE, how->scale);
    dgc->momentum = how->momentum;
    dgc->scale = how->scale;
    dgc->masking = how->masking != 0;
}

static void step_on_host(struct sar_comm_state *comm_state, struct sar_call_args *call,
                         const struct sar_dgc *dgc, const struct sar_topk_params *params,
                         const struct selected_arrays *out)
{
    struct sar_topk topk;
    sar_global_topk_select(comm_state, call, dgc, params, out->capacity, &topk);
    if (call->result.error.status != SAR_OK)
        return;
    copy_out(&topk, out);
    sar_dgc_clear(dgc, &topk.desc, &topk.vec);
}

static void step_on_device(struct sar_comm_state *comm_state, struct sar_call_args *call,
                           const struct sar_dgc *dgc, const struct sar_topk_params *params,
                           const struct selected_arrays *out)
{
    uint64_t threshold_bits;
    sar_global_topk_threshold(comm_state, call, dgc, params, &threshold_bits);
    if (call->result.error.status == SAR_OK)
        call->result.error.status = select_on_device(call, dgc, threshold_bits, out);
}

int PMPIX_Sparse_dgc_step(const void *gradient, void *velocity, void *residual, MPI_Count count,
                          MPI_Datatype datatype, const MPIX_Sparse_dgc_t *how, MPI_Comm comm,
                          MPI_Datatype indextype, MPI_Count capacity, void *indices, void *values,
                          MPI_Count *nnz)
{
    static const char function[] = "MPIX_Sparse_dgc_step";
    struct sar_comm_state *comm_state;
    struct sar_call_args call;
    struct sar_topk_params params = { 0 };
    struct selected_arrays out = { .indices = indices, .values = values, .nnz = nnz };
    struct sar_dgc dgc = { .values = residual, .gradient = gradient, .velocity = velocity };
    check_vector(&call, SAR_FUNCTION_DGC, gradient, count, datatype);
    check_array(&call, gradient, (size_t)call.sig.desc.count, SAR_BAD_GRADIENT);
    check_array(&call, velocity, (size_t)call.sig.desc.count, SAR_BAD_VELOCITY);
    check_array(&call, residual, (size_t)call.sig.desc.count, SAR_BAD_RESIDUAL);
    check_dgc_params(&call, how, &dgc, &params);
    check_output(&call, indextype, capacity, &out);
    check_overlap(&call, &dgc, &out);
    int code = sar_comm_state_get(comm, function, &comm_state);
    if (code != MPI_SUCCESS)
        return code;
    resolve_types(&call, comm_state, &dgc);
    sar_progress_drain(comm_state);
    struct sar_parallel former = sar_comm_state_begin_work(comm_state);
    (is_on_device(&call) ? step_on_device : step_on_host)(comm_state, &call, &dgc, &params, &out);
    sar_parallel_end(former);
    return sar_error_raise(comm, function, &call.result.error, NULL);
}

#pragma weak MPIX_Sparse_topk_threshold = PMPIX_Sparse_topk_threshold
#pragma weak MPIX_Sparse_topk_select = PMPIX_Sparse_topk_select
#pragma weak MPIX_Sparse_dgc_step = PMPIX_Sparse_dgc_step
