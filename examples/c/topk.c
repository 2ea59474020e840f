/* Top-k sparsification: each rank selects the largest 0.1 % of a dense gradient, and the selections are
 * added. MPIX_Sparse_dgc_step also keeps what is not selected for the next step.
 *
 *     mpicc -o topk topk.c $(pkg-config --cflags --libs mpix-sparse)
 *     mpirun -n 2 ./topk
 *
 * Output:
 *
 *     threshold 999000: 1000 elements of rank 0
 *     1500 elements of the sum
 */
#include <mpix_sparse.h>

#include <stdint.h>
#include <stdio.h>

enum { COUNT = 1000000, CAPACITY = 1000 };

int main(int argc, char **argv)
{
    static float gradient[COUNT], values[CAPACITY];
    static int32_t indices[CAPACITY];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < COUNT; i++)
        gradient[i] = (float)((i * 7919LL + 500LL * rank) % COUNT); /* each whole number below COUNT once */

    /* MPI_COMM_SELF: the gradient is whole on each rank, not split among ranks. All elements are looked at; a
     * sample of 0.01 would look at a hundredth of them. */
    double threshold;
    MPIX_Sparse_topk_threshold(gradient, COUNT, MPI_FLOAT, 0.001, 1, 0, MPI_COMM_SELF, &threshold);
    MPI_Count nnz;
    MPIX_Sparse_topk_select(gradient, COUNT, MPI_FLOAT, threshold, MPI_COMM_SELF, MPI_INT32_T, CAPACITY,
                            indices, values, &nnz);
    if (rank == 0)
        printf("threshold %g: %lld elements of rank 0\n", threshold, (long long)nnz);

    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPIX_Sparse_allreduce_coo(indices, values, nnz, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                              &result);
    MPIX_Sparse_result_get(result, &nnz, NULL, NULL);
    if (rank == 0)
        printf("%lld elements of the sum\n", (long long)nnz);

    MPIX_Sparse_result_free(&result);
    MPI_Finalize();
    return 0;
}
