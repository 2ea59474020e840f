/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests a thousand communicators, duplicated and split, with blocking calls, nonblocking calls and plans.
 * Some are freed during a call. MPI has as many free context ids afterwards as before, and memory does not
 * grow. */

#include <limits.h>
#include <malloc.h>
#include <mpix_sparse.h>
#include <stdio.h>

#include "check.h"
#include "contexts.h"

enum {
    COMMS = 1000,
    COMMS_IF_OVERSUBSCRIBED = 240, /* if ranks share processors */
    SLICES = 5,                    /* memory is measured after each slice of the communicators */
    SLACK = 16 << 10,              /* bytes a slice; a leak of its communicators is larger */
    COUNT = 300
};

static float in[COUNT], out[COUNT], other[COUNT];

static void check_sum(const float *sums, int n)
{
    check(sums[7] == (float)n && sums[8] == 0, "expected %d and 0, found %g and %g", n, (double)sums[7],
          (double)sums[8]);
}

static void wait_for(MPI_Request *request, const float *sums, int n)
{
    check_success(MPI_Wait(request, MPI_STATUS_IGNORE), "MPI_Wait");
    check_sum(sums, n);
}

static void use_blocking(MPI_Comm comm, int n)
{
    const int32_t index = 7;
    const float value = 1;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    check_success(MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm), "MPIX_Sparse_allreduce");
    check_sum(out, n);
    check_success(MPIX_Sparse_allreduce_coo(&index, &value, 1, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm,
                                            &result),
                  "MPIX_Sparse_allreduce_coo");
    check_success(MPIX_Sparse_result_dense(result, out), "MPIX_Sparse_result_dense");
    check_sum(out, n);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    MPI_Comm_free(&comm);
}

static void use_nonblocking(MPI_Comm comm, int n)
{
    MPI_Request requests[2];
    check_success(MPIX_Isparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, &requests[0]),
                  "MPIX_Isparse_allreduce");
    check_success(MPIX_Isparse_allreduce(in, other, COUNT, MPI_FLOAT, MPI_SUM, comm, &requests[1]),
                  "MPIX_Isparse_allreduce");
    wait_for(&requests[1], other, n);
    wait_for(&requests[0], out, n);
    MPI_Comm_free(&comm);
}

/* Free a communicator during a call, which MPI_Comm_free completes. */
static void use_and_free_early(MPI_Comm comm, int n)
{
    MPI_Request request;
    check_success(MPIX_Isparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, &request),
                  "MPIX_Isparse_allreduce");
    MPI_Comm_free(&comm);
    wait_for(&request, out, n);
}

/* Free one plan before its communicator, and the other after it. */
static void use_plans(MPI_Comm comm, int n)
{
    MPIX_Sparse_plan plans[2];
    MPI_Request request;
    for (int i = 0; i < 2; i++) {
        check_success(MPIX_Sparse_allreduce_init(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL,
                                                 &plans[i]),
                      "MPIX_Sparse_allreduce_init");
        check_success(MPIX_Sparse_plan_start(plans[i], &request), "MPIX_Sparse_plan_start");
        wait_for(&request, out, n);
    }
    check_success(MPIX_Sparse_plan_free(&plans[0]), "MPIX_Sparse_plan_free");
    MPI_Comm_free(&comm);
    check_success(MPIX_Sparse_plan_free(&plans[1]), "MPIX_Sparse_plan_free");
}

static void use_nothing(MPI_Comm comm, int n)
{
    (void)n;
    MPI_Comm_free(&comm);
}

/* Use and free communicator i of its sort: all ranks, or the odd and the even ranks. */
static void live(int i, void (*use)(MPI_Comm comm, int n))
{
    MPI_Comm comm;
    int n;
    if (i % 2 == 0)
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    else
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_size(comm, &n);
    use(comm, n);
}

/* Allocated bytes; 0 if malloc does not report them. */
static long long allocated(void)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    struct mallinfo2 info = mallinfo2();
    return (long long)(info.uordblks + info.hblkhd);
#else
    return 0;
#endif
}

static void (*const uses[])(MPI_Comm comm, int n) = { use_blocking, use_nonblocking, use_and_free_early,
                                                      use_plans };
enum { USES = sizeof uses / sizeof uses[0] };

static int comms = COMMS;

/* The smallest growth of all slices but the first. MPI libraries grow now and then to a new peak, as UCX does
 * for early messages (148 kB at once); a leak occurs in each slice. */
static long long lost(void (*const what[])(MPI_Comm comm, int n), int n)
{
    long long before = 0, least = LLONG_MAX;
    int slice = comms / SLICES;
    for (int i = 0; i < comms; i++) {
        live(i, what[i / 2 % n]);
        if ((i + 1) % slice != 0)
            continue;
        long long now = allocated();
        if (i > slice && now - before < least)
            least = now - before;
        before = now;
    }
    return least;
}

int main(int argc, char **argv)
{
    static void (*const nothing[])(MPI_Comm comm, int n) = { use_nothing };
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    check_alarm(280);
    in[7] = 1;
    if (oversubscribed)
        comms = COMMS_IF_OVERSUBSCRIBED;
    check_case("%d communicators that the library does not see", comms);
    long long without = lost(nothing, 1);
    live(0, use_blocking); /* one-time allocations */
    check_case("%d communicators", comms);
    int before = contexts_left();
    long long with = lost(uses, USES);
    int after = contexts_left_again(before);
    check(after >= before, "expected room for %d more communicators, found it for %d", before, after);
    check(with <= without + SLACK, "expected to lose what MPI loses, %lld bytes, and %d at most, found %lld",
          without, SLACK, with);
    if (rank == 0)
        printf("# many: %d communicators lost %lld bytes, %lld without the library; room for %d more\n",
               comms / SLICES, with, without, after);
    return check_end("many_comms");
}
