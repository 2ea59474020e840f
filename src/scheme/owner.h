/* SPDX-License-Identifier: BSD-3-Clause */
/* What all schemes of two steps have in common: every element has an owner. Push: each rank sends each other
 * rank the elements that rank owns. The owner reduces them, in rank order. Pull: it sends the sums to all.
 *
 * Where a partition map with lines says who owns what, the vector is cut into segments, stretches of lines
 * that are the same elements on all ranks. Segments follow each other through four steps, so that while one
 * segment's push is on its way, the next one is partitioned and encoded and the sums of earlier ones are
 * pulled and put in their place:
 *
 *     step   push      reduce    pull      meanwhile
 *     0      0                             encode 1
 *     1      1         0         0         encode 2
 *     2      2         1         1         encode 3, deliver 0
 *     …
 *
 * Parts are encoded one by one, in the order in which they leave. Those of the first segment go out as they
 * are encoded, and so does what is left of another when the step before has no more messages to wait for.
 * While a step's messages arrive, those of the push are decoded in rank order, and between nodes also summed
 * up as far as the ranks go without a gap.
 *
 * Memory is that of three steps, whatever the number of segments, and the outcome. Owners of contiguous parts
 * have one segment, since their sums do not come in the order of the outcome.
 *
 * Not all ranks need speak with all: where some do it for others, the peers say who with whom. */

#ifndef SAR_SCHEME_OWNER_H
#define SAR_SCHEME_OWNER_H

#include "scheme/contiguous.h"

/** Who speaks with whom, where ranks speak for others; alike on both sides. Parts are those of a map. */
struct sar_owner_peers {
    /** Whether this rank speaks with the owner of a part; it does with itself. */
    bool (*reaches)(const struct sar_request *request, int owner);
    /** The i-th of the ranks whose elements this one adds up, itself among them; -1 behind the last. */
    int (*contributor)(const struct sar_request *request, int i);
    /** Find this rank's own elements of a segment. */
    enum sar_status (*split)(struct sar_request *request, uint32_t segment, struct sar_run *parts);
    /** Make of them what it has to say to an owner that it reaches. */
    enum sar_status (*gather)(struct sar_request *request, uint32_t segment, int owner, struct sar_run *part);
};

/** What ranks of a node have agreed on before the first push, the worst last: they tell it instead. */
enum sar_owner_verdict { SAR_OWNER_FINE, SAR_OWNER_UNSHARED, SAR_OWNER_FAILED };

/** Who owns what; the beginning of the state of every such scheme. */
struct sar_owner {
    struct sar_map map;
    const struct sar_owner_peers *peers; /**< NULL where all speak with all */
    int reached;                         /**< owners that this rank speaks with, itself included */
    bool contiguous;                     /**< rank r owns [bounds[r], bounds[r + 1]) */
    const uint64_t *bounds; /**< those of the map unless a stage before sar_owner_begin sets others */
    uint64_t width;         /**< slots of a segment */
    uint32_t segments, step;
    enum sar_owner_verdict verdict;  /**< that all ranks have to obey */
    size_t taken;                    /**< elements of the input that have been partitioned */
    struct sar_run *mine[2];         /**< this rank's elements of a segment for each owner, by parity */
    struct sar_message *outgoing[2]; /**< the same as messages */
    int encoded;                     /**< of the next push, messages that are ready to leave */
    struct sar_run sums[2];          /**< of this rank's part of a segment */
    struct sar_message pulled[2];    /**< the same as messages */
    struct sar_message *waiting;     /**< messages of the pull that have arrived, by rank */
    struct sar_run *runs;            /**< one for each rank, for what is at hand */
    struct sar_run *came;            /**< the push under way, decoded, by contributor */
    int ready;                       /**< how many of these are there */
    struct sar_run folded;           /**< the sums of the first of them */
    int folds;                       /**< and how many these are */
    uint32_t coming;                 /**< the segment they belong to */
    size_t *pushed, *kept;           /**< elements of each part, of this rank's and of the outcome */
};

/** The stages, to come after one whose `post` calls sar_owner_open. */
#define SAR_OWNER_STAGES                                                              \
    { .compute = sar_owner_begin }, SAR_OWNER_STEPS, { .compute = sar_owner_finish }, \
    {                                                                                 \
        .compute = NULL                                                               \
    }
