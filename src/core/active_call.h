/* SPDX-License-Identifier: BSD-3-Clause */
/* The active call: data of an allreduce from its enqueuing to its end; and call.c, the state machine of
 * calls, without waiting and without other communicators: core/progress.h adds those. */

#ifndef SAR_CORE_ACTIVE_CALL_H
#define SAR_CORE_ACTIVE_CALL_H

#include "device/exec.h"
#include "scheme/engine/task.h"
#include "core/call_args.h"
#include "core/comm_state.h"

/** Phases of a call; see call.c. */
enum sar_phase {
    SAR_PHASE_QUEUED,    /**< earlier calls on this communicator are not done */
    SAR_PHASE_AGREEING,  /**< the ranks exchange agree messages */
    SAR_PHASE_PROFILING, /**< the ranks profile the tensor */
    SAR_PHASE_RUNNING,   /**< the scheme runs */
    SAR_PHASE_SHM_RETRY, /**< the scheme could not allocate shared memory; another scheme follows */
    SAR_PHASE_DONE
};

/** Results of the agreement: equal on all ranks, except agreement.local. Written by call.c and by
 * sar_active_call_select; the tensor state is the plan's or the communicator's. */
struct sar_call_common {
    struct sar_agreement agreement;
    struct sar_tensor_state *tensor; /**< state of this tensor from earlier calls */
    struct sar_agreed agreed;        /**< inputs of the cost model */
    struct sar_selection selection;
};

/** Progress of the call. Written by call.c only. */
struct sar_call_run {
    enum sar_phase phase;
    enum sar_status status; /**< of the agreement or profile under way */
    struct sar_profile_state profile;
    struct sar_span call_span, phase_span;
    bool profile_due;  /**< this call has to make a new profile */
    bool sorted_input; /**< the coordinates of this rank had to be sorted or merged */
    bool speculates;   /**< this rank has sent messages that are not confirmed */
    bool early;        /**< a rank has, by the agreement, and they are neither confirmed nor discarded */
    int first_phase;   /**< of the scheme's messages */
};

/** An output in two buffers that are kept from call to call. */
struct sar_output_in_buffers {
    struct sar_output_dest output; /**< first */
    struct sar_buffer *buffers;    /**< indices, values; not owned */
    size_t capacity;               /**< elements that both buffers hold */
};

/** Host memory of one call's input and output. Written by prepare.c. */
struct sar_call_host {
    struct sar_output_in_buffers output; /**< buffers of the result, before dense buffers are written */
    void *spare_indices; /**< memory for the indices of a packed input while it is expanded to a vector */
};

/** Device side of one call. Written by device_input.c; all zero if the arrays are in host memory. */
struct sar_call_on_device {
    struct sar_nonzero_mask mask;          /**< non-zero elements of a dense vector */
    struct sar_d2h_copy d2h;               /**< copy of the elements to the host */
    struct sar_device_partition partition; /**< source of the parts that a scheme asks for */
    struct sar_device_exec exec;           /**< reduces and encodes on the device, if that pays */
    struct sar_host_pipeline pipeline;     /**< stages the whole vector through the host, if MPI reduces it */
};

/** Times, in seconds. Written by call.c; `excluded` and `computing` also by progress.c. */
struct sar_call_time {
    double start;
    double excluded;      /**< time since start in which nobody made progress, or the tensor was profiled */
    double computing;     /**< the part of it in which the program computed */
    double pre_scheme;    /**< from start to the end of the agreement, without `excluded` */
    double profile_start; /**< elapsed time at the start of the profile */
};

/** A call that is queued or in progress. */
struct sar_active_call {
    struct sar_comm_state *comm_state;
    struct sar_call_args *args;
    struct sar_plan *plan; /**< or NULL; set by the caller before sar_active_call_enqueue */
    uint64_t group; /**< number, on this rank, of the calls that start together; 0: none. Set as `plan` is. */
    const struct sar_policy *policy; /**< of the plan or the communicator */
    /** Called when the call is complete; the library does not touch the call afterwards. May be NULL. */
    void (*on_done)(struct sar_active_call *op);
    struct sar_active_call *next; /**< in the queue of the communicator */
    struct sar_call_common common;
    struct sar_call_run run;
    struct sar_task task; /**< the scheme's; initialised by prepare.c, advanced by sar_task_advance */
    struct sar_call_host host;
    struct sar_call_on_device device;
    struct sar_call_time time;
};

/** Returns the seconds since the start of the call, without those excluded: time in which the caller
 * computes, and the time of profiles. */
static inline double sar_active_call_seconds(const struct sar_active_call *op)
{
    return PMPI_Wtime() - op->time.start - op->time.excluded;
}

/** Ends a trace span of the call. */
static inline void sar_active_call_span_end(const struct sar_active_call *op, struct sar_span *span)
{
    const struct sar_traffic *traffic = &op->task.exchange.traffic;
    sar_span_end(span, &(struct sar_span_context){ op->comm_state->comm.id, op->comm_state->epoch, -1, -1,
                                                   traffic->bytes_sent, traffic->bytes_received });
}

/** Appends a call to the queue of its communicator; op is zero except for plan, group and on_done. Local,
 * but all ranks enqueue their calls in the same order. */
void sar_active_call_enqueue(struct sar_comm_state *comm_state, struct sar_call_args *args,
                             struct sar_active_call *op);

/** Advances the calls of a communicator. Calls that end leave the queue; their errors are in
 * args->result.error.
 * @param block  return only when the first call is done */
void sar_active_call_advance(struct sar_comm_state *comm_state, bool block);

/** Starts the agreement of a call: post this rank's agree message. Collective; does not wait.
 * @param block  this rank may block in MPI */
void sar_active_call_begin_agree(struct sar_active_call *op, bool block);

/** Evaluates the agreement, once it is done or has failed. Returns false if the call ends with an error. */
bool sar_active_call_end_agree(struct sar_active_call *op);

#endif
