/* SPDX-License-Identifier: BSD-3-Clause */
/* A report has the threads that OpenMP gives, where OMP_THREAD_LIMIT is lower than MPIX_SPARSE_THREADS.
 * OpenMP reads the limit when a program starts, so that the test starts itself again with it. */

#include <mpix_sparse.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

enum { COUNT = 3000000, STEP = 7 };

static void start_with_limit(char **argv)
{
    if (getenv("OMP_THREAD_LIMIT") != NULL)
        return;
    setenv("OMP_THREAD_LIMIT", "1", 1);
    setenv("MPIX_SPARSE_THREADS", "4", 1);
    execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
    start_with_limit(argv);
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPIX_Sparse_report_t report;
    float *in = calloc(COUNT, sizeof *in), *out = malloc(COUNT * sizeof *out);
    check(in != NULL && out != NULL, "expected memory");
    for (int i = 0; i < COUNT; i += STEP)
        in[i] = 1;
    MPI_Comm comm = settings_comm(&(struct settings){ "balanced", NULL, NULL, NULL, NULL });
    check_success(MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm), "MPIX_Sparse_allreduce");
    for (int i = 0; i < COUNT; i++)
        check(out[i] == (i % STEP == 0 ? (float)ranks : 0), "found %g at index %d", (double)out[i], i);
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check(report.threads == 1, "a report of %d threads, not 1", report.threads);
    MPI_Comm_free(&comm);
    free(in);
    free(out);
    return check_end("thread_limit");
}
