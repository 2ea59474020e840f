/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of each rank that the others of its node read, as those of `shared` do. */
#ifndef PERF_SHELF_H
#define PERF_SHELF_H

#include "base.h"
#include "net/segment.h"

struct perf_shelf {
    int rank, ranks;              /* this one and all, of the node */
    struct sar_segment *segments; /* of each rank, in the order in which this one reads them, its own first */
    struct perf_block alone;      /* in their place where ranks cannot share memory */
};

/* As many bytes of this rank, which are written. Collective. */
void perf_shelf_open(struct perf_shelf *shelf, const struct perf_world *world, size_t bytes);

/* Where this rank writes. */
void *perf_shelf_data(const struct perf_shelf *shelf);

/* Read so many bytes: an equal share of what each rank of the node has written, as often as makes them, if
 * that is about as much as this one has. */
void perf_shelf_read(const struct perf_shelf *shelf, size_t bytes, size_t written);

void perf_shelf_close(struct perf_shelf *shelf);

#endif
