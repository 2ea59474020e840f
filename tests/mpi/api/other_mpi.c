/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the warning that two MPI libraries are in the process. This program exports a symbol of the other. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

#ifdef OPEN_MPI
static const char says[] = "built for Open MPI, but the program has loaded MPICH too";
void MPIR_Dup_fn(void);
void MPIR_Dup_fn(void)
{
}
#else
static const char says[] = "but the program has loaded Open MPI too";
extern int ompi_mpi_comm_world;
int ompi_mpi_comm_world;
#endif

enum { KEPT = 100 /* descriptor that keeps stderr while a file takes its place */ };

static const char variable[] = "SAR_TEST_STDERR"; /* names that file, in the program's second run */
static char path[] = "/tmp/mpix_sparse_XXXXXX";

/* The library warns when it is loaded, so stderr must be a file before that. */
static void start_again(char **argv)
{
    int file = mkstemp(path);
    if (file < 0 || setenv(variable, path, 1) != 0 || dup2(STDERR_FILENO, KEPT) < 0 ||
        dup2(file, STDERR_FILENO) < 0)
        exit(EXIT_FAILURE);
    close(file);
    execv("/proc/self/exe", argv);
    exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
    char line[512] = "";
    const char *name = getenv(variable);
    if (name == NULL)
        start_again(argv);
    dup2(KEPT, STDERR_FILENO);
    close(KEPT);
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    FILE *file = fopen(name, "r");
    check(file != NULL && fgets(line, sizeof line, file) != NULL, "expected a line in %s", name);
    check(strstr(line, says) != NULL, "expected '%s' in: %s", says, line);
    check(fgets(line, sizeof line, file) == NULL, "expected one line, found: %s", line);
    fclose(file);
    unlink(name);
    return check_end("other_mpi");
}
