/* SPDX-License-Identifier: BSD-3-Clause */
/* Fallbacks: calls on dense buffers that the library passes to MPI_Allreduce or MPI_Reduce_scatter_block
 * unchanged, on the caller's communicator. The library does not read the buffers, does not agree and sends
 * no message. Three kinds:
 *
 *  1. types and ops that no sparse scheme supports;
 *  2. vectors of so few bytes that an agreement alone takes longer;
 *  3. calls after one with equal arguments for which `dense` was the settled choice. The first run has one
 *     fallback, the next runs three, seven and so on up to MPIX_SPARSE_FORWARD, until another scheme is
 *     chosen. There are none if MPI reduces some rank's vector through pinned memory, since all ranks must
 *     know that.
 *
 * Equal arguments give equal decisions on all ranks. Different arguments behave as in MPI_Allreduce. */

#ifndef SAR_CORE_FALLBACK_H
#define SAR_CORE_FALLBACK_H

#include "core/call_args.h"
#include "core/comm_state.h"

/** Bytes up to which an agreement does not pay: by messages, and between ranks that share memory. */
enum { SAR_FALLBACK_BYTES = 16384, SAR_FALLBACK_BYTES_SHM = 2048 };

/** True if a call is a fallback of kind 1 or 2. Local. */
bool sar_fallback_always(const struct sar_comm_state *comm_state, const struct sar_call_args *args);

/** True if a call is a fallback of kind 3; then decrements the number of those left. Local. No call may be in
 * flight on the communicator. */
bool sar_fallback_take(struct sar_comm_state *comm_state, const struct sar_call_args *args);

/** A cached fallback: data to repeat it for later calls with equal arguments. */
struct sar_fallback_entry {
    struct sar_comm_state *comm_state;
    struct sar_tensor_state *tensor; /**< holds the number of fallbacks left; NULL for kinds 1 and 2 */
    uint32_t tensors_made;           /**< tensors.made at that time: if it grew, `tensor` may be reused */
    struct sar_vec_desc desc;
};

/** Returns the cache entry of a call for which sar_fallback_always or sar_fallback_take returned true.
 * Local. */
struct sar_fallback_entry sar_fallback_entry_make(struct sar_comm_state *comm_state,
                                                  const struct sar_call_args *args);

/** True if a call is a fallback like the cached one; then counts and reports it. False if the call must be
 * examined, or if calls are traced. Local, takes nanoseconds. The communicator must still be open, with the
 * settings of the cached call. */
static inline bool sar_fallback_repeat(const struct sar_fallback_entry *entry)
{
    struct sar_comm_state *comm_state = entry->comm_state;
    struct sar_tensor_state *tensor = entry->tensor;
    if (sar_trace_wanted())
        return false;
    if (tensor != NULL) {
        bool same = comm_state->tensors.made == entry->tensors_made;
        if (!same || tensor->fallback_left == 0 || sar_comm_state_any_active())
            return false;
        tensor->fallback_left--;
    }
    comm_state->last.fallback_desc = entry->desc;
    comm_state->last.fallback = SAR_FALLBACK_ALLREDUCE;
    comm_state->last.reported = true;
    return true;
}

/** Sets the number of fallbacks of kind 3 that follow a call with this selection. Equal on all ranks. */
void sar_fallback_plan(struct sar_tensor_state *tensor, const struct sar_selection *selection,
                       const struct sar_policy *policy);

/** Begins the trace span of a fallback, and records it for the report. Local. */
struct sar_span sar_fallback_begin(struct sar_comm_state *comm_state, const struct sar_call_args *args,
                                   const char *name);

/** Ends the trace span of a fallback. Local. */
void sar_fallback_end(const struct sar_comm_state *comm_state, struct sar_span *span);

/** Returns the report of the last fallback. Local. */
MPIX_Sparse_report_t sar_fallback_report(const struct sar_comm_state *comm_state);

#endif
