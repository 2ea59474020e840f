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

/** Messages that two ranks may exchange in one phase, each way. The message of a peer's lane has the port
 * lane * ranks + peer; lane 0 is for those that need no more. */
enum { SAR_LANES = 2 };

/** Long messages to other nodes at a time where it is not known what more would gain. */
enum { SAR_FEW_LONG = 4 };

/** What a call moved, on this rank. */
struct sar_traffic {
    uint64_t bytes_sent, bytes_received, header_bytes_sent, messages_sent;
};

struct sar_sending;
struct sar_receiving;

/** The messages of one call, phase by phase. In a phase each rank sends to any port at most one message and
 * expects from any port at most one, whose size is found when it arrives. What may fail for lack of memory is
 * taken by sar_exchange_open; a message for which memory is lacking is received and dropped. */
struct sar_exchange {
    const struct sar_net *net;
    struct sar_arena *arena;     /**< for what arrives; may be changed between phases */
    struct sar_supply *landing;  /**< of memory that MPI has, for payloads that come apart from their headers;
                                  * NULL: behind these. It is not given back */
    struct sar_message *arrived; /**< of each port; a null buffer when it was dropped */
    enum sar_status status;      /**< the first thing that went wrong, SAR_OK so far */
    struct sar_header failure;   /**< sent in place of messages once status is not SAR_OK */
    struct sar_traffic traffic;
    int tag;        /**< of lane 0 in the present phase */
    uint32_t epoch; /**< the call, of which it is the phase */
    int phase;
    struct sar_stall stall;         /**< of the wait for it */
    int expected[SAR_LANES];        /**< messages of this phase not yet seen */
    struct sar_receiving *incoming; /**< of each port */
    struct sar_sending *outgoing;
    int pending;   /**< entries of requests in use */
    int receiving; /**< of these, receives: never more than there are ports, as sends are */
    MPI_Request *requests;
    int *ports;     /**< of each request: the port it sends to, or the complement of that it receives from */
    int *over;      /**< MPI's list of requests that are */
    bool piecemeal; /**< set in a phase by who would work on messages before all are there */
    bool news;      /**< one has come; to be taken back by who has seen it */
    int *held; /**< ports whose long messages to other nodes wait, in order: from held_first up to held_end */
    int held_first, held_end;
    int throttle;  /**< most long messages to other nodes under way, or 0: all; not while any is held */
    int throttled; /**< how many are */
};

/** Prepare the messages of a call. Local. */
enum sar_status sar_exchange_open(const struct sar_net *net, struct sar_arena *arena, struct sar_exchange *x);

/** Begin a phase of a call; equal arguments on all ranks. */
void sar_exchange_phase(struct sar_exchange *x, uint32_t epoch, int phase);

/** Send a message to a port, or the fact of a failure when x->status says so. The buffer must stay until the
 * phase is over. Never fails in itself: what goes wrong is kept in x->status. */
void sar_exchange_send(struct sar_exchange *x, int port, const struct sar_message *message);

/** Expect a message from a port. */
void sar_exchange_expect(struct sar_exchange *x, int port);

/** Whether the message that this phase expected from a port is there. */
bool sar_exchange_has(const struct sar_exchange *x, int port);

/** Make progress. *done when all messages of the phase have been sent and have arrived. Where x->piecemeal is
 * set, a blocking call also returns when a message has come. */
void sar_exchange_advance(struct sar_exchange *x, bool block, bool *done);

/** Keep the first failure. */
void sar_exchange_fail(struct sar_exchange *x, enum sar_status status);

#endif
