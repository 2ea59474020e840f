/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_SCHEME_FOLD_H
#define SAR_SCHEME_FOLD_H

#include <stdbool.h>

#include "net/net.h"

/** Where a rank stands among the largest power of two of ranks, for schemes that pair ranks up by bits.
 * When p is not a power of two, the first 2 (p - power) ranks pair up beforehand: the even ones hand
 * their elements over to the odd ones and get the outcome back. */
struct sar_fold {
    int power;  /**< that power of two */
    int folded; /**< ranks below this one pair up beforehand; even */
    int place;  /**< within the group, or -1 for a rank that hands its elements over */
    int rank;
};

/** The largest power of two that is not above so many ranks. */
static inline int sar_power_below(int ranks)
{
    int power = 1;
    while (power <= ranks / 2)
        power *= 2;
    return power;
}

static inline struct sar_fold sar_fold_of(const struct sar_net *net)
{
    struct sar_fold f = { .power = sar_power_below(net->ranks), .rank = net->rank };
    f.folded = 2 * (net->ranks - f.power);
    if (net->rank >= f.folded)
        f.place = net->rank - f.folded / 2;
    else
        f.place = net->rank % 2 == 1 ? net->rank / 2 : -1;
    return f;
}

/** The rank at a place of the group. */
static inline int sar_fold_rank(const struct sar_fold *f, int place)
{
    return place < f->folded / 2 ? 2 * place + 1 : place + f->folded / 2;
}

/** The rank whose place differs in one bit. */
static inline int sar_fold_peer(const struct sar_fold *f, int distance)
{
    return sar_fold_rank(f, f->place ^ distance);
}

/** Whether this rank hands its elements to the next one, or takes those of the one before. */
static inline bool sar_fold_hands_over(const struct sar_fold *f)
{
    return f->place < 0;
}

static inline bool sar_fold_takes_over(const struct sar_fold *f)
{
    return f->place >= 0 && f->rank < f->folded;
}

#endif
