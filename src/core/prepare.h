/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps of a call outside its scheme. Before the scheme runs, prepare.c reads the input, makes the agree
 * message, selects the scheme and makes its task; device_input.c serves arrays in device memory. Afterwards
 * finish.c writes the result, the timing feedback, the report and the log. All steps are local. */

#ifndef SAR_CORE_PREPARE_H
#define SAR_CORE_PREPARE_H

#include "core/active_call.h"

/** Resolves 2-byte integers that the settings declare as floats, and the block size of copies. Call this
 * before the call is enqueued or passed to MPI. */
void sar_call_args_resolve_types(struct sar_call_args *args, const struct sar_policy *policy);

/** Expand a packed input to the whole vector in the call's buffers, for MPI to reduce. No call may be in
 * flight on the communicator. */
enum sar_status sar_call_args_expand(struct sar_comm_state *comm_state, struct sar_call_args *args);

/** Allocates memory, and checks and sorts the input. Errors go to args->result.error, which the agreement
 * shares. */
void sar_active_call_prepare(struct sar_active_call *op);

/** Returns this rank's agree message, without may_block. */
struct sar_agree_msg sar_active_call_agree_msg(const struct sar_active_call *op);

/** Returns the error that follows from the merged agree message of such a call; equal on all ranks. */
struct sar_error sar_error_resolve(const struct sar_agree_msg *all, const struct sar_call_sig *sig);

/** Fills in common.agreed and common.selection from the agreement. Equal on all ranks. Returns
 * SAR_UNSUPPORTED if no scheme can run the call. */
enum sar_status sar_active_call_select(struct sar_active_call *op);

/** Initialise the task for the selected scheme, but for its input. */
void sar_active_call_task_init(struct sar_active_call *op);

/** Resets the task for another scheme; keeps the input that does not depend on the scheme. */
void sar_active_call_task_reset(struct sar_active_call *op);

/** Copies coordinates in device memory into the task's input; no effect for other calls. An error goes to the
 * exchange and is this rank's own until its messages carry it. */
void sar_active_call_load_coo(struct sar_active_call *op);

/** Makes the task's input in the form that the scheme wants. Errors as in sar_active_call_load_coo. */
void sar_active_call_load_dense(struct sar_active_call *op);

/** For arrays in device memory: find the non-zero elements of a vector; or sort coordinates if they are not
 * sorted. Coordinates that the device cannot sort are copied to the host.
 * @param bad  see sar_canonicalize */
enum sar_status sar_device_input_scan(struct sar_active_call *op, long long *bad);

/** Copies coordinates in device memory into the task's input, unless they are there already.
 * @param bad  see sar_canonicalize */
enum sar_status sar_device_input_load_coo(struct sar_active_call *op, long long *bad);

/** Copies the non-zero elements of a vector in device memory into the task's input, unless they are there
 * already. */
enum sar_status sar_device_input_load_dense(struct sar_active_call *op);

/** Offer the scheme the input in parts, and device execution if that pays. Returns false if parts do not
 * pay: the input then has to be copied to the host. Without device execution only vectors that are not on
 * the host yet are offered. */
bool sar_device_input_offer_parts(struct sar_active_call *op);

/** For a scheme that has MPI reduce the vector: stage the vector through the host, or pass its device
 * pointers. */
enum sar_status sar_device_input_expand(struct sar_active_call *op);

/** Releases the device resources of a call. No effect for calls in host memory. */
void sar_device_input_release(struct sar_active_call *op);

/** After an agreement: add the time of the previous call, now known to all ranks, to its tensor's cost
 * history. */
void sar_timing_feedback_apply(struct sar_active_call *op);

/** After a selection: start to time the scheme. */
void sar_timing_feedback_begin(struct sar_active_call *op);

/** At the end of a call: store its time for the next agreement. */
void sar_timing_feedback_end(struct sar_active_call *op);

/** Writes the result into dense buffers, or into coordinates in device memory; no effect for other
 * coordinates. Errors go to args->result.error.
 * @param work  set to the work done on the host */
void sar_active_call_write(struct sar_active_call *op, struct sar_span_work *work);

/** Makes this call the one that MPIX_Sparse_get_report describes. */
void sar_active_call_report(struct sar_active_call *op, double seconds);

/** Logs the selected scheme if it differs from that of the tensor's previous call, and why a forced scheme
 * cannot run: as a warning of rank 0 in the first such call of a communicator. */
void sar_active_call_log_selection(const struct sar_active_call *op);

/** Logs the new profile, or that there is none. */
void sar_active_call_log_profile(const struct sar_active_call *op);

#endif
