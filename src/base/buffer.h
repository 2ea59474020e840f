/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_BASE_BUFFER_H
#define SAR_BASE_BUFFER_H

#include <stddef.h>

#include "base/idle.h"
#include "base/status.h"

/** One array that grows and keeps what is in it. Zero bytes are an empty one. */
struct sar_buffer {
    void *memory;
    size_t bytes;
    size_t most; /**< bytes asked for since the last reset */
    struct sar_idle idle;
};

/** Make room for count * size bytes. The memory may move; it is never NULL after success. On failure it is
 * as it was. */
enum sar_status sar_buffer_grow(struct sar_buffer *buffer, size_t count, size_t size);

/** Forget what is in it. Keeps memory, so that equal use later allocates nothing, until many uses in a row
 * have asked for little of it (base/idle.h). */
void sar_buffer_reset(struct sar_buffer *buffer);

/** Give the memory back. */
void sar_buffer_free(struct sar_buffer *buffer);

#endif
