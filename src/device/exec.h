/* SPDX-License-Identifier: BSD-3-Clause */
/* Device execution: partitions, encodes, decodes and reduces the sparse vectors of one call in device memory.
 * Only payloads of messages are copied to and from the host. All results stay allocated until the call ends.
 *
 * Functions queue work unless they say that they block. Host memory that queued work uses must stay valid
 * until sar_device_exec_wait. Payloads are copied in streams of a ring, one stream a direction, while kernels
 * run: to the host after encoding, to the device before decoding. Messages are in pinned memory, so that
 * copies are asynchronous. With CUDA-aware MPI, payloads stay in device memory and are not copied. */

#ifndef SAR_DEVICE_EXEC_H
#define SAR_DEVICE_EXEC_H

#include "base/arena.h"
#include "device/allocators.h"
#include "device/ops.h"

/** Memory allocated in a stream. */
struct sar_stream_alloc;

/** SAR_EXEC_ARENAS: arenas for messages, used in rotation. SAR_EXEC_SENDS: payloads encoded at a time. */
enum { SAR_EXEC_ARENAS = 3, SAR_EXEC_SENDS = 2 };

/** The state of one call. Zero bytes are a closed execution. */
struct sar_device_exec {
    const struct sar_device_ctx *ctx; /**< not owned; NULL: closed */
    struct sar_arena *arena;          /**< the call's arena, for bookkeeping */
    struct sar_stream_alloc *allocs;  /**< list of all stream memory */
    struct sar_spvec *output_parts;   /**< parts of the output so far; written by the schemes */
    struct sar_device_flags *flags;   /**< in device memory; NULL before the first kernel that sets flags */
    struct sar_device_flags
        host_flags;                  /**< flags at the last wait; a member, since a copy may outlast a wait */
    uint32_t host_hash;              /**< hash of an index list that was waited for last; as host_flags */
    bool has_queued;                 /**< work is queued that was not waited for */
    struct sar_device_blocks blocks; /**< memory of payloads that MPI accesses on the device */
    bool cuda_aware;                 /**< set by the caller: messages leave from device memory */
    struct sar_pinned_allocator pinned_allocator; /**< memory of `arenas` */
    struct sar_arena *arenas;                     /**< SAR_EXEC_ARENAS arenas for messages */
    struct sar_arena *msg_arena;                  /**< the arena in use */
    struct sar_pinned_ring *ring;                 /**< streams of payloads; NULL before the first payload */
    size_t sends, receives;                       /**< payloads so far, each direction */
    const void *sent[SAR_EXEC_SENDS];             /**< last payloads encoded, as passed to encode */
};

/** Opens an execution, which must not move until it is closed. Local.
 * @param arenas  SAR_EXEC_ARENAS arenas without memory
 * @param limit   most bytes pinned for arenas of all executions */
void sar_device_exec_open(struct sar_device_exec *exec, const struct sar_device_ctx *ctx,
                          struct sar_arena *arena, struct sar_arena *arenas, size_t limit);

/** Waits for queued work, and releases all memory, also that of the arenas. Does nothing if exec is
 * closed. */
void sar_device_exec_close(struct sar_device_exec *exec);

/** Selects the arena for the messages of round `round`, and recycles its memory. */
void sar_device_exec_next_arena(struct sar_device_exec *exec, unsigned round);

/** Waits for queued work. Returns SAR_CORRUPT if a decoded payload was invalid. */
enum sar_status sar_device_exec_wait(struct sar_device_exec *exec);

/** Waits until a payload is encoded. Does not wait for payloads encoded after it. */
enum sar_status sar_device_exec_wait_encoded(struct sar_device_exec *exec, const void *payload);

/** Splits the marked elements, as sar_device_compact_parts. Sets *minus_zero if a value is -0.0. Blocks. */
enum sar_status sar_device_exec_compact_parts(struct sar_device_exec *exec, const struct sar_pack_args *args,
                                              const struct sar_partition_layout *layout,
                                              struct sar_spvec *vec, unsigned long long first[],
                                              bool *minus_zero);

