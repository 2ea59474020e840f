/* SPDX-License-Identifier: BSD-3-Clause */
#include "hash/map.h"

#include <stddef.h>
#include <string.h>

#include <stddef.h>

const char *const sar_partition_names[] = { "hash", "cyclic", "range", NULL };

const char *const sar_partition_summaries[SAR_PARTITIONS] = {
    [SAR_PARTITION_HASH] = "lines of a block for each part, each line turned by a hash of its number",
    [SAR_PARTITION_CYCLIC] = "the same lines, not turned: block j of a line belongs to part j",
    [SAR_PARTITION_RANGE] = "contiguous parts",
};

int sar_partition_find(const char *name)
{
    for (int i = 0; sar_partition_names[i] != NULL; i++)
        if (strcmp(sar_partition_names[i], name) == 0)
            return i;
    return -1;
}

static unsigned log2_floor(uint64_t x)
{
    unsigned bits = 0;
    while (x >>= 1)
        bits++;
    return bits;
}

/* The round-up method divides by d as (t + (x - t) / 2) >> (l - 1), where l = ceil(log2 d) and t is the high
 * half of x * magic, magic = floor(2^32 * (2^l - d) / d) + 1. */
static void set_divisor(struct sar_map *map)
{
    if (map->parts == 1)
        return;
    unsigned ceiling = log2_floor(map->parts - 1) + 1;
    uint64_t excess = ((uint64_t)1 << ceiling) - map->parts;
    map->magic = (uint32_t)((excess << 32) / map->parts + 1);
    map->magic_shift = ceiling - 1;
}

struct sar_map sar_map_make(enum sar_partition kind, uint64_t count, uint32_t parts, unsigned grain,
                            uint32_t seed)
{
    struct sar_map map = { .kind = kind, .parts = parts, .seed = seed, .count = count };
    if (kind == SAR_PARTITION_RANGE) {
        map.span = count / parts + (count % parts != 0);
        if (map.span == 0)
            map.span = 1;
        return map;
    }
    map.grain_shift = log2_floor(grain);
    uint64_t blocks = (count >> map.grain_shift) + ((count & (grain - 1)) != 0);
    uint64_t lines = blocks / parts + (blocks % parts != 0);
    map.span = lines << map.grain_shift;
    map.narrow = blocks <= UINT32_MAX;
    set_divisor(&map);
    return map;
}

/* All lines but the last are full; the last may lack blocks, and its last block elements. */
uint64_t sar_map_slots(const struct sar_map *map, uint32_t part)
{
    if (map->count == 0)
        return 0;
    if (map->kind == SAR_PARTITION_RANGE) {
        uint64_t start = part * map->span;
        uint64_t rest = start < map->count ? map->count - start : 0;
        return rest < map->span ? rest : map->span;
    }
    uint64_t grain = (uint64_t)1 << map->grain_shift;
    uint64_t full = map->span - grain;
    uint64_t start = sar_map_index(map, part, full);
    uint64_t rest = start < map->count ? map->count - start : 0;
    return full + (rest < grain ? rest : grain);
}
