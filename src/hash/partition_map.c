/* SPDX-License-Identifier: BSD-3-Clause */
/* Construction of partition maps, and their names. */

#include "hash/partition_map.h"

#include <stddef.h>
#include <string.h>

const char *const sar_partition_names[] = { "hash", "cyclic", "range", "hierarchical", NULL };

const char *const sar_partition_summaries[SAR_PARTITIONS] = {
    [SAR_PARTITION_HASH] = "stripes of a block for each part, each stripe turned by a hash of its number",
    [SAR_PARTITION_CYCLIC] = "the same stripes, not turned: block j of a stripe belongs to part j",
    [SAR_PARTITION_RANGE] = "contiguous parts",
    [SAR_PARTITION_HIERARCHICAL] = "parts of hash, grain 1, made by hierarchical hashing (Zen, Algorithm 1)",
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

enum { CYCLIC_GRAIN_MAX = 1 << 30 };

/* The round-up method divides by d as (t + (x - t) / 2) >> (l - 1), where l = ceil(log2 d) and t is the high
 * half of x * magic, magic = floor(2^32 * (2^l - d) / d) + 1. */
static void set_divisor(struct sar_partition_map *map)
{
    if (map->parts == 1)
        return;
    unsigned ceiling = log2_floor(map->parts - 1) + 1;
    uint64_t excess = ((uint64_t)1 << ceiling) - map->parts;
    map->div_magic = (uint32_t)((excess << 32) / map->parts + 1);
    map->div_shift = ceiling - 1;
}

struct sar_partition_map sar_partition_map_make(enum sar_partition_kind kind, uint64_t count, uint32_t parts,
                                                unsigned grain, uint32_t seed)
{
    struct sar_partition_map map = { .kind = kind, .parts = parts, .seed = seed, .count = count };
    map.hierarchical = kind == SAR_PARTITION_HIERARCHICAL;
    map.kind = map.hierarchical ? SAR_PARTITION_HASH : kind;
    if (kind == SAR_PARTITION_RANGE) {
        map.slots_max = count / parts + (count % parts != 0);
        if (map.slots_max == 0)
            map.slots_max = 1;
        return map;
    }
    map.grain_shift = log2_floor(grain);
    map.grain = grain;
    uint64_t blocks = (count >> map.grain_shift) + ((count & (grain - 1)) != 0);
    uint64_t stripes = blocks / parts + (blocks % parts != 0);
    map.slots_max = stripes << map.grain_shift;
    map.blocks_fit_32 = blocks <= UINT32_MAX;
    set_divisor(&map);
    return map;
}

/* Shifts are faster than divisions, and the loops over blocks have them. */
struct sar_partition_map sar_partition_map_of_blocks(uint64_t count, uint32_t parts, uint64_t block)
{
    if (block >= count / parts + (count % parts != 0)) {
        struct sar_partition_map range = sar_partition_map_make(SAR_PARTITION_RANGE, count, parts, 1, 0);
        range.slots_max = block < count ? block : count + (count == 0);
        return range;
    }
    if ((block & (block - 1)) == 0 && block <= CYCLIC_GRAIN_MAX)
        return sar_partition_map_make(SAR_PARTITION_CYCLIC, count, parts, (unsigned)block, 0);
    uint64_t blocks = count / block + (count % block != 0);
    return (struct sar_partition_map){ .kind = SAR_PARTITION_BLOCKS,
                                       .parts = parts,
                                       .grain = block,
                                       .count = count,
                                       .slots_max = (blocks / parts + (blocks % parts != 0)) * block };
}

const char *sar_partition_map_name(const struct sar_partition_map *map)
{
    if (map->kind == SAR_PARTITION_BLOCKS)
        return sar_partition_names[SAR_PARTITION_CYCLIC];
    return sar_partition_names[map->hierarchical ? SAR_PARTITION_HIERARCHICAL : map->kind];
}

/* All stripes but the last are full. The last one may have fewer blocks, and its last block fewer
 * elements. */
uint64_t sar_partition_map_slots(const struct sar_partition_map *map, uint32_t part)
{
    if (map->count == 0)
        return 0;
    if (map->kind == SAR_PARTITION_RANGE) {
        uint64_t start = part <= map->count / map->slots_max ? part * map->slots_max : map->count;
        uint64_t rest = start < map->count ? map->count - start : 0;
        return rest < map->slots_max ? rest : map->slots_max;
    }
    uint64_t grain = map->grain;
    uint64_t full = map->slots_max - grain;
    uint64_t start = sar_partition_map_index(map, part, full);
    uint64_t rest = start < map->count ? map->count - start : 0;
    return full + (rest < grain ? rest : grain);
}
