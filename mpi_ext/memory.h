/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays in device memory. The call itself works on the host: between enter and leave its arrays are mirrors
 * in pinned memory, unless it leaves vectors where they are. For arrays of the host's all of this does
 * nothing. */

#ifndef SAR_MPI_EXT_MEMORY_H
#define SAR_MPI_EXT_MEMORY_H

#include "plan/call.h"
#include "plan/context.h"

/** Say in what memory a call's arrays are, by one of them. What is wrong with that goes into call->verdict:
 * this status, or SAR_DEVICE_FAILED.
 * @param array  null and MPI_IN_PLACE are none */
void sar_memory_look(struct sar_call *call, const void *array, enum sar_status status);

/** Look whether another array is where a call's are. */
void sar_memory_look_at(struct sar_verdict *verdict, const struct sar_memory *memory, const void *array,
                        enum sar_status status);

/** Whether both are arrays, and the host's. */
bool sar_memory_is_on_host(const void *first, const void *second);

/** Let a call work in a stream, its own until it is over; SAR_CAPTURED is the verdict where nothing can be
 * queued there. To be called before anything is. */
void sar_memory_use_stream(struct sar_call *call, void *stream);

/** Whether work can be queued in a memory's stream; SAR_OK for the host's. */
enum sar_status sar_memory_ready(const struct sar_memory *memory);

/** Whether a rank cannot read its vector though all arguments are good: others, who do not know, wait. */
static inline bool sar_memory_is_out_of_reach(const struct sar_call *call)
{
    return call->verdict.status == SAR_DEVICE_FAILED || call->verdict.status == SAR_CAPTURED;
}

/** Say what a call's mirrors are. Those of coordinates have memory then, and the call has them for its
 * arrays; dense vectors get theirs from sar_memory_hold. A call that is refused keeps its arrays, which
 * nobody looks at. */
void sar_memory_take(struct sar_call *call);
void sar_memory_hold(struct sar_call *call);
void sar_memory_release(struct sar_call *call);

/** Copy the arrays into their mirrors, which get memory if they have none, and what the call wrote back; or
 * queue copies into mirrors that have memory. Where that fails, or the device had failed before, the verdict
 * is SAR_DEVICE_FAILED; in a stream that is captured nothing is copied. Then all bytes of what could not be
 * read are 0xff: a rank that others wait for can take part with them. */
void sar_memory_read(struct sar_call *call);
void sar_memory_queue_read(struct sar_call *call);
int sar_memory_write(MPI_Comm comm, const char *function, const struct sar_call *call, int code);

/** Let what others are given in place of arrays that could not be read be no good number: bytes of 0xff in
 * the mirrors that are read. */
void sar_memory_spoil(struct sar_call *call);

/** Let the library have vectors of its own types where they are, whose elements alone then travel; read all
 * else. */
void sar_memory_defer(struct sar_call *call, struct sar_context *context);

/** Whether MPI may have a call's arrays as they are. What was queued on them before is waited for then.
 * @param context  or NULL for two groups, whose calls are not handed device memory */
bool sar_memory_suits_mpi(const struct sar_call *call, struct sar_context *context);

/** Wait for what was queued on arrays that MPI is to have as they are; where that fails they are read. */
void sar_memory_give_mpi(struct sar_call *call, const struct sar_context *context);

/** Take, in the context's stream, and defer; write, if the code is of success, and release. The latter and
 * sar_memory_write raise what goes wrong, and return its code, else the one given. */
void sar_memory_enter(struct sar_call *call, struct sar_context *context);
int sar_memory_leave(MPI_Comm comm, const char *function, struct sar_call *call, int code);

#endif
