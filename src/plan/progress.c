/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/progress.h"

#include <pthread.h>

/* Contexts in the list move under the lock only, all others by the thread that called. MPI forbids two
 * threads to call on one communicator at a time, so that a context is in one state for as long as a call
 * begins. The lock is never waited for while MPI may hold one of its own. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sar_context *busy;
atomic_int sar_progress_busy;
static double left;    /* when somebody last let calls move */
static unsigned moves; /* how often somebody did */

enum { MPI_MOVES = 8 /* moves to a look at MPI */ };

static void enlist(struct sar_context *context)
{
    if (context->listed)
        return;
    context->listed = true;
    context->next_busy = busy;
    busy = context;
    atomic_fetch_add(&sar_progress_busy, 1);
}

static void strike_out_idle(void)
{
    struct sar_context **at = &busy;
    while (*at != NULL) {
        struct sar_context *context = *at;
        if (context->first != NULL) {
            at = &context->next_busy;
            continue;
        }
        *at = context->next_busy;
        context->listed = false;
        atomic_fetch_sub(&sar_progress_busy, 1);
    }
}

/* MPI, where it asks us about our requests, does nothing for its own, which forwarded calls have; nor do
 * calls that wait at a meeting. */
static void let_mpi_move(void)
{
    if (busy != NULL && ++moves % MPI_MOVES == 0)
        sar_net_let_mpi_move(&busy->net);
}

bool sar_progress(void)
{
    if (!sar_progress_wanted())
        return true;
    if (pthread_mutex_trylock(&lock) != 0)
        return false;
    double gap = PMPI_Wtime() - left;
    for (struct sar_context *context = busy; context != NULL; context = context->next_busy) {
        if (context->first != NULL && context->first->phase != SAR_QUEUED)
            context->first->apart += gap;
        sar_call_advance(context, false);
    }
    strike_out_idle();
    let_mpi_move();
    left = PMPI_Wtime();
    pthread_mutex_unlock(&lock);
    return true;
}

bool sar_progress_meanwhile(const struct sar_net *net, int *looks)
{
    if (!sar_progress_wanted())
        return true;
    sar_progress();
    sar_net_pause(net, looks);
    return false;
}

void sar_progress_halt(const struct sar_context *context)
{
    int looks = 0;
    while (pthread_mutex_trylock(&lock) != 0)
        sar_net_pause(&context->net, &looks);
}

void sar_progress_resume(void)
{
    pthread_mutex_unlock(&lock);
}

void sar_call_post(struct sar_context *context, struct sar_call *call, struct sar_pending *pending)
{
    sar_progress_halt(context);
    sar_call_start(context, call, pending);
    enlist(context);
    sar_progress_resume();
    sar_progress();
}

static bool is_listed(struct sar_context *context)
{
    sar_progress_halt(context);
    bool listed = context->listed;
    sar_progress_resume();
    return listed;
}

/* A call on a communicator that has nothing else in flight. It may sleep in MPI while nothing is in flight on
 * others either. */
static void run_alone(struct sar_context *context, struct sar_call *call)
{
    struct sar_pending pending = { .plan = NULL };
    int looks = 0;
    sar_call_start(context, call, &pending);
    while (pending.phase != SAR_DONE) {
        bool alone = !sar_progress_wanted();
        sar_call_advance(context, alone);
        sar_progress();
        if (!alone)
            sar_net_pause(&context->net, &looks);
    }
}

struct waiting {
    struct sar_pending pending; /* first */
    atomic_bool done;
};

static void wake(struct sar_pending *pending)
{
    atomic_store(&((struct waiting *)pending)->done, true);
}

static void run_behind_others(struct sar_context *context, struct sar_call *call)
{
    struct waiting waiting = { .pending = { .finished = wake } };
    int looks = 0;
    sar_call_post(context, call, &waiting.pending);
    while (!atomic_load(&waiting.done)) {
        sar_progress();
        sar_net_pause(&context->net, &looks);
    }
}

void sar_call_run(struct sar_context *context, struct sar_call *call)
{
    if (sar_progress_wanted() && is_listed(context))
        run_behind_others(context, call);
    else
        run_alone(context, call);
}

void sar_progress_drain(struct sar_context *context)
{
    int looks = 0;
    while (sar_progress_wanted() && is_listed(context)) {
        sar_progress();
        sar_net_pause(&context->net, &looks);
    }
}
