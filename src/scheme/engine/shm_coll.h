/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives in the shared memory of a node: each rank posts a message at a barrier, and the others read
 * the message and the vector that it tells of. */

#ifndef SAR_SCHEME_ENGINE_SHM_COLL_H
#define SAR_SCHEME_ENGINE_SHM_COLL_H

#include "comm/shm/group.h"
#include "scheme/engine/task.h"

/** Message of one rank at a barrier. `two_level` uses status, fingerprint, buffer and minus_zero only. */
struct sar_shm_coll_msg {
    int64_t status;               /**< enum sar_status of the rank */
    uint64_t fingerprint;         /**< of the call, as in messages */
    uint64_t nnz;                 /**< elements of its input, later of its part */
    uint64_t capacity;            /**< elements that the memory of this vector can hold */
    struct sar_shm_handle buffer; /**< that holds the vector */
    struct sar_shm_handle
        result;             /**< shared result that the caller returned; later, from rank 0, the one to use */
    uint32_t index_size;    /**< bytes of an index in the caller's result; 0: the caller cannot share one */
    uint16_t minus_zero;    /**< 1 if the vector has a -0.0 */
    uint16_t needs_mapping; /**< 1 if others may not have mapped a buffer; stays until reset */
};

/** Arrives at the next barrier with a message.
 * @param name  what the barrier is for, for the watchdog; a string constant */
void sar_shm_coll_post(struct sar_task *task, const char *name, struct sar_shm_coll_msg *msg);

/** Returns the message of a rank of this node at the last barrier. */
const struct sar_shm_coll_msg *sar_shm_coll_msg_of(const struct sar_task *task, int rank);

/** If the status means that shared memory is unavailable, and all ranks may run another scheme: stores the
 * status in msg and returns SAR_OK, so that the call goes on until all ranks know. All ranks must post at
 * the next barrier. */
enum sar_status sar_shm_coll_defer_error(const struct sar_task *task, struct sar_shm_coll_msg *msg,
                                         enum sar_status status);

/** Returns true if the messages of the last barrier are of different calls: a rank has started another plan,
 * and made no consistency check. Equal on all ranks. All of them fail then, and none goes to a further
 * barrier, so that the next calls of all ranks meet again. */
bool sar_shm_coll_calls_differ(const struct sar_task *task);

/** Returns SAR_OK if no message of the last barrier reports a failure, SAR_CORRUPT if one is of another call.
 * If shared memory is unavailable, with no other failure, and the task may retry, all ranks return
 * SAR_SHM_RETRY. Call it before anything that may fail on one rank. */
enum sar_status sar_shm_coll_check_peers(const struct sar_task *task);

/** Returns true if a rank has announced a buffer that others have to map: no rank may close it earlier. */
bool sar_shm_coll_needs_mapping(const struct sar_task *task);

/** Returns the bytes of a vector in memory: indices, then, aligned, the values. */
uint64_t sar_shm_coll_vec_bytes(const struct sar_vec_desc *desc, unsigned index_size, uint64_t nnz);

/** Returns true if the callers of all ranks can use one shared result. */
bool sar_shm_coll_can_share_output(const struct sar_task *task);

/** On rank 0: acquires a shared result for at most nnz elements. Only the pages that are used cost memory. */
enum sar_status sar_shm_coll_choose_result(const struct sar_task *task, struct sar_shm_coll_msg *msg,
                                           size_t nnz, struct sar_shm_result **result);

/** On all ranks, after the barrier: makes the shared result of rank 0 the output, with nnz elements. */
enum sar_status sar_shm_coll_attach_result(struct sar_task *task, size_t nnz, struct sar_shm_result **result);

/** Makes room for nnz elements in a buffer of this rank, and notes it in msg. Keeps the vec->nnz elements of
 * the vector in the buffer.
 * @param desc  of these elements */
enum sar_status sar_shm_coll_grow(const struct sar_task *task, const struct sar_vec_desc *desc,
                                  struct sar_shm_coll_msg *msg, struct sar_shm_buffer *buffer, size_t nnz,
                                  struct sar_spvec *vec);

/** Maps the vector of a rank, as its message tells. Maps a new buffer even if it is empty: a later call,
 * which skips the barrier for mapping, may be the first to find elements there. */
enum sar_status sar_shm_coll_peer_vec(const struct sar_task *task, struct sar_shm_buffer *buffer, int rank,
                                      struct sar_spvec *vec);

#endif
