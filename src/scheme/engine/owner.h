/* SPDX-License-Identifier: BSD-3-Clause */
/* Owner-based schemes: every element has an owner. Push: each rank sends to each owner the elements that
 * it owns. The owner reduces them, in rank order. Pull: the owner sends the sums to all ranks.
 *
 * If the partition map has stripes, the vector is processed in segments: groups of stripes, with the same
 * elements on all ranks. Segments form a pipeline. Where it is cheaper, all work but the first segment's
 * encoding and the last one's writing is done while messages are in flight:
 *
 *     step   push      pull      meanwhile
 *     0      0                   encode 1
 *     1      1                   reduce 0, encode 2
 *     2      2         0         reduce 1, encode 3
 *     3      3         1         reduce 2, write 0, encode 4
 *     …
 *
 * Otherwise a segment is reduced before the next step, as always within a node, where messages are work too,
 * and where the pull is relayed or ranks send for others:
 *
 *     step   reduce    push      pull      meanwhile
 *     0                0                   encode 1
 *     1      0         1         0         encode 2
 *     2      1         2         1         write 0, encode 3
 *     …
 *
 * Parts are encoded one by one, in the order in which they are sent. Each part of the first segment is
 * sent when it is encoded; so are the remaining parts of a later segment once all messages of the step
 * before are complete. While messages of a step arrive, push messages are decoded in rank order; in the
 * second table they are also reduced, between nodes, as far as there is no gap.
 *
 * Where parts are unequal, the pull may be relayed (scheme/engine/relay.h). Then it takes two steps, and
 * output is written one step later.
 *
 * Memory: three steps, for any number of segments, and the result. Contiguous parts use one segment,
 * because the sums of a segment would not be in the order of the result.
 *
 * Other collectives are one half of an allreduce. A reduce_scatter has the push to the owners that the caller
 * chooses; the sums of a segment are written when they are reduced. An allgather has the pull: each rank's
 * elements of a segment take the place of sums, those of a part where ranks have elements that they own.
 *
 * In two_level some ranks send for others: sar_owner_peers tells who exchanges messages with whom. */

#ifndef SAR_SCHEME_ENGINE_OWNER_H
#define SAR_SCHEME_ENGINE_OWNER_H

#include "scheme/engine/columns.h"
#include "scheme/engine/range_parts.h"
#include "scheme/engine/relay.h"
#include "scheme/engine/segments.h"

/** Peers of a rank, if ranks send for others. Both sides of a message must agree. */
struct sar_owner_peers {
    /** Returns true if this rank sends to the owner of a part; every rank sends to itself. */
    bool (*sends_to)(const struct sar_task *task, int owner);
    /** Returns the i-th of the ranks whose elements this rank reduces, itself included; -1 after the last. */
    int (*source)(const struct sar_task *task, int i);
    /** Partitions this rank's own elements of a segment. */
    enum sar_status (*split)(struct sar_task *task, uint32_t segment, struct sar_spvec *parts);
    /** Turns them into the part that this rank sends to an owner. */
    enum sar_status (*combine)(struct sar_task *task, uint32_t segment, int owner, struct sar_spvec *part);
    /** Returns the owner number of a rank, and the rank of a number, for sliced rows. */
    int (*number)(const struct sar_task *task, int rank);
    int (*rank)(const struct sar_task *task, int number);
};

/** Failure that ranks of a node agree on before the first push, worst last. They send it in place of the
 * push. */
enum sar_owner_failure { SAR_OWNER_NO_FAILURE, SAR_OWNER_SHM_RETRY, SAR_OWNER_FAILURE };

