/* SPDX-License-Identifier: BSD-3-Clause */
/* The option --charge: what the library's work would take by a file of --costs. The trace tells of each piece
 * of work what its time follows from. In a simulation, where computing takes no time, it takes as long as the
 * file says; elsewhere both are added up. */
#ifndef PERF_CHARGE_H
#define PERF_CHARGE_H

#include <stdbool.h>

#include "base.h"
#include "base/trace.h"
#include "cost.h"

/* Read the file, and charge from now on; costs of elements, bytes and slots are multiplied by the scale.
 * Collective; false, with a sentence from rank 0, if it is no file of costs. */
bool perf_charge_open(const char *path, double scale, const struct perf_world *world);

/* Follow the library's work if there is a file, and nothing if there is none: whoever has followed something
 * else calls this in the end. */
void perf_charge_follow(void);

/* For followers of one's own. */
void perf_charge_work(void *data, const struct sar_span *span, int64_t until);

/* Seconds of work: those that went by, and those of the file. */
struct perf_charges {
    double work, charged;
};

/* Forget what this rank has had until now. */
void perf_charge_forget(void);

/* Add what it has had since then; nothing without a file. */
void perf_charge_add(struct perf_charges *charges);

/* Make charges those of one of so many calls, means over ranks; NaN without a file. Collective. */
void perf_charge_collect(struct perf_charges *charges, int calls);

#endif
