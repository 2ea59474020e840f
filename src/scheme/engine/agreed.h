/* SPDX-License-Identifier: BSD-3-Clause */
/* The numbers of a call that are equal on all ranks, and the predictions that follow from them. Schemes
 * compute prices and choose formats from these numbers only, so that all ranks decide alike. All functions
 * are local. */

#ifndef SAR_SCHEME_ENGINE_AGREED_H
#define SAR_SCHEME_ENGINE_AGREED_H

#include "comm/machine.h"
#include "hash/partition_map.h"
#include "vector/quantiles.h"
#include "vector/vec_desc.h"
#include "wire/wire.h"

enum { SAR_DENSIFICATION_POINTS = 32, SAR_IMBALANCE_POINTS = 4 };

/** Densification: elements of the union of k ranks over those of one rank. */
struct sar_densification {
    int points;                             /**< entries in use */
    int ranks[SAR_DENSIFICATION_POINTS];    /**< k, ascending from 1 */
    double ratio[SAR_DENSIFICATION_POINTS]; /**< at that k */
};

/** Returns the ratio at k ranks, interpolated on logarithmic axes. */
double sar_densification_at(const struct sar_densification *gamma, double k);

/** Returns the ratios of ranks that have no element in common. */
struct sar_densification sar_densification_disjoint(int ranks);

/** Returns the ratios of ranks that choose their elements independently at a density: the default guess. */
struct sar_densification sar_densification_independent(double density, int ranks);

/** Nodes: groups of ranks that share memory. */
struct sar_agreed_topo {
    int nodes;
    int node_ranks;     /**< ranks of the largest node */
    bool shared_memory; /**< the ranks of each node have a shm_group */
};

/** The input: from the agreement, or from the tensor's profile. */
struct sar_agreed_data {
    double nnz_mean, nnz_max; /**< elements of a rank, over all ranks */
    struct sar_densification densification;
    double skewness; /**< elements of the largest of `ranks` contiguous parts over the mean part; >= 1 */
    bool disjoint;   /**< no index occurs on two ranks */
    double pull_imbalance; /**< in the last call of `balanced`, largest over mean part; 0: unknown. Of
                                     * a reduce_scatter, which has no pull, that of the push */
    int pull_parts;        /**< parts of the partition map of that call */
    struct sar_quantiles quantiles; /**< of the rank with most elements; all 0: segments are equally long */
    double segment_imbalance[SAR_IMBALANCE_POINTS]; /**< see struct sar_profile */
};

/** Collectives. */
enum sar_collective_kind {
    SAR_ALLREDUCE,
    SAR_REDUCE_SCATTER, /**< each rank gets the elements that it owns */
    SAR_ALLGATHER,      /**< every rank gets all elements; no index occurs twice */
    SAR_COLLECTIVES
};

/** Names of the collectives. */
extern const char *const sar_collective_names[SAR_COLLECTIVES];

/** The function and the interface that the caller uses. */
struct sar_agreed_call {
    enum sar_collective_kind collective;
    uint64_t block;         /**< the owner of element i is rank (i / block) mod ranks; reduce_scatter, and
                             * allgather if ranks have elements that they own, else 0 */
    bool dense_face;        /**< dense buffers in and out, else coordinates */
    bool in_place;          /**< the input is in recvbuf */
    bool dense_skips_agree; /**< after a call that ran dense the next ones skip the agreement */
    bool speculates;        /**< small calls send their first messages beside the agreement */
    double check_seconds;   /**< predicted, of the agreement between nodes; 0 within one */
    bool native;            /**< the library has kernels for type and op; others can only use MPI_Allreduce */
};

/** Settings of the partition map. */
struct sar_agreed_partition {
    int kind;             /**< enum sar_partition_kind, or -1: chosen by the library */
    int grain;            /**< elements of a block, or SAR_AUTO */
    double max_imbalance; /**< limit when the library chooses the grain */
    uint64_t columns;     /**< most slices of a row, or SAR_U64_AUTO */
    uint32_t seed;        /**< of the hash */
};

/** Settings of formats and messages. */
struct sar_agreed_wire {
    enum sar_wire_precision precision;
    const struct sar_wire *push, *pull; /**< forced format; NULL: the cheapest for each message */
    bool push_smallest, pull_smallest;  /**< choose by bytes alone, not by the work of coding */
    uint64_t segment_bytes;             /**< bytes of a message of one segment, or SAR_U64_AUTO */
    uint64_t long_message;              /**< bytes from which a message is long; 0: 65536 */
    uint64_t throttle;                  /**< long messages in flight, 0 for all, or SAR_U64_AUTO */
    enum sar_relay_mode relay;
};

/** All agreed numbers of a call. Core (prepare.c, forecast.c) writes them; afterwards they are constant. */
struct sar_agreed {
    struct sar_vec_desc desc;
    struct sar_machine machine;
    struct sar_agreed_topo topo;
    struct sar_agreed_data data;
    struct sar_agreed_call call;
    struct sar_agreed_partition partition;
    struct sar_agreed_wire wire;
};

/** Returns why no sparse scheme can run the call, or NULL. */
const char *sar_agreed_sparse_unsupported(const struct sar_agreed *agreed);

/** Returns the seconds of work on one element of this vec_desc: the gamma of a call's machine. */
double sar_agreed_element_seconds(const struct sar_machine *machine, const struct sar_vec_desc *desc);

/** Returns the time of the call's work on its threads over that on one. */
static inline double sar_agreed_thread_ratio(const struct sar_agreed *agreed)
{
    return agreed->machine.thread_ratio > 0 ? agreed->machine.thread_ratio : 1;
}

