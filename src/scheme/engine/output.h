/* SPDX-License-Identifier: BSD-3-Clause */
/* Destination of a result: the memory that a scheme writes the reduced vector to. It knows vectors and shared
 * results, but no task and no scheme. */

#ifndef SAR_SCHEME_ENGINE_OUTPUT_H
#define SAR_SCHEME_ENGINE_OUTPUT_H

#include "base/buffer.h"
#include "comm/shm/result.h"
#include "device/host_copy.h"
#include "vector/spvec.h"

/** The memory that a scheme asks an output for. */
struct sar_output_need {
    const struct sar_vec_desc *desc; /**< agreed vec_desc: sizes of an index and of an element */
    size_t nnz;                      /**< elements */
    bool early_write;                /**< the memory is written while the call may still fail */
};

/** Vtable of an output, at the beginning of the struct that implements it. */
struct sar_output_dest {
    /** Makes room for need->nnz elements. *vec is zeroed in the first call; later it is as the call before
     * left it, and its vec->nnz elements are kept. */
    enum sar_status (*reserve)(struct sar_output_dest *output, const struct sar_output_need *need,
                               struct sar_spvec *vec);
    /** Takes a reference to a result that the ranks of a node share and are about to write; it may be
     * `returned`. NULL: the output has no use for shared results. */
    void (*use_shared)(struct sar_output_dest *output, struct sar_shm_result *result,
                       const struct sar_spvec *vec);
    /** Allocates arrays for nnz elements in device memory, with indices of index_size bytes; they are
     * written at once and become the result. NULL for dense buffers. */
    enum sar_status (*alloc_device)(struct sar_output_dest *output, const struct sar_device_ctx *ctx,
                                    const struct sar_vec_desc *desc, size_t nnz, struct sar_spvec *vec);
    struct sar_shm_result
        *returned;       /**< shared result of an earlier call, which this call may reuse; or NULL */
    unsigned index_size; /**< bytes of an index in a shared result, and in the caller's arrays */
};

/** An output in two buffers that are kept from call to call. */
struct sar_output_in_buffers {
    struct sar_output_dest output;    /**< first */
    struct sar_buffer *index, *value; /**< not owned */
    size_t capacity;                  /**< elements that both buffers hold */
};

/** Makes an output that reserves memory in the two buffers. */
struct sar_output_in_buffers sar_output_in_buffers(struct sar_buffer *index, struct sar_buffer *value);

#endif
