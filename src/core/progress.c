/* SPDX-License-Identifier: BSD-3-Clause */
/* The progress engine. Runs whenever a thread waits in this library, and in MPI if MPI asks generalized
 * requests for progress; costs nothing but an atomic load if no call is in flight.
 *
 * Communicators in the list advance under the lock only, all others in the thread that called. MPI forbids
 * that two threads call collectives on one communicator at a time, so a communicator does not change
 * between the two while a call starts. No thread blocks on the lock while MPI may hold a lock of its own. */

#include "core/progress.h"
#include "vector/dense.h"

#include <math.h>
#include <pthread.h>

enum { MPI_PROGRESS_EVERY = 8 /* calls of sar_progress for one that also tests MPI */ };

static const double POLL_SECONDS = 5e-4; /* longest time between two calls of sar_progress of one wait */

static pthread_mutex_t progress_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sar_comm_state *active; /* list of communicators with calls in flight */
static double last_advance;           /* time of the last sar_progress */
static unsigned advances;             /* calls of sar_progress */

static void list_active(struct sar_comm_state *comm_state)
{
    if (comm_state->queue.listed)
        return;
    comm_state->queue.listed = true;
    comm_state->queue.next_active = active;
    active = comm_state;
    atomic_fetch_add(&sar_comm_states_active, 1);
}

static void unlist_idle(void)
{
    struct sar_comm_state **at = &active;
    while (*at != NULL) {
        struct sar_comm_state *comm_state = *at;
        if (comm_state->queue.first != NULL) {
            at = &comm_state->queue.next_active;
            continue;
        }
        *at = comm_state->queue.next_active;
        comm_state->queue.listed = false;
        atomic_fetch_sub(&sar_comm_states_active, 1);
    }
}

/* When MPI polls our requests, it does not advance its own, such as those of fallbacks. Nor do calls that
 * wait at a shared-memory barrier. */
static void mpi_progress(void)
{
    if (active != NULL && ++advances % MPI_PROGRESS_EVERY == 0)
        sar_comm_mpi_progress(&active->comm);
}

/* Adds the time without progress to a call, whose start may be later than the last progress. Short gaps are
 * those of a loop that polls. */
static void add_gap(struct sar_call_time *time, double now)
{
    double gap = now - fmax(last_advance, time->start);
    time->excluded += gap;
    if (gap > POLL_SECONDS)
        time->computing += gap;
}

bool sar_progress(void)
{
    if (!sar_comm_state_any_active())
        return true;
    if (pthread_mutex_trylock(&progress_lock) != 0)
        return false;
    double now = PMPI_Wtime();
    for (struct sar_comm_state *comm_state = active; comm_state != NULL;
         comm_state = comm_state->queue.next_active) {
        if (comm_state->queue.first != NULL && comm_state->queue.first->run.phase != SAR_PHASE_QUEUED)
            add_gap(&comm_state->queue.first->time, now);
        sar_active_call_advance(comm_state, false);
    }
    unlist_idle();
    mpi_progress();
    last_advance = PMPI_Wtime();
    pthread_mutex_unlock(&progress_lock);
    return true;
}

bool sar_progress_poll(const struct sar_comm *comm, int *spins)
{
    if (!sar_comm_state_any_active())
        return true;
    sar_progress();
    sar_comm_backoff(comm, spins);
    return false;
}

void sar_progress_lock(const struct sar_comm_state *comm_state)
{
    int spins = 0;
    while (pthread_mutex_trylock(&progress_lock) != 0)
        sar_comm_backoff(&comm_state->comm, &spins);
}

void sar_progress_unlock(void)
{
    pthread_mutex_unlock(&progress_lock);
}

void sar_progress_post(struct sar_comm_state *comm_state, struct sar_call_args *args,
                       struct sar_active_call *op)
{
    sar_progress_lock(comm_state);
    sar_active_call_enqueue(comm_state, args, op);
    list_active(comm_state);
    sar_progress_unlock();
    sar_progress();
}

static bool is_listed(struct sar_comm_state *comm_state)
{
    sar_progress_lock(comm_state);
    bool listed = comm_state->queue.listed;
    sar_progress_unlock();
    return listed;
}

/* Run a call on a communicator with no other call in flight. It may block in MPI while no call is in flight
 * on other communicators either. */
