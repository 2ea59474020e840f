/* SPDX-License-Identifier: BSD-3-Clause */
/* Included before all else where bench/simulate builds the library for SimGrid's SMPI.
 *
 * There time passes in messages and sleeps only, so that a loop that looks for a message and yields its
 * processor would never end. SMPI can let each look take time (smpi/iprobe, smpi/test), but then looking at
 * many requests takes the time of as many looks, and what it adds to waits that are long grows with the
 * number of ranks. Here looks take none, and yielding sleeps: 10 ns, then 20, and so on until something
 * comes, so that a wait of T seconds is too long by sqrt(2e-8 T) at most: 14 us of 10 ms.
 *
 * SMPI's nonblocking collectives send everything to everybody, and MPI_Test forgets to reduce what they
 * bring. Blocking ones take their place; programs that have calls on several communicators in flight must not
 * be built with this file. */
#ifndef PERF_SMPI_H
#define PERF_SMPI_H

#include <mpi.h>
#include <sched.h>
#include <time.h>

/* Fruitless looks of this rank, one after another. */
__attribute__((weak)) long perf_smpi_looks;

static inline int perf_smpi_yield(void)
{
    enum { STEP = 10, SECOND = 1000000000 };
    long nanoseconds = STEP * ++perf_smpi_looks;

    return smpi_nanosleep(&(struct timespec){ nanoseconds / SECOND, nanoseconds % SECOND }, NULL);
}

static inline int perf_smpi_iprobe(int source, int tag, MPI_Comm comm, int *seen, MPI_Status *status)
{
    int code = PMPI_Iprobe(source, tag, comm, seen, status);

    if (*seen)
        perf_smpi_looks = 0;
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
    for (int i = 0; i < n && *over && code == MPI_SUCCESS; i++)
        code = perf_smpi_test(&requests[i], over);
    if (n > 0 && *over)
        perf_smpi_looks = 0;
    return code;
}

/* Its outcome is there when it has been started. */
static inline int perf_smpi_started(int code, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return code;
}

#define sched_yield() perf_smpi_yield()
#define PMPI_Iprobe(source, tag, comm, seen, status) perf_smpi_iprobe(source, tag, comm, seen, status)
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