/** Who owns what. Written by sar_owner_open; `bounds` by sar_owner_begin, or before it by oktopk. */
struct sar_owner_parts {
    bool pushes, pulls; /**< reduce_scatter has no pull; allgather has no push */
    bool has_owners;    /**< false: any rank of an allgather has any element, and the map has one part */
    struct sar_partition_map map; /**< of elements to row groups: to ranks, unless rows are sliced */
    struct sar_columns columns;
    struct sar_slice columns_of_result;  /**< of a row: all, or this rank's share of sliced rows */
    const struct sar_owner_peers *peers; /**< NULL: each rank exchanges messages with each other */
    int n_targets;                       /**< owners that this rank sends to, itself included */
    bool is_range;                       /**< rank r owns [bounds[r], bounds[r + 1]) */
    const uint64_t *bounds;
    struct sar_segments segments;
    bool reduces_in_flight; /**< the first table: a pull is two steps after its push, not one */
};

/** Sending side of the push. Arrays of two are indexed by segment % 2. */
struct sar_owner_push {
    size_t next;                 /**< first element of the input not yet partitioned */
    struct sar_spvec *rows[2];   /**< sliced rows without peers: the elements of a segment, by row group */
    struct sar_spvec *parts[2];  /**< this rank's elements of a segment, by owner */
    struct sar_msg *messages[2]; /**< these parts, encoded */
    int n_encoded;               /**< parts of the current segment encoded so far, in the order of sending */
    size_t *sent_values;         /**< basic values sent to each owner, for the report */
};

/** Receiving side of the push: the reduction of this rank's part. */
struct sar_owner_reduce {
    uint32_t segment;
    struct sar_msg *received;  /**< in flight: push messages of the step before, by rank; else NULL */
    struct sar_spvec *decoded; /**< by source, in rank order */
    int n_decoded, n_reduced;  /**< sources; the first n_reduced are in `partial` */
    struct sar_spvec partial;
    struct sar_spvec sums[SAR_STEP_ARENAS]; /**< by segment % SAR_STEP_ARENAS; if their indices are NULL, they
                                             * are in the outgoing message of the pull only */
    bool clustered;                         /**< as for sar_task_reduce_encoded */
};

/** Pull. */
struct sar_owner_pull {
    struct sar_msg outgoing[SAR_STEP_ARENAS]; /**< by segment % SAR_STEP_ARENAS */
    struct sar_msg values[2];                 /**< sliced rows: the sums for ranks that know their indices */
    uint32_t index_hash[SAR_STEP_ARENAS];     /**< sar_msg_index_hash of the sums */
    struct sar_msg *received[2];              /**< by segment % 2, then by owner */
    size_t *received_values;                  /**< basic values received from each owner, for the report */
};

/** Relayed pull. Written by owner_relay.c; `limit` by sar_owner_open_terms. */
struct sar_owner_relay {
    uint64_t limit; /**< bytes that an owner sends itself of each segment; 0: the pull is direct */
    uint64_t *sent; /**< by owner: bytes of earlier segments that it has sent itself */
    struct sar_relay_layout layout; /**< windows of the segment to be relayed next */
    struct sar_relay_routes routes;
    struct sar_msg deferral[2]; /**< of this rank's sums, by segment % 2 */
    struct sar_msg nothing;     /**< for ranks that this rank relays nothing to */
};

/** Head of the state of every owner-based scheme. Written by owner_*.c. */
struct sar_owner {
    struct sar_owner_parts parts;
    uint32_t step;                  /**< written by sar_owner_post */
    enum sar_owner_failure failure; /**< worst so far; written by sar_owner_propagate_failure */
    struct sar_owner_push push;
    struct sar_owner_reduce reduce;
    struct sar_owner_pull pull;
    struct sar_owner_relay relay;
    bool has_common_index;       /**< allgather: an index occurs on two ranks */
    struct sar_spvec *inputs;    /**< scratch: one entry a rank, for the current reduction or merge */
    struct sar_task_part *batch; /**< scratch: one entry a rank, for parts that are coded together */
};

/** The stages; they follow a stage whose `post` calls sar_owner_open. */
#define SAR_OWNER_STAGES                                                              \
    { .compute = sar_owner_begin }, SAR_OWNER_STEPS, { .compute = sar_owner_finish }, \
    {                                                                                 \
        .compute = NULL                                                               \
    }
