/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_PLAN_FORECAST_H
#define SAR_PLAN_FORECAST_H

#include "base/config.h"
#include "scheme/scheme.h"

/** A call that nobody makes, on a machine that need not be there. */
struct sar_forecast {
    uint64_t count;
    size_t row; /**< floats in an element */
    double density;
    struct sar_gamma gamma;
    struct sar_machine machine; /**< as measured; its dense_alpha and dense_beta are not looked at */
    int node_ranks;             /**< of each node, but for the last one */
    bool dense_face;
};

/** What all ranks would know of it, by these knobs. MPI_Allreduce takes 2 log2(k) messages and 2 (k-1)/k of
 * the vector between k nodes, of which each of a node's ranks moves its share, and as much within nodes: the
 * least that there is. */
struct sar_agreed sar_forecast_agreed(const struct sar_forecast *forecast, const struct sar_config *config);

/** Bytes that the price of a scheme is made for: what a rank moves in the formats that would be taken.
 *
 * A price is alpha times messages and beta times bytes and gamma times work, so the bytes are its slope
 * along beta. Where two formats cost nearly the same, the slope may lie between theirs. */
double sar_forecast_bytes(const struct sar_scheme *scheme, const struct sar_agreed *agreed);

#endif
