/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress of all calls in flight in the process. A rank that waits for one call advances all of them,
 * because ranks may wait for the same calls in different orders. */

#ifndef SAR_CORE_PROGRESS_H
#define SAR_CORE_PROGRESS_H

#include <stdatomic.h>

#include "core/active_call.h"

/** Runs a call to its end. Collective; blocking. The error is in args->result.error. */
void sar_progress_run(struct sar_comm_state *comm_state, struct sar_call_args *args);

/** A call that this rank waits for. */
struct sar_blocking_call {
    struct sar_active_call op; /**< first; zero before it begins */
    atomic_bool done;
};

/** Starts a call that sar_progress_end waits for, so that several communicators have calls at once. Local, as
 * sar_progress_post. */
void sar_progress_begin(struct sar_comm_state *comm_state, struct sar_call_args *args,
                        struct sar_blocking_call *call);

/** Waits for the end of a call that has begun. Collective; blocking. */
void sar_progress_end(struct sar_comm_state *comm_state, struct sar_blocking_call *call);

/** Starts a call, which sar_progress advances; op->on_done is called at its end. Local, but all ranks post
 * their calls in the same order. */
void sar_progress_post(struct sar_comm_state *comm_state, struct sar_call_args *args,
                       struct sar_active_call *op);

/** Advances every call in flight. Local; any thread. Returns false if another thread does so at the
 * moment. */
bool sar_progress(void);

/** Waits for the progress lock; no call in flight advances until sar_progress_unlock. Local. */
void sar_progress_lock(const struct sar_comm_state *comm_state);

/** Releases the progress lock. */
void sar_progress_unlock(void);

/** One iteration of a wait loop: advance every call in flight, and back off. Returns true if no call is in
 * flight: the caller's next test may then block in MPI. Local.
 * @param spins  iterations so far, 0 at first */
bool sar_progress_poll(const struct sar_comm *comm, int *spins);

/** Waits for an agreement that has started. Calls on other communicators progress meanwhile: other ranks may
 * start this agreement only when those are done. Local. */
enum sar_status sar_progress_wait_agreement(const struct sar_comm *comm, struct sar_agreement *agreement);

/** Waits for the calls in flight on a communicator. Collective. */
void sar_progress_drain(struct sar_comm_state *comm_state);

/** Agrees on the arguments of later calls, without reading the buffers. Collective; the error is in
 * args->result.error. No call may be in flight on the communicator. */
void sar_progress_check(struct sar_comm_state *comm_state, struct sar_call_args *args);

/** Agrees, and profiles the dense buffer args->data.buffers.sendbuf. Collective; the error is in
 * args->result.error. No call may be in flight on the communicator.
 * @param slots    slots of the sample
 * @param profile  set on success */
void sar_progress_profile(struct sar_comm_state *comm_state, struct sar_call_args *args, uint32_t slots,
                          struct sar_profile *profile);

#endif
