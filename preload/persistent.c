/* SPDX-License-Identifier: BSD-3-Clause */
/* Which starts of persistent requests go to the library. A plan tells what it ran last, so a request learns
 * from its own starts: the one before is complete on all ranks that start it again. The plan's agreement is
 * the look, since a glance would wait.
 *
 * Ranks may start their requests in different orders, and the library's calls on one communicator may not,
 * so each request that the library may take has a communicator of its own. */

#include "preload/persistent.h"

#include <pthread.h>
#include <stdlib.h>

#include "mpi_ext/plan.h"

struct persistent {
    MPI_Request request; /* that the program holds */
    MPI_Request flight;  /* of the library, while it is under way for that one */
    MPI_Request *lent;   /* where flight stands in its place */
    MPIX_Sparse_plan plan;
    struct sar_asked asked;
    struct sar_tabled_shape shape;
    struct sar_note note; /* of the last start, where the library took it */
    struct persistent *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct persistent *watched;

bool sar_persistent_any(void)
{
    return __atomic_load_n(&watched, __ATOMIC_ACQUIRE) != NULL;
}

/* With the lock. */
static struct persistent **place_of(MPI_Request request)
{
    struct persistent **at = &watched;
    while (*at != NULL && (*at)->request != request)
        at = &(*at)->next;
    return at;
}

static struct persistent *find(MPI_Request request)
{
    pthread_mutex_lock(&lock);
    struct persistent *found = *place_of(request);
    pthread_mutex_unlock(&lock);
    return found;
}

/* All ranks get a plan or none does. */
static void make_plan(struct persistent *made, struct sar_followed *followed, const struct sar_asked *asked,
                      MPI_Info info)
{
    MPI_Comm own;
    if (!sar_preload.config.preload_nonblocking || followed->owned == SAR_MOST_OWNED ||
        PMPI_Comm_dup(asked->comm, &own) != MPI_SUCCESS)
        return;
    followed->own[followed->owned++] = own;
    PMPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
    PMPIX_Sparse_allreduce_init(asked->sendbuf, asked->recvbuf, asked->count, asked->datatype, asked->op, own,
                                info, made == NULL ? NULL : &made->plan);
}

void sar_persistent_watch(const struct sar_asked *asked, MPI_Info info, MPI_Request request)
{
    struct sar_shape_key key;
    struct sar_followed *followed = sar_visit_follow(asked, &key);
    if (followed == NULL)
        return;
    struct persistent *made = calloc(1, sizeof *made);
    make_plan(made, followed, asked, info);
    if (made == NULL)
        return;
    made->request = request;
    made->flight = MPI_REQUEST_NULL;
    made->asked = *asked;
    made->shape = sar_shape_new(&key);
    made->note.ranks = followed->ranks;
    pthread_mutex_lock(&lock);
    made->next = watched;
    __atomic_store_n(&watched, made, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

/* What the last start was, where the library took it. */
static void settle(struct persistent *p)
{
    if (!p->note.taken)
        return;
    struct sar_told told = sar_plan_told(p->plan);
    sar_shape_learn(&p->shape, &sar_preload.habits,
                    sar_visit_outcome(told.scheme, told.choice, told.density));
    p->note.density = told.density;
    p->note.predicted = told.predicted;
    snprintf(p->note.scheme, sizeof p->note.scheme, "%s", told.scheme);
    sar_preload_note(&p->note);
    p->note.taken = false;
}

static bool takes(struct persistent *p)
{
    enum sar_move move = sar_shape_call(&p->shape, &sar_preload.habits);
    if (p->plan == MPIX_SPARSE_PLAN_NULL || !sar_plan_alive(p->plan))
        return false;
    if (move == SAR_GLANCE)
        sar_shape_glanced(&p->shape, true);
    return p->shape.open;
}

bool sar_persistent_start(MPI_Request request, int *code)
{
    struct persistent *p = sar_persistent_any() ? find(request) : NULL;
    if (p == NULL)
        return false;
    settle(p);
    bool taken = takes(p);
    sar_visit_describe(&p->asked, &p->shape, SAR_PERSISTENT, p->note.ranks, &p->note);
    p->note.taken = taken;
    if (taken)
        *code = PMPIX_Sparse_plan_start(p->plan, &p->flight);
    else
        sar_preload_note(&p->note);
    return taken;
}

bool sar_persistent_lend(int n, MPI_Request *requests)
{
    bool any = false;
    if (!sar_persistent_any() || requests == NULL)
        return false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n; i++) {
        struct persistent *p = *place_of(requests[i]);
        if (p == NULL || p->flight == MPI_REQUEST_NULL)
            continue;
        p->lent = &requests[i];
        requests[i] = p->flight;
        any = true;
    }
    pthread_mutex_unlock(&lock);
    return any;
}

void sar_persistent_return(int n, MPI_Request *requests)
{
    pthread_mutex_lock(&lock);
    for (struct persistent *p = watched; p != NULL; p = p->next) {
        if (p->lent == NULL || p->lent < requests || p->lent >= requests + n)
            continue;
        p->flight = *p->lent;
        *p->lent = p->request;
        p->lent = NULL;
    }
    pthread_mutex_unlock(&lock);
}

static void release(struct persistent *p)
{
    settle(p);
    if (p->plan != MPIX_SPARSE_PLAN_NULL)
        PMPIX_Sparse_plan_free(&p->plan);
    free(p);
}

void sar_persistent_forget(MPI_Request request)
{
    pthread_mutex_lock(&lock);
    struct persistent **at = place_of(request), *p = *at;
    if (p != NULL)
        __atomic_store_n(at, p->next, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    if (p != NULL)
        release(p);
}

void sar_persistent_end(void)
{
    while (watched != NULL)
        sar_persistent_forget(watched->request);
}
