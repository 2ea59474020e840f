/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/net.h"

#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/config.h"
#include "net/roll.h"
#include "net/window.h"

enum { LOOKS = 200 /* before a rank that waits yields */ };

/* Ranks of this program on this node, as its launcher tells: of MPICH and its kin, Open MPI, MVAPICH, PALS.
 * 0 where nobody does. */
static int launched_here(void)
{
    static const char *const names[] = { "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                         "MV2_COMM_WORLD_LOCAL_SIZE", "PMI_LOCAL_SIZE" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = sar_variable(names[i]);
        if (text != NULL)
            return atoi(text);
    }
    return 0;
}

/* The other ranks of the program work too, and on the same processors, unless they are bound to others. */
static bool is_crowded(const struct sar_nodes *nodes, int rank)
{
    return sar_nodes_size(nodes, nodes->node[rank]) > nodes->own || launched_here() > nodes->usable;
}

static enum sar_status find_nodes(struct sar_net *net)
{
    SAR_TRY(sar_net_worst(net, sar_nodes_take(net->ranks, &net->nodes)));
    SAR_TRY(sar_nodes_find(net->comm, &net->nodes));
    net->crowded = is_crowded(&net->nodes, net->rank);
    return SAR_OK;
}

void sar_net_pause(const struct sar_net *net, int *looks)
{
    if (net->crowded || ++*looks > LOOKS)
        sched_yield();
}

void sar_net_let_mpi_move(const struct sar_net *net)
{
    int found;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, net->comm, &found, MPI_STATUS_IGNORE);
}

enum sar_status sar_net_open(MPI_Comm user, struct sar_net *net)
{
    static atomic_int opened;
    struct sar_net made = { .comm = MPI_COMM_NULL, .tags = SAR_TAGS };
    made.number = atomic_fetch_add(&opened, 1);
    SAR_TRY(sar_mpi(PMPI_Comm_dup(user, &made.comm)));
    PMPI_Comm_set_errhandler(made.comm, MPI_ERRORS_RETURN);
    PMPI_Comm_rank(made.comm, &made.rank);
    PMPI_Comm_size(made.comm, &made.ranks);
    enum sar_status status = find_nodes(&made);
    if (status != SAR_OK)
        sar_net_close(&made);
    else
        *net = made;
    return status;
}

void sar_net_close(struct sar_net *net)
{
    sar_window_close(net->window);
    sar_nodes_free(&net->nodes);
    if (net->comm != MPI_COMM_NULL)
        PMPI_Comm_free(&net->comm);
}

enum sar_status sar_net_broadcast(const struct sar_net *net, int root, void *bytes, int n)
{
    return sar_mpi(PMPI_Bcast(bytes, n, MPI_BYTE, root, net->comm));
}

enum sar_status sar_net_lowest(const struct sar_net *net, bool yes, int *rank)
{
    int mine = yes ? net->rank : net->ranks;
    return sar_mpi(PMPI_Allreduce(&mine, rank, 1, MPI_INT, MPI_MIN, net->comm));
}

enum sar_status sar_net_worst(const struct sar_net *net, enum sar_status status)
{
    int mine = (int)status, worst;
    SAR_TRY(sar_mpi(PMPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, net->comm)));
    return (enum sar_status)worst;
}

enum sar_status sar_net_worst_start(const struct sar_net *net, int *status, struct sar_collective *collective)
{
    sar_roll_begin(net, collective, "vote");
    return sar_mpi(
        PMPI_Iallreduce(MPI_IN_PLACE, status, 1, MPI_INT, MPI_MAX, net->comm, &collective->request));
}

enum sar_status sar_net_sum_start(const struct sar_net *net, uint16_t *counters, int n,
                                  struct sar_collective *collective)
{
    sar_roll_begin(net, collective, "sum of counters");
    return sar_mpi(
        PMPI_Iallreduce(MPI_IN_PLACE, counters, n, MPI_UINT16_T, MPI_SUM, net->comm, &collective->request));
}

enum sar_status sar_net_gather_start(const struct sar_net *net, const uint64_t *values, int n, uint64_t *out,
                                     struct sar_collective *collective)
{
    sar_roll_begin(net, collective, "gathering of counts");
    return sar_mpi(
        PMPI_Iallgather(values, n, MPI_UINT64_T, out, n, MPI_UINT64_T, net->comm, &collective->request));
}

enum sar_status sar_net_test(const struct sar_net *net, struct sar_collective *collective, bool block,
                             bool *done)
{
    int flag = 0, looks = 0;
    for (;;) {
        SAR_TRY(sar_mpi(PMPI_Test(&collective->request, &flag, MPI_STATUS_IGNORE)));
        *done = flag != 0;
        if (!*done)
            sar_roll_watch(net, collective);
        if (*done || !block)
            return SAR_OK;
        sar_net_pause(net, &looks);
    }
}

bool sar_net_world_is_up(void)
{
    int up = 0, down = 0;
    PMPI_Initialized(&up);
    PMPI_Finalized(&down);
    return up && !down;
}

enum sar_status sar_net_maximum(const struct sar_net *net, double *values, int n)
{
    return sar_mpi(PMPI_Allreduce(MPI_IN_PLACE, values, n, MPI_DOUBLE, MPI_MAX, net->comm));
}
