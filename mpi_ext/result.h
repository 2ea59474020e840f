/* SPDX-License-Identifier: BSD-3-Clause */
/* Results of coordinate calls. A guard connects a call to its result, so that a call that fails leaves the
 * caller's result unchanged or empty. All functions are local. */

#ifndef SAR_MPI_EXT_RESULT_H
#define SAR_MPI_EXT_RESULT_H

#include "core/active_call.h"

/** Arrays of indices and values. */
struct sar_result_arrays {
    void *index, *value;
    size_t index_bytes, value_bytes; /**< capacities; 0 in shared memory */
    struct sar_shm_result *shm;      /**< shared memory that holds the arrays, with a reference; or NULL */
};

/** A result. A call writes into `current` if its arrays are large enough, else into `next`; a call that
 * succeeds makes `next` the current arrays. A call that fails leaves the result unchanged or, if it had
 * begun to write into `current`, empty. */
struct MPIX_Sparse_result_s {
    struct sar_output_dest output;          /**< first, so that an output can be cast to its result */
    struct sar_result_arrays current, next; /**< in host memory */
    struct sar_device_ctx location;         /**< memory in which the caller gets the arrays */
    struct sar_result_arrays device_copy;   /**< copy of `current` in device memory, or written by the call */
    bool in_use;                            /**< by a call that is not complete */
    bool overwritten;         /**< the call in progress writes into `current` or `device_copy` */
    bool on_device;           /**< the call in progress writes into `device_copy`, and not into `current` */
    size_t nnz;               /**< elements */
    struct sar_vec_desc desc; /**< of the call that made the result */
    unsigned index_size;      /**< bytes of an index; output.index_size is that of the call in progress */
};

/** Connects a call to its result from sar_result_guard_open to sar_result_guard_close. */
struct sar_result_guard {
    MPIX_Sparse_result *handle;          /**< the caller's argument */
    struct MPIX_Sparse_result_s *result; /**< *handle or a new result; NULL without memory */
    bool is_new;                         /**< *handle is set only if the call succeeds */
};

/** Sets the output of a coordinate call to the caller's result, or to a new one if *result is null. Sets
 * call->result.error if the argument is invalid or memory is short. */
void sar_result_guard_open(struct sar_result_guard *guard, MPIX_Sparse_result *result,
                           struct sar_call_args *call);

/** Commit the output of a call if `code` is MPI_SUCCESS, else discard it. Returns `code`, or the code of an
 * error in the commit, which is raised on comm. */
int sar_result_guard_close(MPI_Comm comm, const char *function, struct sar_result_guard *guard,
                           const struct sar_call_args *call, int code);

#endif
