/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures the overhead of libmpix_sparse_preload on dense data. Calls of MPI_Allreduce, which the library
 * intercepts if it is loaded, alternate with calls of PMPI_Allreduce, which it does not. Without the library
 * the two are equal, and show the noise of the machine. SAR_COST_ROUNDS sets the number of rounds. */

#include <mpi.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 100, CALLS = 16 /* consecutive calls, timed together */, MOST = 1 << 20 /* floats */ };

static float in[MOST], out[MOST], expected[MOST];
static int rank;

static double through(int count)
{
    double start = MPI_Wtime();
    for (int i = 0; i < CALLS; i++)
        MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return (MPI_Wtime() - start) / CALLS;
}

static double around(int count)
{
    double start = MPI_Wtime();
    for (int i = 0; i < CALLS; i++)
        PMPI_Allreduce(in, expected, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return (MPI_Wtime() - start) / CALLS;
}

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

struct times {
    double median, mean;
};

static struct times times_of(double *seconds, int n)
{
    double sum = 0;
    qsort(seconds, (size_t)n, sizeof *seconds, ascending);
    for (int i = 0; i < n; i++)
        sum += seconds[i];
    return (struct times){ seconds[n / 2], sum / n };
}

/* Each of the two is first in every other round. */
static void take_turns(int count, int rounds, double *with, double *without)
{
    for (int i = 0; i < rounds; i++) {
        if (i % 2 == 0)
            with[i] = through(count);
        without[i] = around(count);
        if (i % 2 != 0)
            with[i] = through(count);
    }
}

/* Measure; returns whether the results are equal. */
static int measure(int count, int rounds, double *with, double *without)
{
    take_turns(count, 1, with, without);
    take_turns(count, rounds, with, without);
    struct times mine = times_of(with, rounds), its = times_of(without, rounds);
    if (rank == 0)
        printf("%10zu %12.2f %12.2f %9.1f %9.1f\n", count * sizeof *in, mine.median * 1e6, its.median * 1e6,
               100 * (mine.median / its.median - 1), 100 * (mine.mean / its.mean - 1));
    return memcmp(out, expected, (size_t)count * sizeof *out) == 0;
}

int main(int argc, char **argv)
{
    static const int counts[] = { 2, 256, 4096, 16384, 65536, 262144, MOST };
    const char *asked = getenv("SAR_COST_ROUNDS");
    int rounds = asked == NULL ? ROUNDS : atoi(asked), same = 1;
    double *seconds = calloc(2 * (size_t)rounds, sizeof *seconds);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < MOST; i++)
        in[i] = (float)(1 + i % 7);
    if (rank == 0) {
        printf("# %s libmpix_sparse_preload\n",
               dlsym(RTLD_DEFAULT, "PMPIX_Sparse_allreduce") != NULL ? "behind" : "without");
        printf("#    bytes MPI_... (us) PMPI... (us)   %% more   %% of means\n");
    }
    for (size_t i = 0; seconds != NULL && i < sizeof counts / sizeof *counts; i++)
        same &= measure(counts[i], rounds, seconds, seconds + rounds);
    free(seconds);
    MPI_Finalize();
    return seconds == NULL || !same;
}
