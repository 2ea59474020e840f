/* SPDX-License-Identifier: BSD-3-Clause */
/* How the elements of a call spread over the length of the vector, of one rank and of unions. */

#ifndef SAR_SCHEME_ENGINE_SPREAD_H
#define SAR_SCHEME_ENGINE_SPREAD_H

#include "scheme/engine/agreed.h"

/** Shares of the elements that lie below shares of the length. Equal on all ranks. */
struct sar_spread {
    double position[SAR_QUANTILE_BINS + 1]; /**< ascending from 0 to 1, shares of the length … */
    double weight[SAR_QUANTILE_BINS + 1];   /**< … and of the elements that lie below */
};

/** Returns true if the agreed quantiles are known, and some rank has elements. */
bool sar_spread_is_known(const struct sar_agreed *agreed);

/** Returns true if the quantiles differ from those of evenly spread elements by no more than chance does. */
bool sar_spread_is_even(const struct sar_agreed *agreed);

/** Returns how the union of k ranks spreads, if that is known. Pure. */
struct sar_spread sar_spread_make(const struct sar_agreed *agreed, double k);

/** Sets what the fullest ranks of each of 2, 4, 8, 16 segments have together, over the rank with most
 * elements: at least 1, and as many as there are segments or ranks if no two ranks have elements in one of
 * them. 0 if the quantiles of a rank with elements are unknown. The segments have equally many elements of
 * the mean rank.
 * @param nnz, quantiles  of each rank */
void sar_segment_imbalance(const uint64_t nnz[], const struct sar_quantiles quantiles[], int ranks,
                           double imbalance[SAR_IMBALANCE_POINTS]);

/** Returns the largest share of the elements that `run` parts in a row have, of n equally long ones. Pure. */
double sar_spread_max_share(const struct sar_spread *spread, int n, int run);

/** Returns the largest share of a union that one of n parts has, where all parts have equally many elements
 * of a rank. Pure.
 * @param rank, all  how the elements of that rank and of the union spread, in the same call */
double sar_spread_max_share_of_even(const struct sar_spread *rank, const struct sar_spread *all, int n);

/** Returns the share of the length below which a share of the elements lies. Pure. */
double sar_spread_position(const struct sar_spread *spread, double weight);

/** Returns the share of the elements between two shares of the length, begin <= end. Pure. */
double sar_spread_share(const struct sar_spread *spread, double begin, double end);

#endif
