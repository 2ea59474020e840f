/* SPDX-License-Identifier: BSD-3-Clause */
/* Accelerators: the interface of the plug-in libmpix_sparse_cuda.so, which works on memory that the host
 * cannot access. The library opens the plug-in the first time it looks up an address while a CUDA driver is
 * loaded in the process. A program without a CUDA driver loads nothing. */

#ifndef SAR_DEVICE_ACCELERATOR_H
#define SAR_DEVICE_ACCELERATOR_H

#include "base/status.h"
#include "device/encoded.h"
#include "hash/partition_map.h"
#include "vector/dgc.h"
#include "vector/canonicalize.h"
#include "vector/packed_vec.h"

/** Version of struct sar_accelerator. A plug-in of another version is not used. */
enum { SAR_ACCELERATOR_VERSION = 10 };

/** Symbol of the plug-in's struct sar_accelerator. */
#define SAR_ACCELERATOR_SYMBOL "sar_accelerator"

/** A dense vector in device memory, or the description of coordinates. */
struct sar_device_vec {
    const struct sar_vec_desc *desc;
    void *buf; /**< dense values; NULL for coordinates */
    int device_id;
    void *stream; /**< stream that work is queued in */
};

/** Elements of a dense vector, one bit each, in device memory. */
struct sar_nonzero_mask {
    void *bits; /**< owned; freed by free_mask */
    size_t nnz; /**< bits set */
};

/** Split of a vector into parts by a map, and of each part into segments. */
struct sar_partition_layout {
    struct sar_partition_map map;
    uint64_t part_slots; /**< slots of a part in one segment, a multiple of 64 */
    uint32_t segments;
    struct sar_hash_stats *hash; /**< increased by hierarchical hashing; or NULL */
};

/** Selection of elements, as by sar_topk_select. */
struct sar_topk_limit {
    uint64_t min_magnitude; /**< smallest magnitude selected */
    size_t capacity;        /**< most elements selected */
};

/** Streams of the plug-in, so that copies overlap with the work that callers queue; events; and memory that
 * is allocated and released in the order of a stream. */
struct sar_stream_ops {
    enum sar_status (*create)(int device_id, void **stream);
    void (*destroy)(int device_id, void *stream);
    enum sar_status (*create_event)(int device_id, void **event);
    void (*destroy_event)(int device_id, void *event);
    /** Records in the event all work queued in the stream so far. */
    enum sar_status (*record)(int device_id, void *event, void *stream);
    /** Makes later work of the stream wait for the event. */
    enum sar_status (*wait_event)(int device_id, void *event, void *stream);
    /** Blocks until the event is complete. */
    enum sar_status (*sync_event)(int device_id, void *event);
    /** Allocates from the device's memory pool, which takes no time once the pool has grown. */
    enum sar_status (*alloc)(int device_id, size_t bytes, void *stream, void **memory);
    void (*release)(int device_id, void *memory, void *stream);
};

/** One part of a map. */
struct sar_map_part {
    struct sar_partition_map map;
    uint32_t part;
};

/** A copy of pieces of equal size, at equal distances in both arrays. */
struct sar_strided_copy {
    void *to;
    const void *from;
    size_t to_stride, from_stride; /**< bytes from one piece to the next */
    size_t piece_bytes, pieces;
};

/** Results that kernels report, each 0 or 1. */
struct sar_device_flags {
    uint32_t corrupt;    /**< a decoded payload was invalid */
    uint32_t minus_zero; /**< a value is -0.0 */
};

/** Functions of a plug-in. device_id is the number of a device. stream is a stream of the plug-in, or NULL
 * for the device's default stream. Functions that queue work return before the work is done. */
