/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_NET_MACHINE_H
#define SAR_NET_MACHINE_H

#include "net/net.h"

/** What messages and work cost on a communicator; the same on all its ranks. Messages go between nodes, where
 * there are several, but for those that are said to be near. */
struct sar_machine {
    int ranks;
    double alpha;                 /**< seconds for a message */
    double beta;                  /**< seconds for a byte, while all ranks send */
    double gamma;                 /**< seconds for an element reduced */
    double memory;                /**< seconds for a byte read or written in memory, while all ranks do */
    double dense_alpha;           /**< seconds for the smallest MPI_Allreduce */
    double dense_beta;            /**< seconds for a byte of MPI_Allreduce */
    double near_alpha, near_beta; /**< within a node; alpha and beta where there is one, or one a rank */
    double overhead;              /**< seconds for each further message of several at once */
    double near_overhead;         /**< likewise within a node */
};

/** X(name) for each of these constants, in the order in which files came to have them. */
/* clang-format off */
#define SAR_MACHINE_CONSTANTS(X)                                                                    \
    X(alpha) X(beta) X(gamma) X(memory) X(dense_alpha) X(dense_beta) X(near_alpha) X(near_beta)     \
    X(overhead) X(near_overhead)
/* clang-format on */

/** Measure all constants in a few milliseconds, or take what was measured for the same processes in the same
 * order on the same nodes. Collective; every rank gets the slowest rank's figures. */
enum sar_status sar_machine_measure(const struct sar_net *net, struct sar_machine *machine);

/** Let all groups measure anew: for calibrating, and for tests. */
void sar_machine_forget(void);

#endif
