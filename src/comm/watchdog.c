/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI does not tell which rank is late for a collective operation. A rank that has waited for
 * comm->stall_limit seconds sends a heartbeat, the number of the operation that it has begun, to all other
 * ranks. A rank that receives a heartbeat of its own operation, or of a later one, sends its own heartbeat at
 * once. So all waiting ranks learn which ranks have begun the operation.
 *
 *     cost = 0 without long waits, else up to p (p-1) messages of 8 bytes for each operation
 *
 * The late rank does not wait, so it leaves the heartbeats in MPI until it waits for long itself, or until
 * the communicator is closed. Then a sum counts the heartbeats sent to each rank, and each rank receives the
 * rest. At most one heartbeat is in flight from one rank to another. */

#include "comm/watchdog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "comm/tree_sum.h"

enum {
    GRACE_SECONDS = 1,    /* from sending heartbeats to a warning, for the answers to arrive */
    SPINS_PER_CLOCK = 64, /* calls of sar_wait_timer_elapsed for one reading of the clock */
    ENTRY_CHARS = SAR_HOST_CHARS + 48
};

struct sar_watchdog {
    struct sar_rank_names rank_names;
    uint64_t ops_begun;         /* number of the last operation that this rank has begun */
    uint64_t last_sent;         /* operation number in the last heartbeat that this rank sent */
    uint64_t received;          /* heartbeats */
    uint64_t *last_heartbeat;   /* operation number in the last heartbeat from each rank */
    uint64_t *heartbeats_sent;  /* number of heartbeats to each rank; behind last_heartbeat */
    MPI_Request *send_requests; /* of the last heartbeat to each rank */
    struct sar_tree_sum *count; /* of the heartbeats to each rank */
    bool count_started;
};

double sar_wait_timer_elapsed(struct sar_wait_timer *timer)
{
    if (++timer->spins % SPINS_PER_CLOCK != 0)
        return 0;
    double now = PMPI_Wtime();
    if (timer->start == 0)
        timer->start = now;
    return now - timer->start;
}

bool sar_wait_timer_must_warn(struct sar_wait_timer *timer, double waited, double limit)
{
    if (waited < limit || waited < 2 * timer->warned)
        return false;
    timer->warned = waited;
    return true;
}

void sar_rank_names_find(MPI_Comm comm, struct sar_rank_names *rank_names)
{
    MPI_Group group, world;
    for (int r = 0; r < rank_names->ranks; r++)
        rank_names->world_rank[r] = r;
    if (!sar_mpi_world_is_up())
        return;
    PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int r = 0; r < rank_names->ranks; r++) {
        int world_rank = MPI_UNDEFINED;
        PMPI_Group_translate_ranks(group, 1, &r, world, &world_rank);
        rank_names->world_rank[r] = world_rank == MPI_UNDEFINED ? r : world_rank;
    }
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
}

struct selection {
    const struct sar_rank_names *rank_names;
    bool (*selected)(const void *arg, int rank);
    const void *arg;
};

/* The first selected rank from `from` on, or rank_names->ranks. */
static int next_listed(const struct selection *selection, int from)
{
    while (from < selection->rank_names->ranks && !selection->selected(selection->arg, from))
        from++;
    return from;
}

static bool same_host(const struct sar_rank_names *rank_names, int a, int b)
{
    return rank_names->place == NULL || strcmp(rank_names->place[a].host, rank_names->place[b].host) == 0;
}

/* The end of the range that begins with `first`: selected ranks on one host with consecutive world ranks. */
static int last_of_range(const struct selection *selection, int first)
{
    const struct sar_rank_names *rank_names = selection->rank_names;
    int last = first;
    while (last + 1 < rank_names->ranks && selection->selected(selection->arg, last + 1) &&
           same_host(rank_names, first, last + 1) &&
           rank_names->world_rank[last + 1] == rank_names->world_rank[last] + 1)
        last++;
    return last;
}

/* `next` is the first selected rank after the range, or rank_names->ranks. */
static void print_range(char entry[ENTRY_CHARS], const struct sar_rank_names *rank_names, int first, int last,
                        int next)
{
    char until[16] = "", host[SAR_HOST_CHARS + 4] = "";
    bool end = next == rank_names->ranks, host_ends = end || !same_host(rank_names, first, next);
    const char *separator = end ? "" : host_ends ? "; " : ", ";
    if (last > first)
        snprintf(until, sizeof until, " to %d", rank_names->world_rank[last]);
    if (rank_names->place != NULL && host_ends)
        snprintf(host, sizeof host, " on %s", rank_names->place[first].host);
    snprintf(entry, ENTRY_CHARS, "%d%s%s%s", rank_names->world_rank[first], until, host, separator);
}

