/* A step of sharded training. Every rank gets the sums of the elements that it owns, and changes these. All
 * ranks get the changed elements.
 *
 *     mpicc -o owners owners.c $(pkg-config --cflags --libs mpix-sparse)
 *     mpirun -n 2 ./owners
 *
 * Output:
 *
 *     elements of rank 0: 1
 *     7: -0.2
 *     1000: -0.05
 *     1001: -0.05
 */
#include <mpix_sparse.h>

#include <stdint.h>
#include <stdio.h>

enum { COUNT = 1000000, BLOCK = 1, OWNED_MAX = 8 };

int main(int argc, char **argv)
{
    int rank;
    float changes[OWNED_MAX];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int32_t indices[] = { 7, 1000 + rank };
    float gradients[] = { 1.0f, 0.5f };
    MPIX_Sparse_result owned = MPIX_SPARSE_RESULT_NULL, all = MPIX_SPARSE_RESULT_NULL;
    MPIX_Sparse_reduce_scatter_coo(indices, gradients, 2, MPI_INT32_T, COUNT, BLOCK, MPI_FLOAT, MPI_SUM,
                                   MPI_COMM_WORLD, &owned);

    MPI_Count nnz;
    const void *found, *sums;
    MPIX_Sparse_result_get(owned, &nnz, &found, &sums);
    if (rank == 0)
        printf("elements of rank 0: %d\n", (int)nnz);
    for (MPI_Count i = 0; i < nnz && i < OWNED_MAX; i++)
        changes[i] = -0.1f * ((const float *)sums)[i];
    MPIX_Sparse_allgather_coo(found, changes, nnz, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_COMM_WORLD, &all);

    MPIX_Sparse_result_get(all, &nnz, &found, &sums);
    for (MPI_Count i = 0; rank == 0 && i < nnz; i++)
        printf("%d: %g\n", ((const int32_t *)found)[i], ((const float *)sums)[i]);

    MPIX_Sparse_result_free(&owned);
    MPIX_Sparse_result_free(&all);
    MPI_Finalize();
    return 0;
}
