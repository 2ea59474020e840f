/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps of a call after its agreement that are not its scheme: timing feedback, the written result, report
 * and log. All steps are local. */

#ifndef SAR_CORE_FINISH_H
#define SAR_CORE_FINISH_H

#include "core/active_call.h"

/** After an agreement: add the time of the previous call, now known to all ranks, to its tensor's cost
 * history. */
void sar_timing_feedback_apply(struct sar_active_call *op);

/** After a selection: start to time the scheme. */
void sar_timing_feedback_begin(struct sar_active_call *op);

/** At the end of a call: store its time for the next agreement. */
void sar_timing_feedback_end(struct sar_active_call *op);

/** Write the result into dense buffers, or into coordinates in device memory; no effect for other
 * coordinates. Errors go to args->result.error.
 * @param work  set to the work done on the host */
void sar_active_call_write(struct sar_active_call *op, struct sar_span_work *work);

/** Make this call the one that MPIX_Sparse_get_report describes. */
void sar_active_call_report(struct sar_active_call *op, double seconds);

/** Log the selected scheme if it differs from that of the tensor's previous call, and why a forced scheme
 * cannot run. */
void sar_active_call_log_selection(const struct sar_active_call *op);

/** Log the new profile, or that there is none. */
void sar_active_call_log_profile(const struct sar_active_call *op);

#endif
