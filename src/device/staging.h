/* SPDX-License-Identifier: BSD-3-Clause */
/* Pinned memory of a bounded size, through which arrays of any size pass between a device and the host: a
 * ring of blocks. While the host works on one block others are under way, in streams of the ring's own. What
 * is block k here is the k-th that passes; it has the memory of block k - SAR_STAGING_BLOCKS. */

#ifndef SAR_DEVICE_STAGING_H
#define SAR_DEVICE_STAGING_H

#include "device/mirror.h"

enum { SAR_STAGING_BLOCKS = 4 };

struct sar_staging;

/** Bytes of a block, of which MPIX_SPARSE_STAGING gives the size in the pool; a multiple of 64. */
size_t sar_staging_room(uint64_t pinned);

/** Take a ring whose blocks have so many bytes. What is queued in it follows on what is in the memory's
 * stream by now. Rings are kept: the first calls allocate, later ones do not. */
enum sar_status sar_staging_take(const struct sar_memory *memory, size_t bytes, struct sar_staging **staging);

/** Wait for all that is queued, and give the ring back; NULL is allowed. */
enum sar_status sar_staging_give_back(struct sar_staging *staging);

/** Memory of block k, once what was queued for the block before it there is done. */
enum sar_status sar_staging_block(struct sar_staging *staging, size_t k, void **block);

/** The stream that block k is copied in. Two blocks in a row have different ones, and the blocks of one piece
 * of memory the same one. */
void *sar_staging_lane(const struct sar_staging *staging, size_t k);

/** Queue a copy to or from block k; say that all has been queued for it; and wait for that. */
enum sar_status sar_staging_copy(struct sar_staging *staging, size_t k, void *to, const void *from,
                                 size_t bytes);
enum sar_status sar_staging_mark(struct sar_staging *staging, size_t k);
enum sar_status sar_staging_await(struct sar_staging *staging, size_t k);

/** Where what is copied is worked on in the memory's stream: let the lane of block k wait for what is in that
 * stream by now, or the stream for what was last marked of the block. */
enum sar_status sar_staging_follow(struct sar_staging *staging, size_t k);
enum sar_status sar_staging_join(struct sar_staging *staging, size_t k);

/** Close what is kept. */
void sar_staging_cleanup(void);

#endif
