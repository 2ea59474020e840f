/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI does not tell who is late for a collective operation. A rank that waits for long sends the number of
 * the operation it is in to all others, once an operation; who hears of an operation that it is in itself, or
 * that it waits after, does so at once. So all that wait know who has come. That takes no more messages than
 * a phase of a scheme in which all ranks send to all, and none where nobody waits for long.
 *
 * The one that was late finds words that it did not wait for. They stay where MPI keeps them until it waits
 * for long itself, or until the communicator is closed: then the ranks add up what they have sent, and each
 * receives what it lacks. A rank has at most one word under way to another. */

#include "net/roll.h"

#include <stdlib.h>

#include "base/log.h"

enum { GRACE = 1 /* seconds for words to come */ };

struct sar_roll {
    struct sar_roster roster;
    uint64_t operations; /* begun */
    uint64_t word;       /* sent last: the number of an operation */
    uint64_t received, owed;
    uint64_t *heard;    /* of each rank, its last word */
    uint64_t *sent;     /* to each rank, how many */
    MPI_Request *sends; /* to each rank */
    MPI_Request counting;
    bool ended;
};

struct sar_roll *sar_roll_make(int ranks)
{
    size_t n = (size_t)ranks;
    struct sar_roll *roll = calloc(1, sizeof *roll);
    if (roll == NULL)
        return NULL;
    roll->roster.ranks = ranks;
    roll->roster.number = calloc(n, sizeof *roll->roster.number);
    roll->roster.host = calloc(n, sizeof *roll->roster.host);
    roll->heard = calloc(n, sizeof *roll->heard);
    roll->sent = calloc(n, sizeof *roll->sent);
    roll->sends = malloc(n * sizeof *roll->sends);
    if (roll->roster.number == NULL || roll->roster.host == NULL || roll->heard == NULL ||
        roll->sent == NULL || roll->sends == NULL) {
        sar_roll_free(roll);
        return NULL;
    }
    for (int r = 0; r < ranks; r++)
        roll->sends[r] = MPI_REQUEST_NULL;
    roll->counting = MPI_REQUEST_NULL;
    return roll;
}

void sar_roll_free(struct sar_roll *roll)
{
    if (roll == NULL)
        return;
    free(roll->roster.number);
    free(roll->roster.host);
    free(roll->heard);
    free(roll->sent);
    free(roll->sends);
    free(roll);
}

enum sar_status sar_roll_introduce(const struct sar_net *net)
{
    char host[SAR_HOST];
    sar_log_host(host, sizeof host);
    sar_stall_number(net->comm, &net->roll->roster);
    return sar_mpi(
        PMPI_Allgather(host, SAR_HOST, MPI_CHAR, net->roll->roster.host, SAR_HOST, MPI_CHAR, net->comm));
}

const struct sar_roster *sar_roll_roster(const struct sar_roll *roll)
{
    return &roll->roster;
}

void sar_roll_begin(const struct sar_net *net, struct sar_collective *collective, const char *what)
{
    *collective = (struct sar_collective){ .request = MPI_REQUEST_NULL, .what = what };
    if (net->roll != NULL)
        collective->number = ++net->roll->operations;
}

static bool receive(const struct sar_net *net, int from)
{
    uint64_t word;
    MPI_Status status;
    if (PMPI_Recv(&word, 1, MPI_UINT64_T, from, SAR_TAG_ROLL, net->comm, &status) != MPI_SUCCESS)
        return false;
    net->roll->received++;
    if (word > net->roll->heard[status.MPI_SOURCE])
        net->roll->heard[status.MPI_SOURCE] = word;
    return true;
}

/* Take the words that have come; whether one is of this operation. */
static bool listen(const struct sar_net *net, uint64_t number)
{
    MPI_Status status;
    int seen = 0;
    while (PMPI_Iprobe(MPI_ANY_SOURCE, SAR_TAG_ROLL, net->comm, &seen, &status) == MPI_SUCCESS && seen)
        if (!receive(net, status.MPI_SOURCE))
            return false;
    for (int r = 0; r < net->ranks; r++)
        if (net->roll->heard[r] >= number)
            return true;
    return false;
}

/* A word that an earlier one is still in the way of is not sent. */
static void send_word(const struct sar_net *net, uint64_t number)
{
    struct sar_roll *roll = net->roll;
    int over = 0;
    if (roll->word == number ||
        PMPI_Testall(net->ranks, roll->sends, &over, MPI_STATUSES_IGNORE) != MPI_SUCCESS || !over)
        return;
    roll->word = number;
    for (int r = 0; r < net->ranks; r++)
        if (r != net->rank && PMPI_Isend(&roll->word, 1, MPI_UINT64_T, r, SAR_TAG_ROLL, net->comm,
                                         &roll->sends[r]) == MPI_SUCCESS)
            roll->sent[r]++;
}

struct absence {
    const struct sar_net *net;
    uint64_t number;
};

static bool is_missing(const void *absence, int rank)
{
    const struct absence *a = absence;
    return rank != a->net->rank && a->net->roll->heard[rank] < a->number;
}

void sar_roll_tell(const struct sar_net *net, const char *what, double waited,
                   bool (*lacks)(const void *of, int rank), const void *of)
{
    char names[SAR_NAMES];
    sar_stall_list(names, sizeof names, &net->roll->roster, lacks, of);
    if (names[0] != '\0')
        SAR_LOG(WARN, NET, "waited %.1f s in the %s; no word from %s", waited, what, names);
    else
        SAR_LOG(WARN, NET, "waited %.1f s in the %s, where all ranks are", waited, what);
}

void sar_roll_watch(const struct sar_net *net, struct sar_collective *c)
{
    if (net->stall <= 0 || net->roll == NULL)
        return;
    double waited = sar_stall_clock(&c->stall);
    if (waited <= 0)
        return;
    if (listen(net, c->number) || waited >= net->stall)
        send_word(net, c->number);
    if (sar_stall_tells(&c->stall, waited, net->stall + GRACE))
        sar_roll_tell(net, c->what, waited, is_missing, &(struct absence){ net, c->number });
}

void sar_roll_answer(const struct sar_net *net)
{
    struct sar_roll *roll = net->roll;
    if (listen(net, roll->word + 1))
        send_word(net, roll->operations);
}

/* Where stalls are not watched nothing was sent, on any rank. */
void sar_roll_end(const struct sar_net *net)
{
    struct sar_roll *roll = net->roll;
    if (net->stall <= 0 || net->ranks == 1 || roll->ended)
        return;
    roll->ended = true;
    if (PMPI_Ireduce_scatter_block(roll->sent, &roll->owed, 1, MPI_UINT64_T, MPI_SUM, net->comm,
                                   &roll->counting) != MPI_SUCCESS)
        roll->counting = MPI_REQUEST_NULL;
}

/* MPI gives up where it fails. */
bool sar_roll_counted(const struct sar_net *net)
{
    int over = 0;
    return PMPI_Test(&net->roll->counting, &over, MPI_STATUS_IGNORE) != MPI_SUCCESS || over;
}

void sar_roll_settle(const struct sar_net *net)
{
    struct sar_roll *roll = net->roll;
    if (!roll->ended)
        return;
    while (roll->received < roll->owed && receive(net, MPI_ANY_SOURCE))
        continue;
    PMPI_Waitall(net->ranks, roll->sends, MPI_STATUSES_IGNORE);
}
