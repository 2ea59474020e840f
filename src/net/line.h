/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a line of cache takes from one rank of a node to another. Whatever ranks share is made of such
 * journeys: between sockets one takes several times as long as within one. */

#ifndef SAR_NET_LINE_H
#define SAR_NET_LINE_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdint.h>

/** How ranks wait for a line: so many looks until one that waits yields, and so many from one look at MPI to
 * the next, since some rank may still wait for a message. */
enum { SAR_LINE_LOOKS = 4000, SAR_LINE_MPI_LOOKS = 64 };

/** Where ranks of a node look for each other: a number on a line of each rank's own, 0 at first. */
struct sar_lines {
    atomic_uint_least64_t *(*of)(const void *lines, int rank);
    const void *lines; /**< handed to that */
    int rank, ranks;   /**< this one and all, of the node */
    MPI_Comm comm;     /**< a communicator that they are in */
    int tries;         /**< of a pair, of which the fastest counts; up to 100 */
    uint64_t before;   /**< how often these lines have been timed */
};

/** Seconds, to the farthest of the ranks that this one is in a pair with; 0 for a rank that is alone, or that
 * found no partner at work at the same time. All ranks of the node call it. */
double sar_line_seconds(const struct sar_lines *lines);

#endif
