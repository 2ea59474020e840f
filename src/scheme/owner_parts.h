/* SPDX-License-Identifier: BSD-3-Clause */
/* What the stages of owners, their push and their pull have in common; for these files alone. */

#ifndef SAR_SCHEME_OWNER_PARTS_H
#define SAR_SCHEME_OWNER_PARTS_H

#include "scheme/owner.h"

/** Messages of push and pull go different ways, so that one step may have both. */
enum sar_owner_lane { SAR_OWNER_PUSH, SAR_OWNER_PULL };

static inline int sar_owner_port(const struct sar_request *request, enum sar_owner_lane lane, int rank)
{
    return (int)lane * request->net->ranks + rank;
}

/** As in struct sar_owner_peers, whether or not there are such. */
bool sar_owner_reaches(const struct sar_request *request, int owner);
int sar_owner_contributor(const struct sar_request *request, int i);

/** Layout of messages about what a rank owns of a segment. */
struct sar_layout sar_owner_layout(const struct sar_request *request, int rank, uint32_t segment);

/** The map, with slots counted from the segment on. */
struct sar_map sar_owner_segment_map(const struct sar_owner *owner, uint32_t segment);

/** Find this rank's elements of a segment, and encode them as long as messages are under way: for
 * sar_owner_push, which encodes the rest. */
enum sar_status sar_owner_prepare(struct sar_request *request, uint32_t segment);

/** Send a segment's sums, of this rank's part, and expect those of the others. */
void sar_owner_pull(struct sar_request *request, const struct sar_message *sums);

/** Keep what the step before has brought of the pull, which is decoded when the messages of the next one are
 * on their way already. */
void sar_owner_put_aside(struct sar_request *request);

/** Decode what has been put aside of a segment, and put it in its place. */
enum sar_status sar_owner_deliver(struct sar_request *request, uint32_t segment);

#endif
