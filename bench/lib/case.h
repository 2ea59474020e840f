/* SPDX-License-Identifier: BSD-3-Clause */
/* A case: one tensor and one reduction. All rows of a case are measured on the same data. */
#ifndef PERF_CASE_H
#define PERF_CASE_H

#include <mpi.h>

#include "bench/lib/base.h"
#include "bench/lib/number.h"
#include "bench/lib/options.h"

struct perf_case {
    const struct perf_world *world;
    const struct perf_options *options;
    const struct perf_type *type;
    int op;         /**< enum perf_op */
    int index;      /**< enum perf_index, but never PERF_INDEX_AUTO */
    size_t count;   /**< elements of the vector */
    size_t row_len; /**< basic values in an element */
    double density;
    size_t element_bytes, index_bytes;
    MPI_Datatype basic, element, index_type;
    MPI_Op mpi_op;
};

/** Sets type and op, which are indices into perf_types and of enum perf_op. The case borrows world and
 * options. Local. */
void perf_case_make(struct perf_case *c, const struct perf_world *world, const struct perf_options *options,
                    int type, int op);
/** Sets the size. To be called at least once, after perf_case_make. */
void perf_case_size(struct perf_case *c, size_t count, double density);
void perf_case_free(struct perf_case *c);

/** Returns the precision in which the library sends the case's floats: enum perf_values. */
int perf_case_values(const struct perf_case *c);

/** True if results can be compared with MPI_Allreduce bit by bit. Rounded values qualify as long as all
 * partial sums are exact. */
bool perf_case_is_exact(const struct perf_case *c);

/** Returns the bytes of the dense vector. */
static inline size_t perf_case_bytes(const struct perf_case *c)
{
    return c->count * c->element_bytes;
}

#endif
