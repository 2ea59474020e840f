/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of bench/smpi.h that is about work: it takes the time that it is charged, and ranks of a node
 * share memory. */
#ifndef PERF_SMPI_WORK_H
#define PERF_SMPI_WORK_H

#include <mpi.h>
#include <simgrid/actor.h>
#include <smpi/smpi_helpers.h>
#include <unistd.h>

/* SMPI numbers its ranks like processes, but all are in one, which has the files of all. */
#undef getpid
static inline long long perf_smpi_process(void)
{
    return getpid();
}
#define getpid smpi_getpid
#define SAR_SEGMENT_HOLDER(name) perf_smpi_process()

/* bench/charge.h tells. */
#define PERF_LET_PASS(seconds) perf_smpi_pass(seconds)
#define PERF_CHARGE_SUMS(each) (perf_smpi_sums.seconds = (each))

/* What a rank knows of MPI's own reductions. */
__attribute__((weak)) struct perf_smpi_sums {
    double seconds; /* for a byte; 0 where they take none */
    MPI_Op op;      /* of the one under way */
    MPI_Op charged; /* does that, and takes time */
} perf_smpi_sums;

/* Work that has been done takes so long on the rank's own processor. */
static inline void perf_smpi_pass(double seconds)
{
    smpi_bench_end();
    if (seconds > 0)
        sg_actor_sleep_for(seconds);
    smpi_bench_begin();
}

static inline void perf_smpi_sum(void *in, void *inout, int *n, MPI_Datatype *type)
{
    int bytes;

    PMPI_Type_size(*type, &bytes);
    PMPI_Reduce_local(in, inout, *n, *type, perf_smpi_sums.op);
    perf_smpi_pass(perf_smpi_sums.seconds * bytes * *n);
}

/* The ops of SMPI's algorithms take time where work does. */
static inline int perf_smpi_allreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op,
                                      MPI_Comm comm)
{
    struct perf_smpi_sums *self = &perf_smpi_sums;

    if (self->seconds == 0)
        return PMPI_Allreduce(in, out, n, type, op, comm);
    if (self->charged == NULL)
        PMPI_Op_create(perf_smpi_sum, 1, &self->charged);
    self->op = op;
    return PMPI_Allreduce(in, out, n, type, self->charged, comm);
}

#undef MPI_Allreduce
#define MPI_Allreduce perf_smpi_allreduce
#define PMPI_Allreduce perf_smpi_allreduce

#endif
