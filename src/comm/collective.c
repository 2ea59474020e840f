/* SPDX-License-Identifier: BSD-3-Clause */
/* Small collective operations by those of MPI. The nonblocking ones are polled, and watched by the watchdog.
 *
 *     time = log2(p) alpha for each, and 2 log2(p) alpha for the open barrier
 *
 * The open barrier waits for all ranks before a communicator is first used. There is no communicator of the
 * library yet to send heartbeats over, and messages on the user's communicator might match a wildcard receive
 * of the user's. So each rank starts these collective operations on the user's communicator, in this order:
 *
 *     1. a barrier, which is polled;
 *     2. a vote if any rank asks who is late: no, once the barrier is complete; yes, after a long wait in it;
 *     3. if the vote is yes, p scatters, each of one byte from its root to all ranks.
 *
 * A rank that has voted yes knows the vote's result, and starts its scatters while it waits in the barrier.
 * MPI libraries send the data of MPI_Iscatterv directly from its root, so a scatter that is not complete
 * tells that its root is late. A library that forwards the data between ranks makes the warning name more
 * ranks than are late. So do ranks that have waited for less than the time that makes a rank vote yes. Only
 * long waits cost the p (p-1) messages.
 *
 * The open barrier allocates no memory: a rank without memory could not tell the others. */

#include "comm/collective.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>

#include "base/log.h"

enum { MAX_RANKS = 1024 /* ranks whose scatters fit on the stack */, LABEL_CHARS = SAR_COMM_NAME_CHARS + 16 };

static const double MAX_SECONDS_TO_ASK = 1; /* of waiting in the barrier, before a rank votes yes */

struct open_barrier {
    MPI_Comm user;
    int rank, ranks;
    MPI_Request barrier, vote;
    int ask;                        /* this rank's vote; then the maximum of all */
    bool voted;                     /* the vote has been started */
    int n_scatters, next;           /* scatters started; those below `next` are complete */
    MPI_Request scatter[MAX_RANKS]; /* by root; null when it is complete */
    unsigned char arrived[MAX_RANKS];
    int ones[MAX_RANKS], zeros[MAX_RANKS], world_rank[MAX_RANKS];
    struct sar_wait_timer timer;
    char name[SAR_COMM_NAME_CHARS]; /* of the communicator; empty before a warning, or if it has none */
};

static bool is_complete(MPI_Request *request)
{
    int done = 0;
    return PMPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done;
}

static void start_vote(struct open_barrier *b, bool ask)
{
    b->voted = true;
    b->ask = ask;
    if (PMPI_Iallreduce(MPI_IN_PLACE, &b->ask, 1, MPI_INT, MPI_MAX, b->user, &b->vote) != MPI_SUCCESS)
        b->vote = MPI_REQUEST_NULL;
}

static void start_scatters(struct open_barrier *b)
{
    static const unsigned char here = 1;
    for (int r = 0; r < b->ranks; r++) {
        b->ones[r] = 1;
        b->zeros[r] = 0;
    }
    for (int root = 0; root < b->ranks; root++)
        if (PMPI_Iscatterv(&here, b->ones, b->zeros, MPI_BYTE, &b->arrived[root], 1, MPI_BYTE, root, b->user,
                           &b->scatter[root]) != MPI_SUCCESS)
            b->scatter[root] = MPI_REQUEST_NULL;
    b->n_scatters = b->ranks;
}

static bool all_complete(struct open_barrier *b)
{
    if (!is_complete(&b->barrier))
        return false;
    if (!b->voted && b->ranks <= MAX_RANKS)
        start_vote(b, false);
    if (!is_complete(&b->vote))
        return false;
    if (b->ask && b->n_scatters == 0)
        start_scatters(b);
    while (b->next < b->n_scatters && is_complete(&b->scatter[b->next]))
        b->next++;
    return b->next == b->n_scatters;
}

static bool is_late(const void *arg, int rank)
{
    const struct open_barrier *b = arg;
    return rank != b->rank && rank < b->n_scatters && b->scatter[rank] != MPI_REQUEST_NULL;
}

/* A communicator gets its number only when it is opened. */
static const char *communicator(const struct open_barrier *b, char label[LABEL_CHARS])
{
    if (b->name[0] == '\0')
        return "a communicator without a name";
    snprintf(label, LABEL_CHARS, "communicator \"%s\"", b->name);
    return label;
}