struct sar_accelerator {
    unsigned version; /**< first member in all versions */
    const char *name;
    /** Sets *device_id to the device whose memory the address is in, or to -1 for host memory. Fails if the
     * device cannot answer. */
    enum sar_status (*find_device)(const void *address, int *device_id);
    enum sar_status (*allocate)(int device_id, size_t bytes, void **memory);
    void (*release)(int device_id, void *memory);
    /** Allocates pinned host memory. */
    enum sar_status (*allocate_pinned)(int device_id, size_t bytes, void **memory);
    void (*release_pinned)(int device_id, void *memory);
    /** Queues a copy between two arrays in any memory. */
    enum sar_status (*copy)(int device_id, void *to, const void *from, size_t bytes, void *stream);
    /** Queues a copy of pieces between two arrays in device memory. */
    enum sar_status (*copy_strided)(int device_id, const struct sar_strided_copy *copy, void *stream);
    /** Queues a call of a host function, which must not call CUDA. */
    enum sar_status (*host_callback)(int device_id, void (*function)(void *), void *argument, void *stream);
    /** Blocks until all queued work is done. */
    enum sar_status (*wait)(int device_id, void *stream);
    /** Returns SAR_OK if the stream accepts work. Returns SAR_CAPTURED if work would be captured into a
     * graph, or if the default stream would wait for a captured stream. Leaves the capture valid. */
    enum sar_status (*check_capture)(int device_id, void *stream);
    /** Copies coordinates to a sparse vector in any memory, with indices of the caller's size, and sets
     * vec->nnz. Sorts and reduces the elements unless the indices ascend and are below the count. Turns
     * values for a logical op into 0 or 1. Sets *ascends if the indices of vec ascend and are below the
     * count. Blocks. */
    enum sar_status (*canonicalize)(const struct sar_device_vec *vector, const struct sar_coo_args *coo,
                                    struct sar_spvec *vec, bool *ascends);
    /** Marks the elements that have a bit set. The caller frees the mask. Blocks. */
    enum sar_status (*find_nonzeros)(const struct sar_device_vec *vector, struct sar_nonzero_mask *mask);
    /** Frees a mask, in the order of the stream. */
    void (*free_mask)(const struct sar_device_vec *vector, struct sar_nonzero_mask *mask);
    /** Queues a copy of the marked elements to a sparse vector of mask->nnz elements in any memory. */
    enum sar_status (*compact)(const struct sar_device_vec *vector, const struct sar_nonzero_mask *mask,
                               const struct sar_spvec *vec);
    /** As compact, in the order of segments, then parts, then slots. Indices are slots of 4 bytes that count
     * from the start of the segment. Part p of segment s begins at element first[s * parts + p]. */
    enum sar_status (*compact_parts)(const struct sar_device_vec *vector, const struct sar_nonzero_mask *mask,
                                     const struct sar_partition_layout *layout, const struct sar_spvec *vec,
                                     unsigned long long first[]);
    /** Queues writing n sparse vectors, in any memory, to the dense vector. With clear, zeroes all other
     * values. */
    enum sar_status (*scatter)(const struct sar_device_vec *vector, const struct sar_spvec vecs[], size_t n,
                               bool clear);
    /** Queues packing the elements that have a bit set into pinned memory. The work sets *packed->nnz, also
     * in pinned memory, last. */
    enum sar_status (*pack)(const struct sar_device_vec *vector, const struct sar_packed_vec *packed);
    /** Queues unpacking to the dense vector the elements that `packed` holds when the work runs. */
    enum sar_status (*unpack)(const struct sar_device_vec *vector, const struct sar_packed_vec *packed);
    /** Does the work of sar_dgc_sample. dgc->values are in device memory, magnitudes in host memory.
     * Blocks. */
    enum sar_status (*sample)(const struct sar_device_vec *vector, const struct sar_dgc *dgc, size_t n,
                              uint32_t seed, uint64_t *magnitudes);
    /** Advances all values (vector/dgc.h) and marks those that the limit selects. The caller frees the mask.
     * Blocks. */
    enum sar_status (*select)(const struct sar_device_vec *vector, const struct sar_dgc *dgc,
                              const struct sar_topk_limit *limit, struct sar_nonzero_mask *mask);
    /** Queues zeroing the marked values, and the velocities whose magnitudes are at least `masked`. */
    enum sar_status (*clear_selected)(const struct sar_device_vec *vector, const struct sar_dgc *dgc,
                                      uint64_t masked, const struct sar_nonzero_mask *mask);

