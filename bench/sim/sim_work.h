/* SPDX-License-Identifier: BSD-3-Clause */
/* The modelled time of a run, by a file of costs. The library's trace reports each piece of work with its
 * elements, bytes and slots. In a simulation, where computing takes no time, each piece sleeps for its
 * modelled time. Otherwise measured and modelled times are summed for comparison. */
#ifndef PERF_SIM_WORK_H
#define PERF_SIM_WORK_H

#include "base/trace.h"
#include "bench/sim/work_cost.h"

enum { PERF_BANDWIDTH_OF_COPY = 8 /**< bandwidth of a node's memory over that of a copy by one thread */ };

/** Options of the cost model that charges work. */
struct perf_charge {
    const char *path;        /**< file of costs */
    double scale;            /**< factor of the costs of elements, bytes and slots */
    int threads;             /**< most threads that a row asks for */
    double memory_bandwidth; /**< of a node, in bytes a second; 0: PERF_BANDWIDTH_OF_COPY copies */
};

/** Reads a file and starts to model work. Ranks of a node have equal shares of its memory bandwidth. Returns
 * false, after a sentence from rank 0, if the file is malformed, or does not tell what so many threads cost.
 * Collective. */
bool perf_sim_work_open(const struct perf_charge *charge, const struct perf_world *world);

/** Sets the threads that the library may use in the next calls; 1 at first. */
void perf_sim_work_set_threads(int threads);

/** Waits for all ranks. In a simulation they go on at one instant: the last rank to come to a barrier is the
 * first to leave it, since it finds the messages of the others there. Collective. */
void perf_sim_work_align(void);

/** Installs the trace hook that models work, or no hook if no file is open. To be called after another hook
 * was in use. */
void perf_sim_work_trace(void);

/** The member `on_work` of trace hooks: models a piece of work. */
void perf_sim_work_on_work(void *data, const struct sar_span *span, int64_t until);

/** Seconds of work: measured, by the costs of the file, and those of the latter that are extrapolated. */
struct perf_sim_work {
    double measured, modelled, extrapolated;
};

/** Sets the sums of this rank to zero. */
void perf_sim_work_reset(void);

/** Adds the sums of this rank since the last reset; zero without a file. */
void perf_sim_work_add(struct perf_sim_work *seconds);

/** Turns sums over `calls` calls into seconds of one call, the mean over ranks; NaN without a file.
 * Collective. */
void perf_sim_work_collect(struct perf_sim_work *seconds, int calls);

#endif