static void run_alone(struct sar_comm_state *comm_state, struct sar_call_args *args)
{
    struct sar_active_call op = { .plan = NULL };
    int spins = 0;
    sar_active_call_enqueue(comm_state, args, &op);
    while (op.run.phase != SAR_PHASE_DONE) {
        bool may_block = !sar_comm_state_any_active();
        sar_active_call_advance(comm_state, may_block);
        sar_progress();
        if (!may_block)
            sar_comm_backoff(&comm_state->comm, &spins);
    }
}

static void set_done(struct sar_active_call *op)
{
    atomic_store(&((struct sar_blocking_call *)op)->done, true);
}

void sar_progress_begin(struct sar_comm_state *comm_state, struct sar_call_args *args,
                        struct sar_blocking_call *call)
{
    call->op.on_done = set_done;
    sar_progress_post(comm_state, args, &call->op);
}

void sar_progress_end(struct sar_comm_state *comm_state, struct sar_blocking_call *call)
{
    int spins = 0;
    while (!atomic_load(&call->done)) {
        sar_progress();
        sar_comm_backoff(&comm_state->comm, &spins);
    }
}

static void run_behind_others(struct sar_comm_state *comm_state, struct sar_call_args *args)
{
    struct sar_blocking_call call = { .op = { .plan = NULL } };
    sar_progress_begin(comm_state, args, &call);
    sar_progress_end(comm_state, &call);
}

void sar_progress_run(struct sar_comm_state *comm_state, struct sar_call_args *args)
{
    if (sar_comm_state_any_active() && is_listed(comm_state))
        run_behind_others(comm_state, args);
    else
        run_alone(comm_state, args);
}

void sar_progress_drain(struct sar_comm_state *comm_state)
{
    int spins = 0;
    while (sar_comm_state_any_active() && is_listed(comm_state)) {
        sar_progress();
        sar_comm_backoff(&comm_state->comm, &spins);
    }
}

enum sar_status sar_progress_wait_agreement(const struct sar_comm *comm, struct sar_agreement *agreement)
{
    bool done = false;
    int spins = 0;
    while (!done)
        SAR_TRY(sar_agree_test(comm, agreement, sar_progress_poll(comm, &spins), &done));
    return SAR_OK;
}

/* Returns false after an error. */
static bool agree_blocking(struct sar_active_call *op)
{
    op->comm_state->epoch++;
    sar_active_call_begin_agree(op, true);
    if (op->run.status == SAR_OK)
        op->run.status = sar_progress_wait_agreement(&op->comm_state->comm, &op->common.agreement);
    return sar_active_call_end_agree(op);
}

/* With `native` unset the agreement does not estimate the elements of the buffers. */
void sar_progress_check(struct sar_comm_state *comm_state, struct sar_call_args *args)
{
    struct sar_active_call op = { .comm_state = comm_state, .args = args };
    bool native = args->sig.native;
    args->sig.native = false;
    agree_blocking(&op);
    args->sig.native = native;
}

void sar_progress_profile(struct sar_comm_state *comm_state, struct sar_call_args *args, uint32_t slots,
                          struct sar_profile *profile)
{
    struct sar_active_call op = { .comm_state = comm_state, .args = args };
    struct sar_spvec vec = { NULL, NULL, 0 };
    bool done;
    sar_arena_reset(&comm_state->memory.arena);
    struct sar_parallel former = sar_comm_state_begin_work(comm_state);
    if (args->result.error.status == SAR_OK)
        args->result.error.status = sar_dense_compact(&args->sig.desc, args->data.buffers.sendbuf, 0,
                                                      &comm_state->memory.arena, &vec);
    sar_parallel_end(former);
    if (!agree_blocking(&op))
        return;
    if (args->sig.desc.count == 0) {
        *profile = sar_profile_empty(comm_state->comm.ranks);
        return;
    }
    op.run.phase_span = sar_task_span(&op.task, "profile");
    op.run.status = sar_profile_start(&comm_state->comm, &args->sig.desc, &vec, slots,
                                      &comm_state->memory.arena, &op.run.profile);
    if (op.run.status == SAR_OK)
        op.run.status = sar_profile_advance(&op.run.profile, true, profile, &done);
    sar_active_call_span_end(&op, &op.run.phase_span);
    if (op.run.status != SAR_OK)
        args->result.error = (struct sar_error){ .status = op.run.status, .agreed = true };
}
