/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_MPI_EXT_RESULT_H
#define SAR_MPI_EXT_RESULT_H

#include "plan/call.h"

/** Arrays for indices and values. */
struct sar_arrays {
    void *index, *value;
    size_t index_bytes, value_bytes; /**< what they can hold; 0 in storage */
    struct sar_storage *storage;     /**< that they are in, which other ranks hold too, or NULL */
};

/** A result. A call writes into `held` when that is large enough, else into `next`; only a call that succeeds
 * makes what it wrote the result. A call that fails leaves it as it was or, when it had begun to write into
 * `held`, empty. */
struct MPIX_Sparse_result_s {
    struct sar_sink sink; /**< first, so that a sink is its result */
    struct sar_arrays held, next;
    struct sar_memory memory; /**< that the caller is shown the result in */
    struct sar_arrays shown;  /**< there, where that is not the host's: copies of `held`, or lent */
    bool taken;               /**< by a call under way */
    bool spoilt;              /**< a call writes into `held` or `shown` before all is well */
    bool lent;                /**< a call under way has its outcome in `shown`, and nothing in `held` */
    size_t nnz;
    struct sar_shape shape;
    unsigned index_size; /**< bytes of the caller's index type; sink.index_size is that of a call under way */
};

/** Where a call puts its outcome. */
struct sar_into {
    MPIX_Sparse_result *result; /**< the caller's */
    struct MPIX_Sparse_result_s *made;
    bool fresh; /**< *result is null until the call succeeds */
};

/** Give a call of coordinates its sink: the caller's result or a new one. What is wrong goes into
 * call->verdict. */
void sar_result_open(struct sar_into *into, MPIX_Sparse_result *result, struct sar_call *call);

/** Make what a call wrote the result, or, when its code is an error, forget it. Returns the code, or that
 * of what went wrong here, which it raises. */
int sar_result_close(MPI_Comm comm, const char *function, struct sar_into *into, const struct sar_call *call,
                     int code);

#endif
