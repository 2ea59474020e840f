/* SPDX-License-Identifier: BSD-3-Clause */
#include "skeleton.h"

void perf_skeleton_begin(struct perf_skeleton *skeleton)
{
    perf_messages_begin(&skeleton->messages);
}

void perf_skeleton_end(struct perf_skeleton *skeleton, const struct perf_case *c,
                       const struct perf_tensor *tensor)
{
    int messages;

    perf_messages_end(&skeleton->messages);
    MPI_Allreduce(&skeleton->messages.n, &messages, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    skeleton->by_messages = messages > 0;
    if (!skeleton->by_messages)
        perf_copies_open(&skeleton->copies, c, tensor);
}

void perf_skeleton_pass(struct perf_skeleton *skeleton, const struct perf_case *c,
                        const struct perf_step *step, void *recv)
{
    if (skeleton->by_messages)
        perf_messages_pass(&skeleton->messages);
    else
        perf_copies_pass(&skeleton->copies, c, step, recv);
}

void perf_skeleton_free(struct perf_skeleton *skeleton)
{
    perf_messages_free(&skeleton->messages);
    perf_copies_close(&skeleton->copies);
}