/** Returns the seconds of work on one value: the part of machine.gamma that does not grow with the row. */
double sar_agreed_value_seconds(const struct sar_agreed *agreed);

/** Returns the predicted elements of the union of k ranks. */
double sar_agreed_union_nnz(const struct sar_agreed *agreed, double k);

/** Returns what the fullest ranks of n segments have together over what the rank with most elements has; 1 if
 * that is unknown. */
double sar_agreed_segment_imbalance(const struct sar_agreed *agreed, uint32_t n);

/** Returns the layout of messages about `slots` consecutive indices of index_size bytes. */
struct sar_wire_layout sar_agreed_layout(const struct sar_agreed *agreed, uint64_t slots,
                                         unsigned index_size);

/** How a scheme chooses the formats of one direction. Zero: the cheapest. */
struct sar_wire_policy {
    const struct sar_wire *preferred; /**< the scheme's own format, or NULL */
    double work_weight;               /**< of work against bytes, one of which may be hidden; 0: 1 */
    unsigned block; /**< slots of a block that all ranks put in place (sar_wire_pull_cost), or 0 */
};

/** Returns the format for a message: the forced one, else the preferred one, else the cheapest for vec.
 * @param policy  NULL: zero */
const struct sar_wire *sar_agreed_wire(const struct sar_agreed *agreed, bool pull,
                                       const struct sar_wire_policy *policy,
                                       const struct sar_wire_layout *layout, const struct sar_spvec *vec);

/** As sar_agreed_wire for nnz elements at random slots. */
const struct sar_wire *sar_agreed_expected_wire(const struct sar_agreed *agreed, bool pull,
                                                const struct sar_wire_policy *policy,
                                                const struct sar_wire_layout *layout, double nnz);

/** Returns the format for nnz elements in device memory: the forced one, else the smallest that devices
 * write. */
const struct sar_wire *sar_agreed_device_wire(const struct sar_agreed *agreed, bool pull,
                                              const struct sar_wire_layout *layout, size_t nnz);

/** Returns true if the settings allow devices to encode and decode. */
bool sar_agreed_allows_device(const struct sar_agreed *agreed);

/** Predicted cost of a message. */
struct sar_cost {
    double bytes; /**< header included */
    double work;  /**< of coding at both ends, in elements */
};

/** Returns the predicted cost of a message of nnz elements. */
struct sar_cost sar_agreed_cost(const struct sar_agreed *agreed, bool pull,
                                const struct sar_wire_layout *layout, double nnz);

/** Returns the predicted cost of a message for a scheme with a policy; NULL: zero. */
struct sar_cost sar_agreed_cost_with(const struct sar_agreed *agreed, bool pull,
                                     const struct sar_wire_policy *policy,
                                     const struct sar_wire_layout *layout, double nnz);

/** Constants of a link, either between nodes or within a node. */
struct sar_link {
    double alpha, overhead; /**< seconds: latency, and time of a rank for each message */
    double beta;            /**< seconds a byte */
};

/** Returns the link between ranks at this distance: within the node if all pairs at it share a node. */
struct sar_link sar_agreed_link(const struct sar_agreed *agreed, int distance);

/** Returns the seconds for messages between nodes that are in flight at once, `bytes` in total. As in LogGP
 * (Alexandrov et al. 1995) a rank handles one message after the other, and all share one latency; the bytes
 * of one message move while the rank handles the next:
 *
 *     alpha + max(bytes beta, (messages - 1) overhead + bytes / messages beta) */
double sar_agreed_inter_exchange(const struct sar_agreed *agreed, double messages, double bytes);

/** Returns the seconds for messages with equal bytes for each other rank: the sum over both links. */
double sar_agreed_exchange(const struct sar_agreed *agreed, double messages, double bytes);

/** Returns the mean of the largest of n independent variates with the standard normal distribution, 1 <= n.
 * It is .85 of sqrt(2 ln n), the bound of Theorem 2 of the Zen paper, for 256, .75 for 16, .48 for 2. A few
 * percent too large above 16384. Pure. */
double sar_max_of_normal(double n);

/** Returns the predicted elements of the largest part over the mean part, in a partition map with stripes.
 * The parts receive the unions of `together` ranks each, from `groups` groups. k groups have u elements
 * each, and two groups have a share o in common. The largest of p parts is sar_max_of_normal(p) standard
 * deviations above the mean, but has at most all its elements:
 *
 *     min(1 + sar_max_of_normal(p) sqrt((1 + (k-1) o - u / count) p / (k u)), count / u) */
double sar_agreed_max_load(const struct sar_agreed *agreed, double parts, double together, double groups);

/** Returns sar_agreed_max_load of the push of all ranks, relative to the mean part of the rank with most
 * elements; at least 1, because that rank sends as much. */
double sar_agreed_max_push_load(const struct sar_agreed *agreed, double parts);

/** Returns the partition map of the call to p parts: the forced one, or `hash`. Without a forced grain it has
 * the largest grain g whose predicted imbalance, 1 + sqrt(2 p ln p g / nnz), stays within the limit;
 * `hierarchical` has grain 1, as in the Zen paper. */
struct sar_partition_map sar_agreed_partition_map_of(const struct sar_agreed *agreed, uint32_t parts);

/** Returns the partition map of call.block: the owner of element i is rank (i / block) mod ranks. */
struct sar_partition_map sar_agreed_block_map(const struct sar_agreed *agreed);

/** Returns the partition map with a part for each rank. */
struct sar_partition_map sar_agreed_partition_map(const struct sar_agreed *agreed);

#endif
