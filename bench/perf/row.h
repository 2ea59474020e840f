/* SPDX-License-Identifier: BSD-3-Clause */
/* A row: one way to run the collective of a case, and its measurements. */
#ifndef PERF_ROW_H
#define PERF_ROW_H

#include <mpi.h>
#include <mpix_sparse.h>
#include <stdbool.h>

#include "bench/lib/schema.h"
#include "bench/lib/settings.h"
#include "bench/lib/stats.h"
#include "bench/lib/tensor.h"
#include "bench/limits/message_replay.h"
#include "bench/perf/overlap.h"
#include "bench/sim/sim_work.h"

/** The implementation of a row. */
enum perf_row_kind {
    PERF_ROW_SPARSE,
    PERF_ROW_DENSE,          /**< the baseline by MPI: MPI_Allreduce, or that of another collective */
    PERF_ROW_MEMORY,         /**< bound on memory traffic */
    PERF_ROW_MEMORY_NODE,    /**< the same, with one result for each node */
    PERF_ROW_MESSAGE_REPLAY, /**< messages and copies of another row */
};

/** Buffers of MPI_Allgatherv; all zero in other rows. */
struct perf_gather {
    int *counts; /**< elements of each rank, and where they begin */
    struct perf_block index, values;
};

struct perf_row {
    /** Input. */
    struct perf_settings settings;
    enum perf_row_kind kind;
    bool hidden;               /**< baseline or choice that is measured but not reported */
    struct perf_row *original; /**< row whose messages are replayed, opened earlier; or NULL */

    /** State while the row is open. */
    MPI_Comm comm;
    MPIX_Sparse_result result;
    MPIX_Sparse_plan plan; /**< with --plan, from the first call on; or MPIX_SPARSE_PLAN_NULL */
    struct perf_gather gather;
    struct perf_memory_bound memory;
    struct perf_message_replay replay;
    int code;        /**< first MPI error on this rank, or MPI_SUCCESS */
    bool failed;     /**< true if a call failed on some rank; equal on all ranks */
    double estimate; /**< seconds of the fastest warm-up call */
    int threads;     /**< threads of a call's work, most of all ranks; -1 unless the library is called */

    /** Results. */
    char error[MPI_MAX_ERROR_STRING + 1];
    struct perf_times times;
    MPIX_Sparse_report_t report; /**< bytes, messages and imbalances are maxima over ranks */
    long long wrong;             /**< wrong elements over all ranks; -1: not checked */
    bool chosen;
    struct perf_overlap overlap[PERF_PROGRESS_MODES];
    struct perf_phases phases;
    struct perf_sim_work sim_work; /**< sums over measured calls; in the end mean of one call over ranks */
};

/** True if the row calls the library. */
static inline bool perf_row_is_sparse(const struct perf_row *row)
{
    return row->kind == PERF_ROW_SPARSE;
}

/** Allocates the communicator and buffers of a row, and makes the first call, on step 0, under the row's
 * settings. Collective. */
void perf_row_open(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor);

/** Makes one call and returns its seconds on this rank. i selects the address of a dense result. Collective.
 */
double perf_row_call(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor,
                     int step, int i);

/** Start and complete a nonblocking call. perf_row_start returns the start time. Collective. */
double perf_row_start(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor,
                      int step, int i, MPI_Request *request);
void perf_row_wait(struct perf_row *row, MPI_Request *request);

/** Sets row->failed on all ranks if a call failed on any, and row->error. Collective. */
void perf_row_agree_failure(struct perf_row *row);

/** Collects the report of the last call from all ranks. Collective. */
void perf_row_report(struct perf_row *row);

/** Frees what perf_row_open allocated. Collective. */
void perf_row_close(struct perf_row *row);

#endif
