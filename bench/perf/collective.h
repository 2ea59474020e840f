/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that a row times, of each collective (option --collective): those of the library, and those of
 * MPI that are their baselines. */
#ifndef PERF_COLLECTIVE_H
#define PERF_COLLECTIVE_H

#include "bench/lib/tensor.h"
#include "bench/perf/row.h"

/** Returns the elements of a block of a reduce_scatter, and true if this rank owns an element. */
MPI_Count perf_collective_block(const struct perf_case *c);
bool perf_collective_owns(const struct perf_case *c, uint64_t index);

/** Replaces the elements of each step by those that this rank owns of the sum: the input of an allgather.
 * Corrects the statistics. Collective. */
void perf_collective_keep_owned(const struct perf_case *c, struct perf_tensor *tensor,
                                struct perf_tensor_stats *stats);

/** Makes one call of the library, or starts one. Return an MPI error code. Collective. */
int perf_collective_call(struct perf_row *row, const struct perf_case *c, const struct perf_step *step,
                         void *recv);
int perf_collective_start(struct perf_row *row, const struct perf_case *c, const struct perf_step *step,
                          void *recv, MPI_Request *request);

/** The baseline by MPI on a dense vector in host memory: MPI_Allreduce in pieces that fit an int count, or a
 * reduce_scatter of contiguous parts. Collective.
 * @param send  or MPI_IN_PLACE */
int perf_collective_dense(const struct perf_case *c, const void *send, void *recv, MPI_Comm comm);

/** The baseline of an allgather: MPI_Allgatherv of indices, and of values. `open` allocates its buffers on
 * the row's communicator. Collective. */
void perf_gather_open(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor);
int perf_gather_call(struct perf_row *row, const struct perf_case *c, const struct perf_step *step);
void perf_gather_close(struct perf_row *row);

#endif
