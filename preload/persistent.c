/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides which starts of persistent requests the library runs. A plan reports its last scheme, so a request
 * learns from its own starts: when a rank starts it again, the start before is complete. The plan's agreement
 * replaces a probe, which would wait for other ranks.
 *
 * Ranks may start requests in different orders, but must make the library's calls on one communicator in the
 * same order. So each request that the library may run has its own communicator. */

#include "preload/persistent.h"

#include <pthread.h>
#include <stdlib.h>

#include "mpi_ext/persistent.h"

struct persistent {
    MPI_Request request;         /* MPI's request, which the program holds */
    MPI_Request library_request; /* the library's request while it is in progress, else null */
    MPI_Request *swapped_slot;   /* element of the caller's array that holds library_request */
    MPIX_Sparse_plan plan;
    struct sar_mpi_args args;
    struct sar_preload_entry entry;
    struct sar_stats_call stats; /* the last start, if the library ran it */
    struct persistent *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct persistent *tracked;

bool sar_persistent_is_used(void)
{
    return __atomic_load_n(&tracked, __ATOMIC_ACQUIRE) != NULL;
}

/* Returns the link to the entry of a request. The caller holds the lock. */
static struct persistent **link_of(MPI_Request request)
{
    struct persistent **at = &tracked;
    while (*at != NULL && (*at)->request != request)
        at = &(*at)->next;
    return at;
}

static struct persistent *find(MPI_Request request)
{
    pthread_mutex_lock(&lock);
    struct persistent *found = *link_of(request);
    pthread_mutex_unlock(&lock);
    return found;
}

/* Creates a plan on all ranks, or on none. */
static void make_plan(struct persistent *made, struct sar_comm_policy *policy,
                      const struct sar_mpi_args *args, MPI_Info info)
{
    MPI_Comm own;
    if (!sar_preload.config.preload_nonblocking || policy->dup_count == SAR_DUPS_MAX ||
        PMPI_Comm_dup(args->comm, &own) != MPI_SUCCESS)
        return;
    policy->dups[policy->dup_count++] = own;
    PMPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
    PMPIX_Sparse_allreduce_init(args->sendbuf, args->recvbuf, args->count, args->datatype, args->op, own,
                                info, made == NULL ? NULL : &made->plan);
}

void sar_persistent_track(const struct sar_mpi_args *args, MPI_Info info, MPI_Request request)
{
    struct sar_preload_key key;
    struct sar_comm_policy *policy = sar_call_hook_find(args, &key);
    if (policy == NULL)
        return;
    struct persistent *made = calloc(1, sizeof *made);
    make_plan(made, policy, args, info);
    if (made == NULL)
        return;
    made->request = request;
    made->library_request = MPI_REQUEST_NULL;
    made->args = *args;
    made->entry = sar_preload_entry_make(&key);
    made->stats.ranks = policy->ranks;
    pthread_mutex_lock(&lock);
    made->next = tracked;
    __atomic_store_n(&tracked, made, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

/* Records the last start if the library ran it. */
static void record_last(struct persistent *p)
{
    if (!p->stats.taken)
        return;
    struct sar_plan_report report = sar_plan_get_report(p->plan);
    sar_preload_entry_update(&p->entry, &sar_preload.params,
                             sar_call_hook_classify(report.scheme, report.choice, report.density));
    p->stats.density = report.density;
    p->stats.predicted = report.predicted;
    snprintf(p->stats.scheme, sizeof p->stats.scheme, "%s", report.scheme);
    sar_preload_count(&p->stats);
    p->stats.taken = false;
}

static bool decide(struct persistent *p)
{
    enum sar_decision decision = sar_preload_entry_decide(&p->entry, &sar_preload.params);
    if (p->plan == MPIX_SPARSE_PLAN_NULL || p->plan->plan.comm_state == NULL)
        return false;
    if (decision == SAR_DECISION_SAMPLE)
        sar_preload_entry_sampled(&p->entry, true);
    return p->entry.taken;
}

bool sar_persistent_start(MPI_Request request, int *code)
{
    struct persistent *p = sar_persistent_is_used() ? find(request) : NULL;
    if (p == NULL)
        return false;
    record_last(p);
    bool taken = decide(p);
    sar_call_hook_describe(&p->args, &p->entry, SAR_STATS_PERSISTENT, p->stats.ranks, &p->stats);
    p->stats.taken = taken;
    if (taken)
        *code = PMPIX_Sparse_plan_start(p->plan, &p->library_request);
    else
        sar_preload_count(&p->stats);
    return taken;
}

bool sar_persistent_swap_in(int n, MPI_Request *requests)
{
    bool any = false;
    if (!sar_persistent_is_used() || requests == NULL)
        return false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n; i++) {
        struct persistent *p = *link_of(requests[i]);
        if (p == NULL || p->library_request == MPI_REQUEST_NULL)
            continue;
        p->swapped_slot = &requests[i];
        requests[i] = p->library_request;
        any = true;
    }
    pthread_mutex_unlock(&lock);
    return any;
}

void sar_persistent_swap_out(int n, MPI_Request *requests)
{
    pthread_mutex_lock(&lock);
    for (struct persistent *p = tracked; p != NULL; p = p->next) {
        if (p->swapped_slot == NULL || p->swapped_slot < requests || p->swapped_slot >= requests + n)
            continue;
        p->library_request = *p->swapped_slot;
        *p->swapped_slot = p->request;
        p->swapped_slot = NULL;
    }
    pthread_mutex_unlock(&lock);
}

static void release(struct persistent *p)
{
    record_last(p);
    if (p->plan != MPIX_SPARSE_PLAN_NULL)
        PMPIX_Sparse_plan_free(&p->plan);
    free(p);
}

void sar_persistent_untrack(MPI_Request request)
{
    pthread_mutex_lock(&lock);
    struct persistent **at = link_of(request), *p = *at;
    if (p != NULL)
        __atomic_store_n(at, p->next, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    if (p != NULL)
        release(p);
}

void sar_persistent_cleanup(void)
{
    while (tracked != NULL)
        sar_persistent_untrack(tracked->request);
}
