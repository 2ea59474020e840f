/* SPDX-License-Identifier: BSD-3-Clause */
/* Included before all else where bench/simulate builds the library for SimGrid's SMPI.
 *
 * There time passes in messages and sleeps only, so that a loop that looks for a message and yields its
 * processor would never end. SMPI can let each look take time (smpi/iprobe, smpi/test), but then looking at
 * many requests takes the time of as many looks, and what it adds to waits that are long grows with the
 * number of ranks. Here looks take none, and SMPI is asked no more than thrice at one instant. Yielding
 * sleeps until somebody sends to the rank, which a bell tells at once, but no longer than 1 us, then 2, and
 * so on until something comes: requests of its own have no bell, and it may learn of them sqrt(2e-6 T) too
 * late after T seconds. Who looks for any of its messages has others of them under way, so that being
 * late costs little: it sleeps 1 us, 8 us, and so on up to the platform's property `step`.
 *
 * SMPI's nonblocking collectives send everything to everybody, and MPI_Test forgets to reduce what they
 * bring. Blocking ones take their place; programs that have calls on several communicators in flight must not
 * be built with this file. */
#ifndef PERF_SMPI_H
#define PERF_SMPI_H

#include <mpi.h>
#include <sched.h>
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/semaphore.h>
#include <simgrid/zone.h>
#include <stdlib.h>

#include "smpi_work.h"

#define SAR_MACHINE_VAST (1 << 20) /* src/net/machine.c */
#define SAR_DISTANCE_TIMED false   /* src/net/distance.c */

/* What a rank knows of its looks. */
__attribute__((weak)) struct perf_smpi_waiter {
    sg_sem_t bell; /* rung by who sends to it, while it sleeps */
    int sleeps;
    int any;        /* the last look was for any message of several */
    double most;    /* seconds that it sleeps at a time while it looks so */
    double step;    /* seconds that it slept last, 0 since it found something */
    double instant; /* of the last look */
    int looks;      /* in vain, at this instant */
} perf_smpi_self;

/* Whether a look can find what others at the same instant did not: there are two lanes, and requests. */
static inline int perf_smpi_worth(void)
{
    enum { KINDS = 3 };
    struct perf_smpi_waiter *self = &perf_smpi_self;
    double now = simgrid_get_clock();

    if (now > self->instant)
        self->looks = 0;
    self->instant = now;
    return self->looks++ < KINDS;
}

static inline void perf_smpi_found(void)
{
    perf_smpi_self.step = 0;
    perf_smpi_self.looks = 0;
}

static inline double perf_smpi_next_step(const struct perf_smpi_waiter *self)
{
    const double FIRST = 1e-6, GROWTH = 8;

    if (self->step == 0)
        return FIRST;
    if (!self->any)
        return self->step + FIRST;
    return GROWTH * self->step < self->most ? GROWTH * self->step : self->most;
}

static inline int perf_smpi_yield(void)
{
    struct perf_smpi_waiter *self = &perf_smpi_self;

    smpi_bench_end();
    if (self->bell == NULL) {
        self->bell = sg_sem_init(0);
        self->most = atof(sg_zone_get_property_value(sg_zone_get_by_name("cluster"), "step"));
        sg_actor_self_set_data(self);
    }
    self->sleeps = 1;
    self->step = perf_smpi_next_step(self);
    if (sg_sem_acquire_timeout(self->bell, self->step) == 0)
        self->step = 0;
    self->sleeps = 0;
    smpi_bench_begin();
    return 0;
}

/* SMPI numbers its actors by ranks, from 1. */
static inline void perf_smpi_ring(int rank, MPI_Comm comm)
{
    MPI_Group group, world;
    int number;
    struct perf_smpi_waiter *other;

    PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_translate_ranks(group, 1, &rank, world, &number);
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    other = sg_actor_get_data(sg_actor_by_pid(number + 1));
    if (other == NULL || !other->sleeps)
        return;
    other->sleeps = 0;
    smpi_bench_end();
    sg_sem_release(other->bell);
    smpi_bench_begin();
}

static inline int perf_smpi_isend(const void *buffer, int n, MPI_Datatype type, int rank, int tag,
                                  MPI_Comm comm, MPI_Request *request)
{
    int code = PMPI_Isend(buffer, n, type, rank, tag, comm, request);

    perf_smpi_ring(rank, comm);
    return code;
}

static inline int perf_smpi_iprobe(int source, int tag, MPI_Comm comm, int *seen, MPI_Status *status)
{
    int code = MPI_SUCCESS;

    *seen = 0;
    if (perf_smpi_worth())
        code = PMPI_Iprobe(source, tag, comm, seen, status);
    if (*seen)
        perf_smpi_found();
    return code;
}

static inline int perf_smpi_testsome(int n, MPI_Request *requests, int *over, int *places,
                                     MPI_Status *statuses)
{
    int code = MPI_SUCCESS;

    *over = 0;
    perf_smpi_self.any = 1;
    if (n == 0 || perf_smpi_worth())
        code = PMPI_Testsome(n, requests, over, places, statuses);
    if (*over > 0)
        perf_smpi_found();
    return code;
}

/* SMPI leaves `over` alone where there is no request and the status is ignored. */
static inline int perf_smpi_test(MPI_Request *request, int *over)
{
    *over = 1;
    return *request == MPI_REQUEST_NULL ? MPI_SUCCESS : PMPI_Test(request, over, MPI_STATUS_IGNORE);
}

/* SMPI would look at all of them, however many there are. */
static inline int perf_smpi_testall(int n, MPI_Request *requests, int *over)
{
    int code = MPI_SUCCESS;

    *over = 1;
    perf_smpi_self.any = 0;
    for (int i = 0; i < n && *over && code == MPI_SUCCESS; i++)
        code = perf_smpi_test(&requests[i], over);
    if (n > 0 && *over)
        perf_smpi_found();
    return code;
}

/* Its outcome is there when it has been started. */
static inline int perf_smpi_started(int code, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return code;
}

#define sched_yield() perf_smpi_yield()
#define PMPI_Iprobe perf_smpi_iprobe
#define PMPI_Isend perf_smpi_isend
#define PMPI_Testsome perf_smpi_testsome
#define PMPI_Test(request, over, status) perf_smpi_test(request, over)
#define PMPI_Testall(n, requests, over, statuses) perf_smpi_testall(n, requests, over)
#define PMPI_Iallreduce(in, out, n, type, op, comm, request) \
    perf_smpi_started(PMPI_Allreduce(in, out, n, type, op, comm), request)
#define PMPI_Iallgather(in, n, type, out, each, types, comm, request) \
    perf_smpi_started(PMPI_Allgather(in, n, type, out, each, types, comm), request)
#define PMPI_Ireduce_scatter_block(in, out, n, type, op, comm, request) \
    perf_smpi_started(PMPI_Reduce_scatter_block(in, out, n, type, op, comm), request)
/* Only tells who is late. */
#define PMPI_Iscatterv(in, counts, places, type, out, n, types, root, comm, request) \
    perf_smpi_started(MPI_SUCCESS, request)

#endif
