/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps of a call before its scheme runs: prepare.c reads the input, makes the agree message and selects
 * the scheme; task_init.c makes the scheme's task; device_input.c serves arrays in device memory. All steps
 * are local. */

#ifndef SAR_CORE_PREPARE_H
#define SAR_CORE_PREPARE_H

#include "core/active_call.h"

/** Resolve 2-byte integers that the settings declare as floats, and the block size of copies. Call this
 * before the call is enqueued or passed to MPI. */
void sar_call_args_resolve_types(struct sar_call_args *args, const struct sar_policy *policy);

/** Expand a packed input to the whole vector in the call's buffers, for MPI to reduce. No call may be in
 * flight on the communicator. */
enum sar_status sar_call_args_expand(struct sar_comm_state *comm_state, struct sar_call_args *args);

/** Allocate memory, and check and sort the input. Errors go to args->result.error, which the agreement
 * shares. */
void sar_active_call_prepare(struct sar_active_call *op);

/** Returns this rank's agree message, without may_block. */
struct sar_agree_msg sar_active_call_agree_msg(const struct sar_active_call *op);

/** Returns the error that follows from the merged agree message; equal on all ranks. */
struct sar_error sar_error_resolve(const struct sar_agree_msg *all);

/** Fill in common.agreed and common.selection from the agreement. Equal on all ranks. Returns
 * SAR_UNSUPPORTED if no scheme can run the call. */
enum sar_status sar_active_call_select(struct sar_active_call *op);

/** Returns the bytes of a task's state, enough for any scheme. */
size_t sar_task_state_size(void);

/** Initialise the task for the selected scheme, but for its input. */
void sar_active_call_task_init(struct sar_active_call *op);

/** Reset the task for another scheme; keeps the input that does not depend on the scheme. */
void sar_active_call_task_reset(struct sar_active_call *op);

/** Copy coordinates in device memory into the task's input; no effect for other calls. An error goes to the
 * exchange and is this rank's own until its messages carry it. */
void sar_active_call_load_coo(struct sar_active_call *op);

/** Make the task's input in the form that the scheme wants. Errors as in sar_active_call_load_coo. */
void sar_active_call_load_dense(struct sar_active_call *op);

/** For arrays in device memory: find the non-zero elements of a vector; or sort coordinates if they are not
 * sorted. Coordinates that the device cannot sort are copied to the host.
 * @param bad  see sar_canonicalize */
enum sar_status sar_device_input_scan(struct sar_active_call *op, long long *bad);

/** Copy coordinates in device memory into the task's input, unless they are there already.
 * @param bad  see sar_canonicalize */
enum sar_status sar_device_input_load_coo(struct sar_active_call *op, long long *bad);

/** Copy the non-zero elements of a vector in device memory into the task's input, unless they are there
 * already. */
enum sar_status sar_device_input_load_dense(struct sar_active_call *op);

/** Offer the scheme the input in parts, and device execution if that pays. Returns false if parts do not
 * pay: the input then has to be copied to the host. Without device execution only vectors that are not on
 * the host yet are offered. */
bool sar_device_input_offer_parts(struct sar_active_call *op);

/** For a scheme that has MPI reduce the vector: stage the vector through the host, or pass its device
 * pointers. */
enum sar_status sar_device_input_expand(struct sar_active_call *op);

/** Release the device resources of a call. No effect for calls in host memory. */
void sar_device_input_release(struct sar_active_call *op);

#endif
