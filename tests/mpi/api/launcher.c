/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the warning that the launcher belongs to another MPI: on one rank, once, if another launcher's
 * variable tells of several processes. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

#ifdef OPEN_MPI
static const char own[] = "OMPI_COMM_WORLD_SIZE", other[] = "PMI_SIZE";
#else
static const char own[] = "PMI_SIZE", other[] = "OMPI_COMM_WORLD_SIZE";
#endif

static char path[] = "/tmp/mpix_sparse_XXXXXX";

/* Returns the number of warnings in the log, which must name the variable. */
static int count_warnings(void)
{
    char line[512];
    int n = 0;
    FILE *file = fopen(path, "r");
    check(file != NULL, "expected to open %s", path);
    while (fgets(line, sizeof line, file) != NULL) {
        bool found = strstr(line, "the launcher belongs to another MPI") != NULL;
        check(!found || strstr(line, other) != NULL, "expected %s in: %s", other, line);
        n += found;
    }
    fclose(file);
    return n;
}

/* Opens the library, which checks the launcher. */
static void call(void)
{
    float in[4] = { 1 }, out[4];
    MPI_Comm comm = comm_duplicate();
    check_success(MPIX_Sparse_allreduce(in, out, 4, MPI_FLOAT, MPI_SUM, comm), "MPIX_Sparse_allreduce");
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    int file = mkstemp(path);
    check(file >= 0, "expected to make %s", path);
    close(file);
    setenv("MPIX_SPARSE_LOG_FILE", path, 1);
    unsetenv(own);
    setenv(other, "2", 1);
    call();
    call();
    check(count_warnings() == (ranks == 1), "found %d warnings", count_warnings());
    unlink(path);
    return check_end("launcher");
}
