/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared memory group of a node: a barrier, and buffers in which each rank puts data for the others to
 * read. */

#ifndef SAR_COMM_SHM_GROUP_H
#define SAR_COMM_SHM_GROUP_H

#include <stdatomic.h>

#include "comm/comm.h"
#include "comm/shm/region.h"
#include "comm/watchdog.h"

/** SAR_SHM_MSG_BYTES: most bytes of a rank's message at a barrier. SAR_SHM_BUFFERS: buffers of each rank; the
 * last is for the input of `two_level`, the others are for `shared`, with which `two_level` ends.
 * SAR_SHM_FREE_RESULTS: results kept for reuse. SAR_SHM_CONTROL_BYTES: bytes of a rank's control region
 * before its first, small buffers. SAR_SHM_MIN_BUFFER_BYTES: bytes of such a buffer, and least bytes of any
 * other. */
enum {
    SAR_SHM_MSG_BYTES = 248,
    SAR_SHM_BUFFERS = 4,
    SAR_SHM_FREE_RESULTS = 2,
    SAR_SHM_CONTROL_BYTES = 4096,
    SAR_SHM_MIN_BUFFER_BYTES = 64 << 10
};

/** A rank that waits for shared memory spins so often before it yields the processor, and lets MPI make
 * progress each time it has spun so often, since another rank may wait for a message. */
enum { SAR_CACHELINE_SPINS_TO_YIELD = 4000, SAR_CACHELINE_SPINS_TO_PROBE = 64 };

/** The type of the messages at a barrier. Ranks whose calls differ may meet there with messages of different
 * types. */
enum sar_shm_barrier_kind { SAR_SHM_BARRIER_AGREE, SAR_SHM_BARRIER_SCHEME };

/** A buffer of this rank, and the mappings of the same buffer of the other ranks. */
struct sar_shm_buffer {
    struct sar_shm_region own;
    struct sar_shm_handle handle;           /**< of own */
    struct sar_shm_region *attached;        /**< of each other rank; mapped when first needed */
    struct sar_shm_handle *attached_handle; /**< of each region in `attached` */
    uint64_t announced;                     /**< number of the barrier at which the handle is sent, or 0 */
};

struct sar_shm_result;

/** Used by one call at a time. Ranks are numbered within the node (sar_nodes.local_rank). */
struct sar_shm_group {
    int rank, ranks;
    struct sar_shm_buffer control; /**< barrier slots, and the small buffers behind them */
    struct sar_shm_buffer buffers[SAR_SHM_BUFFERS];
    unsigned buffer_index;     /**< 0 or 1: the buffer that the next call of `shared` writes */
    uint64_t barrier_seq;      /**< number of the last barrier that this rank has arrived at */
    bool announcing;           /**< other ranks still have to map a buffer of this rank */
    bool shm_failed;           /**< this rank had no shared memory in the last call; not all ranks know */
    enum sar_status shm_error; /**< why a rank has no shared memory, as last received, or SAR_OK */
    enum sar_shm_barrier_kind barrier_kind; /**< of this rank's message at that barrier */
    bool kinds_differ;                      /**< another rank's message there is of another kind */
    const char *barrier_name;               /**< static text for warnings */
    struct sar_wait_timer timer;
    int n_arrived;           /**< the ranks below this number have arrived at the barrier */
    bool numa_remote;        /**< ranks are on different sockets: results bypass the caches (nt_store.h) */
    bool latency_enabled;    /**< numa_distance.c can measure latency on this node */
    uint64_t latency_runs;   /**< measurements of latency so far */
    uint64_t blocking_calls; /**< calls so far in which all ranks waited */
    struct sar_shm_result *free_list[SAR_SHM_FREE_RESULTS]; /**< written by result.c only */
};

/** Arrives at the next barrier, with a message for the other ranks. All ranks of the group arrive at the same
 * barriers in the same order. What a rank has written before it arrives is visible to all ranks behind the
 * barrier.
 * @param name static text for warnings */
