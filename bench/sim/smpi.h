/* SPDX-License-Identifier: BSD-3-Clause */
/* Force-included (-include) where bench/simulate builds the library for SimGrid's SMPI.
 *
 * In SMPI, time passes only in messages and sleeps, so a loop that probes and yields would never end. SMPI
 * can charge each probe (smpi/iprobe, smpi/test), but then testing many requests takes as many times longer,
 * and the error of long waits grows with the number of ranks. Here a probe takes no time, and SMPI is probed
 * at most four times at one instant. sched_yield sleeps: a sender wakes the rank through a semaphore at
 * once; otherwise the sleep lasts 1 us, then 2, and so on until something arrives. Completion of a rank's
 * own requests does not signal the semaphore, so after T seconds the rank may learn of it sqrt(2e-6 T)
 * seconds late. A rank that tests several requests at once has other messages under way, so a delay costs
 * little: it sleeps 1 us, 8 us, and so on up to the platform's property `step`.
 *
 * SMPI's nonblocking collectives send everything to all ranks, and its MPI_Test omits their reduction.
 * Blocking collectives replace them here. Programs with calls in flight on several communicators must not
 * use this file. */
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

#define SAR_MACHINE_MEMORY_BYTES (1 << 20) /**< see src/comm/machine.c */
#define SAR_NUMA_DISTANCE_TIMED false      /**< see src/comm/shm/numa_distance.c */
#define SAR_THREADS_SHARE_PROCESSORS false /**< see src/core/policy.c */
#define SAR_MSG_DETACHED_BYTES 68          /**< see src/wire/message.h */

/** State of a rank's polling. */
__attribute__((weak)) struct perf_smpi_waiter {
    sg_sem_t wakeup; /**< signalled by senders while the rank sleeps */
    int is_asleep;
    int waits_for_any; /**< true if the last probe was for any of several messages */
    double max_sleep;  /**< longest sleep in such probes, seconds */
    double last_sleep; /**< last sleep in seconds; 0 after a successful probe */
    double probe_time; /**< time of the last probe */
    int probes;        /**< unsuccessful probes at this instant */
} perf_smpi_self;

/** True if a probe can find a message that earlier probes at this instant did not: there are three classes
 * of channels, and requests. */
static inline int perf_smpi_may_probe(void)
{
    enum { KINDS = 4 };
    struct perf_smpi_waiter *self = &perf_smpi_self;
    double now = simgrid_get_clock();

    if (now > self->probe_time)
        self->probes = 0;
    self->probe_time = now;
    return self->probes++ < KINDS;
}

static inline void perf_smpi_reset_backoff(void)
{
    perf_smpi_self.last_sleep = 0;
    perf_smpi_self.probes = 0;
}

static inline double perf_smpi_next_step(const struct perf_smpi_waiter *self)
{
    const double FIRST = 1e-6, GROWTH = 8;

    if (self->last_sleep == 0)
        return FIRST;
    if (!self->waits_for_any)
        return self->last_sleep + FIRST;
    return GROWTH * self->last_sleep < self->max_sleep ? GROWTH * self->last_sleep : self->max_sleep;
}

static inline int perf_smpi_yield(void)
{
    struct perf_smpi_waiter *self = &perf_smpi_self;

    smpi_bench_end();
    if (self->wakeup == NULL) {
        self->wakeup = sg_sem_init(0);
        self->max_sleep = atof(sg_zone_get_property_value(sg_zone_get_by_name("cluster"), "step"));
        sg_actor_self_set_data(self);
    }
    self->is_asleep = 1;
    self->last_sleep = perf_smpi_next_step(self);
    if (sg_sem_acquire_timeout(self->wakeup, self->last_sleep) == 0)
        self->last_sleep = 0;
    self->is_asleep = 0;
    smpi_bench_begin();
    return 0;
}

/** Wakes the rank that a message goes to. SMPI numbers its actors by ranks, from 1. */
static inline void perf_smpi_wake(int rank, MPI_Comm comm)
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
    if (other == NULL || !other->is_asleep)
        return;
    other->is_asleep = 0;
    smpi_bench_end();
    sg_sem_release(other->wakeup);
    smpi_bench_begin();
}

static inline int perf_smpi_isend(const void *buffer, int n, MPI_Datatype type, int rank, int tag,
                                  MPI_Comm comm, MPI_Request *request)
{
    int code = PMPI_Isend(buffer, n, type, rank, tag, comm, request);

    perf_smpi_wake(rank, comm);
    return code;
}

/** A send that returns when the rank's link has taken the message, and is complete when the message has
 * arrived. Messages then follow each other, where SimGrid would send all at once, each at its share of the
 * link. The platform's property `beta` is the time of a byte. */
static inline int perf_smpi_paced_isend(const void *buffer, int n, MPI_Datatype type, int rank, int tag,
                                        MPI_Comm comm, MPI_Request *request)
{
    int code = PMPI_Issend(buffer, n, type, rank, tag, comm, request);
    const char *beta = sg_zone_get_property_value(sg_zone_get_by_name("cluster"), "beta");

    perf_smpi_wake(rank, comm);
    perf_smpi_sleep(atof(beta) * n);
    return code;
}

