/* SPDX-License-Identifier: BSD-3-Clause */
/* The bound on copies: the memory traffic of a scheme on the ranks of a node, without computing and without
 * barriers.
 *
 * - `shared`: a rank writes its elements to its shared buffer, reads an equal share of all ranks' buffers,
 *   and writes its share of the result.
 * - `two_level`: a rank writes its elements to its shared buffer and reads an equal share of its node's
 *   buffers. Messages follow. Then the rank writes its share of the result to its shared buffer and
 *   continues like `shared`.
 *
 * A dense vector is read first and written last, as in the row `memory`. The result is read before it is
 * written; if the library did not count the result, the shared buffers of all ranks are read instead. A
 * single rank copies its coordinates. */
#ifndef PERF_COPY_BOUND_H
#define PERF_COPY_BOUND_H

#include <mpix_sparse.h>

#include "bench/limits/memory_bound.h"
#include "bench/limits/shm_buffer.h"

struct perf_copy_bound {
    struct perf_memory_bound memory;
    bool levels;           /**< true if messages are in between (two_level) */
    bool reduces_in_place; /**< dense interface: the result is reduced in the vector */
    /** Bytes of this rank. */
    size_t copied_in;              /**< written to the shared buffer before messages */
    size_t gathered;               /**< read from shared buffers before messages */
    size_t shared;                 /**< written to the shared buffer after messages */
    size_t reduced;                /**< read from shared buffers to be reduced */
    size_t result_share;           /**< dense interface: share of the result written to the shared buffer */
    size_t result_bytes;           /**< dense interface: whole result read from shared buffers */
    unsigned long long max_bytes;  /**< maximum over ranks of all bytes read and written in step 0 */
    struct perf_shm_buffer buffer; /**< shared buffer, large enough for each of these */
    bool nt_stores;                /**< copies bypass the caches, as the library's do between sockets */
};

/** True if the reported call had messages between two stages in shared memory. */
bool perf_copy_bound_has_levels(const MPIX_Sparse_report_t *report);

/** Counts the bytes of the reported call and allocates the shared buffer. Collective. */
void perf_copy_bound_open(struct perf_copy_bound *copy_bound, const struct perf_case *c,
                          const struct perf_tensor *tensor, const MPIX_Sparse_report_t *report);

/** Run the copies before messages, and those after messages. Local. */
void perf_copy_bound_before(const struct perf_copy_bound *copy_bound, const struct perf_case *c,
                            const struct perf_step *step, const void *recv);
void perf_copy_bound_after(const struct perf_copy_bound *copy_bound, const struct perf_case *c,
                           const struct perf_step *step, void *recv);

void perf_copy_bound_close(struct perf_copy_bound *copy_bound);

#endif
