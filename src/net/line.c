/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/line.h"

#include <assert.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    ROUNDS = 10, /* to and fro in a try */
    MOST_TRIES = 100,
    PARTNERS = 16 /* of a rank, one after the other; of further ranks some */
};

static const double LIMIT = 4e-3, /* seconds for a pair, which ranks that take turns on a processor exceed */
    LONGEST = 1e-6;               /* of a line: what takes longer is the scheduler's */

static void yield(const struct sar_lines *lines, int looks)
{
    int found;
    if (looks % SAR_LINE_MPI_LOOKS == 0)
        PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, lines->comm, &found, MPI_STATUS_IGNORE);
    sched_yield();
}

/* For that number or a later one: who has written its last one may have gone on to its next partner. */
static uint64_t wait_for(const struct sar_lines *lines, const atomic_uint_least64_t *line, uint64_t number)
{
    int looks = 0;
    uint64_t seen;
    while ((seen = atomic_load_explicit(line, memory_order_acquire)) < number)
        if (++looks > SAR_LINE_LOOKS)
            yield(lines, looks);
    return seen;
}

/* One way, to a partner and back, who counts from the same number on. The first of the two jumps to the last
 * round where time is over, and the other one says what it sees. */
static double seconds_to(const struct sar_lines *lines, int other, uint64_t number)
{
    atomic_uint_least64_t *mine = lines->of(lines->lines, lines->rank);
    const atomic_uint_least64_t *theirs = lines->of(lines->lines, other);
    bool first = lines->rank < other;
    uint64_t last = number + (uint64_t)lines->tries * ROUNDS;
    double begun = PMPI_Wtime(), least = INFINITY, end;
    for (double start = begun; number < last; start = end) {
        int rounds = 0;
        if (first && start - begun > LIMIT)
            number = last - 1;
        for (; rounds < ROUNDS && number < last; rounds++) {
            number = first ? number + 1 : wait_for(lines, theirs, number + 1);
            atomic_store_explicit(mine, number, memory_order_release);
            if (first)
                wait_for(lines, theirs, number);
        }
        end = PMPI_Wtime();
        least = fmin(least, (end - start) / rounds / 2);
    }
    return least;
}

/* All ranks in pairs, and again in others. */
double sar_line_seconds(const struct sar_lines *lines)
{
    int steps = 1;
    double most = 0;
    assert(lines->tries <= MOST_TRIES);
    while (steps < lines->ranks)
        steps *= 2;
    for (int step = 1; step < steps; step += step < PARTNERS ? 1 : step) {
        int other = lines->rank ^ step;
        if (other >= lines->ranks)
            continue;
        uint64_t pairs_before = lines->before * (uint64_t)steps + (uint64_t)step;
        double seconds = seconds_to(lines, other, pairs_before * MOST_TRIES * ROUNDS);
        most = seconds < LONGEST ? fmax(most, seconds) : most;
    }
    return most;
}
