/* SPDX-License-Identifier: BSD-3-Clause */
/* Prices of schemes for a described call on a described machine. For bench/ and tests only. */

#ifndef SAR_CORE_FORECAST_H
#define SAR_CORE_FORECAST_H

#include "base/config.h"
#include "scheme/scheme.h"

/** A call of float sums, and the machine that it runs on. */
struct sar_forecast {
    uint64_t count;
    size_t row;     /**< floats per element */
    double density; /**< elements present over count, on every rank */
    struct sar_densification gamma;
    struct sar_machine machine; /**< as measured; dense_alpha and dense_beta are ignored. thread_ratio is that
                                   of large work, or 0: one thread */
    int node_ranks;             /**< ranks per node, except the last */
    bool dense_face;
};

/** Returns the inputs of the cost model for this call and these settings. MPI_Allreduce is assumed optimal:
 * it takes 2 log2(k) messages and 2 (k-1)/k of the vector between k nodes, shared by the ranks of each
 * node, and likewise within nodes. */
struct sar_agreed sar_forecast_agreed(const struct sar_forecast *forecast, const struct sar_config *config);

/** Returns the bytes that a rank sends or receives according to a scheme's price, in the formats that the
 * scheme selects. 0 for one rank.
 *
 * A price is alpha * messages + beta * bytes + gamma * work, so the bytes are its derivative by beta. If
 * two formats cost nearly the same, the result may lie between theirs. */
double sar_forecast_bytes(const struct sar_scheme *scheme, const struct sar_agreed *agreed);

/** Slices of rows, and the messages that a rank sends of them. */
struct sar_forecast_slices {
    int columns;                   /**< most ranks that share a row; 1: each row has one owner */
    double messages;               /**< of push and pull, in all segments */
    double push_bytes, pull_bytes; /**< of one message of a segment, the largest, header included */
};

/** Returns the slices of rows that a call of `balanced` or `two_level` has, and their messages. */
struct sar_forecast_slices sar_forecast_slices(const struct sar_scheme *scheme,
                                               const struct sar_agreed *agreed);

#endif
