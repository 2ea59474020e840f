/* SPDX-License-Identifier: BSD-3-Clause */
/* Partition maps: which part owns an element, and where in it.
 *
 * The elements are cut into blocks of `grain` consecutive ones, and the blocks are laid out in lines of
 * `parts` blocks:
 *
 *     line 0:  block 0      block 1      …  block parts-1
 *     line 1:  block parts  …
 *
 * Each line gives every part exactly one block. `cyclic` gives block j of a line to part j. `hash` turns
 * the line by a hash of its number: block j goes to part (j + h(line)) mod parts. `range` cuts the vector
 * into contiguous parts and has no lines.
 *
 * Turning whole lines, instead of hashing each block by itself as the Zen paper does with each index, keeps
 * what the paper needs: two blocks of different lines meet in a part with probability 1/parts, two of one
 * line never do, so the family is universal and Theorem 2's bound holds (the load of a part is a sum over
 * independent lines). It gains that the position in the part is the line's number: no table I_i of 4 to 8
 * bytes an element, in either direction, and parts equal to within one block. Within a part, slots ascend
 * with indices. */

#ifndef SAR_HASH_MAP_H
#define SAR_HASH_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "hash/murmur3.h"

enum sar_partition { SAR_PARTITION_HASH, SAR_PARTITION_CYCLIC, SAR_PARTITION_RANGE, SAR_PARTITIONS };

/** Names of the partitions, ended by NULL. */
extern const char *const sar_partition_names[];
extern const char *const sar_partition_summaries[SAR_PARTITIONS];

/** The partition with this name, or -1. */
int sar_partition_find(const char *name);

/** A map of `count` elements onto `parts` parts. Equal fields on all ranks give equal maps. */
struct sar_map {
    enum sar_partition kind;
    uint32_t parts;
    uint32_t seed;        /* of the line hash */
    unsigned grain_shift; /* a block has 1 << grain_shift elements */
    uint64_t count;
    uint64_t span;  /* slots of the largest part */
    uint64_t base;  /* number of a part's first slot that counts: places begin with 0 there; a whole line */
    uint32_t magic; /* block / parts by multiplication, see sar_map_divide */
    unsigned magic_shift;
    bool narrow; /* block numbers fit 32 bits */
};

/** Where an element lives. */
struct sar_place {
    uint32_t part;
    uint64_t slot;
};

/** Build a map. grain is a power of two in [1, 256]; range ignores it. parts > 0. */
struct sar_map sar_map_make(enum sar_partition kind, uint64_t count, uint32_t parts, unsigned grain,
                            uint32_t seed);

/** Slots that `part` really has, at most map->span. map->base is 0. */
uint64_t sar_map_slots(const struct sar_map *map, uint32_t part);

/** block / parts for 32-bit blocks, by the round-up method (Granlund and Montgomery). */
SAR_HOST_DEVICE static inline uint32_t sar_map_divide(const struct sar_map *map, uint32_t block)
{
    uint32_t high = (uint32_t)(((uint64_t)map->magic * block) >> 32);
    return map->parts == 1 ? block : (high + ((block - high) >> 1)) >> map->magic_shift;
}

/** By how many parts a line is turned. */
SAR_HOST_DEVICE static inline uint32_t sar_map_turn(const struct sar_map *map, uint64_t line)
{
    if (map->kind != SAR_PARTITION_HASH)
        return 0;
    return sar_hash_range(map->narrow ? sar_murmur3((uint32_t)line, map->seed)
                                      : sar_murmur3_wide(line, map->seed),
                          map->parts);
}

/** Part and slot of an element, h0 and its position in the paper's I_part. index < count. */
SAR_HOST_DEVICE static inline struct sar_place sar_map_place(const struct sar_map *map, uint64_t index)
{
    struct sar_place place;
    if (map->kind == SAR_PARTITION_RANGE) {
        place.part = (uint32_t)(index / map->span);
        place.slot = index - place.part * map->span - map->base;
        return place;
    }
    uint64_t block = index >> map->grain_shift;
    uint64_t line = map->narrow ? sar_map_divide(map, (uint32_t)block) : block / map->parts;
    uint32_t part = (uint32_t)(block - line * map->parts) + sar_map_turn(map, line);
    place.part = part < map->parts ? part : part - map->parts;
    place.slot = ((line << map->grain_shift) | (index & ((1u << map->grain_shift) - 1))) - map->base;
    return place;
}

/** Part and slot of an element where indices and places fit 32 bits, in numbers of 32 bits, of which a vector
 * holds twice as many. Not for range; map->narrow and parts > 1. */
struct sar_narrow_place {
    uint32_t part, slot;
};

SAR_HOST_DEVICE static inline struct sar_narrow_place sar_map_place_narrow(const struct sar_map *map,
                                                                           uint32_t index)
{
    uint32_t block = index >> map->grain_shift, line = sar_map_divide(map, block);
    uint32_t part = block - line * map->parts + sar_map_turn(map, line);
    uint32_t slot =
        (line << map->grain_shift | (index & ((1u << map->grain_shift) - 1))) - (uint32_t)map->base;
    return (struct sar_narrow_place){ part < map->parts ? part : part - map->parts, slot };
}

/** The element at a slot of a part: the inverse of sar_map_place. */
SAR_HOST_DEVICE static inline uint64_t sar_map_index(const struct sar_map *map, uint32_t part, uint64_t slot)
{
    slot += map->base;
    if (map->kind == SAR_PARTITION_RANGE)
        return part * map->span + slot;
    uint64_t line = slot >> map->grain_shift;
    uint32_t turn = sar_map_turn(map, line);
    uint32_t column = part >= turn ? part - turn : part + map->parts - turn;
    return ((line * map->parts + column) << map->grain_shift) | (slot & ((1u << map->grain_shift) - 1));
}

#endif
