/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_PLAN_CALL_H
#define SAR_PLAN_CALL_H

#include "plan/context.h"

/** What went wrong, the same on all ranks where `agreed`. */
struct sar_verdict {
    enum sar_status status;
    bool agreed;
    int64_t value;     /**< the value at fault */
    int64_t rank;      /**< the rank it is on */
    int64_t low, high; /**< for arguments that differ: the least and the largest, and who has them */
    int64_t low_rank, high_rank;
};

/** One call of the allreduce, from arguments that the MPI face has looked at. */
struct sar_call {
    int64_t field[SAR_FIELDS]; /**< what must be equal on all ranks */
    struct sar_shape shape;    /**< meaningful when native */
    bool native;               /**< type and op are the library's own */
    bool dense_face, in_place;
    struct sar_coo coo;            /**< coordinates in */
    struct sar_dense_call buffers; /**< or dense buffers in and out */
    struct sar_sink *sink;         /**< where coordinates go; NULL for dense buffers */
    struct sar_verdict verdict;    /**< in: what is wrong on this rank; out: what is wrong at all */
    size_t nnz_out;                /**< elements in the sink */
};

/** Agree, profile, select, run. Collective; blocking. The outcome is in call->verdict. */
void sar_call_run(struct sar_context *context, struct sar_call *call);

/** Agree, and profile the dense buffer call->buffers.sendbuf. Collective; the outcome is in call->verdict. */
void sar_call_profile(struct sar_context *context, struct sar_call *call, uint32_t slots,
                      struct sar_profile *profile);

#endif
