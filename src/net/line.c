/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/line.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    ROUNDS = 50,   /* to and fro */
    TRIES = 4,     /* of which the least counts */
    NEAR = 16,     /* ranks that each rank is in a pair with; of others it is with some */
    LOOKS = 4000,  /* before a rank that waits yields */
    MPI_LOOKS = 64 /* from then on from one at MPI to the next: some rank may still wait for a message */
};

static void yield(const struct sar_lines *lines, int looks)
{
    int found;
    if (looks % MPI_LOOKS == 0)
        PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, lines->comm, &found, MPI_STATUS_IGNORE);
    sched_yield();
}

/* Who has written the last one may have gone on to its next partner. */
static void wait_for(const struct sar_lines *lines, const atomic_uint_least64_t *line, uint64_t number)
{
    int looks = 0;
    while (atomic_load_explicit(line, memory_order_acquire) < number)
        if (++looks > LOOKS)
            yield(lines, looks);
}

/* One way, to a partner and back. Both count from the same number on. */
static double seconds_to(const struct sar_lines *lines, int other, uint64_t number)
{
    atomic_uint_least64_t *mine = lines->of(lines->lines, lines->rank);
    const atomic_uint_least64_t *theirs = lines->of(lines->lines, other);
    bool first = lines->rank < other;
    double least = 0;
    for (int t = 0; t < TRIES; t++) {
        double start = PMPI_Wtime();
        for (int i = 0; i < ROUNDS; i++) {
            number++;
            if (!first)
                wait_for(lines, theirs, number);
            atomic_store_explicit(mine, number, memory_order_release);
            if (first)
                wait_for(lines, theirs, number);
        }
        double seconds = (PMPI_Wtime() - start) / ROUNDS / 2;
        least = t == 0 || seconds < least ? seconds : least;
    }
    return least;
}

/* All ranks in pairs, and again in others. */
double sar_line_seconds(const struct sar_lines *lines)
{
    int steps = 1;
    double most = 0;
    while (steps < lines->ranks)
        steps *= 2;
    for (int step = 1; step < steps; step += step < NEAR ? 1 : step) {
        int other = lines->rank ^ step;
        if (other >= lines->ranks)
            continue;
        double seconds = seconds_to(lines, other, (uint64_t)step * TRIES * ROUNDS);
        most = seconds > most ? seconds : most;
    }
    return most;
}
