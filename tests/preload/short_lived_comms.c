/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts the communicators that libmpix_sparse_preload sets up, by the duplicates that it makes. The program
 * makes communicators, reduces sparse vectors on each a few times, and frees them. */

#include <mpi.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    COUNT = 1 << 20,
    FEW_CALLS = 5,    /* including one probe */
    MANY_CALLS = 110, /* enough to pay for a set-up, though MPI runs them */
    COMMUNICATORS = 12
};

static int set_ups;

int PMPI_Comm_dup(MPI_Comm comm, MPI_Comm *twin)
{
    set_ups++;
    return ((int (*)(MPI_Comm, MPI_Comm *))(uintptr_t)dlsym(RTLD_NEXT, "PMPI_Comm_dup"))(comm, twin);
}

static float in[COUNT], out[COUNT];
static int ranks, failures;

/* Number of set-ups of a communicator with this number of calls. */
static int use(int calls)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    int before = set_ups;
    for (int i = 0; i < calls; i++)
        MPI_Allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm);
    MPI_Comm_free(&comm);
    return set_ups - before;
}

static void require(int count, int most, const char *what)
{
    if (ranks > 1 ? count >= 1 && count <= most : count == 0)
        return;
    printf("%d ranks, %s: %d set-ups\n", ranks, what, count);
    failures++;
}

int main(int argc, char **argv)
{
    setenv("MPIX_SPARSE_NODES", "2", 1);
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < COUNT; i += 1000)
        in[i] = 1;
    int sum = 0;
    for (int i = 0; i < COMMUNICATORS; i++)
        sum += use(FEW_CALLS);
    require(sum, COMMUNICATORS / 4, "communicators freed soon");
    require(use(MANY_CALLS), 1, "one that stays");
    MPI_Finalize();
    return failures != 0;
}
