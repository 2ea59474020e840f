/* SPDX-License-Identifier: BSD-3-Clause */
/* What the pool wants back is kept before the memory that an arena gets. */

#include "device/pinned.h"

#include <string.h>

enum { HEAD = SAR_ALIGNMENT };

_Static_assert(sizeof(struct sar_mirror) <= HEAD, "there is room for it");

static void *take(struct sar_supply *supply, size_t *bytes)
{
    const struct sar_pinned *pinned = (const struct sar_pinned *)supply;
    struct sar_mirror mirror;
    if (*bytes > SIZE_MAX - HEAD ||
        sar_mirror_take_bounded(pinned->memory, *bytes + HEAD, pinned->most, &mirror) != SAR_OK)
        return NULL;
    memcpy(mirror.host, &mirror, sizeof mirror);
    *bytes = mirror.bytes - HEAD;
    return (unsigned char *)mirror.host + HEAD;
}

static void give_back(struct sar_supply *supply, void *memory)
{
    const struct sar_pinned *pinned = (const struct sar_pinned *)supply;
    struct sar_mirror mirror;
    memcpy(&mirror, (unsigned char *)memory - HEAD, sizeof mirror);
    if (pinned->lost)
        sar_mirror_abandon(&mirror);
    else
        sar_mirror_release(&mirror);
}

struct sar_pinned sar_pinned_make(const struct sar_memory *memory, size_t most)
{
    return (struct sar_pinned){ .supply = { take, give_back }, .memory = memory, .most = most };
}
