/* SPDX-License-Identifier: BSD-3-Clause */
/* Index traces: a file with a set of indices for each rank and step, as recorded from a program.
 * mpix_sparse_perf(1) describes the format. */
#ifndef PERF_INDEX_TRACE_H
#define PERF_INDEX_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/lib/base.h"

/** A checked trace. perf_index_trace_load sets all fields. */
struct perf_index_trace {
    char *content; /**< text of the file */
    uint64_t count;
    long long row_len; /**< basic values in an element */
    int steps, ranks;
    size_t lines;   /**< lines that hold sets */
    size_t largest; /**< upper bound of the elements of a set */
};

/** Loads and checks a file. Returns false, after a sentence from rank 0, if the file is unreadable, malformed
 * or for fewer ranks. Collective. */
bool perf_index_trace_load(struct perf_index_trace *trace, const char *path, const struct perf_world *world);
void perf_index_trace_free(struct perf_index_trace *trace);

/** Sets the bits of the elements of a rank in a step. The bitmap has trace->count bits. O(file size). Local.
 */
void perf_index_trace_mark(const struct perf_index_trace *trace, int step, int rank, uint64_t *bitmap);

#endif
