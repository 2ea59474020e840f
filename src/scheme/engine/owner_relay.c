/* SPDX-License-Identifier: BSD-3-Clause */
/* The relayed pull of owner-based schemes: deferrals, routes from the sizes of all messages, and relays. A
 * relay sends a message on as it has received it. Every rank sends every other one a message in the step
 * of relays, so that a rank which cannot compute the routes leaves no rank waiting.
 *
 * The limit counts from the first segment on: an owner whose part of one segment is small may send more of
 * the next one itself. */

#include <string.h>

#include "scheme/engine/owner_internal.h"

enum sar_status sar_owner_relay_begin(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    size_t ranks = (size_t)task->comm->ranks;
    SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->relay.sent, &o->relay.sent));
    SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->relay.layout.window, &o->relay.layout.window));
    SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->relay.routes.incoming, &o->relay.routes.incoming));
    return sar_task_alloc(task, ranks, sizeof *o->relay.routes.outgoing, &o->relay.routes.outgoing);
}

/* Returns the bytes of an owner's message to those receivers that may get it from a relay. */
static uint64_t relayable_bytes(const struct sar_task *task, int owner, uint32_t segment,
                                const struct sar_msg_size *size)
{
    const struct sar_owner *o = task->state;
    if (!sar_columns_sliced(&o->parts.columns))
        return size->bytes;
    struct sar_wire_layout layout = sar_owner_part_layout(task, owner, segment);
    return sar_add_saturate(sar_mul_saturate(size->nnz, layout.element_size), SAR_MSG_HEADER_BYTES);
}

/* Sets the window of an owner in a segment. Returns the messages that the owner sends itself. */
static int set_window(const struct sar_task *task, int owner, uint32_t segment, uint64_t bytes)
{
    const struct sar_owner *o = task->state;
    uint64_t limit = sar_mul_saturate(o->relay.limit, (uint64_t)segment + 1), sent = o->relay.sent[owner];
    return sar_relay_set_window(&o->relay.layout, owner, bytes, limit > sent ? limit - sent : 0);
}

enum sar_status sar_owner_relay_defer(struct sar_task *task, uint32_t segment)
{
    struct sar_owner *o = task->state;
    int rank = task->comm->rank;
    struct sar_msg_size size = { o->reduce.sums[sar_owner_sums_index(segment)].nnz,
                                 o->pull.outgoing[sar_owner_sums_index(segment)].bytes };
    size.bytes = relayable_bytes(task, rank, segment, &size);
    set_window(task, rank, segment, size.bytes);
    return sar_task_encode_deferral(task, sar_owner_part_layout(task, rank, segment), &size,
                                    &o->relay.deferral[segment % 2]);
}

const struct sar_msg *sar_owner_relay_deferral(const struct sar_task *task, uint32_t segment, int receiver)
{
    const struct sar_owner *o = task->state;
    bool defers = o->relay.limit > 0 && task->exchange.status == SAR_OK &&
                  sar_relay_is_deferred(&o->relay.layout, task->comm->rank, receiver);
    return defers ? &o->relay.deferral[segment % 2] : NULL;
}

/* Reads the size of each owner's message, and sets its window. The segment that this rank sends next has
 * another window on this rank: sar_owner_relay_defer sets it afterwards. */
static enum sar_status read_sizes(struct sar_task *task, uint32_t segment)
{
    struct sar_owner *o = task->state;
    for (int owner = 0; owner < task->comm->ranks; owner++) {
        const struct sar_msg *message = owner == task->comm->rank ? &o->relay.deferral[segment % 2]
                                                                  : &o->pull.received[segment % 2][owner];
        struct sar_msg_size size;
        SAR_TRY(sar_task_read_size(task, sar_owner_part_layout(task, owner, segment), message, &size));
        uint64_t bytes = relayable_bytes(task, owner, segment, &size);
        int direct = set_window(task, owner, segment, bytes);
        o->relay.sent[owner] =
            sar_add_saturate(o->relay.sent[owner], sar_mul_saturate(bytes, (uint64_t)direct));
    }
    return SAR_OK;
}

enum sar_status sar_owner_relay_route(struct sar_task *task, uint32_t segment)
{
    struct sar_owner *o = task->state;
    struct sar_relay_scratch scratch;
    struct sar_msg_size none = { 0, 0 };
    void *load, *used;
    int ranks = task->comm->ranks, rank = task->comm->rank;
    SAR_TRY(read_sizes(task, segment));
    SAR_TRY(sar_arena_alloc_zeroed(task->memory.step_arena, (size_t)ranks, sizeof *scratch.load, &load));
    SAR_TRY(sar_arena_alloc_zeroed(task->memory.step_arena, sar_relay_pair_bytes(ranks), 1, &used));
    scratch = (struct sar_relay_scratch){ load, used };
    if (!sar_relay_route(&o->relay.layout, rank, &scratch, &o->relay.routes))
        return SAR_CORRUPT;
    return sar_task_encode_deferral(task, sar_owner_part_layout(task, rank, segment), &none,
                                    &o->relay.nothing);
}

/* Routes exist if the call has not failed. */
void sar_owner_post_relays(struct sar_task *task, uint32_t segment)
{
    struct sar_owner *o = task->state;
    struct sar_exchange *x = &task->exchange;
    int ranks = task->comm->ranks, rank = task->comm->rank;
    for (int r = 0; r < ranks; r++)
        if (r != rank)
            sar_exchange_expect(x, sar_owner_channel(task, SAR_OWNER_RELAY, r));
    for (int i = 1; i < ranks; i++) {
        int receiver = (rank + i) % ranks,
            owner = x->status == SAR_OK ? o->relay.routes.outgoing[receiver] : -1;
        sar_exchange_send(x, sar_owner_channel(task, SAR_OWNER_RELAY, receiver),
                          owner < 0 ? &o->relay.nothing : &o->pull.received[segment % 2][owner]);
        task->report.messages_relayed += owner >= 0;
    }
}

/* Checks a message that relays nothing: its sender may have failed. */
static enum sar_status check_nothing(struct sar_task *task, uint32_t segment, int sender,
                                     const struct sar_msg *message)
{
    struct sar_msg_size size;
    SAR_TRY(sar_task_read_size(task, sar_owner_part_layout(task, sender, segment), message, &size));
    return size.nnz == 0 && size.bytes == 0 ? SAR_OK : SAR_CORRUPT;
}

enum sar_status sar_owner_relay_collect(struct sar_task *task, uint32_t segment)
{
    struct sar_owner *o = task->state;
    for (int r = 0; r < task->comm->ranks; r++) {
        const struct sar_msg *message = &task->exchange.arrived[sar_owner_channel(task, SAR_OWNER_RELAY, r)];
        int owner = o->relay.routes.incoming[r];
        if (owner >= 0)
            o->pull.received[segment % 2][owner] = *message;
        else if (r != task->comm->rank)
            SAR_TRY(check_nothing(task, segment, r, message));
    }
    return SAR_OK;
}
