/* SPDX-License-Identifier: BSD-3-Clause */
/* Studies: each prints a table on one subject, for the figures of the Zen paper. */
#ifndef PERF_STUDY_H
#define PERF_STUDY_H

#include "base/config.h"
#include "bench/perf/report.h"
#include "bench/lib/workload.h"
#include "hash/partition_map.h"
#include "vector/spvec.h"

/** The state of a running study. */
struct perf_study {
    const struct perf_world *world;
    const struct perf_options *options;
    const struct perf_source *source;
    struct perf_report *report; /**< rank 0 only */
    struct perf_progress *progress;
    long long rows, wrong;
};

/** Runs the study of option --study. Collective, though rank 0 alone may do the work. */
void perf_study_run(struct perf_study *study);

/** The studies. Collective. */
void perf_study_formats(struct perf_study *study);
void perf_study_hash(struct perf_study *study);
void perf_study_balance(struct perf_study *study);
void perf_study_selector(struct perf_study *study);
void perf_study_profile(struct perf_study *study);
void perf_study_threads(struct perf_study *study);
void perf_study_bcast(struct perf_study *study);

/** Start a table, and add a record to it. Called on all ranks; rank 0 prints. */
void perf_study_table(struct perf_study *study, const struct perf_schema *schema);
void perf_study_add(struct perf_study *study, const void *record);

/** Return the option's values, or the study's own if the option is absent. */
struct perf_counts perf_study_counts(const struct perf_study *study, long long otherwise);
struct perf_reals perf_study_densities(const struct perf_study *study, const double *otherwise, int n);

/** Returns the planner's map for --parts ranks with nnz of count elements each. */
struct sar_partition_map perf_study_map(const struct perf_study *study, size_t count, size_t nnz);

/** Returns the elements of a set with generated values, for perf_study_vector_free. */
struct sar_spvec perf_study_vector_make(const struct perf_case *c, const struct perf_set *set);
void perf_study_vector_free(struct sar_spvec *vec);

/** Ends all ranks if status is an error. */
void perf_study_require(enum sar_status status);

#endif
