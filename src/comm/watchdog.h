/* SPDX-License-Identifier: BSD-3-Clause */
/* Warnings about long waits, with the names of the ranks that are late. */

#ifndef SAR_COMM_WATCHDOG_H
#define SAR_COMM_WATCHDOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/comm.h"

enum {
    SAR_HOST_CHARS = 60,
    SAR_RANK_LIST_CHARS = 512, /**< capacity for a list of ranks */
    SAR_OPERATION_CHARS = 224  /**< capacity for an operation, its call and its communicator */
};

/** Where a rank is. */
struct sar_rank_place {
    char host[SAR_HOST_CHARS];
    int32_t process; /**< its number on the host */
};

/** The length of one wait. The waiting rank sets all members to 0 when the wait begins. */
struct sar_wait_timer {
    unsigned spins; /**< calls of sar_wait_timer_elapsed */
    double start;   /**< MPI_Wtime when the clock was first read, or 0 */
    double warned;  /**< seconds that the last warning reported, or 0 */
};

/** The names of a communicator's ranks in warnings. */
struct sar_rank_names {
    int ranks;
    int *world_rank;              /**< of each rank; its rank in MPI_COMM_WORLD */
    struct sar_rank_place *place; /**< of each rank; NULL while places are unknown */
};

/** A nonblocking collective operation in flight. */
struct sar_collective {
    MPI_Request request;
    uint64_t seq;     /**< number of the operation on its communicator, from 1 on */
    const char *name; /**< name of the operation in warnings */
    struct sar_wait_timer timer;
};

/** Returns the seconds waited so far. Returns 0 without reading the clock in most calls. Called after each
 * fruitless probe. Local. */
double sar_wait_timer_elapsed(struct sar_wait_timer *timer);

/** True if a wait of `waited` seconds needs a warning: when it passes the limit, and each time that it has
 * doubled. Local. */
bool sar_wait_timer_must_warn(struct sar_wait_timer *timer, double waited, double limit);

/** Fills in rank_names->world_rank. A rank that is not in MPI_COMM_WORLD keeps its number in comm. Local. */
void sar_rank_names_find(MPI_Comm comm, struct sar_rank_names *rank_names);

/** Writes the list of the ranks for which selected(arg, rank) is true: "rank 2 on node3 (process 81206)" or
 * "ranks 2, 5 to 7 on node3; 9 on node4". Ends it with "..." if it is too long. Empty without ranks. */
void sar_rank_names_format(char *text, size_t capacity, const struct sar_rank_names *rank_names,
                           bool (*selected)(const void *arg, int rank), const void *arg);

/** The state of a communicator's watchdog: the operation that each rank has reached, as far as ranks have
 * told. */
struct sar_watchdog;

/** Allocates the watchdog of a communicator; returns NULL without memory. Local. */
struct sar_watchdog *sar_watchdog_create(int ranks);

/** Frees a watchdog; NULL is allowed. Local. */
void sar_watchdog_free(struct sar_watchdog *watchdog);

/** Gathers the places of all ranks. Collective over comm. */
enum sar_status sar_watchdog_share_places(const struct sar_comm *comm);

/** Returns the names of the communicator's ranks, which the watchdog owns. */
const struct sar_rank_names *sar_watchdog_rank_names(const struct sar_watchdog *watchdog);

/** Prepares an operation for watching, right before it is started. All ranks begin the same operations in the
 * same order. Local.
 * @param name static text */
void sar_watchdog_begin(const struct sar_comm *comm, struct sar_collective *collective, const char *name);

/** Called after each fruitless test of the operation. A rank that has waited for comm->stall_limit seconds
 * sends a heartbeat to the other ranks. One second later it warns of the ranks that have sent none. Local. */
void sar_watchdog_check(const struct sar_comm *comm, struct sar_collective *collective);

/** Answers heartbeats with the number of the operation that this rank has begun. Called in waits for messages
 * of a scheme, if comm has a watchdog and a stall limit. Local. */
void sar_watchdog_reply(const struct sar_comm *comm);

/** Sets the names of functions by their numbers (SAR_AGREE_FUNCTION), for warnings. Local. */
void sar_watchdog_name_functions(const char *const *names, int n);

/** Writes an operation, its call and its communicator: 'phase 1 of call 12, MPIX_Sparse_allreduce on
 * communicator "A" of 2 ranks'. Local. */
void sar_watchdog_print_operation(char text[SAR_OPERATION_CHARS], const struct sar_comm *comm,
                                  const char *name);

/** Logs the warning that an operation has waited for so many seconds, with the ranks that are late. Local. */
void sar_watchdog_warn(const struct sar_comm *comm, const char *name, double waited,
                       bool (*late)(const void *arg, int rank), const void *arg);

/** Begins a wait anew, after progress. If a warning has told of the wait so far, logs that it has ended.
 * Local.
 * @param name of the operation */
void sar_watchdog_end_wait(const struct sar_comm *comm, struct sar_wait_timer *timer, const char *name);

/** Starts to sum up the heartbeats sent to each rank; without effect when called again. This rank may have no
 * operation in flight, but others may. Collective over comm, does not block. */
void sar_watchdog_count_start(const struct sar_comm *comm);

/** True once the sum is known on this rank, or MPI has failed. Local. */
bool sar_watchdog_count_test(const struct sar_comm *comm);

/** Receives the heartbeats that are still in flight, after sar_watchdog_count_test has returned true. Local;
 * blocks until they have arrived. */
void sar_watchdog_drain(const struct sar_comm *comm);

#endif
