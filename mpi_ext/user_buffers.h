/* SPDX-License-Identifier: BSD-3-Clause */
/* The caller's arrays and the memory they are in. For device memory, a call that runs on the host works on
 * host copies: describe, allocate, read, run, write, release. For arrays in host memory these functions do
 * nothing. Errors go into call->result.error unless a function returns them. All functions are local. */

#ifndef SAR_MPI_EXT_USER_BUFFERS_H
#define SAR_MPI_EXT_USER_BUFFERS_H

#include "core/active_call.h"
#include "core/comm_state.h"

/** Sets call->device.memory to the memory of one of the call's arrays. Null, MPI_IN_PLACE and
 * MPIX_SPARSE_STRIDED are skipped.
 * @param status  error if the array is on a device that the library cannot reach */
void sar_user_buffers_locate(struct sar_call_args *call, const void *array, enum sar_status status);

/** Checks that another array is in `memory`. Null, MPI_IN_PLACE and MPIX_SPARSE_STRIDED are skipped.
 * @param status  error if the array is elsewhere */
void sar_user_buffers_check(struct sar_error *error, const struct sar_device_ctx *memory, const void *array,
                            enum sar_status status);

/** True if both pointers are arrays in host memory. */
bool sar_user_buffers_on_host(const void *first, const void *second);

/** Sets the stream of a call until its end, before any work is queued. Sets the error SAR_CAPTURED if the
 * stream is being captured into a graph. */
void sar_user_buffers_set_stream(struct sar_call_args *call, void *stream);

/** Returns SAR_OK if work can be queued on the stream of `memory`, and for host memory; else SAR_CAPTURED or
 * SAR_DEVICE_FAILED. */
enum sar_status sar_user_buffers_stream_ready(const struct sar_device_ctx *memory);

/** True if all arguments are valid but this rank cannot read its vector. Other ranks do not know, and
 * wait. */
static inline bool sar_user_buffers_unreadable(const struct sar_call_args *call)
{
    return call->result.error.status == SAR_DEVICE_FAILED || call->result.error.status == SAR_CAPTURED;
}

/** Computes the size and address of the host copies of dense buffers, without memory. Does nothing for
 * coordinates, and for calls with an invalid argument. */
void sar_user_buffers_describe(struct sar_call_args *call);

/** Allocates the host copies of dense buffers, and points call->data.buffers at them. */
void sar_user_buffers_alloc(struct sar_call_args *call);

/** Frees the host copies. */
void sar_user_buffers_release(struct sar_call_args *call);

/** Copies the arrays from the device to the host copies, which are allocated if missing. On failure, or if
 * the device failed before, the error is SAR_DEVICE_FAILED. A captured stream is not read. In both cases the
 * copies are poisoned, so that this rank can still take part in the collective. */
void sar_user_buffers_read(struct sar_call_args *call);

/** sar_user_buffers_read that queues the copies on the call's stream. The host copies must be allocated. */
void sar_user_buffers_queue_read(struct sar_call_args *call);

/** Copies the host copies of outputs back to the device, if `code` is MPI_SUCCESS. Returns `code`, or the
 * code of an error in the copy, which is raised on comm. */
int sar_user_buffers_write(MPI_Comm comm, const char *function, const struct sar_call_args *call, int code);

/** Sets all bytes of unread input copies to 0xff, so that peers cannot mistake them for valid data. */
void sar_user_buffers_poison(struct sar_call_args *call);

/** Chooses how the call uses device memory: native vectors stay on the device and only their elements are
 * copied; all other vectors, and those of a reduce_scatter of dense buffers, are read to the host. */
void sar_user_buffers_classify(struct sar_call_args *call, struct sar_comm_state *comm_state);

/** True if MPI accepts the call's arrays as they are; waits for the work queued on them. In device memory
 * it accepts those of native vectors only: MPICH 4.0.2 fails to unpack pairs there. The first call on a
 * communicator tests MPI for CUDA awareness.
 * @param comm_state  NULL for an intercommunicator, which never gets device memory */
bool sar_user_buffers_mpi_accepts(const struct sar_call_args *call, struct sar_comm_state *comm_state);

/** Waits for the work queued on arrays that MPI gets as they are. If the wait fails, poisoned host copies
 * replace the arrays. */
void sar_user_buffers_prepare_mpi(struct sar_call_args *call, const struct sar_comm_state *comm_state);

/** Prepares the arrays of a call: sets the communicator's stream, describes, classifies. */
void sar_user_buffers_open(struct sar_call_args *call, struct sar_comm_state *comm_state);

/** Writes and releases the host copies. Returns `code`, or the code of an error in the copy, which is
 * raised. */
int sar_user_buffers_close(MPI_Comm comm, const char *function, struct sar_call_args *call, int code);

#endif
