/* SPDX-License-Identifier: BSD-3-Clause */
/* Studies: tables about one thing each, for the questions that the Zen paper answers with figures. */
#ifndef PERF_STUDY_H
#define PERF_STUDY_H

#include "base/config.h"
#include "hash/map.h"
#include "progress.h"
#include "report.h"
#include "source.h"
#include "tensor/shape.h"
#include "workload.h"

struct perf_study {
    const struct perf_world *world;
    const struct perf_options *options;
    const struct perf_source *source;
    struct perf_report *report; /* rank 0 only */
    struct perf_progress *progress;
    long long rows, wrong;
};

/* Carry out the study that the options ask for. Collective, though rank 0 may do all of the work. */
void perf_study_run(struct perf_study *study);

/* The studies. */
void perf_study_formats(struct perf_study *study);
void perf_study_hash(struct perf_study *study);
void perf_study_balance(struct perf_study *study);
void perf_study_selector(struct perf_study *study);
void perf_study_profile(struct perf_study *study);

/* Begin a table, and add a record to it; on all ranks. */
void perf_study_table(struct perf_study *study, const struct perf_schema *schema);
void perf_study_put(struct perf_study *study, const void *record);

/* What the option says, or else what the study takes. */
struct perf_counts perf_study_counts(const struct perf_study *study, long long otherwise);
struct perf_reals perf_study_densities(const struct perf_study *study, const double *otherwise, int n);

/* The map of the library's planner for --parts ranks, each with nnz of count elements. */
struct sar_map perf_study_map(const struct perf_study *study, size_t count, size_t nnz);

/* A run of the elements of a set, with values of the case. */
struct sar_run perf_study_run_make(const struct perf_case *c, const struct perf_set *set);
void perf_study_run_free(struct sar_run *run);

/* End all ranks where the library has no memory. */
void perf_study_must(enum sar_status status);

#endif
