/* SPDX-License-Identifier: BSD-3-Clause */
/* The first use of a communicator waits in MPI for all its ranks, and there is none of our own yet over which
 * they could tell who is there; messages over the user's might meet a receive of the user's that takes any.
 * So every rank scatters a byte to all others by a collective operation of the user's communicator. MPI
 * libraries send what scatterv has straight from its root, so that one which is not over lacks its root; if
 * some library passes it on from rank to rank, more ranks are named than are missing.
 *
 * Nothing here takes memory: a rank that has none could not tell the others. */

#include "net/arrival.h"

#include <sched.h>

#include "base/log.h"
#include "net/stall.h"

enum { MOST = 1024 /* ranks, for whom there is room on the stack */ };

struct arrival {
    int rank, ranks;
    MPI_Request scatter[MOST]; /* by the root; null when it is over */
    unsigned char came[MOST];
    int ones[MOST], zeros[MOST], number[MOST];
    struct sar_stall stall;
};

static void scatter_all(MPI_Comm user, struct arrival *a)
{
    static const unsigned char here = 1;
    for (int r = 0; r < a->ranks; r++) {
        a->ones[r] = 1;
        a->zeros[r] = 0;
    }
    for (int root = 0; root < a->ranks; root++)
        if (PMPI_Iscatterv(&here, a->ones, a->zeros, MPI_BYTE, &a->came[root], 1, MPI_BYTE, root, user,
                           &a->scatter[root]) != MPI_SUCCESS)
            a->scatter[root] = MPI_REQUEST_NULL;
}

static bool has_come(struct arrival *a, int rank)
{
    int over = 0;
    return PMPI_Test(&a->scatter[rank], &over, MPI_STATUS_IGNORE) != MPI_SUCCESS || over;
}

static bool is_missing(const void *arrival, int rank)
{
    const struct arrival *a = arrival;
    return rank != a->rank && a->scatter[rank] != MPI_REQUEST_NULL;
}

static void watch(MPI_Comm user, struct arrival *a, double limit)
{
    char names[SAR_NAMES];
    struct sar_roster roster = { .ranks = a->ranks, .number = a->number };
    double waited = sar_stall_clock(&a->stall);
    if (limit <= 0 || !sar_stall_tells(&a->stall, waited, limit))
        return;
    for (int r = 0; r < a->ranks; r++)
        has_come(a, r);
    sar_stall_number(user, &roster);
    sar_stall_list(names, sizeof names, &roster, is_missing, a);
    if (names[0] != '\0')
        SAR_LOG(WARN, NET, "waited %.1f s for the %d ranks of a communicator; no call from %s", waited,
                a->ranks, names);
}

void sar_arrival_wait(MPI_Comm user, double stall, void (*meanwhile)(void))
{
    struct arrival a;
    a.stall = (struct sar_stall){ 0 };
    PMPI_Comm_rank(user, &a.rank);
    PMPI_Comm_size(user, &a.ranks);
    if (a.ranks == 1 || a.ranks > MOST)
        return;
    scatter_all(user, &a);
    for (int next = 0; next < a.ranks;) {
        if (has_come(&a, next)) {
            next++;
            continue;
        }
        watch(user, &a, stall);
        meanwhile();
        sched_yield();
    }
}
