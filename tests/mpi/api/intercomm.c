/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests intercommunicators. Dense calls return the result of MPI_Allreduce or MPI_Reduce_scatter_block,
 * which is the sum of the other group. All other functions refuse an intercommunicator. */

#include <mpix_sparse.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { COUNT = 3000 };

static double in[COUNT], out[COUNT], expected[COUNT];

static void compare(const char *what)
{
    check(memcmp(out, expected, sizeof out) == 0, "expected the result of MPI_Allreduce, %s", what);
    memset(out, 0x77, sizeof out);
}

static void try_calls(MPI_Comm both, MPI_Count count)
{
    MPI_Request request;
    memset(out, 0x77, sizeof out);
    memset(expected, 0x77, sizeof expected);
    check_case("%d elements between two groups", (int)count);
    PMPI_Allreduce(in, expected, (int)count, MPI_DOUBLE, MPI_SUM, both);
    check_success(MPIX_Sparse_allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, both), "MPIX_Sparse_allreduce");
    compare("blocking");
    check_success(MPIX_Isparse_allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, both, &request),
                  "MPIX_Isparse_allreduce");
    check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    compare("nonblocking");
}

/* COUNT elements a rank of this group are enough for the other group's. Each group gives MPI as many elements
 * as the other. */
static void try_scatter(MPI_Comm both, MPI_Comm half)
{
    MPI_Request request;
    int mine, theirs;
    MPI_Comm_size(half, &mine);
    MPI_Comm_remote_size(both, &theirs);
    int recvcount = COUNT / (mine * theirs) / 2 * theirs;
    memset(out, 0x77, sizeof out);
    memset(expected, 0x77, sizeof expected);
    check_case("reduce_scatter of %d elements between two groups", recvcount);
    PMPI_Reduce_scatter_block(in, expected, recvcount, MPI_DOUBLE, MPI_SUM, both);
    check_success(MPIX_Sparse_reduce_scatter(in, out, recvcount, MPI_DOUBLE, MPI_SUM, both),
                  "MPIX_Sparse_reduce_scatter");
    compare("blocking");
    check_success(MPIX_Isparse_reduce_scatter(in, out, recvcount, MPI_DOUBLE, MPI_SUM, both, &request),
                  "MPIX_Isparse_reduce_scatter");
    check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    compare("nonblocking");
}

static void try_refusals(MPI_Comm both)
{
    MPIX_Sparse_plan plan;
    MPI_Request request;
    check_case("what has no meaning between two groups");
    check_error(MPIX_Sparse_allreduce(MPI_IN_PLACE, out, COUNT, MPI_DOUBLE, MPI_SUM, both), "is MPI_IN_PLACE",
                -1);
    check_error(MPIX_Isparse_allreduce(MPI_IN_PLACE, out, COUNT, MPI_DOUBLE, MPI_SUM, both, &request),
                "is MPI_IN_PLACE", -1);
    check_error(MPIX_Isparse_allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, both, NULL), "argument request",
                -1);
    check_error(MPIX_Sparse_allreduce_init(in, out, COUNT, MPI_DOUBLE, MPI_SUM, both, MPI_INFO_NULL, &plan),
                "intercommunicator", -1);
    check_error(MPIX_Sparse_reduce_scatter_init(in, out, 1, MPI_DOUBLE, MPI_SUM, both, MPI_INFO_NULL, &plan),
                "intercommunicator", -1);
    check_error(MPIX_Sparse_reduce_scatter(MPI_IN_PLACE, out, 1, MPI_DOUBLE, MPI_SUM, both),
                "is MPI_IN_PLACE", -1);
}

int main(int argc, char **argv)
{
    MPI_Comm half, both;
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    if (ranks == 1)
        return check_skip("intercomm", "one rank makes no two groups");
    for (int i = rank; i < COUNT; i += 100)
        in[i] = rank + i;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &both);
    MPI_Comm_set_errhandler(both, MPI_ERRORS_RETURN);
    try_calls(both, COUNT);
    try_calls(both, 3);
    try_calls(both, 0);
    try_scatter(both, half);
    try_refusals(both);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
    return check_end("intercomm");
}
