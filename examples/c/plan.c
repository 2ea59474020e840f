/* A plan for a vector that is reduced in every step, such as a layer's gradient. A plan checks its arguments
 * once, and learns from its calls. Here the elements are coordinates; MPIX_Sparse_allreduce_init makes a plan
 * for dense buffers.
 *
 *     mpicc -o plan plan.c $(pkg-config --cflags --libs mpix-sparse)
 *     mpirun -n 2 ./plan
 *
 * Output:
 *
 *     step 0: 3 elements, element 0 is 2
 *     step 1: 3 elements, element 1 is 2
 *     step 2: 3 elements, element 2 is 2
 */
#include <mpix_sparse.h>

#include <stdint.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, threads;
    /* With Open MPI, requests of this library need MPI_THREAD_MULTIPLE. */
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    MPIX_Sparse_plan plan;
    MPIX_Sparse_allreduce_coo_init(MPI_INT32_T, 1000000, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                                   &plan);
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL; /* each call reuses its memory */
    for (int step = 0; step < 3; step++) {
        int32_t indices[] = { step, 1000 + rank };
        float values[] = { 1.0f, 0.5f };
        MPI_Request request;
        MPIX_Sparse_plan_start_coo(plan, indices, values, 2, &result, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);

        MPI_Count nnz;
        const void *sum_indices, *sum_values;
        MPIX_Sparse_result_get(result, &nnz, &sum_indices, &sum_values);
        if (rank == 0)
            printf("step %d: %lld elements, element %d is %g\n", step, (long long)nnz,
                   ((const int32_t *)sum_indices)[0], ((const float *)sum_values)[0]);
    }

    MPIX_Sparse_result_free(&result);
    MPIX_Sparse_plan_free(&plan);
    MPI_Finalize();
    return 0;
}