void sar_rank_names_format(char *text, size_t capacity, const struct sar_rank_names *rank_names,
                           bool (*selected)(const void *arg, int rank), const void *arg)
{
    static const char ellipsis[] = "...";
    struct selection selection = { rank_names, selected, arg };
    char entry[ENTRY_CHARS];
    size_t used = 0;
    int first = next_listed(&selection, 0), only = first;
    bool one = next_listed(&selection, first + 1) >= rank_names->ranks;
    text[0] = '\0';
    if (first < rank_names->ranks)
        used = (size_t)snprintf(text, capacity, one ? "rank " : "ranks ");
    for (int next; first < rank_names->ranks; first = next) {
        int last = last_of_range(&selection, first);
        next = next_listed(&selection, last + 1);
        print_range(entry, rank_names, first, last, next);
        bool fits = used + strlen(entry) + sizeof ellipsis <= capacity;
        used += (size_t)snprintf(text + used, capacity - used, "%s", fits ? entry : ellipsis);
        if (!fits)
            return;
    }
    if (one && only < rank_names->ranks && rank_names->place != NULL)
        snprintf(text + used, capacity - used, " (process %d)", (int)rank_names->place[only].process);
}

struct sar_watchdog *sar_watchdog_create(int ranks)
{
    size_t n = (size_t)ranks;
    struct sar_watchdog *watchdog = calloc(1, sizeof *watchdog);
    if (watchdog == NULL)
        return NULL;
    watchdog->rank_names.ranks = ranks;
    watchdog->rank_names.world_rank = calloc(n, sizeof *watchdog->rank_names.world_rank);
    watchdog->rank_names.place = calloc(n, sizeof *watchdog->rank_names.place);
    watchdog->last_heartbeat = calloc(2 * n, sizeof *watchdog->last_heartbeat);
    watchdog->send_requests = malloc(n * sizeof *watchdog->send_requests);
    watchdog->count = sar_tree_sum_create(ranks);
    if (watchdog->rank_names.world_rank == NULL || watchdog->rank_names.place == NULL ||
        watchdog->last_heartbeat == NULL || watchdog->send_requests == NULL || watchdog->count == NULL) {
        sar_watchdog_free(watchdog);
        return NULL;
    }
    watchdog->heartbeats_sent = watchdog->last_heartbeat + n;
    for (int r = 0; r < ranks; r++)
        watchdog->send_requests[r] = MPI_REQUEST_NULL;
    return watchdog;
}

void sar_watchdog_free(struct sar_watchdog *watchdog)
{
    if (watchdog == NULL)
        return;
    free(watchdog->rank_names.world_rank);
    free(watchdog->rank_names.place);
    free(watchdog->last_heartbeat);
    free(watchdog->send_requests);
    sar_tree_sum_free(watchdog->count);
    free(watchdog);
}

enum sar_status sar_watchdog_share_places(const struct sar_comm *comm)
{
    struct sar_rank_place place = { .process = (int32_t)getpid() };
    sar_log_host(place.host, sizeof place.host);
    sar_rank_names_find(comm->mpi_comm, &comm->watchdog->rank_names);
    return sar_mpi(PMPI_Allgather(&place, sizeof place, MPI_BYTE, comm->watchdog->rank_names.place,
                                  sizeof place, MPI_BYTE, comm->mpi_comm));
}

const struct sar_rank_names *sar_watchdog_rank_names(const struct sar_watchdog *watchdog)
{
    return &watchdog->rank_names;
}

void sar_watchdog_begin(const struct sar_comm *comm, struct sar_collective *collective, const char *name)
{
    *collective = (struct sar_collective){ .request = MPI_REQUEST_NULL, .name = name };
    if (comm->watchdog != NULL)
        collective->seq = ++comm->watchdog->ops_begun;
}

static bool recv_heartbeat(const struct sar_comm *comm, int from)
{
    uint64_t heartbeat;
    MPI_Status status;
    if (PMPI_Recv(&heartbeat, 1, MPI_UINT64_T, from, SAR_TAG_WATCHDOG, comm->mpi_comm, &status) !=
        MPI_SUCCESS)
        return false;
    comm->watchdog->received++;
    if (heartbeat > comm->watchdog->last_heartbeat[status.MPI_SOURCE])
        comm->watchdog->last_heartbeat[status.MPI_SOURCE] = heartbeat;
    return true;
}

/* Receive the heartbeats that have arrived. True if a rank has begun the operation `seq`. */
static bool drain_heartbeats(const struct sar_comm *comm, uint64_t seq)
{
    MPI_Status status;
    int found = 0;
    while (PMPI_Iprobe(MPI_ANY_SOURCE, SAR_TAG_WATCHDOG, comm->mpi_comm, &found, &status) == MPI_SUCCESS &&
           found)
        if (!recv_heartbeat(comm, status.MPI_SOURCE))
            return false;
    for (int r = 0; r < comm->ranks; r++)
        if (comm->watchdog->last_heartbeat[r] >= seq)
            return true;
    return false;
}

/* Sends nothing while a heartbeat for an earlier operation is still in flight: it uses last_sent as its
 * buffer. */
