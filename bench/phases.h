/* SPDX-License-Identifier: BSD-3-Clause */
/* How long the phases of calls take, as the library tells whoever follows it. What lies within a phase is
 * taken off it, so that the phases of a call add up to the call. */
#ifndef PERF_PHASES_H
#define PERF_PHASES_H

#include "base.h"
#include "base/trace.h"

enum { PERF_PHASES = 64, PERF_PHASE_NAME = 32 };

struct perf_phase {
    char name[PERF_PHASE_NAME];
    double max, mean; /* seconds a call, over ranks; in the end */
};

struct perf_phases {
    int n;
    struct perf_phase at[PERF_PHASES]; /* in the order in which they end */
};

/* Between these two, calls on this rank add to `max` of their phases. */
void perf_phases_begin(struct perf_phases *phases);
void perf_phases_end(void);

/* Put together what ranks have of so many calls. Collective. */
void perf_phases_collect(struct perf_phases *phases, int calls);

#endif
