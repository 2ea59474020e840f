/* SPDX-License-Identifier: BSD-3-Clause */
/* A case: one tensor and one reduction, on which all rows are compared. */
#ifndef PERF_CASE_H
#define PERF_CASE_H

#include <mpi.h>

#include "base.h"
#include "number.h"
#include "options.h"

struct perf_case {
    const struct perf_world *world;
    const struct perf_options *options;
    const struct perf_type *type;
    int op;       /* enum perf_op */
    int index;    /* enum perf_index, never PERF_INDEX_AUTO */
    size_t count; /* elements */
    size_t row;   /* basic values in an element */
    double density;
    size_t element_bytes, index_bytes;
    MPI_Datatype basic, element, index_type;
    MPI_Op mpi_op;
};

/* Type and op are places in their tables. The case borrows world and options. */
void perf_case_make(struct perf_case *c, const struct perf_world *world, const struct perf_options *options,
                    int type, int op);
void perf_case_size(struct perf_case *c, size_t count, double density);
void perf_case_free(struct perf_case *c);

/* How the values of a case travel: enum perf_values. */
int perf_case_values(const struct perf_case *c);

/* Whether results can be compared with MPI_Allreduce's: values that travel rounded are exact while all their
 * sums are. */
bool perf_case_is_exact(const struct perf_case *c);

static inline size_t perf_case_bytes(const struct perf_case *c)
{
    return c->count * c->element_bytes;
}

#endif
