/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_NET_EXCHANGE_H
#define SAR_NET_EXCHANGE_H

#include <stdbool.h>

#include "base/arena.h"
#include "net/net.h"
#include "wire/message.h"

/** Phases of one call whose tags differ from those of the next; a call with more uses tags again, which is
 * safe since messages of one pair of ranks do not overtake each other. */
enum { SAR_PHASES = 4096 };

/** What a call moved, on this rank. */
struct sar_traffic {
    uint64_t bytes_sent, bytes_received, header_bytes_sent, messages_sent;
};

/** The messages of one call, phase by phase. In a phase each rank sends any peer at most one message and
 * expects from any peer at most one, whose size is found when it arrives. Everything that may fail is taken
 * by sar_exchange_open; a message for which memory is lacking is received and dropped. */
struct sar_exchange {
    const struct sar_net *net;
    struct sar_arena *arena;
    struct sar_message *arrived; /**< of each peer; a null buffer when it was dropped */
    enum sar_status status;      /**< the first thing that went wrong, SAR_OK so far */
    struct sar_header failure;   /**< sent in place of messages once status is not SAR_OK */
    struct sar_traffic traffic;
    int tag;      /**< of the present phase */
    int expected; /**< messages of this phase not yet seen */
    int pending;  /**< entries of requests in use */
    MPI_Request *requests;
    bool *awaited; /**< of each peer */
};

/** Prepare the messages of a call. Local. */
enum sar_status sar_exchange_open(const struct sar_net *net, struct sar_arena *arena, struct sar_exchange *x);

/** Begin a phase of a call; equal arguments on all ranks. */
void sar_exchange_phase(struct sar_exchange *x, uint32_t epoch, int phase);

/** Send a message to a peer, or the fact of a failure when x->status says so. The buffer must stay until the
 * phase is over. Never fails in itself: what goes wrong is kept in x->status. */
void sar_exchange_send(struct sar_exchange *x, int peer, const struct sar_message *message);

/** Expect a message from a peer. */
void sar_exchange_expect(struct sar_exchange *x, int peer);

/** Make progress. *done when all messages of the phase have been sent and have arrived. */
void sar_exchange_advance(struct sar_exchange *x, bool block, bool *done);

/** Keep the first failure. */
void sar_exchange_fail(struct sar_exchange *x, enum sar_status status);

#endif
