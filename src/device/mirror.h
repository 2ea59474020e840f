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

/** An array in device memory, and pinned memory of the host that stands for it. Zero bytes are none. */
struct sar_mirror {
    void *device, *host;
    size_t bytes;
    bool in, out; /**< whether its content is to be read, and written back */
};

/** The pool's blocks have powers of two of bytes, and this many of them are not the mirror's. */
enum { SAR_MIRROR_HEAD = 64 };

/** Take memory for the mirror of an array, from a pool: the first calls allocate, later ones do not. */
enum sar_status sar_mirror_take(const struct sar_memory *memory, const void *device, size_t bytes,
                                struct sar_mirror *mirror);

/** Give it back. */
void sar_mirror_release(struct sar_mirror *mirror);

/** Queue copies to the host of what is to be read, or back of what is to be written, of n mirrors. */
enum sar_status sar_mirrors_queue_read(const struct sar_memory *memory, const struct sar_mirror mirrors[],
                                       size_t n);
enum sar_status sar_mirrors_queue_write(const struct sar_memory *memory, const struct sar_mirror mirrors[],
                                        size_t n);

/** The same, and on return it is done. */
enum sar_status sar_mirrors_read(const struct sar_memory *memory, const struct sar_mirror mirrors[],
                                 size_t n);
enum sar_status sar_mirrors_write(const struct sar_memory *memory, const struct sar_mirror mirrors[],
                                  size_t n);

/** Give the pool's memory back to the system. */
void sar_mirror_cleanup(void);

#endif
