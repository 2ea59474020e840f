/* SPDX-License-Identifier: BSD-3-Clause */
#include "copies.h"

#include <string.h>

#include "line.h"
#include "net/distance.h"
#include "tensor/stream.h"
#include "touch.h"

enum { SLOT_BYTES = 4 }; /* of an index, where two_level brings it */

static bool is_dense(const struct perf_case *c)
{
    return c->options->interface == PERF_DENSE;
}

/* Of the ranks of this one's node. */
static size_t sum_on_node(const struct perf_world *world, size_t bytes)
{
    unsigned long long sum = bytes;
    MPI_Comm node;

    MPI_Comm_split(MPI_COMM_WORLD, world->node, world->rank, &node);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, node);
    MPI_Comm_free(&node);
    return (size_t)sum;
}

/* A rank that is alone brings nothing for others to see. */
static void find_bytes(struct perf_copies *copies, const struct perf_case *c,
                       const struct perf_tensor *tensor)
{
    size_t ranks = (size_t)c->world->node_ranks, index = copies->levels ? SLOT_BYTES : c->index_bytes;
    size_t own = tensor->first.n * (index + c->element_bytes), all = sum_on_node(c->world, own);
    size_t outcome = copies->memory.nnz_out * copies->memory.bytes;
    bool alone = ranks == 1, dense = is_dense(c);

    copies->brought = alone && !dense ? 0 : own;
    copies->gathered = copies->levels && !alone ? all / ranks : 0;
    copies->shared = copies->levels ? outcome / ranks : 0;
    copies->reduced = copies->levels ? outcome / ranks : alone ? 0 : copies->folds ? all : all / ranks;
    copies->piece = dense && !alone && !copies->folds ? outcome / ranks : 0;
    copies->pieces = dense && !copies->folds ? outcome : 0;
}

/* On step 0. Elements are read where they are coordinates, and with the vector where it is dense. */
static void agree_bytes(struct perf_copies *copies, const struct perf_case *c,
                        const struct perf_tensor *tensor)
{
    size_t elements =
        copies->brought > 0 || copies->memory.copies ? tensor->first.n * copies->memory.bytes : 0;

    copies->most = (is_dense(c) ? perf_case_bytes(c) : elements) + copies->brought + copies->gathered +
                   copies->shared + copies->reduced + copies->piece + copies->pieces + copies->memory.written;
    MPI_Allreduce(MPI_IN_PLACE, &copies->most, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

bool perf_copies_have_levels(const MPIX_Sparse_report_t *report)
{
    return strcmp(report->scheme, "two_level") == 0;
}

void perf_copies_open(struct perf_copies *copies, const struct perf_case *c, const struct perf_tensor *tensor,
                      const MPIX_Sparse_report_t *report)
{
    size_t written;

    *copies = (struct perf_copies){ .levels = perf_copies_have_levels(report),
                                    .folds = is_dense(c) && report->nnz_out < 0 };
    perf_memory_open(&copies->memory, c, tensor, c->world->node_ranks);
    find_bytes(copies, c, tensor);
    agree_bytes(copies, c, tensor);
    written = larger(larger(copies->brought, is_dense(c) ? 0 : perf_memory_room(c, tensor)),
                     larger(copies->shared, copies->piece));
    perf_shelf_open(&copies->shelf, c->world, written);
    copies->streams = !copies->levels && perf_line_seconds(c->world) > sar_distance_far;
}

static void put(const struct perf_copies *copies, void *to, const void *from, size_t bytes)
{
    if (copies->streams)
        sar_stream_any(to, from, bytes);
    else
        memcpy(to, from, bytes);
}

/* Of an index two_level brings as much as tells its place in a part. */
static void bring(const struct perf_copies *copies, const struct perf_case *c, const struct perf_step *step)
{
    size_t index = copies->levels ? SLOT_BYTES : c->index_bytes, brought = step->nnz * index;
    const char *from = step->index.data;
    char *to = perf_shelf_data(&copies->shelf);

    put(copies, to, from, brought);
    perf_read(from + brought, step->nnz * c->index_bytes - brought);
    put(copies, to + brought, step->values.data, step->nnz * c->element_bytes);
    if (copies->streams)
        sar_stream_settle();
}

void perf_copies_before(const struct perf_copies *copies, const struct perf_case *c,
                        const struct perf_step *step, const void *recv)
{
    if (is_dense(c)) {
        perf_memory_read(c, step, recv);
        perf_fill(perf_shelf_data(&copies->shelf), copies->brought, false);
    } else if (copies->brought > 0) {
        bring(copies, c, step);
    }
    perf_shelf_read(&copies->shelf, copies->gathered, copies->brought);
}

void perf_copies_after(const struct perf_copies *copies, const struct perf_case *c,
                       const struct perf_step *step, void *recv)
{
    perf_fill(perf_shelf_data(&copies->shelf), copies->shared, false);
    perf_shelf_read(&copies->shelf, copies->reduced, copies->levels ? copies->shared : copies->brought);
    perf_fill(perf_shelf_data(&copies->shelf), copies->piece, false);
    perf_shelf_read(&copies->shelf, copies->pieces,
                    copies->piece > 0 ? copies->piece : larger(copies->shared, copies->brought));
    if (copies->memory.copies)
        perf_memory_pass(&copies->memory, c, step, recv);
    else
        perf_memory_write(&copies->memory, c, recv);
}

void perf_copies_close(struct perf_copies *copies)
{
    perf_memory_close(&copies->memory);
    perf_shelf_close(&copies->shelf);
}
