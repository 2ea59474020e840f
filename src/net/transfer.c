/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/transfer.h"

#include <stddef.h>

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

const unsigned char *sar_sending_at(const struct sar_sending *s)
{
    bool apart = s->payload != NULL && s->sent != 0;
    return apart ? s->payload + (s->sent - SAR_HEADER_BYTES) : s->buffer + s->sent;
}

int sar_sending_next(struct sar_sending *s, uint64_t chunk)
{
    uint64_t piece = least_of(s->bytes - s->sent, chunk);
    bool first = s->sent == 0, apart = s->payload != NULL;
    bool whole = !apart && s->bytes <= chunk && s->bytes != SAR_FIRST_PIECE;
    if (first && !whole)
        piece = SAR_FIRST_PIECE;
    s->open = first ? !whole : piece == chunk;
    s->sent += first && apart ? SAR_HEADER_BYTES : piece;
    return (int)piece;
}

bool sar_receiving_begins(const struct sar_receiving *r)
{
    return r->open && r->seen == 0;
}

bool sar_receiving_ends(const struct sar_receiving *r, uint64_t piece, uint64_t chunk)
{
    return sar_receiving_begins(r) ? piece != SAR_FIRST_PIECE : piece < chunk;
}

void *sar_receiving_next(struct sar_receiving *r, uint64_t piece)
{
    bool fits = r->open && r->buffer != NULL && piece <= r->bytes - r->seen;
    unsigned char *place = !fits                ? NULL
                           : r->payload != NULL ? r->payload + (r->seen - SAR_HEADER_BYTES)
                                                : r->buffer + r->seen;
    if (!fits)
        r->buffer = NULL;
    r->seen += piece;
    return place;
}
