/* SPDX-License-Identifier: BSD-3-Clause */
/* A row: one way to carry out the allreduce of a case, and how that went. */
#ifndef PERF_ROW_H
#define PERF_ROW_H

#include <mpi.h>
#include <mpix_sparse.h>
#include <stdbool.h>

#include "charge.h"
#include "knobs.h"
#include "overlap.h"
#include "phases.h"
#include "skeleton.h"
#include "stats.h"
#include "tensor.h"

/* Who does something. */
enum perf_way {
    PERF_BY_LIBRARY,
    PERF_BY_MPI,      /* MPI_Allreduce itself */
    PERF_MEMORY,      /* what there is to read and to write */
    PERF_MEMORY_NODE, /* the same where ranks of a node keep one result */
    PERF_SKELETON,    /* what another row sends, or copies */
};

struct perf_row {
    /* What it is. */
    struct perf_knobs knobs;
    enum perf_way way;
    bool hidden;            /* measured for what others are compared with, and not reported */
    struct perf_row *model; /* whose skeleton it is, opened before it; or NULL */

    /* How it goes. */
    MPI_Comm comm;
    MPIX_Sparse_result result;
    struct perf_memory memory;
    struct perf_skeleton skeleton;
    int code;        /* of the first call that failed on this rank, MPI_SUCCESS if none did */
    bool refused;    /* some call failed on some rank; equal on all ranks */
    double estimate; /* seconds of the fastest call of the warm-up */

    /* How it went. */
    char error[MPI_MAX_ERROR_STRING + 1];
    struct perf_times times;
    MPIX_Sparse_report_t report; /* largest figures of any rank */
    long long wrong;             /* elements over all ranks; -1 when nobody looked */
    bool chosen;
    struct perf_overlap overlap[PERF_MODES];
    struct perf_phases phases;
    struct perf_charges charges; /* of all measured calls on this rank; in the end of one, mean over ranks */
};

/* Whether it carries out the allreduce through the library. */
static inline bool perf_row_is_ours(const struct perf_row *row)
{
    return row->way == PERF_BY_LIBRARY;
}

/* Give the row what it needs, a communicator of its own for the library's and MPI's, and make the first call,
 * on step 0 and under its knobs. Collective. */
void perf_row_open(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor);

/* One call; returns the seconds it took on this rank. The i-th call writes to the i-th place. */
double perf_row_call(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor,
                     int step, int i);

/* A nonblocking call, and its end; returns when it began. */
double perf_row_start(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor,
                      int step, int i, MPI_Request *request);
void perf_row_wait(struct perf_row *row, MPI_Request *request);

/* Make all ranks know whether the row failed on any. */
void perf_row_agree(struct perf_row *row);

/* Collect the report of the last call from all ranks. */
void perf_row_report(struct perf_row *row);

void perf_row_close(struct perf_row *row);

#endif
