/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_NET_NET_H
#define SAR_NET_NET_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "net/nodes.h"
#include "net/stall.h"

/** Tags below SAR_TAGS are for messages of calls; MPI guarantees all up to 32767. */
enum { SAR_TAGS = 32766, SAR_TAG_ROLL = 32767 };

struct sar_roll;
struct sar_window;

/** The library's own duplicate of a user's communicator. Its error handler returns. */
struct sar_net {
    MPI_Comm comm;
    int rank, ranks;
    int number;                /**< of the communicators that this process has opened */
    struct sar_nodes nodes;    /**< groups of ranks that share memory */
    int tags;                  /**< tags in [0, tags) may be used */
    uint64_t chunk;            /**< most bytes handed to MPI at a time */
    int throttle;              /**< long messages sent to other nodes at a time, or 0: all */
    uint64_t long_message;     /**< bytes from which one is long */
    double stall;              /**< seconds of waiting from which on it is warned of, or 0 */
    struct sar_roll *roll;     /**< see roll.h; or NULL */
    struct sar_window *window; /**< of the ranks of this one's node, if they share memory, or NULL */
    bool crowded; /**< more ranks on a node than processors for them: whoever waits should let others run */
};

/** A collective operation under way. */
struct sar_collective {
    MPI_Request request;
    uint64_t number;  /**< of those that were begun on the communicator */
    const char *what; /**< in words */
    struct sar_stall stall;
};

/** The window where all ranks are on one node, else NULL. */
static inline struct sar_window *sar_net_common_window(const struct sar_net *net)
{
    return net->nodes.n == 1 ? net->window : NULL;
}

static inline enum sar_status sar_mpi(int code)
{
    return code == MPI_SUCCESS ? SAR_OK : SAR_MPI_FAILED;
}

/** Called after each fruitless look at messages under way: offers the processor to others after a while,
 * at once where the node is crowded. MPI libraries spin in their own waits, which then cost whole time
 * slices. */
void sar_net_pause(const struct sar_net *net, int *looks);

/** Let MPI move what it has under way: a rank that this one waits for otherwise may itself be waiting for a
 * message, or for a request of MPI's. */
void sar_net_let_mpi_move(const struct sar_net *net);

/** Duplicate a communicator. Collective. */
enum sar_status sar_net_open(MPI_Comm user, struct sar_net *net);

/** Give the duplicate back. Collective. */
void sar_net_close(struct sar_net *net);

/** One rank's bytes to all. Collective. */
enum sar_status sar_net_broadcast(const struct sar_net *net, int root, void *bytes, int n);

/** The lowest rank that says yes; net->ranks where none does. Collective. */
enum sar_status sar_net_lowest(const struct sar_net *net, bool yes, int *rank);

/** The same verdict on all ranks: the worst status of any. Collective. */
enum sar_status sar_net_worst(const struct sar_net *net, enum sar_status status);

/** The same of a status in *status, in place. Collective; sar_net_test tells when that is done. */
enum sar_status sar_net_worst_start(const struct sar_net *net, int *status,
                                    struct sar_collective *collective);

/** Sum n counters over all ranks, in place. Likewise. */
enum sar_status sar_net_sum_start(const struct sar_net *net, uint16_t *counters, int n,
                                  struct sar_collective *collective);

/** out[r * n + i] = rank r's values[i]. Likewise. */
enum sar_status sar_net_gather_start(const struct sar_net *net, const uint64_t *values, int n, uint64_t *out,
                                     struct sar_collective *collective);

/** Wait for a collective operation, or look whether it is done. */
enum sar_status sar_net_test(const struct sar_net *net, struct sar_collective *collective, bool block,
                             bool *done);

/** Whether this is the time between MPI_Init and MPI_Finalize; sessions do without it. Local. */
bool sar_net_world_is_up(void);

/** Element-wise maximum over all ranks, in place. Collective. */
enum sar_status sar_net_maximum(const struct sar_net *net, double *values, int n);

#endif
