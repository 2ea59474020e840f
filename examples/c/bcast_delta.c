/* Rank 0 changes one weight in a hundred. All other ranks get the new weights by what changed.
 *
 *     mpicc -o bcast_delta bcast_delta.c $(pkg-config --cflags --libs mpix-sparse)
 *     mpirun -n 2 ./bcast_delta
 *
 * Output:
 *
 *     weight 7 is 0.5
 */
#include <mpix_sparse.h>

#include <stdio.h>
#include <stdlib.h>

enum { WEIGHTS = 100000 };

int main(int argc, char **argv)
{
    int rank, wrong = 0;
    float *weights = calloc(WEIGHTS, sizeof *weights), *trained = calloc(WEIGHTS, sizeof *trained);
    if (weights == NULL || trained == NULL)
        return 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    if (rank == 0) {
        for (int i = 7; i < WEIGHTS; i += 100)
            trained[i] = weights[i] + 0.5f;
        MPIX_Sparse_bcast_delta(weights, trained, WEIGHTS, MPI_FLOAT, 0, MPI_COMM_WORLD);
    } else {
        MPIX_Sparse_bcast_delta(MPI_IN_PLACE, weights, WEIGHTS, MPI_FLOAT, 0, MPI_COMM_WORLD);
        for (int i = 0; i < WEIGHTS; i++)
            wrong += weights[i] != (i % 100 == 7 ? 0.5f : 0);
    }
    if (rank == 1)
        printf("weight 7 is %g\n", weights[7]);

    free(weights);
    free(trained);
    MPI_Finalize();
    return wrong != 0;
}
