/* SPDX-License-Identifier: BSD-3-Clause */
/* The row `skeleton`: the messages of another row's call, of their sizes and between the same ranks, copies
 * of the bytes that it moves in memory that ranks share, or both; and no computing. */
#ifndef PERF_SKELETON_H
#define PERF_SKELETON_H

#include "copies.h"
#include "messages.h"

struct perf_skeleton {
    bool sends, copies_too; /* messages, copies; equal on all ranks */
    struct perf_messages messages;
    struct perf_copies copies;
};

/* Between these two, all ranks make the call on step 0, as one reported that was made before. Collective. */
void perf_skeleton_begin(struct perf_skeleton *skeleton);
void perf_skeleton_end(struct perf_skeleton *skeleton, const struct perf_case *c,
                       const struct perf_tensor *tensor, const MPIX_Sparse_report_t *report);

/* Collective. */
void perf_skeleton_pass(struct perf_skeleton *skeleton, const struct perf_case *c,
                        const struct perf_step *step, void *recv);

/* What the row does, in words. */
void perf_skeleton_tell(const struct perf_skeleton *skeleton, char *text, size_t room);

void perf_skeleton_free(struct perf_skeleton *skeleton);

#endif
