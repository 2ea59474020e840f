/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduces a vector of which 1 % is present, in one place. tests/preload/run compares the density in the
 * report. */

#include <mpi.h>

enum { COUNT = 1000000, PRESENT = 10000, CALLS = 5 };

static float in[COUNT], out[COUNT];

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (int i = 0; i < PRESENT; i++)
        in[COUNT / 3 + i] = 1;
    for (int call = 0; call < CALLS; call++)
        MPI_Allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