static inline int perf_smpi_iprobe(int source, int tag, MPI_Comm comm, int *seen, MPI_Status *status)
{
    int code = MPI_SUCCESS;

    *seen = 0;
    if (perf_smpi_may_probe())
        code = PMPI_Iprobe(source, tag, comm, seen, status);
    if (*seen)
        perf_smpi_reset_backoff();
    return code;
}

static inline int perf_smpi_testsome(int n, MPI_Request *requests, int *over, int *places,
                                     MPI_Status *statuses)
{
    int code = MPI_SUCCESS;

    *over = 0;
    perf_smpi_self.waits_for_any = 1;
    if (n == 0 || perf_smpi_may_probe())
        code = PMPI_Testsome(n, requests, over, places, statuses);
    if (*over > 0)
        perf_smpi_reset_backoff();
    return code;
}

/** SMPI leaves `over` alone if the request is null and the status is ignored. */
static inline int perf_smpi_test(MPI_Request *request, int *over)
{
    *over = 1;
    return *request == MPI_REQUEST_NULL ? MPI_SUCCESS : PMPI_Test(request, over, MPI_STATUS_IGNORE);
}

/** Stops at the first incomplete request; SMPI would test all of them. */
static inline int perf_smpi_testall(int n, MPI_Request *requests, int *over)
{
    int code = MPI_SUCCESS;

    *over = 1;
    perf_smpi_self.waits_for_any = 0;
    for (int i = 0; i < n && *over && code == MPI_SUCCESS; i++)
        code = perf_smpi_test(&requests[i], over);
    if (n > 0 && *over)
        perf_smpi_reset_backoff();
    return code;
}

/** Waits for one request after the other. SMPI's MPI_Waitall waits n times for any of n requests, and
 * registers and removes all of them each time. */
static inline int perf_smpi_waitall(int n, MPI_Request *requests)
{
    int code = MPI_SUCCESS;

    for (int i = 0; i < n && code == MPI_SUCCESS; i++)
        if (requests[i] != MPI_REQUEST_NULL)
            code = PMPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    return code;
}

/** The nonblocking collective is complete when it returns. */
static inline int perf_smpi_completed(int code, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return code;
}

/** An element from each rank to each other, all messages at once, as MPI libraries send them. SMPI's own
 * algorithm for many ranks sends one after the other. */
static inline int perf_smpi_alltoall(const void *in, MPI_Datatype type, void *out, MPI_Comm comm)
{
    enum { TAG = 32766 /* that the library does not use */ };
    int rank, ranks, size, code = MPI_SUCCESS;

    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &ranks);
    PMPI_Type_size(type, &size);
    MPI_Request *requests = malloc(2 * (size_t)ranks * sizeof *requests);
    if (requests == NULL)
        return MPI_ERR_NO_MEM;
    for (int r = 0; r < ranks && code == MPI_SUCCESS; r++)
        code = PMPI_Irecv((char *)out + (size_t)r * (size_t)size, 1, type, r, TAG, comm, &requests[r]);
    for (int i = 0; i < ranks && code == MPI_SUCCESS; i++)
        code = PMPI_Isend(in, 1, type, (rank + i) % ranks, TAG, comm, &requests[ranks + i]);
    if (code == MPI_SUCCESS)
        code = perf_smpi_waitall(2 * ranks, requests);
    free(requests);
    return code;
}

#define sched_yield() perf_smpi_yield()
#define PMPI_Iprobe perf_smpi_iprobe
#define PMPI_Isend perf_smpi_isend
#define SAR_PIPELINE_ISEND perf_smpi_paced_isend
#define SAR_PIPELINE_SENDS 1
#define PMPI_Testsome perf_smpi_testsome
#define PMPI_Test(request, over, status) perf_smpi_test(request, over)
#define PMPI_Waitall(n, requests, statuses) perf_smpi_waitall(n, requests)
#define PMPI_Testall(n, requests, over, statuses) perf_smpi_testall(n, requests, over)
#define PMPI_Iallreduce(in, out, n, type, op, comm, request) \
    perf_smpi_completed(PMPI_Allreduce(in, out, n, type, op, comm), request)
#define PMPI_Ireduce(in, out, n, type, op, root, comm, request) \
    perf_smpi_completed(PMPI_Reduce(in, out, n, type, op, root, comm), request)
#define PMPI_Ibarrier(comm, request) perf_smpi_completed(PMPI_Barrier(comm), request)
#define PMPI_Iallgather(in, n, type, out, each, types, comm, request) \
    perf_smpi_completed(PMPI_Allgather(in, n, type, out, each, types, comm), request)
#define PMPI_Ialltoallv(in, counts, places, type, out, each, at, types, comm, request) \
    perf_smpi_completed(perf_smpi_alltoall(in, type, out, comm), request)
#define PMPI_Ireduce_scatter_block(in, out, n, type, op, comm, request) \
    perf_smpi_completed(PMPI_Reduce_scatter_block(in, out, n, type, op, comm), request)
/** The library only uses this collective to report late ranks. */
#define PMPI_Iscatterv(in, counts, places, type, out, n, types, root, comm, request) \
    perf_smpi_completed(MPI_SUCCESS, request)

#endif
