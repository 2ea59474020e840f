/* Errors that return: rank 0 passes an index that is outside of the vector, and every rank gets an error.
 *
 *     mpicc -o errors errors.c $(pkg-config --cflags --libs mpix-sparse)
 *     mpirun -n 2 ./errors
 *
 * Output:
 *
 *     the last rank: ...: argument indices holds 1000000, which is outside [0, count)...
 *     the next call: 2 elements
 */
#include <mpix_sparse.h>

#include <stdint.h>
#include <stdio.h>

/* Reduces one element of this rank. Returns an error code; on success prints the number of elements on the
 * last rank. */
static int reduce(int32_t index, int is_last)
{
    float value = 1;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    int error = MPIX_Sparse_allreduce_coo(&index, &value, 1, MPI_INT32_T, 1000000, MPI_FLOAT, MPI_SUM,
                                          MPI_COMM_WORLD, &result);
    if (error != MPI_SUCCESS)
        return error;
    MPI_Count nnz;
    MPIX_Sparse_result_get(result, &nnz, NULL, NULL);
    if (is_last)
        printf("the next call: %lld elements\n", (long long)nnz);
    return MPIX_Sparse_result_free(&result);
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    /* The default error handler, MPI_ERRORS_ARE_FATAL, would end the program. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int error = reduce(rank == 0 ? 1000000 : rank, 0);
    if (error != MPI_SUCCESS && rank == ranks - 1) {
        char text[MPI_MAX_ERROR_STRING];
        int length;
        MPI_Error_string(error, text, &length);
        printf("the last rank: %s\n", text);
    }

    /* The communicator can be used as before. */
    error = reduce(rank, rank == ranks - 1);
    MPI_Finalize();
    return error == MPI_SUCCESS ? 0 : 1;
}
