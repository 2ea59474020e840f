/* Hints for a communicator, and a report of a call. The hints force a scheme and a message format; without
 * hints the library chooses both.
 *
 *     mpicc -o report report.c $(pkg-config --cflags --libs mpix-sparse)
 *     mpirun -n 2 ./report
 *
 * Output; the reason, bytes and times depend on the machine:
 *
 *     scheme: balanced (asked for...)
 *     elements: 1000 of 1000000 here, 2000 in the result
 *     formats: push coo, pull coo
 *     sent: 2 messages, ... bytes
 *     time: ... us, predicted ... us
 */
#include <mpix_sparse.h>

#include <stdint.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    MPI_Info hints;
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "mpix_sparse_scheme", "balanced");
    MPI_Info_set(hints, "mpix_sparse_wire", "coo");
    MPIX_Sparse_comm_set_info(MPI_COMM_WORLD, hints);
    MPI_Info_free(&hints);

    static int32_t indices[1000];
    static float values[1000];
    for (int i = 0; i < 1000; i++) {
        indices[i] = i * 1000 + rank;
        values[i] = 1;
    }
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPIX_Sparse_allreduce_coo(indices, values, 1000, MPI_INT32_T, 1000000, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                              &result);
    MPIX_Sparse_result_free(&result);

    MPIX_Sparse_report_t report;
    MPIX_Sparse_get_report(MPI_COMM_WORLD, &report);
    if (rank == 0) {
        printf("scheme: %s (%s)\n", report.scheme, report.reason);
        printf("elements: %lld of %lld here, %lld in the result\n", (long long)report.nnz_in,
               (long long)report.count, (long long)report.nnz_out);
        printf("formats: push %s, pull %s\n", report.push_wire, report.pull_wire);
        printf("sent: %lld messages, %lld bytes\n", (long long)report.messages_sent,
               (long long)report.bytes_sent);
        printf("time: %.1f us, predicted %.1f us\n", report.measured_seconds * 1e6,
               report.predicted_seconds * 1e6);
    }
    MPI_Finalize();
    return 0;
}