static void send_heartbeats(const struct sar_comm *comm, uint64_t seq)
{
    struct sar_watchdog *watchdog = comm->watchdog;
    int done = 0;
    if (watchdog->last_sent == seq ||
        PMPI_Testall(comm->ranks, watchdog->send_requests, &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS ||
        !done)
        return;
    watchdog->last_sent = seq;
    for (int r = 0; r < comm->ranks; r++)
        if (r != comm->rank && PMPI_Isend(&watchdog->last_sent, 1, MPI_UINT64_T, r, SAR_TAG_WATCHDOG,
                                          comm->mpi_comm, &watchdog->send_requests[r]) == MPI_SUCCESS)
            watchdog->heartbeats_sent[r]++;
}

struct late_args {
    const struct sar_comm *comm;
    uint64_t seq;
};

static bool is_late(const void *late_args, int rank)
{
    const struct late_args *a = late_args;
    return rank != a->comm->rank && a->comm->watchdog->last_heartbeat[rank] < a->seq;
}

static const char *const *function_names;
static int n_functions;

void sar_watchdog_name_functions(const char *const *names, int n)
{
    function_names = names;
    n_functions = n;
}

void sar_watchdog_print_operation(char text[SAR_OPERATION_CHARS], const struct sar_comm *comm,
                                  const char *name)
{
    int function = comm->call.function, used;
    char label[SAR_COMM_LABEL_CHARS];
    sar_comm_print_label(comm, label);
    if (comm->call.number == 0 || function < 0 || function >= n_functions)
        used = snprintf(text, SAR_OPERATION_CHARS, "%s", name);
    else
        used = snprintf(text, SAR_OPERATION_CHARS, "%s of call %u, %s", name, comm->call.number,
                        function_names[function]);
    if (used >= 0 && used < SAR_OPERATION_CHARS)
        snprintf(text + used, SAR_OPERATION_CHARS - (size_t)used, " on communicator %s of %d ranks", label,
                 comm->ranks);
}

void sar_watchdog_warn(const struct sar_comm *comm, const char *name, double waited,
                       bool (*late)(const void *arg, int rank), const void *arg)
{
    char names[SAR_RANK_LIST_CHARS], operation[SAR_OPERATION_CHARS];
    sar_watchdog_print_operation(operation, comm, name);
    sar_rank_names_format(names, sizeof names, &comm->watchdog->rank_names, late, arg);
    if (names[0] != '\0')
        SAR_LOG(WARN, COMM, "waited %.1f s in the %s; no call, or no progress, from %s", waited, operation,
                names);
    else
        SAR_LOG(WARN, COMM, "waited %.1f s in the %s, where all ranks are", waited, operation);
}

void sar_watchdog_end_wait(const struct sar_comm *comm, struct sar_wait_timer *timer, const char *name)
{
    char operation[SAR_OPERATION_CHARS];
    double start = timer->start;
    bool warned = timer->warned > 0;
    *timer = (struct sar_wait_timer){ 0 };
    if (!warned)
        return;
    sar_watchdog_print_operation(operation, comm, name);
    SAR_LOG(WARN, COMM, "%s: the wait has ended after %.1f s; the call goes on", operation,
            PMPI_Wtime() - start);
}

void sar_watchdog_check(const struct sar_comm *comm, struct sar_collective *c)
{
    if (comm->stall_limit <= 0 || comm->watchdog == NULL)
        return;
    double waited = sar_wait_timer_elapsed(&c->timer);
    if (waited <= 0)
        return;
    if (drain_heartbeats(comm, c->seq) || waited >= comm->stall_limit)
        send_heartbeats(comm, c->seq);
    if (sar_wait_timer_must_warn(&c->timer, waited, comm->stall_limit + GRACE_SECONDS))
        sar_watchdog_warn(comm, c->name, waited, is_late, &(struct late_args){ comm, c->seq });
}

void sar_watchdog_reply(const struct sar_comm *comm)
{
    struct sar_watchdog *watchdog = comm->watchdog;
    if (drain_heartbeats(comm, watchdog->last_sent + 1))
        send_heartbeats(comm, watchdog->ops_begun);
}

/* Without a stall limit no rank has sent a heartbeat. */
void sar_watchdog_count_start(const struct sar_comm *comm)
{
    struct sar_watchdog *watchdog = comm->watchdog;
    if (comm->stall_limit <= 0 || comm->ranks == 1 || watchdog->count_started)
        return;
    watchdog->count_started = true;
    sar_tree_sum_start(comm, watchdog->count, watchdog->heartbeats_sent);
}

bool sar_watchdog_count_test(const struct sar_comm *comm)
{
    return sar_tree_sum_test(comm, comm->watchdog->count);
}

void sar_watchdog_drain(const struct sar_comm *comm)
{
    struct sar_watchdog *watchdog = comm->watchdog;
    if (!watchdog->count_started)
        return;
    uint64_t expected = sar_tree_sum_result(watchdog->count, comm->rank);
    while (watchdog->received < expected && recv_heartbeat(comm, MPI_ANY_SOURCE))
        continue;
    PMPI_Waitall(comm->ranks, watchdog->send_requests, MPI_STATUSES_IGNORE);
}
