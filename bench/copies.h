/* SPDX-License-Identifier: BSD-3-Clause */
/* What a scheme that sends no messages does to memory, without computing: ranks that share memory put their
 * elements where others see them, meet, read an equal share of everybody's, write as much of the result, and
 * meet again. A dense vector is read before that and written after it as in the row `memory`. One rank copies
 * its input. */
#ifndef PERF_COPIES_H
#define PERF_COPIES_H

#include "memory.h"

struct perf_copies {
    struct perf_memory memory;
    size_t own_bytes, share_bytes, part_bytes, all_bytes;
    struct perf_block own;   /* what is copied */
    struct perf_block shelf; /* where to */
    struct perf_block all;   /* what is read */
    struct perf_block part;  /* what is written */
};

/* Collective, all but the last. */
void perf_copies_open(struct perf_copies *copies, const struct perf_case *c,
                      const struct perf_tensor *tensor);
void perf_copies_pass(const struct perf_copies *copies, const struct perf_case *c,
                      const struct perf_step *step, void *recv);
void perf_copies_close(struct perf_copies *copies);

#endif