/** Splits a sparse vector in device memory, with fewer than 2^32 elements, as sar_device_compact_parts. Its
 * indices have desc->index_size bytes. Blocks. */
enum sar_status sar_device_exec_partition(struct sar_device_exec *exec, const struct sar_vec_desc *desc,
                                          const struct sar_partition_layout *layout,
                                          const struct sar_spvec *from, struct sar_spvec *vec,
                                          unsigned long long first[]);

/** Encodes a sparse vector as a payload in host memory, in bytes that are equal on all ranks. */
enum sar_status sar_device_exec_encode(struct sar_device_exec *exec, const struct sar_vec_desc *desc,
                                       const struct sar_spvec *vec, const struct sar_encoded *payload);

/** Decodes a payload in host memory. If it is invalid, sar_device_exec_wait returns SAR_CORRUPT, and the
 * indices of vec are in range all the same. Of values alone, vec keeps its indices. */
enum sar_status sar_device_exec_decode(struct sar_device_exec *exec, const struct sar_vec_desc *desc,
                                       const struct sar_encoded *payload, struct sar_spvec *vec);

/** As sar_device_exec_encode, with the payload in memory of exec->blocks. */
enum sar_status sar_device_exec_encode_in_place(struct sar_device_exec *exec, const struct sar_vec_desc *desc,
                                                const struct sar_spvec *vec,
                                                const struct sar_encoded *payload);

/** As sar_device_exec_decode, with the payload in memory of exec->blocks. The message must have arrived. */
enum sar_status sar_device_exec_decode_in_place(struct sar_device_exec *exec, const struct sar_vec_desc *desc,
                                                const struct sar_encoded *payload, struct sar_spvec *vec);

/** Allocates device memory for n items of `size` bytes, until the call ends. *memory is not NULL, even for no
 * items. */
enum sar_status sar_device_exec_alloc(struct sar_device_exec *exec, size_t n, size_t size, void **memory);

/** Copies pieces between two arrays in device memory. */
enum sar_status sar_device_exec_copy_strided(struct sar_device_exec *exec,
                                             const struct sar_strided_copy *copy);

/** Computes sar_msg_index_hash of a vector with indices of 4 bytes, in new device memory. */
enum sar_status sar_device_exec_hash_indices(struct sar_device_exec *exec, const struct sar_spvec *vec,
                                             uint32_t **hash);

/** Copies such a hash to the host. Blocks. */
enum sar_status sar_device_exec_fetch_hash(struct sar_device_exec *exec, const uint32_t *hash,
                                           uint32_t *value);

/** Makes sar_device_exec_wait return SAR_CORRUPT unless such a hash is the expected one. */
enum sar_status sar_device_exec_expect_hash(struct sar_device_exec *exec, const uint32_t *hash,
                                            uint32_t expected);

/** Copies a sparse vector from host to device memory. */
enum sar_status sar_device_exec_upload(struct sar_device_exec *exec, const struct sar_vec_desc *desc,
                                       struct sar_spvec *vec);

/** Reduces n sparse vectors to the bits of sar_reduce, except for the bits of NaNs. Blocks, but does not
 * check the flags. */
enum sar_status sar_device_exec_reduce(struct sar_device_exec *exec, const struct sar_vec_desc *desc,
                                       const struct sar_spvec vecs[], size_t n, struct sar_spvec *out);

/** As sar_device_exec_reduce, into device arrays of the caller, which must be large enough. */
enum sar_status sar_device_exec_reduce_into(struct sar_device_exec *exec, const struct sar_vec_desc *desc,
                                            const struct sar_spvec vecs[], size_t n, struct sar_spvec *out);

/** Converts slots of one part to indices, as sar_partition_restore_indices. */
enum sar_status sar_device_exec_slots_to_indices(struct sar_device_exec *exec,
                                                 const struct sar_vec_desc *desc,
                                                 const struct sar_map_part *part, struct sar_spvec *vec);

#endif
