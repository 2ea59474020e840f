/* SPDX-License-Identifier: BSD-3-Clause */
/* The latency of a cache line is timed between pairs of ranks: when the group is opened, and in a few later
 * calls.
 *
 *     time = min(p, 16) pairs one after the other: 0.1 to 0.3 ms for 4 ranks, 1 ms for many */

#include "comm/shm/numa_distance.h"

#include <assert.h>
#include <math.h>
#include <sched.h>

#include "base/log.h"

/* False where time is simulated (bench/sim/smpi.h). */
#ifndef SAR_NUMA_DISTANCE_TIMED
#define SAR_NUMA_DISTANCE_TIMED true
#endif

enum {
    OPEN_TRIALS = 20, /* when the group is opened */
    LATER_TRIALS = 5, /* during a call */
    ROUND_TRIPS = 10, /* in a trial */
    MAX_TRIALS = 100,
    MAX_PARTNERS = 16 /* partners of a rank, beyond which only some ranks are paired */
};

static const double PAIR_TIME_LIMIT = 4e-3; /* seconds for a pair; ranks that share a processor exceed it */
static const double MAX_LATENCY = 1e-6;     /* seconds; a longer latency is due to the scheduler */

double sar_numa_distance_remote_seconds = 150e-9;
uint64_t sar_numa_distance_first_call = 8, sar_numa_distance_call_interval = 1024;

/* Wait until the line has `number` or more: a partner that is done may have gone on to its next pair. */
static uint64_t wait_for(const struct sar_cacheline_probe *probe, const atomic_uint_least64_t *line,
                         uint64_t number)
{
    int spins = 0, found;
    uint64_t value;
    while ((value = atomic_load_explicit(line, memory_order_acquire)) < number) {
        if (++spins <= SAR_CACHELINE_SPINS_TO_YIELD)
            continue;
        if (spins % SAR_CACHELINE_SPINS_TO_PROBE == 0)
            PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, probe->comm, &found, MPI_STATUS_IGNORE);
        sched_yield();
    }
    return value;
}

/* One way of a round trip to a partner, which counts from the same number on. When the time limit is over,
 * the lower rank of the pair jumps to the last number, and the higher one repeats the number that it
 * reads. */
static double seconds_to(const struct sar_cacheline_probe *probe, int other, uint64_t number)
{
    atomic_uint_least64_t *mine = probe->address(probe->arg, probe->rank);
    const atomic_uint_least64_t *theirs = probe->address(probe->arg, other);
    bool first = probe->rank < other;
    uint64_t last = number + (uint64_t)probe->trials * ROUND_TRIPS;
    double pair_start = PMPI_Wtime(), best = INFINITY, end;
    for (double start = pair_start; number < last; start = end) {
        int rounds = 0;
        if (first && start - pair_start > PAIR_TIME_LIMIT)
            number = last - 1;
        for (; rounds < ROUND_TRIPS && number < last; rounds++) {
            number = first ? number + 1 : wait_for(probe, theirs, number + 1);
            atomic_store_explicit(mine, number, memory_order_release);
            if (first)
                wait_for(probe, theirs, number);
        }
        end = PMPI_Wtime();
        best = fmin(best, (end - start) / rounds / 2);
    }
    return best;
}

/* In each step all ranks are paired anew. */
double sar_cacheline_latency_measure(const struct sar_cacheline_probe *probe)
{
    int steps = 1;
    double max_seconds = 0;
    assert(probe->trials <= MAX_TRIALS);
    while (steps < probe->ranks)
        steps *= 2;
    for (int step = 1; step < steps; step += step < MAX_PARTNERS ? 1 : step) {
        int other = probe->rank ^ step;
        if (other >= probe->ranks)
            continue;
        uint64_t pairs_before = probe->runs_before * (uint64_t)steps + (uint64_t)step;
        double seconds = seconds_to(probe, other, pairs_before * MAX_TRIALS * ROUND_TRIPS);
        max_seconds = seconds < MAX_LATENCY ? fmax(max_seconds, seconds) : max_seconds;
    }
    return max_seconds;
}

static double measure_latency(const struct sar_comm *comm, struct sar_shm_group *group)
{
    struct sar_cacheline_probe probe = { .address = sar_shm_group_cacheline,
                                         .arg = group,
                                         .rank = group->rank,
                                         .ranks = group->ranks,
                                         .comm = comm->mpi_comm,
                                         .trials = group->latency_runs == 0 ? OPEN_TRIALS : LATER_TRIALS,
                                         .runs_before = group->latency_runs };
    group->latency_runs++;
    return sar_cacheline_latency_measure(&probe);
}

/* If no latency could be measured, numa_remote stays, unless the limit makes all or none of the ranks
 * remote. */
void sar_numa_distance_measure(const struct sar_comm *comm, struct sar_shm_group *group, bool timed)
{
    bool first = group->latency_runs == 0, was_remote = group->numa_remote;
    group->latency_enabled = SAR_NUMA_DISTANCE_TIMED && timed && group->ranks > 1;
    double seconds = group->latency_enabled ? measure_latency(comm, group) : 0;
    bool depends = sar_numa_distance_remote_seconds >= 0 && sar_numa_distance_remote_seconds < INFINITY;
    if (!group->latency_enabled || seconds != 0 || !depends)
        group->numa_remote = seconds > sar_numa_distance_remote_seconds;
    if (group->latency_enabled && (first || group->numa_remote != was_remote))
        SAR_LOG(DEBUG, COMM, "a cache line takes %.0f ns to the most distant rank%s", seconds * 1e9,
                group->numa_remote ? ": shared results bypass the caches" : "");
}

/* Ranks often start on one socket, and the system moves them once all of them work. So the first measurements
 * come at doubling intervals. */
static bool is_due(uint64_t calls)
{
    uint64_t times = calls / sar_numa_distance_first_call;
    bool doubled = calls % sar_numa_distance_first_call == 0 && (times & (times - 1)) == 0;
    return doubled || calls % sar_numa_distance_call_interval == 0;
}

void sar_numa_distance_remeasure(const struct sar_comm *comm)
{
    struct sar_shm_group *group = comm->shm_group;
    if (group != NULL && is_due(++group->blocking_calls))
        sar_numa_distance_measure(comm, group, group->latency_enabled);
}