void sar_shm_barrier_arrive(struct sar_shm_group *group, enum sar_shm_barrier_kind kind, const char *name,
                            const void *msg, size_t bytes);

/** True if all ranks have arrived at this rank's last barrier, or there is no group. If `block`, waits for
 * them. */
bool sar_shm_barrier_test(const struct sar_comm *comm, bool block);

/** True if the messages of all ranks at the last barrier are of one kind. If not, none may be read but this
 * rank's own. Equal on all ranks. */
static inline bool sar_shm_barrier_kinds_match(const struct sar_shm_group *group)
{
    return !group->kinds_differ;
}

/** Returns a rank's message at the last barrier. Valid until this rank arrives at the next one. */
const void *sar_shm_barrier_msg(const struct sar_shm_group *group, int rank);

/** Returns a counter of a rank, alone on its cache line, for sar_cacheline_latency_measure.
 * @param group  the struct sar_shm_group */
atomic_uint_least64_t *sar_shm_group_cacheline(const void *group, int rank);

/** Returns a word of a control region, which tells the region from other memory. */
uint64_t *sar_shm_control_token(void *control);

/** Allocates the arrays of a buffer in a group of so many ranks. sar_shm_buffer_close frees them. Local. */
enum sar_status sar_shm_buffer_open(struct sar_shm_buffer *buffer, int ranks);

/** Unmaps the regions of a buffer, and frees its arrays. Local. */
void sar_shm_buffer_close(struct sar_shm_buffer *buffer, int ranks);

/** Gives a buffer of this rank at least `bytes` bytes. A new region replaces its content. Local. */
enum sar_status sar_shm_buffer_reserve(struct sar_shm_buffer *buffer, size_t bytes);

/** Does the same, but keeps the content: if there is a new region, *old_region becomes the old one, for the
 * caller to unmap; else *old_region becomes empty. Local. */
enum sar_status sar_shm_buffer_grow(struct sar_shm_buffer *buffer, size_t bytes,
                                    struct sar_shm_region *old_region);

/** True if other ranks still have to map a buffer of this rank. Then the buffer counts as announced: its
 * handle must be sent at the next barrier. Local. */
bool sar_shm_buffer_announce(struct sar_shm_group *group, struct sar_shm_buffer *buffer);

/** Closes the file descriptors of the buffers announced at the barrier before the last one, which all ranks
 * have mapped since. Called behind a barrier at which all ranks succeeded. Local. */
void sar_shm_group_close_announced(struct sar_shm_group *group);

/** Frees the buffers of this rank that other ranks may not have mapped. Local. */
void sar_shm_group_discard_announced(struct sar_shm_group *group);

/** Notes why a rank of the group cannot share memory. */
void sar_shm_group_set_error(struct sar_shm_group *group, enum sar_status status);

/** Returns why a rank of the group could not share memory, last; SAR_OK if none failed or group is NULL. */
enum sar_status sar_shm_group_error(const struct sar_shm_group *group);

/** Notes that this rank could not share memory in a call, and that not all ranks know. */
void sar_shm_group_set_failed(struct sar_shm_group *group, bool failed);

/** Returns the note of sar_shm_group_set_failed; false if group is NULL. */
bool sar_shm_group_failed(const struct sar_shm_group *group);

/** Returns the buffer for this rank's input in the current call. */
struct sar_shm_buffer *sar_shm_group_input_buffer(struct sar_shm_group *group);

/** Makes the other of two buffers the input buffer of the next call: ranks may still read the current one. */
void sar_shm_group_flip_buffer(struct sar_shm_group *group);

/** Makes the first buffer the input buffer of the next call. All ranks call this behind a barrier at which
 * they find that their calls differ: some may have flipped the buffer, and no rank reads any. */
void sar_shm_group_reset_buffer(struct sar_shm_group *group);

/** Sets *memory to the region of another rank's buffer with that handle, and maps the region if needed.
 * Local. */
enum sar_status sar_shm_buffer_attach(struct sar_shm_buffer *buffer, int rank,
                                      const struct sar_shm_handle *handle, void **memory);

#endif
