/* SPDX-License-Identifier: BSD-3-Clause */
/* The modelled time of a run, by a file of costs. The library's trace reports each piece of work with its
 * elements, bytes and slots. In a simulation, where computing takes no time, each piece sleeps for its
 * modelled time. Otherwise measured and modelled times are summed for comparison. */
#ifndef PERF_SIM_WORK_H
#define PERF_SIM_WORK_H

#include "base/trace.h"
#include "bench/sim/work_cost.h"

/** Reads a file and starts to model work. Costs of elements, bytes and slots are multiplied by the scale.
 * Returns false, after a sentence from rank 0, if the file is malformed. Collective. */
bool perf_sim_work_open(const char *path, double scale, const struct perf_world *world);

/** Installs the trace hook that models work, or no hook if no file is open. To be called after another hook
 * was in use. */
void perf_sim_work_trace(void);

/** The member `on_work` of trace hooks: models a piece of work. */
void perf_sim_work_on_work(void *data, const struct sar_span *span, int64_t until);

/** Seconds of work: measured, and by the costs of the file. */
struct perf_sim_work {
    double measured, modelled;
};

/** Sets the sums of this rank to zero. */
void perf_sim_work_reset(void);

/** Adds the sums of this rank since the last reset; zero without a file. */
void perf_sim_work_add(struct perf_sim_work *seconds);

/** Turns sums over `calls` calls into seconds of one call, the mean over ranks; NaN without a file.
 * Collective. */
void perf_sim_work_collect(struct perf_sim_work *seconds, int calls);

#endif
