/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls in flight in the whole process. Whoever waits for one lets all of them move: ranks may wait for
 * the same calls in different orders. */

#ifndef SAR_PLAN_PROGRESS_H
#define SAR_PLAN_PROGRESS_H

#include <stdatomic.h>

#include "plan/call.h"

/** Carry out a call. Collective; blocking. The outcome is in call->verdict. */
void sar_call_run(struct sar_context *context, struct sar_call *call);

/** Begin a call that moves on whenever somebody calls sar_progress; pending->finished is told. Collective in
 * that all ranks do so in the same order. */
void sar_call_post(struct sar_context *context, struct sar_call *call, struct sar_pending *pending);

/** Let every call in flight make progress. From any thread. False when another thread is at it. */
bool sar_progress(void);

/** Communicators with calls in flight. For sar_progress_wanted only. */
extern atomic_int sar_progress_busy;

/** Whether any call is in flight. */
static inline bool sar_progress_wanted(void)
{
    return atomic_load(&sar_progress_busy) != 0;
}

/** Let no call move until sar_progress_resume: while plans come and go. */
void sar_progress_halt(const struct sar_context *context);
void sar_progress_resume(void);

/** What whoever waits for something else does between two looks at it: let every call in flight make
 * progress, and pause. True when none is in flight, and the next look may sleep in MPI. */
bool sar_progress_meanwhile(const struct sar_net *net, int *looks);

/** Wait for the calls in flight on a communicator. Collective. */
void sar_progress_drain(struct sar_context *context);

#endif
