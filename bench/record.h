/* SPDX-License-Identifier: BSD-3-Clause */
/* What there is to say about a measured row. */
#ifndef PERF_RECORD_H
#define PERF_RECORD_H

#include <mpix_sparse.h>
#include <stdbool.h>

#include "case.h"
#include "field.h"
#include "row.h"
#include "shape.h"
#include "source.h"

/* Texts belong to the case and the row. */
struct perf_record {
    long long ranks, nodes, count, row, nnz_in_max, nnz_out, grain;
    long long bytes_sent_max, bytes_received_max, header_bytes_sent_max, messages_sent_max, wrong, iterations,
        between, seed, scale;
    double density, overlap, overlap_measured, skew, nnz_in_mean, gamma, push_imbalance, pull_imbalance;
    double bytes_floor, predicted, median, min, p99, dense_median, allgather_median, memory_median,
        skeleton_median;
    double over_memory, over_skeleton; /* times as long as these */
    double line;                       /* see perf_baselines */
    struct perf_charges charges;
    struct perf_overlap wait, thread;
    double wait_ratio, thread_ratio;
    double bytes;      /* of the dense vector */
    const char *label; /* NULL without one */
    const char *interface, *buffers, *datatype, *op, *order, *index;
    const char *wire_values, *scheme, *wire_requested, *partition_requested, *ran, *push_wire, *pull_wire,
        *partition, *reason;
    char workload[PERF_WORKLOAD_MAX];
    const struct perf_phases *phases;
    bool in_place, overlap_compute, skeletons, chosen;
    bool reduces; /* and can so be checked */
};

extern const struct perf_schema perf_record_schema;

/* What a row is compared with: seconds, NaN where they were not measured. */
struct perf_baselines {
    double dense, allgather, memory, skeleton;
    double line; /* of cache, before or after the case, whichever took longer */
};

void perf_record_make(struct perf_record *record, const struct perf_case *c, const struct perf_shape *shape,
                      const struct perf_row *row, struct perf_baselines baselines);

#endif
