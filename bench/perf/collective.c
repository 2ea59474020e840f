/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that a row times. */

#include "bench/perf/collective.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

MPI_Count perf_collective_block(const struct perf_case *c)
{
    size_t ranks = (size_t)c->world->ranks;

    if (c->options->block > 0)
        return c->options->block;
    return (MPI_Count)(c->count > 0 ? (c->count + ranks - 1) / ranks : 1);
}

bool perf_collective_owns(const struct perf_case *c, uint64_t index)
{
    uint64_t number = index / (uint64_t)perf_collective_block(c);

    return (int)(number % (uint64_t)c->world->ranks) == c->world->rank;
}

/* Copies this rank's elements of the sum into the blocks of a step. */
static void keep_owned(const struct perf_case *c, struct perf_step *step, MPI_Comm comm)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    const void *indices = NULL, *values = NULL;
    MPI_Count nnz = 0;

    MPIX_Sparse_reduce_scatter_coo(step->buffers.index, step->buffers.values, (MPI_Count)step->nnz,
                                   c->index_type, (MPI_Count)c->count, perf_collective_block(c), c->element,
                                   c->mpi_op, comm, &result);
    MPIX_Sparse_result_get(result, &nnz, &indices, &values);
    perf_block_free(&step->index);
    perf_block_free(&step->values);
    step->nnz = (size_t)nnz;
    step->index = perf_block_make(step->nnz * c->index_bytes, 0);
    step->values = perf_block_make(step->nnz * c->element_bytes, 0);
    if (nnz > 0) {
        memcpy(step->index.data, indices, step->nnz * c->index_bytes);
        memcpy(step->values.data, values, step->nnz * c->element_bytes);
    }
    step->buffers.index = step->index.data;
    step->buffers.values = step->values.data;
    MPIX_Sparse_result_free(&result);
}

void perf_collective_keep_owned(const struct perf_case *c, struct perf_tensor *tensor,
                                struct perf_tensor_stats *stats)
{
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < tensor->steps; i++)
        keep_owned(c, &tensor->step[i], comm);
    MPI_Comm_free(&comm);
    stats->nnz_in_max = (long long)tensor->step[0].nnz;
    MPI_Allreduce(MPI_IN_PLACE, &stats->nnz_in_max, 1, MPI_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
    stats->nnz_in_mean = (double)stats->nnz_out / c->world->ranks;
    stats->overlap = c->world->ranks > 1 ? 0 : NAN;
}

static int coo_call(struct perf_row *row, const struct perf_case *c, const struct perf_step *s)
{
    MPI_Count nnz = (MPI_Count)s->nnz, count = (MPI_Count)c->count;

    switch (c->options->collective) {
    case SAR_REDUCE_SCATTER:
        return MPIX_Sparse_reduce_scatter_coo(s->buffers.index, s->buffers.values, nnz, c->index_type, count,
                                              perf_collective_block(c), c->element, c->mpi_op, row->comm,
                                              &row->result);
    case SAR_ALLGATHER:
        return MPIX_Sparse_allgather_coo(s->buffers.index, s->buffers.values, nnz, c->index_type, count,
                                         c->element, row->comm, &row->result);
    default:
        return MPIX_Sparse_allreduce_coo(s->buffers.index, s->buffers.values, nnz, c->index_type, count,
                                         c->element, c->mpi_op, row->comm, &row->result);
    }
}

static int make_plan(struct perf_row *row, const struct perf_case *c)
{
    MPI_Count count = (MPI_Count)c->count;

    switch (c->options->collective) {
    case SAR_REDUCE_SCATTER:
        return MPIX_Sparse_reduce_scatter_coo_init(c->index_type, count, perf_collective_block(c), c->element,
                                                   c->mpi_op, row->comm, MPI_INFO_NULL, &row->plan);
    case SAR_ALLGATHER:
        return MPIX_Sparse_allgather_coo_init(c->index_type, count, c->element, row->comm, MPI_INFO_NULL,
                                              &row->plan);
    default:
        return MPIX_Sparse_allreduce_coo_init(c->index_type, count, c->element, c->mpi_op, row->comm,
                                              MPI_INFO_NULL, &row->plan);
    }
}

