/* Every rank adds 1 to element 7, and 0.5 to an element of its own, in a vector of a million elements.
 * Output on 2 ranks:
 *     7: 2
 *     1000: 0.5
 *     1001: 0.5
 */
#include <mpix_sparse.h>
#include <stdint.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int32_t indices[] = { 7, 1000 + rank };
    float values[] = { 1.0f, 0.5f };
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPIX_Sparse_allreduce_coo(indices, values, 2, MPI_INT32_T, 1000000, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                              &result);
    MPI_Count nnz;
    const void *sum_indices, *sum_values;
    MPIX_Sparse_result_get(result, &nnz, &sum_indices, &sum_values);
    for (MPI_Count i = 0; rank == 0 && i < nnz; i++)
        printf("%d: %g\n", ((const int32_t *)sum_indices)[i], ((const float *)sum_values)[i]);
    MPIX_Sparse_result_free(&result);
    MPI_Finalize();
}