#define SAR_OWNER_STEPS                                                                    \
    {                                                                                      \
        .compute = sar_owner_reduce, .post = sar_owner_post, .overlap = sar_owner_overlap, \
        .on_arrival = sar_owner_on_arrival                                                 \
    }

enum sar_status sar_owner_begin(struct sar_task *task);
enum sar_status sar_owner_reduce(struct sar_task *task);
void sar_owner_post(struct sar_task *task);
enum sar_status sar_owner_overlap(struct sar_task *task);
enum sar_status sar_owner_on_arrival(struct sar_task *task);
enum sar_status sar_owner_finish(struct sar_task *task);

/** Before the first push: makes every rank that receives a push adopt the worst failure. If a rank cannot
 * share memory, all ranks end with SAR_SHM_RETRY, unless one has failed for another reason. */
void sar_owner_propagate_failure(struct sar_task *task, enum sar_owner_failure failure);

/** Makes this rank adopt the worst failure that the pushes of the step before report. sar_owner_post calls
 * it; so does a scheme without a pull after its only step. */
void sar_owner_collect_failures(struct sar_task *task);

/** Two stages for schemes of contiguous parts with a pull of their own: post the push that sar_owner_begin
 * has prepared; then reduce the arrived parts to the sums of this rank's part. */
void sar_owner_post_push(struct sar_task *task);
enum sar_status sar_owner_sum_push(struct sar_task *task, struct sar_spvec *sums);

/** Terms of the price. */
struct sar_owner_cost_terms {
    double push_share, pull_share; /**< share of the largest part; 1 / parts for a map with stripes, since
                                    * sar_agreed_max_load tells its largest part */
    struct sar_wire_policy push_policy, pull_policy;
    struct sar_partition_map map;
    struct sar_columns columns;
    double max_slots;   /**< slots of the longest part */
    double group_ranks; /**< ranks whose elements are reduced before one of them sends the push, or 1 */
    bool may_relay;     /**< the pull may be relayed */
};

/** Returns the terms of a map to ranks, without preferred formats and without slices. */
struct sar_owner_cost_terms sar_owner_cost_terms(const struct sar_agreed *agreed,
                                                 struct sar_partition_map map);

/** Returns the terms of the partition map of the call, with rows in as many slices as the settings say, or as
 * cost least. Candidates are divisors of the ranks, powers of two, three times these, and the most slices
 * that a row can have.
 * @param group_ranks  1, or the ranks of a node: each then exchanges a share of every row. Nodes with unequal
 *                     numbers of ranks do not slice rows */
struct sar_owner_cost_terms sar_owner_columns_terms(const struct sar_agreed *agreed, int group_ranks);

/** Returns the terms of a reduce_scatter: its map is the caller's. */
struct sar_owner_cost_terms sar_owner_scatter_terms(const struct sar_agreed *agreed, int group_ranks);

/** Returns the terms of the call's collective: the columns terms of an allreduce, the caller's map of a
 * reduce_scatter; for an allgather the map of the owners, or one part of all elements. */
struct sar_owner_cost_terms sar_owner_collective_terms(const struct sar_agreed *agreed);

/** Assigns owners by a map; task->wire_policy has its formats. Cannot fail: all ranks must know the number of
 * steps.
 * @param peers  NULL: each rank exchanges messages with each other */
void sar_owner_open(struct sar_task *task, struct sar_partition_map map, const struct sar_owner_peers *peers);

/** As sar_owner_open, by terms. With sliced rows their map has a part for each row group. */
void sar_owner_open_terms(struct sar_task *task, const struct sar_owner_cost_terms *terms,
                          const struct sar_owner_peers *peers);

/** Partitions this rank's elements of the next segment; slots count from the segment on.
 * @param memory  receives the parts, one after the other; NULL: the step arena */
enum sar_status sar_owner_split(struct sar_task *task, uint32_t segment, const struct sar_spvec *memory,
                                struct sar_spvec *parts);

