/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_DEVICE_MIRROR_H
#define SAR_DEVICE_MIRROR_H

#include <stdbool.h>

#include "device/accelerator.h"

/** Where a caller's arrays are. */
struct sar_memory {
    const struct sar_accelerator *accelerator; /**< NULL for the host */
    int place;
    void *stream; /**< that the caller works on them in */
};

/** An array in device memory, and memory of the host that stands for it, pinned where there is some left. */
struct sar_mirror {
    void *device, *host;
    size_t bytes;
    bool in, out;            /**< whether its content is to be read, and written back */
    struct sar_block *block; /**< of the pool, or NULL where the host's memory is somebody else's */
};

/** Take memory for the mirror of an array, from a pool of blocks whose sizes are powers of two: the first
 * calls allocate, later ones do not. */
enum sar_status sar_mirror_take(const struct sar_memory *memory, const void *device, size_t bytes,
                                struct sar_mirror *mirror);

/** Memory that mirrors nothing, of mirror->bytes, as many as were asked for or more: pinned as long as no
 * more than `most` bytes have been in this way. */
enum sar_status sar_mirror_take_bounded(const struct sar_memory *memory, size_t bytes, size_t most,
                                        struct sar_mirror *mirror);

/** Memory that mirrors nothing, and is pinned or not to be had. */
enum sar_status sar_mirror_take_pinned(const struct sar_memory *memory, size_t bytes,
                                       struct sar_mirror *mirror);

/** Give it back, unless a device may still be writing to it: then it is nobody's any more. */
void sar_mirror_release(struct sar_mirror *mirror);

/** The same where a device may be. */
void sar_mirror_abandon(struct sar_mirror *mirror);

/** Whether copies from and to these mirrors take place when their stream comes to them, not as they are
 * queued. */
bool sar_mirrors_are_pinned(const struct sar_mirror mirrors[], size_t n);

/** Queue copies to the host of what is to be read, or back of what is to be written, of n mirrors. */
enum sar_status sar_mirrors_queue_read(const struct sar_memory *memory, const struct sar_mirror mirrors[],
                                       size_t n);
enum sar_status sar_mirrors_queue_write(const struct sar_memory *memory, const struct sar_mirror mirrors[],
                                        size_t n);

/** The same, and on return it is done, or the mirrors' memory is lost with their release. */
enum sar_status sar_mirrors_read(const struct sar_memory *memory, const struct sar_mirror mirrors[],
                                 size_t n);
enum sar_status sar_mirrors_write(const struct sar_memory *memory, const struct sar_mirror mirrors[],
                                  size_t n);

/** Give the pool's memory back to the system. */
void sar_mirror_cleanup(void);

#endif
