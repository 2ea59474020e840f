/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's communicator: a duplicate of the user's, with the nodes of its ranks and the settings for
 * waiting and for messages. It is opened at the first call on the user's communicator and closed with
 * that. */

#ifndef SAR_COMM_COMM_H
#define SAR_COMM_COMM_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "comm/mpi_util.h"
#include "comm/nodes.h"

/** Messages of calls use the tags below SAR_TAG_COUNT. MPI guarantees all tags up to 32767. */
enum { SAR_TAG_COUNT = 32766, SAR_TAG_CLOSE = 32766, SAR_TAG_WATCHDOG = 32767 };

/** Capacity for the name of a communicator, and for that name in quotes. */
enum { SAR_COMM_NAME_CHARS = 64, SAR_COMM_LABEL_CHARS = SAR_COMM_NAME_CHARS + 2 };

struct sar_agree_direct;
struct sar_watchdog;
struct sar_shm_group;

/** sar_comm_open fills in the members up to tag_count, and those from `threads` on. The comm_state sets the
 * others. */
struct sar_comm {
    MPI_Comm mpi_comm; /**< the library's own duplicate; its error handler is MPI_ERRORS_RETURN */
    int rank, ranks;
    int id; /**< number of the communicator in this process, from 0, for traces and warnings */
    struct sar_nodes nodes;          /**< groups of ranks that share memory */
    int tag_count;                   /**< messages of calls use the tags in [0, tag_count) */
    uint64_t chunk;                  /**< most bytes of one MPI message */
    int throttle;                    /**< most long messages to other nodes in flight, or 0 for no limit */
    uint64_t window_bytes;           /**< bytes up to which more long messages than these may be in flight */
    uint64_t long_message;           /**< least bytes of a long message */
    double stall_limit;              /**< seconds of waiting before a warning, or 0 for no warnings */
    struct sar_watchdog *watchdog;   /**< names the late ranks in warnings; or NULL */
    struct sar_shm_group *shm_group; /**< memory shared by the ranks of this node; NULL if they share none */
    struct sar_agree_direct *agree;  /**< for agreements in one round; NULL if they are an MPI_Iallreduce */
    struct {
        uint32_t number;  /**< of the last call; 0: none has begun */
        int32_t function; /**< its SAR_AGREE_FUNCTION */
    } call;               /**< for warnings */
    int threads;          /**< threads of a call's work, unless a setting says otherwise */
    bool oversubscribed;  /**< a node has more ranks than processors for them: waiting ranks yield */
    char name[SAR_COMM_NAME_CHARS]; /**< of the user's communicator, when this one was opened; may be empty */
};

/** Returns the shared memory group if all ranks are on one node, else NULL. Local. */
static inline struct sar_shm_group *sar_comm_single_node_group(const struct sar_comm *comm)
{
    return comm->nodes.n == 1 ? comm->shm_group : NULL;
}

/** Yields the processor after many fruitless probes, and at once if the node is oversubscribed. MPI's own
 * blocking waits spin, which then costs whole time slices. Called after each fruitless probe. Local.
 * @param spins fruitless probes in this wait so far; 0 at first */
void sar_comm_backoff(const struct sar_comm *comm, int *spins);

/** Lets MPI make progress on its pending operations, on which another rank may be waiting. Local. */
void sar_comm_mpi_progress(const struct sar_comm *comm);

/** Duplicates the user's communicator and finds the nodes of its ranks. Collective over `user`. */
enum sar_status sar_comm_open(MPI_Comm user, struct sar_comm *comm);

/** Writes the name that a user has given to a communicator, cut to the capacity; empty if it has none.
 * Local. */
void sar_comm_find_name(MPI_Comm user, char name[SAR_COMM_NAME_CHARS]);

/** Writes the name of a communicator in quotes, or "number ID" if it has none. Local. */
void sar_comm_print_label(const struct sar_comm *comm, char label[SAR_COMM_LABEL_CHARS]);

/** Returns the threads of the setting `auto` for a rank with so many processors, if OpenMP allows them. */
int sar_comm_auto_threads(int cpus);

/** Frees the duplicate and the nodes; neither the watchdog nor the shared memory group. Collective over
 * comm. */
void sar_comm_close(struct sar_comm *comm);

#endif
