/* SPDX-License-Identifier: BSD-3-Clause */
/* Top-k selection over all ranks of a communicator: one threshold for a tensor whose parts are on several
 * ranks. */

#ifndef SAR_CORE_GLOBAL_TOPK_H
#define SAR_CORE_GLOBAL_TOPK_H

#include "core/call_args.h"
#include "core/comm_state.h"
#include "vector/topk.h"

/** Size of a selection and of its sample. Equal on all ranks, or the call fails. */
struct sar_topk_params {
    double ratio;           /**< elements to select, over elements of all ranks */
    double sample_fraction; /**< samples per element, raised if the sample is too small */
    uint32_t seed;
};

/** Agrees on a call, and finds the smallest magnitude that the largest elements of all ranks have: between 0,
 * if there are no elements, and that of infinity. Collective; the error is in args->result.error. No call
 * may be in flight on the communicator. */
void sar_global_topk_threshold(struct sar_comm_state *comm_state, struct sar_call_args *args,
                               const struct sar_dgc *dgc, const struct sar_topk_params *params,
                               uint64_t *threshold);

/** Finds the threshold, then selects this rank's elements from it on; for vectors in host memory. The
 * elements are in topk until the next call on the communicator. After an error nothing has changed.
 * Collective.
 * @param capacity  elements that the caller has memory for */
void sar_global_topk_select(struct sar_comm_state *comm_state, struct sar_call_args *args,
                            const struct sar_dgc *dgc, const struct sar_topk_params *params, size_t capacity,
                            struct sar_topk *topk);

#endif
