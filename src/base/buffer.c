/* SPDX-License-Identifier: BSD-3-Clause */
/* What an arena cannot do: let its last user have more without keeping what was too small. Large arrays are
 * moved by the system, page by page, and not copied. */

#include "base/buffer.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/log.h"

enum { LEAST = 64 /* bytes */, WORTH = 1 << 14 /* bytes that are worth giving back */ };

enum sar_status sar_buffer_grow(struct sar_buffer *buffer, size_t count, size_t size)
{
    if (size != 0 && count > (SIZE_MAX - LEAST) / size)
        return SAR_NO_MEMORY;
    size_t bytes = count * size + LEAST;
    buffer->most = bytes > buffer->most ? bytes : buffer->most;
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
    if (sar_idle_note(&buffer->idle, buffer->bytes, buffer->most, WORTH))
        sar_buffer_free(buffer);
    buffer->most = 0;
}

void sar_buffer_free(struct sar_buffer *buffer)
{
    free(buffer->memory);
    *buffer = (struct sar_buffer){ 0 };
}
