/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine constants of the cost model: the time of messages and work on a communicator. */

#ifndef SAR_COMM_MACHINE_H
#define SAR_COMM_MACHINE_H

#include "comm/comm.h"

/** Equal on all ranks. Constants are for messages between nodes if there are several, except for intra_*. */
struct sar_machine {
    int ranks;
    double alpha;       /**< seconds of a message */
    double beta;        /**< seconds of a byte, while all ranks send */
    double gamma;       /**< seconds of an element reduced */
    double memory;      /**< seconds of a byte read from or written to memory, while all ranks do */
    double dense_alpha; /**< seconds of the smallest MPI_Allreduce */
    double dense_beta;  /**< seconds of a byte in MPI_Allreduce */
    double intra_alpha; /**< alpha within a node; equal to alpha if there is one node, or one rank on each */
    double intra_beta;  /**< beta within a node, in the same way */
    double overhead;    /**< seconds of each further message, of several sent at once */
    double intra_overhead; /**< overhead within a node, in the same way */
    double thread_ratio;   /**< time of large work on a rank's threads over that on one, at most 1 */
};

/** X(member, JSON key in calibration files), in the order in which the file format gained the members. */
/* clang-format off */
#define SAR_MACHINE_CONSTANTS(X)                                                                    \
    X(alpha, "alpha") X(beta, "beta") X(gamma, "gamma") X(memory, "memory")                         \
    X(dense_alpha, "dense_alpha") X(dense_beta, "dense_beta")                                       \
    X(intra_alpha, "near_alpha") X(intra_beta, "near_beta")                                         \
    X(overhead, "overhead") X(intra_overhead, "near_overhead")
/* clang-format on */

/** Measures all constants in a few milliseconds, or takes those that were measured for the same processes in
 * the same order on the same nodes. All ranks get the maximum over the ranks. Collective over comm.
 * Blocks. */
enum sar_status sar_machine_measure(const struct sar_comm *comm, struct sar_machine *machine);

/** Clears the cache of measured constants, for calibration and tests. Local. */
void sar_machine_forget(void);

#endif