#define SAR_OWNER_STEPS                                                                        \
    {                                                                                          \
        .compute = sar_owner_reduce, .post = sar_owner_post, .meanwhile = sar_owner_meanwhile, \
        .arrived = sar_owner_arrived                                                           \
    }

enum sar_status sar_owner_begin(struct sar_request *request);
enum sar_status sar_owner_reduce(struct sar_request *request);
void sar_owner_post(struct sar_request *request);
enum sar_status sar_owner_meanwhile(struct sar_request *request);
enum sar_status sar_owner_arrived(struct sar_request *request);
enum sar_status sar_owner_finish(struct sar_request *request);

/** Before the first push: let all who hear of a verdict obey the worst. Where some rank is without memory to
 * share all end with SAR_UNSHARED, unless one has failed in another way. */
void sar_owner_obey(struct sar_request *request, enum sar_owner_verdict verdict);

/** Of the stages, for schemes of contiguous parts that pull in a way of their own: post the push that
 * sar_owner_begin has prepared, and in the next stage reduce what came to the sums of this rank's part. */
void sar_owner_push(struct sar_request *request);
enum sar_status sar_owner_sum(struct sar_request *request, struct sar_run *sums);

/** How a price is made: the shares of the fullest part, 1 / ranks where a map with lines deals elements out,
 * which tells by how much the fullest has more; the formats that the scheme brings along, or NULL; slots of
 * the longest part; and how many ranks add up what they have before one of them pushes it, where that is more
 * than one. */
struct sar_owner_terms {
    double push_share, pull_share;
    const struct sar_wire *push_wire, *pull_wire;
    const struct sar_map *map;
    double span, together;
};

/** Those of a map, with formats by price. */
struct sar_owner_terms sar_owner_terms(const struct sar_agreed *agreed, const struct sar_map *map);

/** Own by a map. Never fails, since all ranks must know how many steps will follow. request->own_wire is
 * set. */
void sar_owner_open(struct sar_request *request, const struct sar_map *map);

/** The same where ranks speak for others. */
void sar_owner_open_among(struct sar_request *request, const struct sar_owner_terms *terms,
                          const struct sar_owner_peers *peers);

/** This rank's elements of the next segment, by part; slots count from the segment on.
 * @param memory  with room for them, where they then lie part by part; NULL: of request->passing */
enum sar_status sar_owner_split(struct sar_request *request, uint32_t segment, const struct sar_run *memory,
                                struct sar_run *parts);

/** The slots that a rank owns of a segment, as elements: for reductions. */
struct sar_shape sar_owner_shape(const struct sar_request *request, int rank, uint32_t segment);

/** Why elements cannot be owned by a map, or NULL. */
const char *sar_owner_obstacle(const struct sar_map *map);

/** What is foreseen: of one message of a whole part, of a rank, and of segments. */
struct sar_owner_forecast {
    struct sar_cost push, pull; /**< of the fullest */
    double peers;               /**< ranks that a rank speaks with */
    double work;                /**< of a rank, coding included, in elements */
    uint64_t width;             /**< of a segment, slots */
    double segments;
    int throttle; /**< long messages that a rank sends to other nodes at a time; 0: all */
};

struct sar_owner_forecast sar_owner_forecast(const struct sar_agreed *agreed,
                                             const struct sar_owner_terms *terms);

/** Predicted time of the work and of moving all segments:
 *
 *     e(k, x) + (t-1) e(2 k, x + y) + e(k, y) + (z + z s p + Z) gamma
 *
 * t segments, k peers, x and y bytes of a segment's push to and pull from all of them, and e the exchange;
 * p ranks, z elements of a rank and Z of the outcome, s the share that the fullest part has of a rank's
 * elements, and coding besides. k is p - 1, and e as for sar_agreed_exchange; where q ranks are together k is
 * p / q - 1, rounded up, e as for sar_agreed_far_exchange, and the work z + z s p + (U + Z) s p / q, with U
 * elements of a node. Between nodes all but one segment's share of the lesser of the two sides, moving and
 * working, is hidden behind the other. */
double sar_owner_seconds(const struct sar_agreed *agreed, const struct sar_owner_terms *terms);

#endif
