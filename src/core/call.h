/* SPDX-License-Identifier: BSD-3-Clause */
/* The state machine of calls, without waiting and without other communicators: core/progress.h adds those. */

#ifndef SAR_CORE_CALL_H
#define SAR_CORE_CALL_H

#include "core/active_call.h"

/** Append a call to the queue of its communicator; op is zero except for op->plan and op->on_done. Local,
 * but all ranks enqueue their calls in the same order. */
void sar_active_call_enqueue(struct sar_comm_state *comm_state, struct sar_call_args *args,
                             struct sar_active_call *op);

/** Advance the calls of a communicator. Calls that end leave the queue; their errors are in
 * args->result.error.
 * @param block  return only when the first call is done */
void sar_active_call_advance(struct sar_comm_state *comm_state, bool block);

/** Start the agreement of a call: post this rank's agree message. Collective; does not wait.
 * @param block  this rank may block in MPI */
void sar_active_call_begin_agree(struct sar_active_call *op, bool block);

/** Evaluate the agreement, once it is done or has failed. Returns false if the call ends with an error. */
bool sar_active_call_end_agree(struct sar_active_call *op);

#endif
