/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the sets of a run come from. */
#ifndef PERF_SOURCE_H
#define PERF_SOURCE_H

#include "case.h"
#include "models.h"
#include "replay.h"
#include "text.h"

enum { PERF_WORKLOAD_MAX = PERF_PATH_MAX + 8 };

struct perf_source {
    int kind; /* enum perf_workload_kind */
    const struct perf_model *model;
    struct perf_text text;
    struct perf_replay replay;
};

/* Load what the options name; `least` words of a text. A trace decides on the option --row. Collective.
 * False, and a sentence from rank 0, when that cannot be done. */
bool perf_source_load(struct perf_source *source, struct perf_options *options, size_t least,
                      const struct perf_world *world);
void perf_source_free(struct perf_source *source);

/* What the option --workload says. */
void perf_source_name(const struct perf_content *content, char *name, size_t room);

/* Give a case the size that the source has; false where that is left to the options. */
bool perf_source_size(const struct perf_source *source, struct perf_case *c);

#endif
