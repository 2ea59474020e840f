/* MPIX_Sparse_allreduce in place of MPI_Allreduce, for a mostly zero buffer, and a report of the call.
 *
 *     mpicc -o dense dense.c $(pkg-config --cflags --libs mpix-sparse)
 *     mpirun -n 2 ./dense
 *
 * Output; the scheme, its reason and the bytes depend on the machine:
 *
 *     elements 0, 1 and 2: 1 1 0
 *     ...: ...
 *     ... bytes sent
 */
#include <mpix_sparse.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    enum { COUNT = 1000000 };
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    double *gradient = calloc(COUNT, sizeof *gradient);
    if (gradient == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = rank; i < COUNT; i += 1000)
        gradient[i] = 1.0;
    MPIX_Sparse_allreduce(MPI_IN_PLACE, gradient, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);

    MPIX_Sparse_report_t report;
    MPIX_Sparse_get_report(MPI_COMM_WORLD, &report);
    if (rank == 0)
        printf("elements 0, 1 and 2: %g %g %g\n", gradient[0], gradient[1], gradient[2]);
    if (rank == 0)
        printf("%s: %s\n%lld bytes sent\n", report.scheme, report.reason, (long long)report.bytes_sent);

    free(gradient);
    MPI_Finalize();
    return 0;
}
