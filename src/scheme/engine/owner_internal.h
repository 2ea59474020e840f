/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that owner_parts.c, owner_stages.c, owner_pull.c and owner_rows.c share; no other file uses
 * them. */

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
 * flight. */
void sar_owner_save_pulled(struct sar_task *task);

/** Sends a segment's sums of this rank's part, and expects those of the others. */
void sar_owner_post_pull(struct sar_task *task, uint32_t segment);

/** Makes room for n more elements of the result. */
enum sar_status sar_owner_reserve(struct sar_task *task, size_t n);

/** Merges o->inputs, the parts of a segment, and appends them to the result. */
enum sar_status sar_owner_append(struct sar_task *task, const struct sar_partition_map *map);

/** Decodes the kept messages of a segment, and writes its sums to the output. */
enum sar_status sar_owner_write_output(struct sar_task *task, uint32_t segment);

/** As sar_owner_write_output, for sliced rows. */
enum sar_status sar_owner_write_rows(struct sar_task *task, uint32_t segment);

#endif
