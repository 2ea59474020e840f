/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on coordinates and dense vectors in device memory: copies of selected elements to and from the
 * host, and selection. Functions block until the work is done, unless they say that they queue or start
 * it. */

#ifndef SAR_DEVICE_OPS_H
#define SAR_DEVICE_OPS_H

#include "device/pinned_ring.h"

/** Canonicalizes coordinates to copy->device, as struct sar_accelerator says. The caller closes the copy,
 * also on failure. */
enum sar_status sar_device_canonicalize(const struct sar_device_ctx *ctx, const struct sar_vec_desc *desc,
                                        const struct sar_coo_args *coo, struct sar_d2h_copy *copy,
                                        bool *ascends);

/** Frees a mask, in the order of the stream. The mask may be empty. */
void sar_device_free_mask(const struct sar_device_ctx *ctx, struct sar_nonzero_mask *mask);

/** Marked elements of a dense vector, and the memory to copy them with. */
struct sar_pack_args {
    const struct sar_device_ctx *ctx;
    const struct sar_vec_desc *desc;
    void *buf;
    const struct sar_nonzero_mask *mask;
    struct sar_arena *arena; /**< memory of the host's sparse vector */
    size_t block_bytes;      /**< bytes of a block of the ring */
};

/** Copies the marked elements to copy->host. The caller closes the copy, also on failure. */
enum sar_status sar_device_compact(const struct sar_pack_args *args, struct sar_d2h_copy *copy);

/** Splits the marked elements by segments and parts, as struct sar_accelerator says, and starts their copy to
 * copy->host.
 * @param first  parts * segments + 1 positions; the last one is the number of elements */
enum sar_status sar_device_compact_parts(const struct sar_pack_args *args,
                                         const struct sar_partition_layout *layout, struct sar_d2h_copy *copy,
                                         unsigned long long first[]);

/** Queues splitting the marked elements, as sar_device_compact_parts, to a sparse vector in any memory. */
enum sar_status sar_device_queue_compact_parts(const struct sar_pack_args *args,
                                               const struct sar_partition_layout *layout,
                                               const struct sar_spvec *vec, unsigned long long first[]);

/** Sparse vectors that are written to a dense vector. */
struct sar_scatter_src {
    const struct sar_spvec *vecs;
    size_t n;
    bool clear;     /**< zero all other values */
    bool on_device; /**< the vectors are in device memory */
};

/** The dense vector in device memory. */
struct sar_scatter_dst {
    const struct sar_device_ctx *ctx;
    const struct sar_vec_desc *desc;
    void *buf;
    size_t block_bytes; /**< bytes of a block of the ring */
};

/** Writes the sparse vectors to the dense vector. Those in host memory pass through a ring: one block is
 * copied while a kernel scatters another. */
enum sar_status sar_device_scatter(const struct sar_scatter_dst *dst, const struct sar_scatter_src *src);

/** An array in host memory and its destination in device memory. */
struct sar_h2d_copy {
    void *dst;
    const void *src;
    size_t bytes;
};

/** Copies n arrays to the device through a ring. block_bytes 0: blocks as large as the largest array. */
enum sar_status sar_device_upload(const struct sar_device_ctx *ctx, size_t block_bytes,
                                  const struct sar_h2d_copy arrays[], size_t n);

/** Does the work of sar_topk_select on values in device memory, and if there is a gradient that of
 * sar_dgc_clear. The values may have changed even on failure.
 * @param vec  in: device arrays for limit->capacity elements; out: the elements selected, with indices of
 *             desc->index_size bytes */
enum sar_status sar_device_select(const struct sar_device_ctx *ctx, const struct sar_vec_desc *desc,
                                  const struct sar_dgc *dgc, const struct sar_topk_limit *limit,
                                  struct sar_spvec *vec);

/** A source of a task's elements, in place of its input: a vector in device memory that is split there. */
struct sar_device_partition {
    /** Sets parts[] to this rank's elements of one segment of each part, with slots of 4 bytes that count
     * from the start of the segment. Called for the segments in order, with equal layouts. The first call
     * sets the task's input.nnz. A call that finds a -0.0 sets the task's minus_zero. */
    enum sar_status (*next_segment)(struct sar_device_partition *partition,
                                    const struct sar_partition_layout *layout, uint32_t segment,
                                    struct sar_spvec parts[]);
    void *owner, *state; /**< for next_segment only */
};

#endif
