/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that progress does not depend on the order of waits. A large call waits at a shared-memory barrier; a
 * small one passes to MPI. Ranks that wait for them in different orders complete both, on one communicator
 * and on two, also with a blocking call between. */

#include <mpix_sparse.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

/* Without a progress thread, MPI may do less work while the library polls. */
#ifdef HAVE_MPIX_GREQUEST_START
enum { LEVEL = MPI_THREAD_SINGLE };
#else
enum { LEVEL = MPI_THREAD_MULTIPLE };
#endif

enum {
    LARGE = 1000000,
    SMALL = 10,
    APART = 97,
    ROUNDS = 40,
    TIMEOUT = 120 /* seconds */,
    LATE = 2000 /* us */
};

static float in[LARGE], out[LARGE], few[SMALL], sums[SMALL];

static void fill(void)
{
    for (int i = 0; i < LARGE; i += APART)
        in[i] = 1;
    for (int i = 0; i < SMALL; i++)
        few[i] = (float)(rank + i);
}

static void check_sums(void)
{
    for (int i = 0; i < LARGE; i++)
        check(out[i] == (float)(i % APART == 0 ? ranks : 0), "expected another sum at %d than %g", i, out[i]);
    for (int i = 0; i < SMALL; i++)
        check(sums[i] == (float)(ranks * (ranks - 1) / 2 + ranks * i), "expected another small sum than %g",
              sums[i]);
}

static void start_small(MPI_Comm comm, MPI_Request *request)
{
    check_success(MPIX_Isparse_allreduce(few, sums, SMALL, MPI_FLOAT, MPI_SUM, comm, request),
                  "MPIX_Isparse_allreduce");
}

static void start_large(MPI_Comm comm, MPI_Request *request)
{
    check_success(MPIX_Isparse_allreduce(in, out, LARGE, MPI_FLOAT, MPI_SUM, comm, request),
                  "MPIX_Isparse_allreduce");
}

/* The last rank is late, and waits for the small call first. */
static void try_orders(MPI_Comm comm, MPI_Comm other)
{
    MPI_Request requests[2];
    int first = rank == ranks - 1;
    if (first)
        usleep(LATE);
    start_large(comm, &requests[0]);
    if (first)
        usleep(LATE);
    start_small(other, &requests[1]);
    check_success(MPI_Wait(&requests[first], MPI_STATUS_IGNORE), "MPI_Wait");
    check_success(MPI_Wait(&requests[!first], MPI_STATUS_IGNORE), "MPI_Wait");
}

/* The last rank makes the blocking large call after the small call; the others make it before they wait for
 * the small call. */
static void try_blocking(MPI_Comm comm, MPI_Comm other)
{
    MPI_Request request;
    int first = rank == ranks - 1;
    start_small(other, &request);
    if (first) {
        usleep(LATE);
        check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    }
    check_success(MPIX_Sparse_allreduce(in, out, LARGE, MPI_FLOAT, MPI_SUM, comm), "MPIX_Sparse_allreduce");
    check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, LEVEL);
    unsetenv("MPIX_SPARSE_FORWARD");
    unsetenv("MPIX_SPARSE_NODES");
    sleep_in_waits = false; /* this test measures MPI's own ways to wait */
    MPI_Comm comm, other;
    check_alarm(TIMEOUT);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    fill();
    for (int k = 0; k < 3 * ROUNDS; k++) {
        check_case("form %d, round %d", k / ROUNDS, k % ROUNDS);
        if (k < 2 * ROUNDS)
            try_orders(comm, k < ROUNDS ? other : comm);
        else
            try_blocking(comm, other);
        if (k % ROUNDS == ROUNDS - 1)
            check_sums();
    }
    MPI_Comm_free(&other);
    MPI_Comm_free(&comm);
    return check_end("progress_order");
}
