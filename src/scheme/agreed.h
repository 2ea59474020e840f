/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_SCHEME_AGREED_H
#define SAR_SCHEME_AGREED_H

#include "hash/map.h"
#include "net/machine.h"
#include "tensor/shape.h"
#include "wire/wire.h"

enum { SAR_GAMMAS = 32 };

/** Densification: how many more elements the union of k ranks has than one rank. */
struct sar_gamma {
    int entries;
    int ranks[SAR_GAMMAS];    /**< 1, 2, 4 … and last all; ascending */
    double ratio[SAR_GAMMAS]; /**< 1 at one rank */
};

/** The ratio at k ranks, interpolated on logarithmic axes. */
double sar_gamma_at(const struct sar_gamma *gamma, double k);

/** The ratios of ranks that choose their elements independently at a density: where nothing is known. */
struct sar_gamma sar_gamma_independent(double density, int ranks);

/** What all ranks know of a call. Made from agreed numbers only, never from one rank's data alone, so
 * that all ranks choose alike. Whatever a choice depends on is in here. */
struct sar_agreed {
    struct sar_shape shape;
    struct sar_machine machine;
    int nodes;      /**< groups of ranks that share memory; between several, messages move while ranks work */
    int node_ranks; /**< of the node that has the most */
    bool share_memory;        /**< the ranks of each node, through a window */
    double nnz_mean, nnz_max; /**< elements present, over ranks */
    struct sar_gamma gamma;
    bool disjoint;   /**< no two ranks have an element in common */
    bool dense_face; /**< dense buffers in and out */
    bool in_place;
    bool forwards;    /**< calls that follow on a dense one need no agreement */
    bool native;      /**< type and op are the library's own; others can only go to MPI_Allreduce */
    double imbalance; /**< limit for the grain */
    double skewness;  /**< elements of the fullest of `ranks` contiguous parts over the mean, 1 at least */
    enum sar_values values; /**< how values travel */
    uint64_t segment;       /**< bytes of a message in segments, or SAR_WHOLE_AUTO */
    uint64_t throttle;      /**< long messages at a time, 0 for all, or SAR_WHOLE_AUTO */
    int partition;          /**< enum sar_partition, or -1 for the planner's choice */
    int grain;              /**< or SAR_AUTO */
    uint32_t seed;
    const struct sar_wire *push_wire, *pull_wire; /**< NULL for the cheapest of each message */
    bool push_smallest, pull_smallest;
};

/** Seconds for the work of one element of such a shape: what stands for gamma in a call's machine. */
double sar_element_seconds(const struct sar_machine *machine, const struct sar_shape *shape);

/** Elements of the union of k ranks. */
double sar_agreed_union(const struct sar_agreed *agreed, double k);

/** Layout of messages about a stretch of `span` indices of `index_size` bytes. */
struct sar_layout sar_agreed_layout(const struct sar_agreed *agreed, uint64_t span, unsigned index_size);

/** The format for a message: the forced one, the scheme's own, or the cheapest for that run.
 * @param own  or NULL */
const struct sar_wire *sar_agreed_wire(const struct sar_agreed *agreed, bool pull, const struct sar_wire *own,
                                       const struct sar_layout *layout, const struct sar_run *run);

/** The same for a run in a device's memory: the forced one, or the one of the fewest bytes that devices
 * write. */
const struct sar_wire *sar_agreed_device_wire(const struct sar_agreed *agreed, bool pull,
                                              const struct sar_layout *layout, size_t nnz);

/** Whether what was asked for leaves coding to devices. */
bool sar_agreed_suits_devices(const struct sar_agreed *agreed);

/** Predicted bytes, its header included, and work of coding in elements, of a message of nnz elements. */
struct sar_cost {
    double bytes, work;
};
struct sar_cost sar_agreed_cost(const struct sar_agreed *agreed, bool pull, const struct sar_layout *layout,
                                double nnz);

/** The same for a scheme that has a format of its own. */
struct sar_cost sar_agreed_cost_in(const struct sar_agreed *agreed, bool pull, const struct sar_wire *own,
                                   const struct sar_layout *layout, double nnz);

/** Messages of one level. */
struct sar_link {
    double alpha, overhead, beta;
};

/** Between ranks that are so far apart: within a node where its ranks are not. */
struct sar_link sar_agreed_link(const struct sar_agreed *agreed, int distance);

/** Seconds for messages, of so many bytes together, that are all under way at once. As in LogGP (Alexandrov
 * et al. 1995) a rank is busy with one after the other, and all share one latency; the bytes of one pass
 * while it is busy with the next:
 *
 *     alpha + max(bytes beta, (messages - 1) overhead + bytes / messages beta) */
double sar_agreed_far_exchange(const struct sar_agreed *agreed, double messages, double bytes);

/** The same for messages to equally many bytes for each other rank, of which some are on the same node: for
 * both levels one after the other. */
double sar_agreed_exchange(const struct sar_agreed *agreed, double messages, double bytes);

/** What the fullest of all ranks' parts is expected to get over the mean where a map with lines deals out the
 * unions of so many ranks together, one from each group. k groups have u elements each, of which two have a
 * share o in common; as in Theorem 2 of the Zen paper the fullest of p parts is sqrt(2 ln p) standard
 * deviations above the mean, but has no more than all its elements:
 *
 *     min(1 + sqrt(2 ln p (1 + (k-1) o - u / count) p / (k u)), count / u) */
double sar_agreed_fullest(const struct sar_agreed *agreed, double together, double groups);

/** The same in the push of all ranks, over what the fullest rank has for the mean part: 1 at least, as that
 * is what it sends. */
double sar_agreed_fullest_push(const struct sar_agreed *agreed);

/** The partition map that the planner takes: the one asked for, or `hash` with the largest grain whose
 * predicted imbalance, 1 + sqrt(2 n ln n g / nnz), stays within the limit. */
struct sar_map sar_agreed_map(const struct sar_agreed *agreed);

#endif
