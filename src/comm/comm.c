/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening a communicator costs MPI_Comm_dup, MPI_Comm_split_type and three small collectives. */

#include "comm/comm.h"

#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/parallel.h"

enum { SPINS_TO_YIELD = 200 };

/* Ranks of the program on this node, by the variables of MPICH and its derivatives, Open MPI, MVAPICH and
 * PALS. 0 if the launcher sets none of them. */
static int ranks_launched_here(void)
{
    static const char *const names[] = { "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                         "MV2_COMM_WORLD_LOCAL_SIZE", "PMI_LOCAL_SIZE" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = sar_env_get(names[i]);
        if (text != NULL)
            return atoi(text);
    }
    return 0;
}

int sar_comm_auto_threads(int cpus)
{
    int threads = sar_parallel_limit(0);
    threads = threads < cpus ? threads : cpus;
    threads = threads < SAR_THREADS_AUTO_MAX ? threads : SAR_THREADS_AUTO_MAX;
    return threads > 1 ? threads : 1;
}

/* Ranks that are not in the communicator take their share of the job's processors. */
static int default_threads(const struct sar_nodes *nodes)
{
    int here = ranks_launched_here(), share = here > 0 ? nodes->job_cpus / here : nodes->own_cpus;
    return sar_comm_auto_threads(share < nodes->own_cpus ? share : nodes->own_cpus);
}

/* Ranks of the program that are not in the communicator work too, and compete for the processors of the
 * job. */
static enum sar_status find_nodes(struct sar_comm *comm)
{
    const struct sar_nodes *nodes = &comm->nodes;
    int status = (int)sar_nodes_alloc(comm->ranks, &comm->nodes);
    SAR_TRY(sar_mpi(PMPI_Allreduce(MPI_IN_PLACE, &status, 1, MPI_INT, MPI_MAX, comm->mpi_comm)));
    SAR_TRY((enum sar_status)status);
    SAR_TRY(sar_nodes_find(comm->mpi_comm, &comm->nodes));
    comm->oversubscribed = sar_nodes_size(nodes, nodes->node[comm->rank]) > nodes->comm_cpus ||
                           ranks_launched_here() > nodes->job_cpus;
    comm->threads = default_threads(nodes);
    return SAR_OK;
}

void sar_comm_backoff(const struct sar_comm *comm, int *spins)
{
    if (comm->oversubscribed || ++*spins > SPINS_TO_YIELD)
        sched_yield();
}

void sar_comm_mpi_progress(const struct sar_comm *comm)
{
    int found;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm->mpi_comm, &found, MPI_STATUS_IGNORE);
}

void sar_comm_find_name(MPI_Comm user, char name[SAR_COMM_NAME_CHARS])
{
    char whole[MPI_MAX_OBJECT_NAME] = "";
    int length;
    if (PMPI_Comm_get_name(user, whole, &length) != MPI_SUCCESS)
        whole[0] = '\0';
    snprintf(name, SAR_COMM_NAME_CHARS, "%.*s", SAR_COMM_NAME_CHARS - 1, whole);
}

void sar_comm_print_label(const struct sar_comm *comm, char label[SAR_COMM_LABEL_CHARS])
{
    if (comm->name[0] != '\0')
        snprintf(label, SAR_COMM_LABEL_CHARS, "\"%s\"", comm->name);
    else
        snprintf(label, SAR_COMM_LABEL_CHARS, "number %d", comm->id);
}

enum sar_status sar_comm_open(MPI_Comm user, struct sar_comm *comm)
{
    static atomic_int n_opened;
    struct sar_comm made = { .mpi_comm = MPI_COMM_NULL, .tag_count = SAR_TAG_COUNT };
    made.id = atomic_fetch_add(&n_opened, 1);
    SAR_TRY(sar_mpi(PMPI_Comm_dup(user, &made.mpi_comm)));
    PMPI_Comm_set_errhandler(made.mpi_comm, MPI_ERRORS_RETURN);
    PMPI_Comm_rank(made.mpi_comm, &made.rank);
    PMPI_Comm_size(made.mpi_comm, &made.ranks);
    sar_comm_find_name(user, made.name);
    enum sar_status status = find_nodes(&made);
    if (status != SAR_OK)
        sar_comm_close(&made);
    else
        *comm = made;
    return status;
}

void sar_comm_close(struct sar_comm *comm)
{
    sar_nodes_free(&comm->nodes);
    if (comm->mpi_comm != MPI_COMM_NULL)
        PMPI_Comm_free(&comm->mpi_comm);
}
