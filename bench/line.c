/* SPDX-License-Identifier: BSD-3-Clause */
#include "line.h"

#include <math.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

enum {
    ROUNDS = 200, /* to and fro */
    TRIES = 5,    /* of which the least counts */
    NEAR = 16,    /* ranks that each rank is in a pair with; of others it is with some */
    LOOKS = 4000  /* before a rank that waits yields */
};

static void wait_for(const atomic_int *line, int number)
{
    int looks = 0;

    while (atomic_load_explicit(line, memory_order_acquire) != number)
        if (++looks > LOOKS)
            sched_yield();
}

/* One way. */
static double seconds_between(atomic_int *mine, const atomic_int *theirs, bool first, int *number)
{
    double least = INFINITY;

    for (int t = 0; t < TRIES; t++) {
        double start = MPI_Wtime();
        for (int i = 0; i < ROUNDS; i++) {
            ++*number;
            if (!first)
                wait_for(theirs, *number);
            atomic_store_explicit(mine, *number, memory_order_release);
            if (first)
                wait_for(theirs, *number);
        }
        least = fmin(least, (MPI_Wtime() - start) / ROUNDS / 2);
    }
    return least;
}

/* Each rank's line is at the beginning of its part of the window. */
static atomic_int *line_of(MPI_Win window, int rank)
{
    void *memory;
    MPI_Aint bytes;
    int unit;

    MPI_Win_shared_query(window, rank, &bytes, &unit, &memory);
    return memory;
}

/* All ranks in pairs, and again in others. */
static double farthest(MPI_Comm node, MPI_Win window, int rank, int ranks)
{
    double most = 0;
    int steps = 1, number = 0;

    while (steps < ranks)
        steps *= 2;
    for (int step = 1; step < steps; step += step < NEAR ? 1 : step) {
        int other = rank ^ step;
        MPI_Barrier(node);
        number = step * 2 * TRIES * ROUNDS;
        if (other < ranks)
            most = fmax(most, seconds_between(line_of(window, rank), line_of(window, other), rank < other,
                                              &number));
    }
    return most;
}

static double on_node(MPI_Comm node, int rank, int ranks)
{
    MPI_Win window;
    void *memory;
    double seconds;

    MPI_Win_allocate_shared(4096, 1, MPI_INFO_NULL, node, &memory, &window);
    atomic_init(line_of(window, rank), 0);
    seconds = farthest(node, window, rank, ranks);
    MPI_Win_free(&window);
    return seconds;
}

static bool has_processors(int ranks)
{
#if defined(PERF_SMPI_H)
    return ranks < 0; /* simulated ones */
#else
    return ranks <= sysconf(_SC_NPROCESSORS_ONLN);
#endif
}

double perf_line_seconds(const struct perf_world *world)
{
    MPI_Comm node;
    double seconds = 0;
    int rank, ranks;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world->rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_size(node, &ranks);
    if (ranks > 1 && has_processors(ranks))
        seconds = on_node(node, rank, ranks);
    MPI_Comm_free(&node);
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds > 0 ? seconds : NAN;
}
