/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans: persistent calls, which reduce the same tensor again and again; and fusions of plans.
 *
 * A plan has its own tensor state and settings. Once its selection is settled, starts reuse the saved
 * agreement: the ranks exchange nothing but the scheme's messages. After MPIX_SPARSE_PROFILE_EVERY starts
 * the plan agrees and profiles again.
 *
 * A fusion reduces small plans that are started together as one call. Its vector is the concatenation of
 * the members' vectors and is reduced in place, so that all members together cost the messages of one. The
 * members are chained by plan->next_fused. The first one, the leader, keeps the fusion, with its state and
 * memory, for the next start of the same members. */

#ifndef SAR_CORE_PERSISTENT_H
#define SAR_CORE_PERSISTENT_H

#include "core/call_args.h"
#include "core/comm_state.h"

/** Opens a plan. Collective: all ranks succeed, or all return the same error.
 * @param hints       hints that override the communicator's settings
 * @param args        arguments of all starts; must outlive the plan
 * @param plan        memory of the caller; sar_plan_close releases what the plan owns
 * @param error_text  SAR_ERROR_TEXT_SIZE bytes, set on SAR_BAD_SETTING */
enum sar_status sar_plan_open(struct sar_comm_state *comm_state, const struct sar_config_layer *hints,
                              const struct sar_call_args *args, struct sar_plan *plan, char *error_text);

/** Releases the memory of a plan, and its fusion; no start may be in flight. Local. */
void sar_plan_close(struct sar_plan *plan);

/** Identifier of a fusion in an agreement: number of members << SAR_FUSION_SHIFT | hash of their ids. */
enum { SAR_FUSION_SHIFT = 32 };

/** A fusion, owned by its leader. */
struct sar_fusion {
    struct sar_plan plan;  /**< plan of the concatenated vector; first */
    unsigned char *buffer; /**< the concatenated vector */
    size_t members;
    uint64_t ids[]; /**< of the members' plans, in order */
};

/** True if fusing a plan pays: copying its vector in and out costs less than the messages saved, or the
 * setting says so. Equal on all ranks. */
bool sar_fusion_accepts(const struct sar_plan *plan);

/** True if two plans may be members of one fusion. Equal on all ranks. */
bool sar_fusion_compatible(const struct sar_plan *a, const struct sar_plan *b);

/** Makes the call of the fusion of a chain of plans, and the fusion unless the leader keeps it. If memory is
 * short, args->result.error says so and leader->fusion is NULL. Local. */
void sar_fusion_prepare(struct sar_plan *leader, struct sar_call_args *args);

/** Copies the members' vectors into the fusion's buffer. Local. */
void sar_fusion_pack(const struct sar_plan *leader);

/** Copies the result to the members' buffers. Local. */
void sar_fusion_unpack(const struct sar_plan *leader);

/** Frees the fusion that a leader keeps, if any. Local. */
void sar_fusion_close(struct sar_plan *leader);

#endif
