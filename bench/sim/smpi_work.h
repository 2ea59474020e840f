/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of bench/sim/smpi.h that models work: work takes the modelled time, and ranks of a node share
 * memory. */
#ifndef PERF_SMPI_WORK_H
#define PERF_SMPI_WORK_H

#include <mpi.h>
#include <simgrid/actor.h>
#include <smpi/smpi_helpers.h>
#include <unistd.h>

/** SMPI gives each rank its own process number, but all ranks live in one process, which owns all file
 * descriptors. */
#undef getpid
static inline long long perf_smpi_real_pid(void)
{
    return getpid();
}
#define getpid smpi_getpid
#define SAR_SHM_HANDLE_PID(name) perf_smpi_real_pid()

/** Implements the macros of bench/sim/sim_work.c. */
#define PERF_SIM_SLEEP(seconds) perf_smpi_sleep(seconds)
#define PERF_SIM_REDUCE_COST(each) (perf_smpi_reduce_cost.seconds = (each))
#define PERF_SIM_ALIGN() perf_smpi_align()

/** Returns the modelled time of large work on so many threads over that on one; NULL: not modelled. For
 * src/comm/thread_ratio.c, which cannot measure it in a simulation. */
__attribute__((weak)) double (*perf_smpi_thread_ratio)(int threads);
#define SAR_THREAD_RATIO(threads) (perf_smpi_thread_ratio == NULL ? 1 : perf_smpi_thread_ratio(threads))
#define PERF_SIM_THREAD_RATIO(ratio) (perf_smpi_thread_ratio = (ratio))

/** State of a rank's reductions inside MPI. */
__attribute__((weak)) struct perf_smpi_reduce_cost {
    double seconds; /**< seconds a byte; 0: reductions take no time */
    MPI_Op op;      /**< op of the current call */
    MPI_Op charged; /**< op that calls `op` and sleeps */
} perf_smpi_reduce_cost;

/** Sleeps for the modelled time of work on the rank's own processor. */
static inline void perf_smpi_sleep(double seconds)
{
    smpi_bench_end();
    if (seconds > 0)
        sg_actor_sleep_for(seconds);
    smpi_bench_begin();
}

/** Sleeps until an instant that all ranks agree on, a second after the last of them has come. */
static inline void perf_smpi_align(void)
{
    double now = PMPI_Wtime(), latest;

    PMPI_Allreduce(&now, &latest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    perf_smpi_sleep(latest + 1 - PMPI_Wtime());
}

static inline void perf_smpi_timed_op(void *in, void *inout, int *n, MPI_Datatype *type)
{
    int bytes;

    PMPI_Type_size(*type, &bytes);
    PMPI_Reduce_local(in, inout, *n, *type, perf_smpi_reduce_cost.op);
    perf_smpi_sleep(perf_smpi_reduce_cost.seconds * bytes * *n);
}

/** MPI_Allreduce whose op takes modelled time. */
static inline int perf_smpi_allreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op,
                                      MPI_Comm comm)
{
    struct perf_smpi_reduce_cost *self = &perf_smpi_reduce_cost;

    if (self->seconds == 0)
        return PMPI_Allreduce(in, out, n, type, op, comm);
    if (self->charged == NULL)
        PMPI_Op_create(perf_smpi_timed_op, 1, &self->charged);
    self->op = op;
    return PMPI_Allreduce(in, out, n, type, self->charged, comm);
}

#undef MPI_Allreduce
#define MPI_Allreduce perf_smpi_allreduce
#define PMPI_Allreduce perf_smpi_allreduce

#endif
