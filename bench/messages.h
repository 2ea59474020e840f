/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of a call: taken down while the library makes it, and sent again without the call. */
#ifndef PERF_MESSAGES_H
#define PERF_MESSAGES_H

#include <mpi.h>

#include "base.h"
#include "base/trace.h"

struct perf_messages {
    struct sar_passage *at; /* phase by phase */
    int n, room;
    struct perf_block out, in; /* of the largest phase */
    MPI_Request *request;      /* for all messages of a phase */
    int posted;                /* of these */
    bool *far;                 /* of each rank: on another node, where long messages are throttled */
    int throttle;              /* as the library is told */
    uint64_t least;            /* bytes of a long message */
    MPI_Request *holding;      /* for as many of these as are sent at a time */
    int held;                  /* of these */
    struct sar_follower follower;
};

/* Take down what this rank sends and receives, until perf_messages_end, which is collective. */
void perf_messages_begin(struct perf_messages *messages);
void perf_messages_end(struct perf_messages *messages);

/* Send and receive bytes in their place, of the same number, with the same partners, and no more long
 * messages to other nodes at a time than the library; a phase begins when the one before is over on this
 * rank. Collective. */
void perf_messages_pass(struct perf_messages *messages);

void perf_messages_free(struct perf_messages *messages);

#endif
