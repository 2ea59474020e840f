/* SPDX-License-Identifier: BSD-3-Clause */
/* Workloads: the index set of a rank in a step. Sets are drawn at random, are the words of a text, or come
 * from a trace. */
#ifndef PERF_WORKLOAD_H
#define PERF_WORKLOAD_H

#include <stdint.h>

#include "bench/lib/case.h"
#include "bench/lib/index_trace.h"
#include "bench/lib/text.h"

enum { PERF_STRIPS = 3 };

/** A synthetic tensor like the gradients of a model in the Zen paper. The vector is cut into strips, the
 * densest first. In each strip a rank draws its elements independently of the other ranks, so the densities
 * of the strips determine overlap and density of the union. */
struct perf_model {
    const char *name;
    uint64_t count; /**< elements */
    double density; /**< fraction of the elements that a rank has */
    struct {
        double end;   /**< end of the strip, as a fraction of the vector */
        double share; /**< fraction of a rank's elements before that end */
    } strip[PERF_STRIPS];
};

/** Returns the i-th model, or NULL after the last. */
const struct perf_model *perf_model_get(int i);
const char *perf_model_name(int i);

enum { PERF_WORKLOAD_MAX = PERF_PATH_MAX + 8 };

/** A loaded source of sets. Only the member that belongs to `kind` is set. */
struct perf_source {
    int kind; /**< enum perf_workload_kind */
    const struct perf_model *model;
    struct perf_text text;
    struct perf_index_trace trace;
};

/** Loads the source that the options name; a text needs `least` words. A trace sets options->row_len. Returns
 * false, after a sentence from rank 0, on failure. Collective. */
bool perf_source_load(struct perf_source *source, struct perf_options *options, size_t least,
                      const struct perf_world *world);
void perf_source_free(struct perf_source *source);

/** Writes the value of option --workload to `name`. */
void perf_source_name(const struct perf_workload_spec *content, char *name, size_t size);

/** Sets the size of a case to that of the source. Returns false if the options determine the size. */
bool perf_source_size(const struct perf_source *source, struct perf_case *c);

/** Ascending indices without duplicates. `at` is for perf_set_free. */
struct perf_set {
    size_t n;
    uint64_t *at;
};

void perf_set_free(struct perf_set *set);

/** Returns the set of this rank in step `step` of `steps`. A random set depends on seed, rank and step, but
 * not on the number of ranks. A text must have a batch for each rank. Local. */
struct perf_set perf_workload_draw(const struct perf_case *c, const struct perf_source *source, int step,
                                   int steps);

/** Returns an upper bound of the elements of a set. */
size_t perf_workload_max(const struct perf_case *c, const struct perf_source *source);

/** Returns the number of steps with different sets; SIZE_MAX if unlimited. */
size_t perf_workload_steps(const struct perf_case *c, const struct perf_source *source);

#endif
