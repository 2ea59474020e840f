/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the elements of the study `balance` lie: in random sets or batches of a text, stretched. */
#ifndef PERF_PATTERN_H
#define PERF_PATTERN_H

#include "workload.h"

/* A place x of a set becomes the elements x stride … x stride + run - 1. */
struct perf_pattern {
    const char *name;
    uint64_t stride, run; /* run <= stride */
    double skew;          /* 0: what the option says */
    bool text;
};

/* The i-th pattern for vectors cut into `parts`, texts having `row` values a word; false after the last. */
bool perf_pattern_get(int i, uint64_t parts, uint64_t row, struct perf_pattern *pattern);

/* A batch: the elements of each rank, and of all together. */
struct perf_batch {
    int ranks;
    uint64_t count; /* of the vector */
    struct perf_set *rank, all;
};

/* The i-th of so many batches of a pattern. Places are those of the case, whose world only says how many
 * ranks there are. */
struct perf_batch perf_batch_make(const struct perf_pattern *pattern, const struct perf_case *c,
                                  const struct perf_source *source, int i, int batches);
void perf_batch_free(struct perf_batch *batch);

#endif
