/* SPDX-License-Identifier: BSD-3-Clause */
/* A mistake under MPI_ERRORS_ARE_FATAL, which is a communicator's handler unless another is set, an exit
 * without MPI_Finalize, or a call that the last rank skips. The argument names the mistake; tests/abort/run
 * reads the output and the exit status. */

#include <mpix_sparse.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 10 };

static void finalize(void)
{
    MPI_Finalize();
}

/* The last rank leaves out the third call. The others wait in it until they are killed. */
static void skip_last(int rank)
{
    enum { CALLS = 3, SECONDS = 6 };
    float in[COUNT] = { 1 }, out[COUNT];
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    alarm(SECONDS);
    for (int i = 0; i < CALLS - (rank == ranks - 1); i++)
        MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    float in[COUNT] = { 1 }, out[COUNT];
    int rank, provided;
    MPI_Request request;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int32_t index = rank == 0 ? COUNT : 0;
    const char *mistake = argc > 1 ? argv[1] : "";
    if (strcmp(mistake, "count") == 0)
        MPIX_Sparse_allreduce(in, out, -1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (strcmp(mistake, "op") == 0)
        MPIX_Sparse_allreduce(in, out, COUNT / 2, MPI_C_FLOAT_COMPLEX, MPI_MAX, MPI_COMM_WORLD);
    if (strcmp(mistake, "index") == 0)
        MPIX_Sparse_allreduce_coo(&index, in, 1, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                                  &result);
    if (strcmp(mistake, "nonblocking") == 0) {
        MPIX_Isparse_allreduce(in, rank == 0 ? NULL : out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                               &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (strcmp(mistake, "setting") == 0)
        MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (strncmp(mistake, "exit", 4) == 0) {
        MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        if (strcmp(mistake, "exit_finalized") == 0)
            atexit(finalize);
        exit(strcmp(mistake, "exit_failed") == 0);
    }
    if (strcmp(mistake, "skip") == 0)
        skip_last(rank);
    puts("rank goes on");
    MPI_Finalize();
    return 0;
}
