/* SPDX-License-Identifier: BSD-3-Clause */
/* The bound on messages (option --message-replay): repeats the messages of another row's
 * call, with equal sizes and ranks, or its copies in shared memory, or both, without computing. */
#ifndef PERF_MESSAGE_REPLAY_H
#define PERF_MESSAGE_REPLAY_H

#include <mpi.h>

#include "base/trace.h"
#include "bench/lib/base.h"
#include "bench/limits/copy_bound.h"

/** The recorded messages of a call. */

struct perf_message_log {
    struct sar_message_event *at; /**< ordered by phase */
    int n, capacity;
    struct perf_block out, in; /**< send and receive buffers, sized for the largest phase */
    MPI_Request *request;      /**< requests of a phase */
    int posted;                /**< requests in use */
    bool *remote; /**< for each rank: true if it is on another node, where long messages are throttled */
    int throttle; /**< value of MPIX_SPARSE_THROTTLE; 0: unlimited */
    uint64_t long_bytes;       /**< bytes from which on a message is long */
    MPI_Request *long_request; /**< requests of long messages, at most `throttle` */
    int long_posted;           /**< long requests in use */
    struct sar_trace_hook hook;
};

/** Start and end the recording of this rank's messages. perf_message_log_end is collective. */
void perf_message_log_begin(struct perf_message_log *messages);
void perf_message_log_end(struct perf_message_log *messages);

/** Repeats the recorded messages. Throttles long messages to other nodes as the library does. A phase begins
 * when the previous one is complete on this rank. Collective. */
void perf_message_log_send(struct perf_message_log *messages);

void perf_message_log_free(struct perf_message_log *messages);

/** The bound of one row. */
struct perf_message_replay {
    bool has_messages, has_copies; /**< equal on all ranks */
    struct perf_message_log log;
    struct perf_copy_bound copy_bound;
};

/** Start and end the recording. In between, all ranks make a call on step 0. `report` belongs to an earlier
 * call of the row. Collective. */
void perf_message_replay_begin(struct perf_message_replay *replay);
void perf_message_replay_end(struct perf_message_replay *replay, const struct perf_case *c,
                             const struct perf_tensor *tensor, const MPIX_Sparse_report_t *report);

/** Runs the row once. Collective. */
void perf_message_replay_run(struct perf_message_replay *replay, const struct perf_case *c,
                             const struct perf_step *step, void *recv);

/** Writes a description of the row to `text`. */
void perf_message_replay_describe(const struct perf_message_replay *replay, char *text, size_t size);

void perf_message_replay_free(struct perf_message_replay *replay);

#endif
