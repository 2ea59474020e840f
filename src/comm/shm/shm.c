/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening the shared memory of a communicator: each rank creates a control region, all ranks gather the
 * handles, and each rank maps the regions of the ranks on its node. Then the ranks of a node measure their
 * distance.
 *
 *     time = an allgather, two votes, p - 1 mappings on a node, and the timing of cache lines */

#include "comm/shm/shm.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "comm/collective.h"
#include "comm/shm/numa_distance.h"
#include "comm/shm/result.h"
#include "hash/murmur3.h"

/* The small buffers are parts of the control region, so that calls with little data need one mapping for each
 * rank. */
static struct sar_shm_region small_buffer(const struct sar_shm_region *control, int i)
{
    unsigned char *first = (unsigned char *)control->memory + SAR_SHM_CONTROL_BYTES;
    return (struct sar_shm_region){ first + (size_t)i * SAR_SHM_MIN_BUFFER_BYTES, SAR_SHM_MIN_BUFFER_BYTES,
                                    true };
}

/* The handle is only compared; the buffer cannot be mapped by it. Serial numbers of regions never reach the
 * upper 8 bits, so the buffer's number makes a unique serial. */
static struct sar_shm_handle small_handle(const struct sar_shm_handle *control, int i)
{
    uint64_t serial = control->serial | (uint64_t)(i + 1) << 56;
    return (struct sar_shm_handle){ control->pid, serial, SAR_SHM_MIN_BUFFER_BYTES, -1 };
}

/* The steps that may fail on one rank alone. */
static enum sar_status create_group(const struct sar_comm *comm, uint64_t token, struct sar_shm_group **group)
{
    struct sar_shm_group *created = calloc(1, sizeof *created);
    *group = created;
    if (created == NULL)
        return SAR_NO_MEMORY;
    created->rank = comm->nodes.local_rank[comm->rank];
    created->ranks = sar_nodes_size(&comm->nodes, comm->nodes.node[comm->rank]);
    SAR_TRY(sar_shm_buffer_open(&created->control, created->ranks));
    SAR_TRY(
        sar_shm_buffer_reserve(&created->control,
                               SAR_SHM_CONTROL_BYTES + SAR_SHM_BUFFERS * (size_t)SAR_SHM_MIN_BUFFER_BYTES));
    for (int i = 0; i < SAR_SHM_BUFFERS; i++) {
        SAR_TRY(sar_shm_buffer_open(&created->buffers[i], created->ranks));
        created->buffers[i].own = small_buffer(&created->control.own, i);
        created->buffers[i].handle = small_handle(&created->control.handle, i);
    }
    *sar_shm_control_token(created->control.own.memory) = token;
    return SAR_OK;
}

static void free_group(struct sar_shm_group *group)
{
    if (group == NULL)
        return;
    sar_shm_result_drop_free_list(group);
    sar_shm_buffer_close(&group->control, group->ranks);
    for (int i = 0; i < SAR_SHM_BUFFERS; i++)
        sar_shm_buffer_close(&group->buffers[i], group->ranks);
    free(group);
}

struct hello {
    struct sar_shm_handle handle; /* of the control region */
    uint64_t token;               /* in the control region */
    uint64_t oversubscribed;      /* comm->oversubscribed */
};

/* In another pid namespace the handle's pid may be another process, so the token must match. */
static enum sar_status attach_controls(const struct sar_comm *comm, struct sar_shm_group *group,
                                       const struct hello *all)
{
    void *memory;
    const int *ranks = &comm->nodes.ranks[comm->nodes.first[comm->nodes.node[comm->rank]]];
    for (int r = 0; r < group->ranks; r++) {
        const struct hello *theirs = &all[ranks[r]];
        SAR_TRY(sar_shm_buffer_attach(&group->control, r, &theirs->handle, &memory));
        if (*sar_shm_control_token(memory) != theirs->token)
            return SAR_NO_SHM;
        for (int i = 0; i < SAR_SHM_BUFFERS && r != group->rank; i++) {
            group->buffers[i].attached[r] = small_buffer(&group->control.attached[r], i);
            group->buffers[i].attached_handle[r] = small_handle(&theirs->handle, i);
        }
    }
    return SAR_OK;
}

/* Ranks that share processors cannot measure latency: they would time the scheduler. All ranks of a node must
 * decide alike. */
static enum sar_status exchange_hello(const struct sar_comm *comm, struct sar_shm_group *group,
                                      uint64_t token, struct hello *all)
{
    struct hello mine = { group->control.handle, token, comm->oversubscribed };
    int bytes = (int)sizeof mine;
    bool oversubscribed = false;
    SAR_TRY(sar_mpi(PMPI_Allgather(&mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm->mpi_comm)));
    SAR_TRY(sar_comm_max_status(comm, attach_controls(comm, group, all)));
    sar_shm_handle_close_fd(&group->control.handle);
    for (int r = 0; r < comm->ranks; r++)
        if (comm->nodes.node[r] == comm->nodes.node[comm->rank])
            oversubscribed |= all[r].oversubscribed != 0;
    sar_numa_distance_measure(comm, group, !oversubscribed);
    return SAR_OK;
}

/* Warn once in a process: other communicators will most likely fail for the same reason. */
static void warn_unshared(const struct sar_comm *comm, enum sar_status why)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    char sentence[128];
    if (comm->rank != 0 || atomic_flag_test_and_set(&warned))
        return;
    snprintf(sentence, sizeof sentence, sar_status_text(why), "", "");
    SAR_LOG(WARN, COMM, "ranks of a node send each other messages: %s", sentence);
}

enum sar_status sar_shm_open(struct sar_comm *comm)
{
    struct sar_shm_group *group = NULL;
    struct hello *all = calloc((size_t)comm->ranks, sizeof *all);
    uint64_t token = sar_mix64((uint64_t)(PMPI_Wtime() * 1e9) ^ (uint64_t)(uintptr_t)&group);
    enum sar_status status = all == NULL ? SAR_NO_MEMORY : create_group(comm, token, &group);
    status = sar_comm_max_status(comm, status);
    if (status == SAR_OK)
        status = exchange_hello(comm, group, token, all);
    free(all);
    if (status != SAR_OK) {
        warn_unshared(comm, status);
        free_group(group);
        group = NULL;
    }
    comm->shm_group = group;
    return status == SAR_MPI_FAILED ? status : SAR_OK;
}

void sar_shm_close(struct sar_comm *comm)
{
    free_group(comm->shm_group);
    comm->shm_group = NULL;
}
