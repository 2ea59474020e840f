/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_SCHEME_SINK_H
#define SAR_SCHEME_SINK_H

#include "base/buffer.h"
#include "device/mirror.h"
#include "net/storage.h"
#include "tensor/shape.h"

struct sar_request;

/** Where the outcome goes. */
struct sar_sink {
    /** Make room for nnz elements. The run is zero bytes at first, then as the last call left it: its nnz
     * elements are kept. */
    enum sar_status (*room)(struct sar_sink *sink, struct sar_request *request, size_t nnz,
                            struct sar_run *run);
    /** Take an outcome, that is about to be written into storage, from the ranks of a node; it may be the one
     * handed back. NULL where there is no use for that. */
    void (*adopt)(struct sar_sink *sink, struct sar_storage *storage, const struct sar_run *run);
    /** Give the run arrays for nnz elements in a device's memory, to be written at once: the outcome is there
     * then. Their indices have index_size bytes. NULL for dense buffers. */
    enum sar_status (*lend)(struct sar_sink *sink, const struct sar_memory *memory,
                            const struct sar_shape *shape, size_t nnz, struct sar_run *run);
    struct sar_storage *back; /**< handed back by who calls, or NULL */
    unsigned index_size;      /**< bytes of an index in storage, and of the caller's */
};

/** A sink in arrays that somebody keeps from call to call. */
struct sar_sink_in_buffers {
    struct sar_sink sink; /**< first */
    struct sar_buffer *index, *value;
    size_t nnz; /**< elements that there is room for */
};

struct sar_sink_in_buffers sar_sink_in_buffers(struct sar_buffer *index, struct sar_buffer *value);

#endif
