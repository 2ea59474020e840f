/* SPDX-License-Identifier: BSD-3-Clause */
/* The bound on copies. All bytes are counted in perf_copy_bound_open; runs only read and write. */

#include "bench/limits/copy_bound.h"

#include <string.h>

#include "bench/lib/nodes.h"
#include "bench/limits/membw.h"
#include "comm/shm/numa_distance.h"
#include "vector/nt_store.h"

enum { SLOT_BYTES = 4 }; /* two_level copies the slot instead of the index */

static bool is_dense(const struct perf_case *c)
{
    return c->options->interface == PERF_DENSE;
}

/* Returns the sum over the ranks of the node. */
static size_t sum_on_node(const struct perf_world *world, size_t bytes)
{
    unsigned long long sum = bytes;
    MPI_Comm node;

    MPI_Comm_split(MPI_COMM_WORLD, world->node, world->rank, &node);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, node);
    MPI_Comm_free(&node);
    return (size_t)sum;
}

/* A single rank shares no buffer. */
static void count_bytes(struct perf_copy_bound *copy_bound, const struct perf_case *c,
                        const struct perf_tensor *tensor)
{
    size_t ranks = (size_t)c->world->node_ranks, index = copy_bound->levels ? SLOT_BYTES : c->index_bytes;
    size_t own = tensor->first.n * (index + c->element_bytes), all = sum_on_node(c->world, own);
    size_t result = copy_bound->memory.nnz_out * copy_bound->memory.bytes;
    bool is_single = ranks == 1, dense = is_dense(c);

    copy_bound->copied_in = is_single && !dense ? 0 : own;
    copy_bound->gathered = copy_bound->levels && !is_single ? all / ranks : 0;
    copy_bound->shared = copy_bound->levels ? result / ranks : 0;
    copy_bound->reduced = copy_bound->levels             ? result / ranks
                          : is_single                    ? 0
                          : copy_bound->reduces_in_place ? all
                                                         : all / ranks;
    copy_bound->result_share = dense && !is_single && !copy_bound->reduces_in_place ? result / ranks : 0;
    copy_bound->result_bytes = dense && !copy_bound->reduces_in_place ? result : 0;
}

/* Counts step 0. Input elements are counted for coordinates; a dense vector includes them. */
static void max_over_ranks(struct perf_copy_bound *copy_bound, const struct perf_case *c,
                           const struct perf_tensor *tensor)
{
    size_t elements = copy_bound->copied_in > 0 || copy_bound->memory.copies_input
                          ? tensor->first.n * copy_bound->memory.bytes
                          : 0;

    copy_bound->max_bytes = (is_dense(c) ? perf_case_bytes(c) : elements) + copy_bound->copied_in +
                            copy_bound->gathered + copy_bound->shared + copy_bound->reduced +
                            copy_bound->result_share + copy_bound->result_bytes + copy_bound->memory.written;
    MPI_Allreduce(MPI_IN_PLACE, &copy_bound->max_bytes, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

bool perf_copy_bound_has_levels(const MPIX_Sparse_report_t *report)
{
    return strcmp(report->scheme, "two_level") == 0;
}

void perf_copy_bound_open(struct perf_copy_bound *copy_bound, const struct perf_case *c,
                          const struct perf_tensor *tensor, const MPIX_Sparse_report_t *report)
{
    size_t written;

    *copy_bound = (struct perf_copy_bound){ .levels = perf_copy_bound_has_levels(report),
                                            .reduces_in_place = is_dense(c) && report->nnz_out < 0 };
    perf_memory_bound_open(&copy_bound->memory, c, tensor, c->world->node_ranks);
    count_bytes(copy_bound, c, tensor);
    max_over_ranks(copy_bound, c, tensor);
    written = larger(larger(copy_bound->copied_in, is_dense(c) ? 0 : perf_memory_bound_step_bytes(c, tensor)),
                     larger(copy_bound->shared, copy_bound->result_share));
    perf_shm_buffer_open(&copy_bound->buffer, c->world, written);
    copy_bound->nt_stores =
        !copy_bound->levels && perf_cacheline_seconds(c->world) > sar_numa_distance_remote_seconds;
}

static void copy_bytes(const struct perf_copy_bound *copy_bound, void *to, const void *from, size_t bytes)
{
    if (copy_bound->nt_stores)
        sar_nt_copy_unaligned(to, from, bytes);
    else
        memcpy(to, from, bytes);
}

/* For two_level, only the first SLOT_BYTES of each index are copied; the rest is read. */
static void copy_in(const struct perf_copy_bound *copy_bound, const struct perf_case *c,
                    const struct perf_step *step)
{
    size_t index = copy_bound->levels ? SLOT_BYTES : c->index_bytes, copied_in = step->nnz * index;
    const char *from = step->index.data;
    char *to = perf_shm_buffer_data(&copy_bound->buffer);

    copy_bytes(copy_bound, to, from, copied_in);
    perf_membw_read(from + copied_in, step->nnz * c->index_bytes - copied_in);
    copy_bytes(copy_bound, to + copied_in, step->values.data, step->nnz * c->element_bytes);
    if (copy_bound->nt_stores)
        sar_nt_fence();
}

void perf_copy_bound_before(const struct perf_copy_bound *copy_bound, const struct perf_case *c,
                            const struct perf_step *step, const void *recv)
{
    if (is_dense(c)) {
        perf_memory_bound_read(c, step, recv);
        perf_membw_fill(perf_shm_buffer_data(&copy_bound->buffer), copy_bound->copied_in, false);
    } else if (copy_bound->copied_in > 0) {
        copy_in(copy_bound, c, step);
    }
    perf_shm_buffer_read(&copy_bound->buffer, copy_bound->gathered, copy_bound->copied_in);
}

void perf_copy_bound_after(const struct perf_copy_bound *copy_bound, const struct perf_case *c,
                           const struct perf_step *step, void *recv)
{
    perf_membw_fill(perf_shm_buffer_data(&copy_bound->buffer), copy_bound->shared, false);
    perf_shm_buffer_read(&copy_bound->buffer, copy_bound->reduced,
                         copy_bound->levels ? copy_bound->shared : copy_bound->copied_in);
    perf_membw_fill(perf_shm_buffer_data(&copy_bound->buffer), copy_bound->result_share, false);
    perf_shm_buffer_read(&copy_bound->buffer, copy_bound->result_bytes,
                         copy_bound->result_share > 0 ? copy_bound->result_share
                                                      : larger(copy_bound->shared, copy_bound->copied_in));
    if (copy_bound->memory.copies_input)
        perf_memory_bound_run(&copy_bound->memory, c, step, recv);
    else
        perf_memory_bound_write(&copy_bound->memory, c, recv);
}

void perf_copy_bound_close(struct perf_copy_bound *copy_bound)
{
    perf_memory_bound_close(&copy_bound->memory);
    perf_shm_buffer_close(&copy_bound->buffer);
}
