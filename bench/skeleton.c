/* SPDX-License-Identifier: BSD-3-Clause */
#include "skeleton.h"

#include <stdio.h>

void perf_skeleton_begin(struct perf_skeleton *skeleton)
{
    perf_messages_begin(&skeleton->messages);
}

void perf_skeleton_end(struct perf_skeleton *skeleton, const struct perf_case *c,
                       const struct perf_tensor *tensor, const MPIX_Sparse_report_t *report)
{
    int messages;

    perf_messages_end(&skeleton->messages);
    MPI_Allreduce(&skeleton->messages.n, &messages, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    skeleton->sends = messages > 0;
    skeleton->copies_too = perf_copies_have_levels(report) || !skeleton->sends;
    if (skeleton->copies_too)
        perf_copies_open(&skeleton->copies, c, tensor, report);
}

void perf_skeleton_pass(struct perf_skeleton *skeleton, const struct perf_case *c,
                        const struct perf_step *step, void *recv)
{
    if (skeleton->copies_too)
        perf_copies_before(&skeleton->copies, c, step, recv);
    if (skeleton->sends)
        perf_messages_pass(&skeleton->messages);
    if (skeleton->copies_too)
        perf_copies_after(&skeleton->copies, c, step, recv);
}

void perf_skeleton_tell(const struct perf_skeleton *skeleton, char *text, size_t room)
{
    int n = snprintf(text, room, "%s of the row before, without computing",
                     !skeleton->sends       ? "copies of the bytes"
                     : skeleton->copies_too ? "the messages and copies of the bytes"
                                            : "the messages");

    if (skeleton->copies_too && n > 0 && (size_t)n < room)
        snprintf(text + n, room - (size_t)n, ": %llu bytes read and written in memory",
                 skeleton->copies.most);
}

void perf_skeleton_free(struct perf_skeleton *skeleton)
{
    perf_messages_free(&skeleton->messages);
    perf_copies_close(&skeleton->copies);
}