/** Sliced rows: partitions this rank's elements of the next segment by row group, in the step arena. */
enum sar_status sar_owner_split_rows(struct sar_task *task, uint32_t segment, struct sar_spvec *rows);

/** Returns the slice of a row that a rank owns. */
struct sar_slice sar_owner_slice(const struct sar_task *task, int rank);

/** Returns the row group that a rank is an owner of. */
int sar_owner_group(const struct sar_task *task, int rank);

/** Returns the vec_desc of task->result.vec as the owners' stages write it: of rows, or of shares of rows. */
struct sar_vec_desc sar_owner_result_desc(const struct sar_task *task);

/** Returns the vec_desc of a reduction over the slots that a rank owns of a segment. */
struct sar_vec_desc sar_owner_part_desc(const struct sar_task *task, int rank, uint32_t segment);

/** Returns why an owner-based scheme cannot run the call with a map, or NULL. */
const char *sar_owner_unsupported_reason(const struct sar_agreed *agreed, struct sar_partition_map map);

/** Returns why an owner-based scheme cannot run the call's reduce_scatter or allgather, or NULL. */
const char *sar_owner_half_unsupported_reason(const struct sar_agreed *agreed);

/** Predicted messages and segments of a call. */
struct sar_owner_estimate {
    struct sar_cost push, pull; /**< of one message of a whole part, the largest */
    double peers;               /**< ranks that a rank exchanges messages with */
    double work;                /**< of a rank, coding included, in elements */
    double reduce_work;         /**< the part of it that reduces the elements of the others */
    struct sar_segments segments;
    struct sar_wire_policy push_policy, pull_policy;
    bool reduces_in_flight;      /**< see struct sar_owner_parts */
    int throttle;                /**< long messages that a rank sends to other nodes at a time; 0: all */
    double mean_push, mean_pull; /**< bytes of the mean message of the push and of the pull */
    double relayable;            /**< bytes of the mean message to ranks that may get it from a relay */
    double deferred; /**< messages of a segment that an owner defers on average, if the pull is relayed */
    double relays;   /**< most messages of a segment that a rank relays, or gets from relays */
    uint64_t relay_limit;  /**< bytes that an owner sends itself of a segment; 0: the pull is direct */
    unsigned relay_stride; /**< of windows; see struct sar_relay_layout */
};

/** False: segments are reduced in flight where that is cheaper. Tests set it: wherever that is possible. */
extern bool sar_owner_always_in_flight;

struct sar_owner_estimate sar_owner_estimate(const struct sar_agreed *agreed,
                                             const struct sar_owner_cost_terms *terms);

/** Returns the predicted seconds of working on all segments and moving them:
 *
 *     e(k, x) + (t-1) e(2 k, x + y) + e(k, y) + (z + z s p + v) gamma
 *     2 e(k, x) + (t-2) e(2 k, x + y) + 2 e(k, y) + (z + z s p + v) gamma      reduced in flight
 *
 * t segments, k peers, x and y bytes of a segment's push to all peers and pull from them, e the time of an
 * exchange; p ranks, z elements of a rank, v the work of merging the result (doc/model.md), s the largest
 * part's share of a rank's elements; coding adds to the work. k is p - 1, and e is sar_agreed_exchange. For
 * groups of q ranks k is p / q - 1, rounded up, e is sar_agreed_inter_exchange, and the work is z + z s p +
 * (U + v) s p / q, with U elements of a node. Between nodes the smaller of the two times, of moving and of
 * working, is hidden but for one segment's share, and less where parts of a segment are unequal; the
 * reduction only in flight. Messages of a relayed pull have the mean size. In its additional step a rank
 * relays f of them:
 *
 *     e(k, x) + e(2 k, x + y) + (t-2) e(3 k, x + y + f y / k) + e(2 k, y + f y / k) + e(k, f y / k)
 *
 * It is chosen where this is clearly less; see RELAY_GAIN. */
double sar_owner_seconds(const struct sar_agreed *agreed, const struct sar_owner_cost_terms *terms);

#endif
