/* SPDX-License-Identifier: BSD-3-Clause */
/* Stages in which pairs of ranks exchange and reduce all their elements, at distances 1, 2, 4 …: all of
 * recursive_doubling and the first part of hybrid. */

#ifndef SAR_SCHEME_ENGINE_PAIRWISE_H
#define SAR_SCHEME_ENGINE_PAIRWISE_H

#include "scheme/engine/task.h"

/** A rank's position in the group: the largest power of two of ranks, of which pairs differ in one bit. If
 * the number of ranks p is not a power of two, the first 2 (p - size) ranks pair up before the exchange:
 * the even ones send their elements to the odd ones, and receive the result afterwards. */
struct sar_pof2 {
    int size;       /**< ranks of the group */
    int paired;     /**< ranks below this one pair up before the exchange; even */
    int group_rank; /**< position in the group, or -1 for a rank that sends its elements to the next one */
    int rank;
};

/** Returns the largest power of two that is not above ranks. */
static inline int sar_pof2_below(int ranks)
{
    int power = 1;
    while (power <= ranks / 2)
        power *= 2;
    return power;
}

static inline struct sar_pof2 sar_pof2_of(const struct sar_comm *comm)
{
    struct sar_pof2 f = { .size = sar_pof2_below(comm->ranks), .rank = comm->rank };
    f.paired = 2 * (comm->ranks - f.size);
    if (comm->rank >= f.paired)
        f.group_rank = comm->rank - f.paired / 2;
    else
        f.group_rank = comm->rank % 2 == 1 ? comm->rank / 2 : -1;
    return f;
}

/** Returns the rank at a position of the group. */
static inline int sar_pof2_rank(const struct sar_pof2 *f, int group_rank)
{
    return group_rank < f->paired / 2 ? 2 * group_rank + 1 : group_rank + f->paired / 2;
}

/** Returns the rank whose position differs in one bit. */
static inline int sar_pof2_peer(const struct sar_pof2 *f, int distance)
{
    return sar_pof2_rank(f, f->group_rank ^ distance);
}

/** Returns true if this rank sends its elements to the next rank, before the exchange. */
static inline bool sar_pof2_sends(const struct sar_pof2 *f)
{
    return f->group_rank < 0;
}

/** Returns true if this rank receives the elements of the rank before, before the exchange. */
static inline bool sar_pof2_receives(const struct sar_pof2 *f)
{
    return f->group_rank >= 0 && f->rank < f->paired;
}

/** Post the messages of pairs: a rank of the group receives the elements of the rank before, and after the
 * exchange returns its result. Each sends `message`; a rank without a pair does nothing. */
void sar_pof2_post_in(struct sar_task *task, const struct sar_msg *message);
void sar_pof2_post_out(struct sar_task *task, const struct sar_msg *message);

/** Head of the state of a scheme with these stages. Written by pairwise.c; `limit` also by the scheme. */
struct sar_pairwise {
    struct sar_spvec
        vec; /**< sums of the ranks that this rank has exchanged elements with, directly or not */
    struct sar_msg outgoing;
    int distance;        /**< of the next exchange, in positions of the group */
    int limit;           /**< distance to stop at; 0 at first: the size of the group */
    bool output_written; /**< the last reduction went to the output */
};

/** Stages before and after those of the scheme: to pair up and to exchange; to return the result to pairs.
 * The state of the scheme begins with a struct sar_pairwise, and task->input.vec has this rank's elements. */
#define SAR_PAIRWISE_STAGES_IN                                         \
    { .compute = sar_pairwise_begin, .post = sar_pairwise_pof2_in },   \
    {                                                                  \
        .compute = sar_pairwise_prepare, .post = sar_pairwise_exchange \
    }
#define SAR_PAIRWISE_STAGES_OUT                                     \
    { .compute = sar_pairwise_end, .post = sar_pairwise_pof2_out }, \
    {                                                               \
        .compute = sar_pairwise_finish                              \
    }

/** The functions of these stages. All ranks run all of them, in this order; messages are allocated in the
 * step arena. Each function of status returns SAR_NO_MEMORY, or the error of a message that cannot be
 * decoded. begin encodes the elements of a rank that pairs up, and pof2_in sends them to the rank of the
 * group. */
enum sar_status sar_pairwise_begin(struct sar_task *task);
void sar_pairwise_pof2_in(struct sar_task *task);

/** prepare reduces what the stage before received, and encodes the sums; exchange swaps them with the peer at
 * d->distance, doubles the distance, and repeats the stage below d->limit. */
enum sar_status sar_pairwise_prepare(struct sar_task *task);
void sar_pairwise_exchange(struct sar_task *task);

/** end reduces what the last exchange received, unless d->limit has left that to the scheme, and pof2_out
 * returns the result to the paired rank. */
enum sar_status sar_pairwise_end(struct sar_task *task);
void sar_pairwise_pof2_out(struct sar_task *task);

/** finish writes the output, unless the last reduction has done so. */
enum sar_status sar_pairwise_finish(struct sar_task *task);

/** Reduces the elements that the last exchange received, if any. Errors as above. */
enum sar_status sar_pairwise_reduce_received(struct sar_task *task);

/** Returns the predicted seconds of the exchanges at distances below limit, and of pairing up. Equal on all
 * ranks; pure. */
double sar_pairwise_seconds(const struct sar_agreed *agreed, int limit);

#endif
