/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests sar_cacheline_latency_measure: repeated, with any number of tries, with a late rank, and on one rank.
 * A rank that loses step with its partner would hang. */

#include <mpi.h>
#include <stdint.h>
#include <unistd.h>

#include "check.h"
#include "comm/shm/numa_distance.h"

static const double LONGEST = 1e-6;

static struct sar_cacheline_probe lines;

/* The cache line at the start of each rank's part of a shared region. */
static atomic_uint_least64_t *line_of(const void *window, int of)
{
    void *memory;
    MPI_Aint bytes;
    int unit;
    MPI_Win_shared_query(*(const MPI_Win *)window, of, &bytes, &unit, &memory);
    return memory;
}

/* On oversubscribed processors the partner may not run at the same time. */
static double time_them(int tries)
{
    lines.trials = tries;
    double seconds = sar_cacheline_latency_measure(&lines);
    lines.runs_before++;
    check(seconds >= 0 && seconds < LONGEST, "expected less than a microsecond, found %g s", seconds);
    return seconds;
}

static uint64_t number_of(int of)
{
    return atomic_load(line_of(lines.arg, of));
}

static void check_again(void)
{
    static const int tries[] = { 20, 1, 100, 5, 20, 3 };
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        uint64_t before = number_of(rank);
        check_case("%d tries", tries[i]);
        time_them(tries[i]);
        check(ranks == 1 || number_of(rank) > before, "expected a larger number on this rank's line");
    }
}

/* No time is checked; the test passes if all ranks return. */
static void check_late(void)
{
    for (int late = 0; late < ranks; late++) {
        check_case("rank %d comes late", late);
        if (rank == late)
            usleep(20000);
        time_them(20);
    }
}

static void check_alone(void)
{
    check_case("one rank");
    struct sar_cacheline_probe all = lines;
    lines.rank = 0;
    lines.ranks = 1;
    check(time_them(20) == 0, "expected no time of a rank that is alone");
    lines = all;
}

int main(int argc, char **argv)
{
    enum { PAGE = 4096 };
    MPI_Win window;
    void *memory;
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    check_alarm(120);
    MPI_Win_allocate_shared(PAGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    lines = (struct sar_cacheline_probe){ line_of, &window, rank, ranks, MPI_COMM_WORLD, 0, 0 };
    atomic_init(line_of(&window, rank), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    check_again();
    check_late();
    check_alone();
    MPI_Win_free(&window);
    return check_end("cacheline_latency");
}
