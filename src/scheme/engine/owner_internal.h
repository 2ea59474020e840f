/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that owner_parts.c, owner_push.c, owner_pull.c and owner_stages.c share, and no other file
 * uses. */

#ifndef SAR_SCHEME_ENGINE_OWNER_INTERNAL_H
#define SAR_SCHEME_ENGINE_OWNER_INTERNAL_H

#include "scheme/engine/owner.h"

/** Classes of channels: one for each direction, so that one step may have a push and a pull. */
enum sar_owner_channel_class { SAR_OWNER_PUSH, SAR_OWNER_PULL };

static inline int sar_owner_channel(const struct sar_task *task, enum sar_owner_channel_class channel_class,
                                    int rank)
{
    return (int)channel_class * task->comm->ranks + rank;
}

/** The functions of struct sar_owner_peers, with or without peers. */
bool sar_owner_sends_to(const struct sar_task *task, int owner);
int sar_owner_source(const struct sar_task *task, int i);

/** Returns the layout of messages about the slots that a rank owns of a segment. */
struct sar_wire_layout sar_owner_part_layout(const struct sar_task *task, int rank, uint32_t segment);

/** Returns the map, with slots counted from the segment on. */
struct sar_partition_map sar_owner_segment_map(const struct sar_owner *owner, uint32_t segment);

/** Partitions this rank's elements of a segment, and encodes parts while messages are in flight.
 * sar_owner_post_push encodes the others. */
enum sar_status sar_owner_prepare_push(struct sar_task *task, uint32_t segment);

/** Sends a segment's sums of this rank's part, and expects those of the others. */
void sar_owner_post_pull(struct sar_task *task, const struct sar_msg *sums);

/** Keeps the pull messages of the step before; they are decoded while the messages of the next step are in
 * flight. */
void sar_owner_save_pulled(struct sar_task *task);

/** Decodes the kept messages of a segment, and writes its sums to the output. */
enum sar_status sar_owner_write_output(struct sar_task *task, uint32_t segment);

#endif
