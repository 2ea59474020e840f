/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_MPI_EXT_RESULT_H
#define SAR_MPI_EXT_RESULT_H

#include "plan/call.h"

/** Arrays for indices and values. */
struct sar_arrays {
    void *index, *value;
    size_t index_bytes, value_bytes; /**< what they can hold */
};

/** A result. A call writes into `held` when that is large enough, else into `next`; only a call that succeeds
 * makes what it wrote the result. A call that fails leaves it as it was or, when it had begun to write into
 * `held`, empty. */
struct MPIX_Sparse_result_s {
    struct sar_sink sink; /**< first, so that a sink is its result */
    struct sar_arrays held, next;
    bool spoilt; /**< a call writes into `held` before all is well */
    size_t nnz;
    struct sar_shape shape;
    unsigned index_size;      /**< bytes of the caller's index type */
    unsigned next_index_size; /**< the same of a call under way */
};

/** A new, empty result, or NULL without memory. */
struct MPIX_Sparse_result_s *sar_result_make(void);

/** Make the nnz elements of a call that succeeded the result. */
void sar_result_commit(struct MPIX_Sparse_result_s *result, const struct sar_call *call);

/** Forget what a call that failed wrote. */
void sar_result_abandon(struct MPIX_Sparse_result_s *result);

#endif