    /* The functions below work on sparse vectors, payloads and flags in device memory (device/exec.h). The
     * count of the description is the number of slots; vector->buf is NULL. */

    /** Queues setting flags->minus_zero if a value of vec is -0.0. */
    enum sar_status (*find_minus_zero)(const struct sar_device_vec *vector, const struct sar_spvec *vec,
                                       struct sar_device_flags *flags);
    /** Queues encoding vec as a payload, byte for byte as the host encodes it. */
    enum sar_status (*encode)(const struct sar_device_vec *vector, const struct sar_spvec *vec,
                              const struct sar_encoded *payload);
    /** Queues decoding a payload: writes indices to vec->index, and points vec->value into the payload.
     * Leaves vec->index as it is for a payload of values alone. Indices are below the count for any payload.
     * Sets flags->corrupt if encode cannot have written the payload. */
    enum sar_status (*decode)(const struct sar_device_vec *vector, const struct sar_encoded *payload,
                              struct sar_spvec *vec, struct sar_device_flags *flags);
    /** Reduces n sparse vectors in their order, bit for bit as the host, to out, which has room for the
     * elements of all, and sets out->nnz. Blocks. */
    enum sar_status (*reduce)(const struct sar_device_vec *vector, const struct sar_spvec vecs[], size_t n,
                              struct sar_spvec *out);
    /** Queues splitting a sparse vector of fewer than 2^32 elements, with indices of the whole vector, as
     * compact_parts splits marked elements. `first` is in host memory. */
    enum sar_status (*partition)(const struct sar_device_vec *vector,
                                 const struct sar_partition_layout *layout, const struct sar_spvec *from,
                                 const struct sar_spvec *to, unsigned long long first[]);
    /** Queues converting slots of 4 bytes of one part to indices of the description's size. */
    enum sar_status (*slots_to_indices)(const struct sar_device_vec *vector, const struct sar_map_part *part,
                                        const struct sar_spvec *vec, void *index);

    /** Queues computing sar_msg_index_hash of a vector with indices of 4 bytes. */
    enum sar_status (*hash_indices)(const struct sar_device_vec *vector, const struct sar_spvec *vec,
                                    uint32_t *hash);
    /** Queues setting flags->corrupt unless the hash is the expected one. */
    enum sar_status (*expect_hash)(const struct sar_device_vec *vector, const uint32_t *hash,
                                   uint32_t expected, struct sar_device_flags *flags);

    /** Frees all memory that the plug-in caches. The plug-in stays usable. */
    void (*cleanup)(void);

    const struct sar_stream_ops *stream_ops;
};

/** Finds the plug-in and the device whose memory the address is in; *accelerator is NULL for host memory.
 * Returns SAR_UNSUPPORTED for device memory without a plug-in. If the device has failed, returns its error
 * and still sets *accelerator, since the host may be unable to access the memory. Thread-safe. */
enum sar_status sar_accelerator_find(const void *address, const struct sar_accelerator **accelerator,
                                     int *device_id);

/** True if both addresses are in host memory. Searches for a driver at most once. Thread-safe. */
bool sar_accelerator_both_on_host(const void *first, const void *second);

/** True if the address is in the program's image, its heap or the caller's stack, which are host memory
 * whatever is loaded. False proves nothing. Takes nanoseconds. Thread-safe. */
bool sar_host_address_is_certain(const void *address);

/** Frees the memory that the plug-in caches, if there is a plug-in. */
void sar_accelerator_cleanup(void);

#endif