/* The first start makes the plan. */
static int plan_call(struct perf_row *row, const struct perf_case *c, const struct perf_step *step)
{
    MPI_Request request;
    int code = MPI_SUCCESS;

    if (row->plan == MPIX_SPARSE_PLAN_NULL)
        code = make_plan(row, c);
    if (code == MPI_SUCCESS)
        code = MPIX_Sparse_plan_start_coo(row->plan, step->buffers.index, step->buffers.values,
                                          (MPI_Count)step->nnz, &row->result, &request);
    return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

static MPI_Count part_of(const struct perf_case *c)
{
    return (MPI_Count)(c->count / (size_t)c->world->ranks);
}

int perf_collective_call(struct perf_row *row, const struct perf_case *c, const struct perf_step *step,
                         void *recv)
{
    const void *send = c->options->in_place ? MPI_IN_PLACE : step->buffers.dense;

    if (c->options->plan)
        return plan_call(row, c, step);
    if (c->options->interface == PERF_COO)
        return coo_call(row, c, step);
    if (c->options->collective == SAR_REDUCE_SCATTER)
        return MPIX_Sparse_reduce_scatter(send, recv, part_of(c), c->element, c->mpi_op, row->comm);
    return MPIX_Sparse_allreduce(send, recv, (MPI_Count)c->count, c->element, c->mpi_op, row->comm);
}

static int coo_start(struct perf_row *row, const struct perf_case *c, const struct perf_step *s,
                     MPI_Request *request)
{
    MPI_Count nnz = (MPI_Count)s->nnz, count = (MPI_Count)c->count;

    switch (c->options->collective) {
    case SAR_REDUCE_SCATTER:
        return MPIX_Isparse_reduce_scatter_coo(s->buffers.index, s->buffers.values, nnz, c->index_type, count,
                                               perf_collective_block(c), c->element, c->mpi_op, row->comm,
                                               &row->result, request);
    case SAR_ALLGATHER:
        return MPIX_Isparse_allgather_coo(s->buffers.index, s->buffers.values, nnz, c->index_type, count,
                                          c->element, row->comm, &row->result, request);
    default:
        return MPIX_Isparse_allreduce_coo(s->buffers.index, s->buffers.values, nnz, c->index_type, count,
                                          c->element, c->mpi_op, row->comm, &row->result, request);
    }
}

int perf_collective_start(struct perf_row *row, const struct perf_case *c, const struct perf_step *step,
                          void *recv, MPI_Request *request)
{
    const void *send = c->options->in_place ? MPI_IN_PLACE : step->buffers.dense;

    if (c->options->interface == PERF_COO)
        return coo_start(row, c, step, request);
    if (c->options->collective == SAR_REDUCE_SCATTER)
        return MPIX_Isparse_reduce_scatter(send, recv, part_of(c), c->element, c->mpi_op, row->comm, request);
    return MPIX_Isparse_allreduce(send, recv, (MPI_Count)c->count, c->element, c->mpi_op, row->comm, request);
}

static int dense_allreduce(const struct perf_case *c, const void *send, void *recv, MPI_Comm comm)
{
    const size_t piece = (size_t)1 << 30;
    size_t values = c->count * c->row_len;
    int code = MPI_SUCCESS;

    for (size_t at = 0; at < values && code == MPI_SUCCESS; at += values > INT_MAX ? piece : values) {
        size_t n = values > INT_MAX && values - at > piece ? piece : values - at;
        const void *from = send == MPI_IN_PLACE ? send : (const char *)send + at * c->type->size;
        code = MPI_Allreduce(from, (char *)recv + at * c->type->size, (int)n, c->basic, c->mpi_op, comm);
    }
    return code;
}

/* Parts differ in length if the ranks do not divide the vector. */
static int dense_reduce_scatter(const struct perf_case *c, const void *send, void *recv, MPI_Comm comm)
{
    size_t ranks = (size_t)c->world->ranks, part = (c->count + ranks - 1) / ranks;
    int *counts, code;

    if (c->count % ranks == 0)
        return MPI_Reduce_scatter_block(send, recv, (int)(part * c->row_len), c->basic, c->mpi_op, comm);
    counts = perf_alloc(ranks, sizeof *counts);
    for (size_t r = 0; r < ranks; r++) {
        size_t begin = r * part < c->count ? r * part : c->count;
        counts[r] = (int)((c->count - begin < part ? c->count - begin : part) * c->row_len);
    }
    code = MPI_Reduce_scatter(send, recv, counts, c->basic, c->mpi_op, comm);
    free(counts);
    return code;
}

int perf_collective_dense(const struct perf_case *c, const void *send, void *recv, MPI_Comm comm)
{
    return c->options->collective == SAR_REDUCE_SCATTER ? dense_reduce_scatter(c, send, recv, comm)
                                                        : dense_allreduce(c, send, recv, comm);
}

void perf_gather_open(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor)
{
    size_t most = 0;

    for (int i = 0; i < tensor->steps; i++) {
        unsigned long long n = tensor->step[i].nnz;
        MPI_Allreduce(MPI_IN_PLACE, &n, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, row->comm);
        most = n > most ? (size_t)n : most;
    }
    row->gather.counts = perf_alloc(2 * (size_t)c->world->ranks, sizeof *row->gather.counts);
    row->gather.index = perf_block_make(most * c->index_bytes, 0);
    row->gather.values = perf_block_make(most * c->element_bytes, 0);
}

int perf_gather_call(struct perf_row *row, const struct perf_case *c, const struct perf_step *step)
{
    int ranks = c->world->ranks, n = (int)step->nnz, *counts = row->gather.counts, *begin = counts + ranks;
    int code = MPI_Allgather(&n, 1, MPI_INT, counts, 1, MPI_INT, row->comm);

    for (int r = 0; r < ranks; r++)
        begin[r] = r == 0 ? 0 : begin[r - 1] + counts[r - 1];
    if (code == MPI_SUCCESS)
        code = MPI_Allgatherv(step->buffers.index, n, c->index_type, row->gather.index.data, counts, begin,
                              c->index_type, row->comm);
    if (code == MPI_SUCCESS)
        code = MPI_Allgatherv(step->buffers.values, n, c->element, row->gather.values.data, counts, begin,
                              c->element, row->comm);
    return code;
}

void perf_gather_close(struct perf_row *row)
{
    free(row->gather.counts);
    row->gather.counts = NULL;
    perf_block_free(&row->gather.index);
    perf_block_free(&row->gather.values);
}
