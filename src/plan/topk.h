/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_PLAN_TOPK_H
#define SAR_PLAN_TOPK_H

#include "plan/call.h"
#include "plan/context.h"
#include "tensor/topk.h"

/** How many of the elements of all ranks are wanted, and how closely they are looked at. */
struct sar_share {
    double ratio, sample;
    uint32_t seed;
};

/** Agree on a call, and find the magnitude that the largest elements of all ranks reach; 0 where there are
 * none, at most infinity's. Collective; the outcome is in call->verdict. Calls on the communicator must be
 * done. */
void sar_topk_find(struct sar_context *context, struct sar_call *call, const struct sar_dgc *of,
                   const struct sar_share *share, uint64_t *least);

/** The same, and then select these elements, of a vector in memory of the host. They are in topk->run until
 * the context's next call; nothing has changed unless call->verdict tells of success. */
void sar_topk_step(struct sar_context *context, struct sar_call *call, const struct sar_dgc *of,
                   const struct sar_share *share, size_t capacity, struct sar_topk *topk);

#endif
