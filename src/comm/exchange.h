/* SPDX-License-Identifier: BSD-3-Clause */
/* Point-to-point messages of one call, phase by phase. In a phase a rank sends at most one message to each
 * channel and expects at most one from each. The receiver learns a message's size when the message
 * arrives. */

#ifndef SAR_COMM_EXCHANGE_H
#define SAR_COMM_EXCHANGE_H

#include <stdbool.h>

#include "base/arena.h"
#include "comm/watchdog.h"
#include "wire/message.h"

/** Phases of one call whose tags differ from those of the next call. A call with more phases reuses its tags,
 * which is safe: messages between two ranks do not overtake each other. */
enum { SAR_EXCHANGE_PHASES = 4096 };

/** Messages that two ranks may exchange in one phase, each way. Channel class * ranks + peer is the peer's
 * channel of a class. Phases that need one message for each peer use class 0. */
enum { SAR_CHANNEL_CLASSES = 3 };

/** Default of comm->throttle; and the most long messages in flight below comm->window_bytes. */
enum { SAR_EXCHANGE_THROTTLE = 4, SAR_EXCHANGE_MAX_THROTTLE = 32 };

/** Returns the default of comm->window_bytes: what a link of this latency and of beta seconds a byte moves in
 * 110 latencies. Equal messages that begin together end together, and the link is idle for one latency before
 * the next ones; so it is for 1 % of the time. */
uint64_t sar_exchange_window_bytes(double alpha, double beta);

/** Counters of the messages of this rank in one call. */
struct sar_traffic {
    uint64_t bytes_sent, bytes_received, header_bytes_sent, messages_sent;
};

struct sar_chunked_send;
struct sar_chunked_recv;

/** The messages of one call. sar_exchange_open takes all memory that a call must have. A message without
 * memory for its content is received and discarded. Schemes read `arrived`, `status` and `traffic`. They may
 * set `arena`, `recv_allocator`, `wake_on_any`, `any_arrived` and `throttle`. Core sets `send_only`, and
 * exchange.c all else. */
struct sar_exchange {
    const struct sar_comm *comm;
    struct sar_arena *arena;              /**< memory for arriving messages; may be changed between phases */
    struct sar_allocator *recv_allocator; /**< for detached payloads, never freed here; NULL: use the arena */
    struct sar_msg *arrived;       /**< message of each channel; its buffer is NULL if it was discarded */
    enum sar_status status;        /**< first failure, or SAR_OK */
    struct sar_msg_header failure; /**< sent in place of messages once status is not SAR_OK */
    struct sar_traffic traffic;

    uint32_t epoch; /**< number of the call */
    int phase;
    int tag_base;                      /**< tag of class 0 in this phase */
    struct sar_wait_timer timer;       /**< of the wait for this phase */
    int expected[SAR_CHANNEL_CLASSES]; /**< expected messages that have not been probed in full */
    struct sar_chunked_recv *incoming; /**< of each channel */
    struct sar_chunked_send *outgoing; /**< of each channel */
    bool wake_on_any;                  /**< a blocking advance returns when one message has arrived */
    bool send_only;                    /**< arriving messages are left to MPI, and not waited for */
    bool any_arrived;                  /**< a message has arrived since the scheme last cleared this */

    int n_requests; /**< requests in use */
    int n_recvs;    /**< receives among them; at most one for each channel, as with sends */
    MPI_Request *requests;
    int *request_channel; /**< of each request: the channel it sends to, or ~channel for a receive */
    int *completed;       /**< output array of MPI_Testsome */

    int *send_queue;            /**< channels whose long messages wait for their turn */
    int queue_head, queue_tail; /**< the queue is send_queue[queue_head] to send_queue[queue_tail - 1] */
    int throttle;               /**< most long messages to other nodes in flight, or 0 for no limit */
    int long_in_flight;         /**< long messages to other nodes in flight */
    uint64_t bytes_in_flight;   /**< of these messages */
};

/** Prepares the messages of a call, with memory of the arena. Local. */
enum sar_status sar_exchange_open(const struct sar_comm *comm, struct sar_arena *arena,
                                  struct sar_exchange *x);

/** Begins a phase. Local, with equal epoch and phase on all ranks. */
void sar_exchange_begin_phase(struct sar_exchange *x, uint32_t epoch, int phase);

/** Sends a message to a channel, or x->failure if x->status is not SAR_OK. The message's buffers must stay
 * until the phase is done. Failures go to x->status. */
void sar_exchange_send(struct sar_exchange *x, int channel, const struct sar_msg *message);

/** Expects a message from a channel in this phase. */
void sar_exchange_expect(struct sar_exchange *x, int channel);

/** True if the expected message of a channel has arrived. */
bool sar_exchange_has_arrived(const struct sar_exchange *x, int channel);

/** Makes progress. Sets *done once all messages of the phase have been sent and have arrived. A blocking call
 * returns then, or, if x->wake_on_any, when x->any_arrived. */
void sar_exchange_advance(struct sar_exchange *x, bool block, bool *done);

/** Sets x->status unless an earlier failure did. */
void sar_exchange_fail(struct sar_exchange *x, enum sar_status status);

#endif