static void watch_open_barrier(struct open_barrier *b, double limit)
{
    char names[SAR_RANK_LIST_CHARS];
    struct sar_rank_names rank_names = { .ranks = b->ranks, .world_rank = b->world_rank };
    double waited = sar_wait_timer_elapsed(&b->timer);
    if (limit <= 0 || waited <= 0 || b->ranks > MAX_RANKS)
        return;
    if (!b->voted && waited >= fmin(limit / 2, MAX_SECONDS_TO_ASK)) {
        start_vote(b, true);
        start_scatters(b);
    }
    if (!sar_wait_timer_must_warn(&b->timer, waited, limit))
        return;
    for (int r = 0; r < b->n_scatters; r++)
        is_complete(&b->scatter[r]);
    sar_rank_names_find(b->user, &rank_names);
    sar_rank_names_format(names, sizeof names, &rank_names, is_late, b);
    sar_comm_find_name(b->user, b->name);
    if (names[0] != '\0')
        SAR_LOG(WARN, COMM, "waited %.1f s for the %d ranks of %s; no call from %s", waited, b->ranks,
                communicator(b, (char[LABEL_CHARS]){ 0 }), names);
}

static void end_wait(struct open_barrier *b)
{
    char label[LABEL_CHARS];
    if (b->timer.warned > 0)
        SAR_LOG(WARN, COMM, "first call on %s of %d ranks: the wait has ended after %.1f s; the call goes on",
                communicator(b, label), b->ranks, PMPI_Wtime() - b->timer.start);
}

void sar_collective_open_barrier(MPI_Comm user, double stall_limit, void (*progress)(void))
{
    struct open_barrier b; /* no initializer: the arrays would be cleared */
    b.user = user;
    b.voted = false;
    b.name[0] = '\0';
    b.ask = b.n_scatters = b.next = 0;
    b.vote = MPI_REQUEST_NULL;
    b.timer = (struct sar_wait_timer){ 0 };
    PMPI_Comm_rank(user, &b.rank);
    PMPI_Comm_size(user, &b.ranks);
    if (b.ranks == 1 || PMPI_Ibarrier(user, &b.barrier) != MPI_SUCCESS)
        return;
    while (!all_complete(&b)) {
        watch_open_barrier(&b, stall_limit);
        progress();
        sched_yield();
    }
    end_wait(&b);
}

enum sar_status sar_comm_bcast(const struct sar_comm *comm, int root, void *bytes, int n)
{
    return sar_mpi(PMPI_Bcast(bytes, n, MPI_BYTE, root, comm->mpi_comm));
}

enum sar_status sar_comm_min_rank(const struct sar_comm *comm, bool yes, int *rank)
{
    int mine = yes ? comm->rank : comm->ranks;
    return sar_mpi(PMPI_Allreduce(&mine, rank, 1, MPI_INT, MPI_MIN, comm->mpi_comm));
}

enum sar_status sar_comm_max_status(const struct sar_comm *comm, enum sar_status status)
{
    int mine = (int)status, max_status;
    SAR_TRY(sar_mpi(PMPI_Allreduce(&mine, &max_status, 1, MPI_INT, MPI_MAX, comm->mpi_comm)));
    return (enum sar_status)max_status;
}

enum sar_status sar_comm_max(const struct sar_comm *comm, double *values, int n)
{
    return sar_mpi(PMPI_Allreduce(MPI_IN_PLACE, values, n, MPI_DOUBLE, MPI_MAX, comm->mpi_comm));
}

enum sar_status sar_collective_max_status_start(const struct sar_comm *comm, int *status,
                                                struct sar_collective *collective)
{
    sar_watchdog_begin(comm, collective, "check for errors");
    return sar_mpi(
        PMPI_Iallreduce(MPI_IN_PLACE, status, 1, MPI_INT, MPI_MAX, comm->mpi_comm, &collective->request));
}

enum sar_status sar_collective_sum_start(const struct sar_comm *comm, uint16_t *counters, int n,
                                         struct sar_collective *collective)
{
    sar_watchdog_begin(comm, collective, "sum of counters");
    return sar_mpi(PMPI_Iallreduce(MPI_IN_PLACE, counters, n, MPI_UINT16_T, MPI_SUM, comm->mpi_comm,
                                   &collective->request));
}

enum sar_status sar_collective_allgather_start(const struct sar_comm *comm, const uint64_t *values, int n,
                                               uint64_t *out, struct sar_collective *collective)
{
    sar_watchdog_begin(comm, collective, "gathering of counts");
    return sar_mpi(
        PMPI_Iallgather(values, n, MPI_UINT64_T, out, n, MPI_UINT64_T, comm->mpi_comm, &collective->request));
}

enum sar_status sar_collective_test(const struct sar_comm *comm, struct sar_collective *collective,
                                    bool block, bool *done)
{
    int flag = 0, spins = 0;
    for (;;) {
        SAR_TRY(sar_mpi(PMPI_Test(&collective->request, &flag, MPI_STATUS_IGNORE)));
        *done = flag != 0;
        if (!*done)
            sar_watchdog_check(comm, collective);
        else
            sar_watchdog_end_wait(comm, &collective->timer, collective->name);
        if (*done || !block)
            return SAR_OK;
        sar_comm_backoff(comm, &spins);
    }
}
