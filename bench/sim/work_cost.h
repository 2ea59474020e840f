/* SPDX-License-Identifier: BSD-3-Clause */
/* Costs of the library's work: lists, and files that --costs writes and --charge reads. */
#ifndef PERF_WORK_COST_H
#define PERF_WORK_COST_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/lib/base.h"

enum { PERF_KIND_MAX = 16 };

/** The cost of one kind of work on one format ("-" if the cost does not depend on the format), by a number of
 * threads. */
struct perf_work_cost {
    char kind[PERF_KIND_MAX], format[PERF_KIND_MAX];
    int threads;
    double piece, element, byte, slot; /**< seconds for each */
};

/** The kind of the sums inside MPI_Allreduce, by bytes. The library has no span for them. */
#define PERF_SUM_KIND "sum"

/** Costs, at most one for each kind, format and number of threads. */
struct perf_work_cost_list {
    struct perf_work_cost *at;
    size_t n, capacity;
    double copy_rate; /**< bytes a second that a copy by one thread reads and writes; 0 if unknown */
};

/** Returns the cost of a kind and a format by so many threads, or NULL. */
const struct perf_work_cost *perf_work_cost_find(const struct perf_work_cost_list *list, const char *kind,
                                                 const char *format, int threads);

/** Returns the largest number of threads of all costs, or 0. */
int perf_work_cost_threads(const struct perf_work_cost_list *list);

/** Appends a copy. */
void perf_work_cost_append(struct perf_work_cost_list *list, const struct perf_work_cost *cost);
void perf_work_cost_free(struct perf_work_cost_list *list);

/** Writes a cost as a JSON object, with the largest relative error of its fit. */
void perf_work_cost_write(FILE *file, const struct perf_work_cost *cost, double misfit);

/** Appends all costs of a file to a list. Returns false, after a sentence from rank 0, if the file is
 * malformed. Collective. */
bool perf_work_cost_read(struct perf_work_cost_list *list, const char *path, const struct perf_world *world);

#endif
