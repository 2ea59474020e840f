/* SPDX-License-Identifier: BSD-3-Clause */
/* What work costs, and files of that: --costs writes them, --charge reads them. */
#ifndef PERF_COST_H
#define PERF_COST_H

#include <stdbool.h>
#include <stdio.h>

#include "base.h"

enum { PERF_KIND_MAX = 16 };

/* Of work of a kind on a format, "-" where that makes no difference. */
struct perf_cost {
    char kind[PERF_KIND_MAX], format[PERF_KIND_MAX];
    double piece, element, byte, slot; /* seconds for each */
};

/* Of what is no span of the library's: sums in MPI_Allreduce, by bytes. */
#define PERF_SUM_KIND "sum"

/* Of each kind and format one. */
struct perf_cost_list {
    struct perf_cost *at;
    size_t n, room;
};

/* The cost of a kind and a format, or NULL. */
const struct perf_cost *perf_cost_find(const struct perf_cost_list *list, const char *kind,
                                       const char *format);

/* Append a copy. */
void perf_cost_append(struct perf_cost_list *list, const struct perf_cost *cost);
void perf_cost_free(struct perf_cost_list *list);

/* Write a cost as an object, with the largest relative error that it has on what it was made of. */
void perf_cost_write(FILE *file, const struct perf_cost *cost, double misfit);

/* Append all costs of a file to a list. Collective; false where that is no such file, and rank 0 has then
 * said what is wrong with it. */
bool perf_cost_read(struct perf_cost_list *list, const char *path, const struct perf_world *world);

#endif
