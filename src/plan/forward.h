/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls on dense buffers that go to MPI_Allreduce as they are, on the caller's communicator: no look at the
 * buffers, no agreement, no message of the library's own. Three kinds:
 *
 *  - types and ops that no sparse scheme takes;
 *  - vectors of so few bytes that an agreement alone takes longer;
 *  - those that follow on a call with the same arguments for which `dense` was the settled choice: first one,
 *    then three, seven and so on up to MPIX_SPARSE_FORWARD, until another scheme is chosen again. But not
 *    where some rank's vector passes through pinned memory, of which all must know.
 *
 * Equal arguments give equal answers on all ranks. What the ranks' arguments do not have in common shows as
 * it does with MPI_Allreduce. */

#ifndef SAR_PLAN_FORWARD_H
#define SAR_PLAN_FORWARD_H

#include "plan/progress.h"

/** Bytes that are not worth an agreement: by messages, and among ranks that share memory. */
enum { SAR_FORWARD_BYTES = 16384, SAR_FORWARD_BYTES_SHARED = 2048 };

/** Whether a call is of the first two kinds. */
bool sar_forward_always(const struct sar_context *context, const struct sar_call *call);

/** Whether a call is of the third kind; uses up one of those to come. No call may be in flight on the
 * communicator. */
bool sar_forward_turn(struct sar_context *context, const struct sar_call *call);

/** What a forwarded call tells of those to come with the same arguments. */
struct sar_precedent {
    struct sar_context *context;
    struct sar_record *record; /**< that says how many of them follow, or NULL where all do */
    uint32_t records_made;     /**< by then: afterwards the record may be another tensor's */
    struct sar_shape shape;
};

/** The precedent that a call sets for which sar_forward_always or sar_forward_turn has said yes. */
struct sar_precedent sar_forward_precedent(struct sar_context *context, const struct sar_call *call);

/** Whether a call is forwarded as the one before it was, and nobody follows what calls do. If so it is
 * counted, and the context's report tells of it. If not, it is to be looked at like any. For each call; takes
 * nanoseconds. The context must still be there, with the knobs that it had. */
static inline bool sar_forward_again(const struct sar_precedent *precedent)
{
    struct sar_context *context = precedent->context;
    struct sar_record *record = precedent->record;
    if (sar_trace_wanted())
        return false;
    if (record != NULL) {
        bool same = context->records_made == precedent->records_made;
        if (!same || record->follow == 0 || sar_progress_wanted())
            return false;
        record->follow--;
    }
    context->forwarded = precedent->shape;
    context->forwarded_last = context->reported = true;
    return true;
}

/** After a selection: say how many calls are to follow on it. */
void sar_forward_plan(struct sar_pending *op);

/** Begin the span in which MPI has such a call, and make the context's report tell of it. */
struct sar_span sar_forward_begin(struct sar_context *context, const struct sar_call *call, const char *name);

void sar_forward_end(const struct sar_context *context, struct sar_span *span);

/** Fill in the report of such a call. */
MPIX_Sparse_report_t sar_forward_report(const struct sar_context *context);

#endif
