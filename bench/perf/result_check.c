/* SPDX-License-Identifier: BSD-3-Clause */
/* Check of results. Pieces of 4 MiB keep the memory of the correct result small. */

#include "bench/perf/result_check.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/device_buffers.h"
#include "bench/perf/collective.h"

/* A piece of the correct result: elements low to high - 1. */
struct piece {
    size_t low, high;
    char *values;
    unsigned char *present; /* COO interface: 1 if some rank has the element */
};

/* Position in a COO result while it is compared. */
struct cursor {
    MPI_Count nnz, at;
    const void *indices;
    const char *values;
    void *copies[2]; /* host copies of a result in device memory */
};

static size_t span_of(const struct perf_case *c)
{
    const size_t bytes = 1 << 22;
    size_t span = bytes / c->element_bytes + 1;
    return span < c->count ? span : c->count;
}

static void reduce_dense(const struct perf_case *c, const struct perf_tensor *tensor, struct piece *piece)
{
    const char *input = (const char *)tensor->step[0].dense.data + piece->low * c->element_bytes;

    MPI_Allreduce(input, piece->values, (int)((piece->high - piece->low) * c->row_len), c->basic, c->mpi_op,
                  MPI_COMM_WORLD);
}

/* Absent elements contribute the neutral number. */
static void reduce_coo(const struct perf_case *c, const struct perf_tensor *tensor, struct piece *piece,
                       size_t *next)
{
    const struct perf_set *set = &tensor->first;
    size_t n = piece->high - piece->low;

    perf_number_neutral(c->type, c->op, piece->values, n * c->row_len);
    memset(piece->present, 0, n);
    perf_tensor_scatter(tensor, c, piece->low, piece->high, piece->values);
    for (; *next < set->n && set->at[*next] < piece->high; ++*next)
        piece->present[set->at[*next] - piece->low] = 1;
    MPI_Allreduce(MPI_IN_PLACE, piece->values, (int)(n * c->row_len), c->basic, c->mpi_op, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, piece->present, (int)n, MPI_UINT8_T, MPI_MAX, MPI_COMM_WORLD);
}

static long long compare_dense(const struct perf_case *c, const struct piece *piece, const void *dense)
{
    bool scatters = c->options->collective == SAR_REDUCE_SCATTER;
    size_t part = c->count / (size_t)c->world->ranks, bytes = c->element_bytes;
    size_t begin = scatters ? (size_t)c->world->rank * part : 0, end = scatters ? begin + part : c->count;
    size_t low = piece->low > begin ? piece->low : begin, high = piece->high < end ? piece->high : end;
    const char *expected = piece->values + (low - piece->low) * bytes,
               *got = (const char *)dense + (low - begin) * bytes;
    long long wrong = 0;

    if (low >= high || memcmp(expected, got, (high - low) * bytes) == 0)
        return 0;
    for (size_t i = 0; i < high - low; i++)
        wrong += memcmp(expected + i * bytes, got + i * bytes, bytes) != 0;
    return wrong;
}

/* A negative index becomes a large number that no element has. */
static uint64_t index_at(const struct perf_case *c, const struct cursor *cursor)
{
    switch (c->index) {
    case PERF_INT32: return (uint64_t)(int64_t)((const int32_t *)cursor->indices)[cursor->at];
    case PERF_UINT32: return ((const uint32_t *)cursor->indices)[cursor->at];
    default: return ((const uint64_t *)cursor->indices)[cursor->at];
    }
}

/* Walks result and piece in parallel. Each missing, unexpected, misplaced or different element counts as one
 * error. */
static long long compare_coo(const struct perf_case *c, const struct piece *piece, struct cursor *cursor)
{
    bool scatters = c->options->collective == SAR_REDUCE_SCATTER;
    size_t bytes = c->element_bytes;
    long long wrong = 0;

    for (size_t i = piece->low; i < piece->high; i++) {
        if (!piece->present[i - piece->low] || (scatters && !perf_collective_owns(c, i)))
            continue;
        for (; cursor->at < cursor->nnz && index_at(c, cursor) < i; cursor->at++)
            wrong++;
        if (cursor->at == cursor->nnz || index_at(c, cursor) != i) {
            wrong++;
            continue;
        }
        wrong += memcmp(piece->values + (i - piece->low) * bytes, cursor->values + (size_t)cursor->at * bytes,
                        bytes) != 0;
        cursor->at++;
    }
    return wrong;
}

static const void *fetch(const void *device, size_t bytes, void **copy)
{
    *copy = perf_alloc(bytes + 1, 1);
    perf_device_copy(*copy, device, bytes);
    return *copy;
}

static struct cursor open_cursor(const struct perf_case *c, const struct perf_output *output)
{
    struct cursor cursor = { 0 };
    const void *values = NULL;

    if (output->result != MPIX_SPARSE_RESULT_NULL)
        MPIX_Sparse_result_get(output->result, &cursor.nnz, &cursor.indices, &values);
    if (perf_device_is_open()) {
        cursor.indices = fetch(cursor.indices, (size_t)cursor.nnz * c->index_bytes, &cursor.copies[0]);
        values = fetch(values, (size_t)cursor.nnz * c->element_bytes, &cursor.copies[1]);
    }
    cursor.values = values;
    return cursor;
}

static void check_piece(const struct perf_case *c, const struct piece *piece, struct perf_output *outputs,
                        struct cursor *cursors, int n)
{
    for (int i = 0; i < n; i++)
        if (c->options->interface == PERF_COO)
            outputs[i].wrong += compare_coo(c, piece, &cursors[i]);
        else
            outputs[i].wrong += compare_dense(c, piece, outputs[i].dense);
}

void perf_result_check(const struct perf_case *c, const struct perf_tensor *tensor,
                       struct perf_output *outputs, int n)
{
    size_t span = span_of(c), next = 0;
    struct piece piece = { 0, 0, perf_alloc(span, c->element_bytes), perf_alloc(span, 1) };
    struct cursor *cursors = perf_alloc((size_t)n, sizeof *cursors);

    for (int i = 0; i < n; i++)
        cursors[i] = open_cursor(c, &outputs[i]);
    for (piece.low = 0; piece.low < c->count; piece.low = piece.high) {
        piece.high = c->count - piece.low < span ? c->count : piece.low + span;
        if (c->options->interface == PERF_COO)
            reduce_coo(c, tensor, &piece, &next);
        else
            reduce_dense(c, tensor, &piece);
        check_piece(c, &piece, outputs, cursors, n);
    }
    for (int i = 0; i < n; i++) {
        outputs[i].wrong += cursors[i].nnz - cursors[i].at;
        free(cursors[i].copies[0]);
        free(cursors[i].copies[1]);
    }
    free(cursors);
    free(piece.values);
    free(piece.present);
}
