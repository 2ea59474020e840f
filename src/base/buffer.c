/* SPDX-License-Identifier: BSD-3-Clause */
/* A buffer grows by realloc, so that the system moves large arrays by remapping pages, without copying. An
 * arena would keep the old, smaller array. */

#include "base/buffer.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/log.h"

/* SLACK: bytes beyond those reserved. SMALLEST_TRIM: bytes below which memory is kept. */
enum { SLACK = 64, SMALLEST_TRIM = 1 << 14 };

enum sar_status sar_buffer_reserve(struct sar_buffer *buffer, size_t count, size_t size)
{
    if (size != 0 && count > (SIZE_MAX - SLACK) / size)
        return SAR_NO_MEMORY;
    size_t bytes = count * size + SLACK;
    buffer->peak = bytes > buffer->peak ? bytes : buffer->peak;
    if (bytes <= buffer->bytes)
        return SAR_OK;
    void *memory = realloc(buffer->memory, bytes);
    if (memory == NULL) {
        SAR_LOG(INFO, BASE, "no memory for %zu bytes", bytes);
        return SAR_NO_MEMORY;
    }
    buffer->memory = memory;
    buffer->bytes = bytes;
    return SAR_OK;
}

void sar_buffer_reset(struct sar_buffer *buffer)
{
    if (sar_trim_note(&buffer->trim, buffer->bytes, buffer->peak, SMALLEST_TRIM))
        sar_buffer_free(buffer);
    buffer->peak = 0;
}

void sar_buffer_free(struct sar_buffer *buffer)
{
    free(buffer->memory);
    *buffer = (struct sar_buffer){ 0 };
}
