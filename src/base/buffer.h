/* SPDX-License-Identifier: BSD-3-Clause */
/* One array that grows and keeps its content. The struct owns the memory: callers use buffer->memory until
 * the next sar_buffer_reserve, sar_buffer_reset or sar_buffer_free, and never free it themselves. */

#ifndef SAR_BASE_BUFFER_H
#define SAR_BASE_BUFFER_H

#include <stddef.h>

#include "base/trim.h"
#include "base/status.h"

/** The array. Zero bytes are an empty buffer. */
struct sar_buffer {
    void *memory;         /**< owned */
    size_t bytes;         /**< bytes allocated */
    size_t peak;          /**< most bytes reserved since the last reset */
    struct sar_trim trim; /**< small uses, a use being the time between two resets */
};

/** Reserves count * size bytes. May move the memory, which is never NULL after success; all bytes reserved
 * before are kept. On SAR_NO_MEMORY, which also an overflow of count * size gives, the buffer is
 * unchanged. */
enum sar_status sar_buffer_reserve(struct sar_buffer *buffer, size_t count, size_t size);

/** Ends a use; the content is no longer defined. Keeps the memory, so that an equal use later allocates
 * nothing, unless many uses in a row were small (base/trim.h). */
void sar_buffer_reset(struct sar_buffer *buffer);

/** Frees the memory. The buffer is empty then, and may be used again. */
void sar_buffer_free(struct sar_buffer *buffer);

#endif
