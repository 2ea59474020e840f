/* SPDX-License-Identifier: BSD-3-Clause */
/* Costs of the library's work: files of costs (--costs writes them, --charge reads them) and the modelled
 * time of a run. The library's trace reports each piece of work with its elements, bytes and slots. In a
 * simulation, where computing takes no time, each piece sleeps for its modelled time. Otherwise measured and
 * modelled times are summed for comparison. */
#ifndef PERF_SIM_WORK_H
#define PERF_SIM_WORK_H

#include <stdbool.h>
#include <stdio.h>

#include "base/trace.h"
#include "bench/lib/base.h"

enum { PERF_KIND_MAX = 16 };

/** The cost of one kind of work on one format ("-" if the cost does not depend on the format). */
struct perf_work_cost {
    char kind[PERF_KIND_MAX], format[PERF_KIND_MAX];
    double piece, element, byte, slot; /**< seconds for each */
};

/** The kind of the sums inside MPI_Allreduce, by bytes. The library has no span for them. */
#define PERF_SUM_KIND "sum"

/** Costs, at most one for each kind and format. */
struct perf_work_cost_list {
    struct perf_work_cost *at;
    size_t n, capacity;
};

/** Returns the cost of a kind and a format, or NULL. */
const struct perf_work_cost *perf_work_cost_find(const struct perf_work_cost_list *list, const char *kind,
                                                 const char *format);

/** Appends a copy. */
void perf_work_cost_append(struct perf_work_cost_list *list, const struct perf_work_cost *cost);
void perf_work_cost_free(struct perf_work_cost_list *list);

/** Writes a cost as a JSON object, with the largest relative error of its fit. */
void perf_work_cost_write(FILE *file, const struct perf_work_cost *cost, double misfit);

/** Appends all costs of a file to a list. Returns false, after a sentence from rank 0, if the file is
 * malformed. Collective. */
bool perf_work_cost_read(struct perf_work_cost_list *list, const char *path, const struct perf_world *world);

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
