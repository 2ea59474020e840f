/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank adds what its children send, sends the sum to its parent, and passes the parent's answer on. A rank
 * that does not test its sum holds up its neighbours in the tree. */

#include "comm/tree_sum.h"

#include <stdlib.h>
#include <string.h>

enum { CHILDREN = 2 };

enum stage { IDLE, GATHER, AWAIT, SPREAD, DONE, FAILED };

struct sar_tree_sum {
    enum stage stage;
    int ranks;
    uint64_t *sum;             /* of this rank and those below it, then of all */
    uint64_t *child[CHILDREN]; /* received; the first one also receives the sum of all */
    MPI_Request request[CHILDREN];
};

struct sar_tree_sum *sar_tree_sum_create(int ranks)
{
    size_t n = (size_t)ranks;
    struct sar_tree_sum *sum = calloc(1, sizeof *sum);
    uint64_t *memory = calloc((1 + CHILDREN) * n, sizeof *memory);
    if (sum == NULL || memory == NULL) {
        free(sum);
        free(memory);
        return NULL;
    }
    sum->ranks = ranks;
    sum->sum = memory;
    for (int c = 0; c < CHILDREN; c++) {
        sum->child[c] = memory + (size_t)(1 + c) * n;
        sum->request[c] = MPI_REQUEST_NULL;
    }
    return sum;
}

/* After an error of MPI a message may still be written to the memory, which is then left. */
void sar_tree_sum_free(struct sar_tree_sum *sum)
{
    if (sum != NULL && sum->request[0] == MPI_REQUEST_NULL && sum->request[1] == MPI_REQUEST_NULL)
        free(sum->sum);
    free(sum);
}

/* The rank of a child, or MPI_PROC_NULL. */
static int child_of(const struct sar_comm *comm, int c)
{
    int child = CHILDREN * comm->rank + 1 + c;
    return child < comm->ranks ? child : MPI_PROC_NULL;
}

static int parent_of(const struct sar_comm *comm)
{
    return comm->rank == 0 ? MPI_PROC_NULL : (comm->rank - 1) / CHILDREN;
}

static bool receive(const struct sar_comm *comm, struct sar_tree_sum *sum, int from, int c)
{
    return PMPI_Irecv(sum->child[c], sum->ranks, MPI_UINT64_T, from, SAR_TAG_CLOSE, comm->mpi_comm,
                      &sum->request[c]) == MPI_SUCCESS;
}

static bool send(const struct sar_comm *comm, struct sar_tree_sum *sum, int to, int request)
{
    return PMPI_Isend(sum->sum, sum->ranks, MPI_UINT64_T, to, SAR_TAG_CLOSE, comm->mpi_comm,
                      &sum->request[request]) == MPI_SUCCESS;
}

void sar_tree_sum_start(const struct sar_comm *comm, struct sar_tree_sum *sum, const uint64_t *counters)
{
    memcpy(sum->sum, counters, (size_t)sum->ranks * sizeof *counters);
    sum->stage = GATHER;
    for (int c = 0; c < CHILDREN; c++)
        if (!receive(comm, sum, child_of(comm, c), c))
            sum->stage = FAILED;
}

/* The sum of this rank and those below it goes to the parent, which returns the sum of all. */
static bool ask_parent(const struct sar_comm *comm, struct sar_tree_sum *sum)
{
    for (int c = 0; c < CHILDREN; c++)
        for (int r = 0; r < sum->ranks && child_of(comm, c) != MPI_PROC_NULL; r++)
            sum->sum[r] += sum->child[c][r];
    return send(comm, sum, parent_of(comm), 1) && receive(comm, sum, parent_of(comm), 0);
}

static bool tell_children(const struct sar_comm *comm, struct sar_tree_sum *sum)
{
    if (comm->rank != 0)
        memcpy(sum->sum, sum->child[0], (size_t)sum->ranks * sizeof *sum->sum);
    return send(comm, sum, child_of(comm, 0), 0) && send(comm, sum, child_of(comm, 1), 1);
}

bool sar_tree_sum_test(const struct sar_comm *comm, struct sar_tree_sum *sum)
{
    while (sum->stage == GATHER || sum->stage == AWAIT || sum->stage == SPREAD) {
        int arrived = 0;
        bool works = PMPI_Testall(CHILDREN, sum->request, &arrived, MPI_STATUSES_IGNORE) == MPI_SUCCESS;
        if (works && !arrived)
            return false;
        if (works && sum->stage == GATHER)
            works = ask_parent(comm, sum);
        else if (works && sum->stage == AWAIT)
            works = tell_children(comm, sum);
        sum->stage = works ? sum->stage + 1 : FAILED;
    }
    return true;
}

uint64_t sar_tree_sum_result(const struct sar_tree_sum *sum, int counter)
{
    return sum->stage == DONE ? sum->sum[counter] : 0;
}
