/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests MPI's progress rule: a nonblocking call completes while a rank that started it blocks in another MPI
 * function. Rank 0 receives from each other rank only after that rank's call is complete. */

#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 20000, ROUNDS = 5 };

static float in[COUNT], out[COUNT];

static void hear_of(MPI_Request *request, int rank, int ranks)
{
    int word = 0;
    if (rank != 0) {
        MPI_Wait(request, MPI_STATUS_IGNORE);
        MPI_Send(&word, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
        return;
    }
    for (int r = 1; r < ranks; r++)
        MPI_Recv(&word, 1, MPI_INT, r, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* MPI_Request_get_status reports completion without freeing the request. */
static void ask_for(MPI_Request *request)
{
    int done = 0;
    while (!done)
        MPI_Request_get_status(*request, &done, MPI_STATUS_IGNORE);
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank, ranks, provided, failed = 0;
    MPI_Request request;
    MPI_Init_thread(&argc, &argv,
                    getenv("SAR_PROMISE_SINGLE") != NULL ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE,
                    &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    in[5 * rank + 5] = 1;
    MPI_Allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (int round = 0; round < 2 * ROUNDS; round++) {
        out[5] = 0;
        MPI_Iallreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
        if (round < ROUNDS)
            hear_of(&request, rank, ranks);
        else
            ask_for(&request);
        failed |= out[5] != 1 || out[5 * ranks] != 1 || out[6] != 0;
    }
    if (failed)
        printf("rank %d has other sums\n", rank);
    MPI_Finalize();
    return failed;
}
