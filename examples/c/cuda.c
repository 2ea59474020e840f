/* Coordinates in device memory: the calls are those for host memory, and the result is in device memory too.
 * The library is configured with CUDA, or has its plug-in beside it; MPI does not need to know of devices.
 *
 *     mpicc -o cuda cuda.c $(pkg-config --cflags --libs mpix-sparse) \
 *         -I/usr/local/cuda/include -L/usr/local/cuda/lib64 -lcudart
 *     mpirun -n 2 ./cuda
 *
 * Output:
 *
 *     element 7 is 2
 */
#include <mpix_sparse.h>

#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>

enum { COUNT = 1000000 };

int main(int argc, char **argv)
{
    int rank, ranks, devices = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        fprintf(stderr, "there is no device\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    cudaSetDevice(rank % devices);

    /* Two elements of this rank, copied to the device. */
    int32_t indices[] = { 7, 1000 + rank };
    float values[] = { 1.0f, 0.5f }, sum = 0, *dense;
    void *device_indices, *device_values;
    cudaMalloc(&device_indices, sizeof indices);
    cudaMalloc(&device_values, sizeof values);
    cudaMalloc((void **)&dense, COUNT * sizeof *dense);
    cudaMemcpy(device_indices, indices, sizeof indices, cudaMemcpyHostToDevice);
    cudaMemcpy(device_values, values, sizeof values, cudaMemcpyHostToDevice);

    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPIX_Sparse_allreduce_coo(device_indices, device_values, 2, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM,
                              MPI_COMM_WORLD, &result);
    MPIX_Sparse_result_dense(result, dense); /* all elements, on the device */
    cudaMemcpy(&sum, dense + 7, sizeof sum, cudaMemcpyDeviceToHost);
    if (rank == 0)
        printf("element 7 is %g\n", sum);

    MPIX_Sparse_result_free(&result);
    cudaFree(device_indices);
    cudaFree(device_values);
    cudaFree(dense);
    MPI_Finalize();
    return sum == (float)ranks ? 0 : 1;
}
