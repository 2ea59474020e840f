/* SPDX-License-Identifier: BSD-3-Clause */
/* The bound on memory traffic: sizes, the trial of store instructions, and the row itself. */

#include "bench/limits/memory_bound.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/stats.h"
#include "bench/limits/membw.h"
#include "vector/dense.h"

static bool is_dense(const struct perf_case *c)
{
    return c->options->interface == PERF_DENSE;
}

size_t perf_memory_bound_step_bytes(const struct perf_case *c, const struct perf_tensor *tensor)
{
    size_t most = 0;

    for (int i = 0; i < tensor->steps; i++)
        most = tensor->step[i].nnz > most ? tensor->step[i].nnz : most;
    return most * (c->index_bytes + c->element_bytes);
}

/* Omits the last line if the vector ends within it. */
static void mark_lines(struct perf_memory_bound *memory, const struct perf_case *c, const uint64_t *present)
{
    size_t bytes = c->element_bytes, end = perf_case_bytes(c) / PERF_CACHE_LINE;

    memory->words = end / PERF_GROUP_LINES + 1;
    memory->lines = perf_alloc(memory->words, sizeof *memory->lines);
    for (size_t i = 0; i < memory->nnz_out; i++) {
        size_t last = (present[i] * bytes + bytes - 1) / PERF_CACHE_LINE;
        for (size_t line = present[i] * bytes / PERF_CACHE_LINE; line <= last && line < end; line++)
            memory->lines[line / PERF_GROUP_LINES] |= UINT64_C(1) << line % PERF_GROUP_LINES;
    }
    for (size_t word = 0; word < memory->words; word++)
        memory->written += (size_t)__builtin_popcountll(memory->lines[word]) * PERF_CACHE_LINE;
}

/* Determines the writes of the dense interface. */
static void open_vector(struct perf_memory_bound *memory, const struct perf_case *c,
                        const struct perf_tensor *tensor)
{
    uint64_t *present;

    if (!c->options->in_place) {
        memory->written = perf_case_bytes(c);
        return;
    }
    present = perf_alloc(memory->nnz_out, sizeof *present);
    perf_set_union(c, &tensor->first, present);
    mark_lines(memory, c, present);
    free(present);
}

static void open_part(struct perf_memory_bound *memory, const struct perf_case *c,
                      const struct perf_tensor *tensor, int sharers)
{
    memory->copies_input = c->world->ranks == 1;
    memory->written = memory->nnz_out * memory->bytes / (size_t)sharers;
    memory->part =
        perf_block_make(memory->copies_input ? perf_memory_bound_step_bytes(c, tensor) : memory->written, 0);
}

static void agree_bytes(struct perf_memory_bound *memory, const struct perf_case *c,
                        const struct perf_tensor *tensor)
{
    unsigned long long most[2] = { is_dense(c) ? perf_case_bytes(c) : tensor->first.n * memory->bytes,
                                   memory->written };

    MPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_UNSIGNED_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
    memory->max_read = most[0];
    memory->max_written = most[1];
}

static double seconds_of(const struct perf_memory_bound *memory, const struct perf_case *c,
                         const struct perf_step *step, void *recv)
{
    double start;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    perf_memory_bound_run(memory, c, step, recv);
    return MPI_Wtime() - start;
}

/* The faster kind of stores depends on the machine and on the number of writing ranks. */
static void choose_stores(struct perf_memory_bound *memory, const struct perf_case *c,
                          const struct perf_tensor *tensor)
{
    enum { TRIES = 4 };
    double least[2] = { DBL_MAX, DBL_MAX };
    void *recv = perf_tensor_recv(tensor, 0);

    if (memory->copies_input || memory->max_written < SAR_NT_STORE_MIN)
        return;
    for (int i = 0; i < 2 * TRIES; i++) {
        double seconds;
        memory->nt_stores = i % 2 == 1;
        seconds = seconds_of(memory, c, &tensor->step[i / 2 % tensor->steps], recv);
        least[i % 2] = seconds < least[i % 2] ? seconds : least[i % 2];
    }
    MPI_Allreduce(MPI_IN_PLACE, least, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    memory->nt_stores = least[1] < least[0];
}

void perf_memory_bound_open(struct perf_memory_bound *memory, const struct perf_case *c,
                            const struct perf_tensor *tensor, int sharers)
{
    *memory = (struct perf_memory_bound){ .bytes = c->index_bytes + c->element_bytes };
    memory->nnz_out = (size_t)perf_set_union(c, &tensor->first, NULL);
    if (is_dense(c))
        open_vector(memory, c, tensor);
    else
        open_part(memory, c, tensor, sharers);
    agree_bytes(memory, c, tensor);
    choose_stores(memory, c, tensor);
}

void perf_memory_bound_close(struct perf_memory_bound *memory)
{
    perf_block_free(&memory->part);
    free(memory->lines);
    memory->lines = NULL;
}

static void copy(const struct perf_case *c, const struct perf_step *step, void *to)
{
    size_t indices = step->nnz * c->index_bytes;

    memcpy(to, step->index.data, indices);
    memcpy((char *)to + indices, step->values.data, step->nnz * c->element_bytes);
}

void perf_memory_bound_run(const struct perf_memory_bound *memory, const struct perf_case *c,
                           const struct perf_step *step, void *recv)
{
    if (memory->copies_input) {
        copy(c, step, memory->part.data);
        return;
    }
    perf_memory_bound_read(c, step, recv);
    perf_memory_bound_write(memory, c, recv);
}

void perf_memory_bound_read(const struct perf_case *c, const struct perf_step *step, const void *recv)
{
    if (is_dense(c)) {
        perf_membw_read(c->options->in_place ? recv : step->dense.data, perf_case_bytes(c));
        return;
    }
    perf_membw_read(step->index.data, step->nnz * c->index_bytes);
    perf_membw_read(step->values.data, step->nnz * c->element_bytes);
}

void perf_memory_bound_write(const struct perf_memory_bound *memory, const struct perf_case *c, void *recv)
{
    if (memory->lines != NULL)
        perf_membw_fill_lines(recv, memory->lines, memory->words, c->element_bytes >= PERF_CACHE_LINE,
                              memory->nt_stores);
    else
        perf_membw_fill(is_dense(c) ? recv : memory->part.data, memory->written, memory->nt_stores);
}
