/* Nonblocking calls during a computation: each layer's gradient is reduced while the next layer's is
 * computed.
 *
 *     mpicc -o overlap overlap.c $(pkg-config --cflags --libs mpix-sparse)
 *     mpirun -n 2 ./overlap
 *
 * Output:
 *
 *     layer 3: 1500 elements
 *     layer 2: 1500 elements
 *     layer 1: 1500 elements
 *     layer 0: 1500 elements
 */
#include <mpix_sparse.h>

#include <stdint.h>
#include <stdio.h>

enum { LAYERS = 4, COUNT = 1000000, NNZ = 1000 };

/* Every second element is present on all ranks, the others on one. Stands for a layer's backward pass. */
static void compute_gradient(int rank, int layer, int32_t *indices, float *values)
{
    for (int i = 0; i < NNZ; i++) {
        indices[i] = i % 2 == 0 ? i * 900 : i * 900 + 1 + rank;
        values[i] = (float)layer;
    }
}

int main(int argc, char **argv)
{
    static int32_t indices[LAYERS][NNZ];
    static float values[LAYERS][NNZ];
    MPIX_Sparse_result results[LAYERS];
    MPI_Request requests[LAYERS];
    int rank, done, threads;
    /* With Open MPI, requests of this library need MPI_THREAD_MULTIPLE. */
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    for (int layer = LAYERS - 1; layer >= 0; layer--) {
        compute_gradient(rank, layer, indices[layer], values[layer]);
        results[layer] = MPIX_SPARSE_RESULT_NULL;
        MPIX_Isparse_allreduce_coo(indices[layer], values[layer], NNZ, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM,
                                   MPI_COMM_WORLD, &results[layer], &requests[layer]);
        /* A test of one request makes progress on all calls; a long computation tests now and then. */
        MPI_Test(&requests[layer], &done, MPI_STATUS_IGNORE);
    }
    for (int layer = LAYERS - 1; layer >= 0; layer--) {
        MPI_Count nnz;
        MPI_Wait(&requests[layer], MPI_STATUS_IGNORE);
        MPIX_Sparse_result_get(results[layer], &nnz, NULL, NULL);
        if (rank == 0)
            printf("layer %d: %lld elements\n", layer, (long long)nnz);
        MPIX_Sparse_result_free(&results[layer]);
    }
    MPI_Finalize();
    return 0;
}
