/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that owner_parts.c, owner_stages.c, owner_pull.c, owner_output.c, owner_half.c, owner_rows.c,
 * owner_relay.c, owner_cost.c and owner_work.c share; no other file uses them. */

#ifndef SAR_SCHEME_ENGINE_OWNER_INTERNAL_H
#define SAR_SCHEME_ENGINE_OWNER_INTERNAL_H

#include "scheme/engine/owner.h"

/** Classes of channels, so that one step may have a push, a pull and relays. */
enum sar_owner_channel_class { SAR_OWNER_PUSH, SAR_OWNER_PULL, SAR_OWNER_RELAY };

static inline int sar_owner_channel(const struct sar_task *task, enum sar_owner_channel_class channel_class,
                                    int rank)
{
    return (int)channel_class * task->comm->ranks + rank;
}

/** Returns true if this rank sends to the owner of a part; without peers, to every owner. */
bool sar_owner_sends_to(const struct sar_task *task, int owner);

/** Returns the i-th of the ranks whose elements this rank reduces, itself included; -1 after the last. */
int sar_owner_source(const struct sar_task *task, int i);

/** Returns the owner number of a rank, and the rank of an owner number. */
int sar_owner_number(const struct sar_task *task, int rank);
int sar_owner_rank(const struct sar_task *task, int number);

/** Returns the layout of messages about the slots, or their slices, that a rank owns of a segment. */
struct sar_wire_layout sar_owner_part_layout(const struct sar_task *task, int rank, uint32_t segment);

/** Returns the map, with slots counted from the segment on. */
struct sar_partition_map sar_owner_segment_map(const struct sar_owner *owner, uint32_t segment);

/** Returns this rank's elements of the next segment, which share the arrays of the input. */
struct sar_spvec sar_owner_next_input(struct sar_task *task, uint32_t segment);

/** Makes the part of an owner: its slice of this rank's rows of a segment, in push.rows. */
enum sar_status sar_owner_gather_part(struct sar_task *task, uint32_t segment, int owner);

/** Keeps the pull messages of the step before; they are decoded while the messages of the next step are in
 * flight. So are the push messages, if they are reduced then. If the pull is relayed, computes the routes of
 * these messages, and keeps the relayed messages of the segment before. */
enum sar_status sar_owner_keep_messages(struct sar_task *task);

/** Sends a segment's sums of this rank's part, and expects those of the others. */
void sar_owner_post_pull(struct sar_task *task, uint32_t segment);

/** Returns the steps from the push of a segment to its pull, and from its push to its output. */
static inline uint32_t sar_owner_pull_lag(const struct sar_owner *owner)
{
    if (!owner->parts.pushes)
        return 0;
    return owner->parts.reduces_in_flight ? 2 : 1;
}

static inline uint32_t sar_owner_output_lag(const struct sar_owner *owner)
{
    if (!owner->parts.pulls)
        return 1;
    return sar_owner_pull_lag(owner) + (owner->relay.limit > 0 ? 2 : 1);
}

/** Returns the place of a segment's sums, their hash and their message. */
static inline int sar_owner_sums_index(uint32_t segment)
{
    return (int)(segment % SAR_STEP_ARENAS);
}

/** Allocates the state of a relayed pull in the call arena. */
enum sar_status sar_owner_relay_begin(struct sar_task *task);

/** Decides to which ranks this rank sends its sums of a segment itself, and encodes the deferral for
 * others. */
enum sar_status sar_owner_relay_defer(struct sar_task *task, uint32_t segment);

/** Returns the deferral, if this rank does not send its sums of a segment to a receiver itself, or NULL. */
const struct sar_msg *sar_owner_relay_deferral(const struct sar_task *task, uint32_t segment, int receiver);

/** Computes the routes of a segment whose messages and deferrals have arrived. */
enum sar_status sar_owner_relay_route(struct sar_task *task, uint32_t segment);

/** Relays a segment's messages by these routes, and expects a message from every rank. */
void sar_owner_post_relays(struct sar_task *task, uint32_t segment);

/** Puts the relayed messages of a segment where its direct ones are. */
enum sar_status sar_owner_relay_collect(struct sar_task *task, uint32_t segment);

/** Makes room for n more elements of the result. */
enum sar_status sar_owner_reserve(struct sar_task *task, size_t n);

/** Returns the room behind the elements of the result, which are as desc says. */
struct sar_spvec sar_owner_free_output(const struct sar_task *task, const struct sar_vec_desc *desc);

/** Merges o->inputs, the parts of a segment, and appends them to the result. */
enum sar_status sar_owner_append(struct sar_task *task, uint32_t segment);

/** Decodes the kept messages of a segment, and writes its sums to the output. */
enum sar_status sar_owner_write_output(struct sar_task *task, uint32_t segment);

/** allgather: makes and encodes this rank's elements of a segment, in place of sums. */
enum sar_status sar_owner_prepare_pull(struct sar_task *task, uint32_t segment);

/** allgather: merges o->inputs, the elements of all ranks in a segment, and appends them to the result. */
enum sar_status sar_owner_append_all(struct sar_task *task, uint32_t segment);

/** reduce_scatter: appends the sums of a segment to the result. */
enum sar_status sar_owner_append_sums(struct sar_task *task, uint32_t segment);

/** As sar_owner_write_output, for sliced rows. */
enum sar_status sar_owner_write_rows(struct sar_task *task, uint32_t segment);

static inline bool sar_owner_is_contiguous(const struct sar_partition_map *map)
{
    return map->kind == SAR_PARTITION_RANGE;
}

/** Returns true in an allgather where any rank may have any element. */
static inline bool sar_owner_is_unowned(const struct sar_agreed *agreed, const struct sar_partition_map *map)
{
    return agreed->call.collective == SAR_ALLGATHER && map->parts == 1;
}

/** Returns true if the price of a format in the pull includes the merge. */
bool sar_owner_assembles(const struct sar_agreed *agreed, const struct sar_owner_cost_terms *terms);

/** Returns the work of reducing the elements that the others push, in elements. */
double sar_owner_reduce_work(const struct sar_agreed *agreed, const struct sar_owner_cost_terms *terms);

/** Returns all work of a rank, in elements, from the estimate's messages and its reduce_work. */
double sar_owner_work(const struct sar_agreed *agreed, const struct sar_owner_cost_terms *terms,
                      const struct sar_owner_estimate *estimate);

#endif
