/* SPDX-License-Identifier: BSD-3-Clause */
/* Partition maps: the part and the slot of each element of a vector.
 *
 * Blocks of `grain` consecutive elements form stripes of `parts` blocks:
 *
 *     stripe 0:  block 0      block 1      …  block parts-1
 *     stripe 1:  block parts  …
 *
 * Each stripe gives every part exactly one block. `cyclic` gives block j of a stripe to part j. `hash`
 * rotates the stripe by a hash of its number: block j goes to part (j + h(stripe)) mod parts. `range` has
 * contiguous parts and no stripes. Where the caller of a collective chooses the owners, the map is `cyclic`
 * with blocks of any length (block-cyclic, as in ScaLAPACK), or `range` if no part has two blocks.
 *
 * The Zen paper hashes each index by itself. Rotating whole stripes keeps the properties that the paper
 * needs. Two blocks of different stripes share a part with probability 1/parts, two blocks of one stripe
 * never do. So the family is universal and Theorem 2's bound holds: the load of a part is a sum over
 * independent stripes. In addition, the slot follows from the stripe's number, without the paper's tables I_i
 * of 4 to 8 bytes an element, and the sizes of parts differ by one block at most. Within a part, slots ascend
 * with indices. */

#ifndef SAR_HASH_PARTITION_MAP_H
#define SAR_HASH_PARTITION_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "hash/murmur3.h"

/** Partitions that users can name. */
enum sar_partition_kind {
    SAR_PARTITION_HASH,
    SAR_PARTITION_CYCLIC,
    SAR_PARTITION_RANGE,
    SAR_PARTITION_HIERARCHICAL, /**< the map of `hash`, whose parts are made by hierarchical hashing */
    SAR_PARTITIONS,
    SAR_PARTITION_BLOCKS = SAR_PARTITIONS /**< `cyclic` with blocks of any length; users cannot name it */
};

/** Names of the kinds, ended by NULL, and their descriptions for users. */
extern const char *const sar_partition_names[];
extern const char *const sar_partition_summaries[SAR_PARTITIONS];

/** Returns the enum sar_partition_kind with this name, or -1. */
int sar_partition_find(const char *name);

/** A map of `count` elements onto `parts` parts. Ranks with equal fields have equal maps. */
struct sar_partition_map {
    enum sar_partition_kind kind; /**< HASH also for HIERARCHICAL: see `hierarchical` */
    uint32_t parts;
    uint32_t seed;        /**< seed of the stripe hash */
    unsigned grain_shift; /**< a block has 1 << grain_shift elements, unless the kind is BLOCKS … */
    uint64_t grain;       /**< … which has blocks of so many; set for all kinds but RANGE */
    uint64_t count;
    uint64_t slots_max; /**< slots of the largest part */
    uint64_t slot_base; /**< first slot of the segment in use, at a stripe's start; slots count from here */
    uint32_t div_magic; /**< for sar_partition_map_divide */
    unsigned div_shift;
    bool blocks_fit_32; /**< block numbers fit 32 bits */
    bool hierarchical;  /**< hierarchical hashing makes the parts (vector/partition_hierarchical.h) */
};

/** Sums over splits by hierarchical hashing. On several threads `serial` may differ from run to run, since
 * they race for cells. */
struct sar_hash_stats {
    uint64_t elements; /**< that were hashed */
    uint64_t serial;   /**< of these, in serial memory after the last run */
    uint64_t reruns;   /**< runs that overflowed serial memory */
};

/** Adds a split. */
static inline void sar_hash_stats_add(struct sar_hash_stats *stats, uint64_t elements, uint64_t serial,
                                      uint64_t reruns)
{
    stats->elements += elements;
    stats->serial += serial;
    stats->reruns += reruns;
}

/** Part of an element, and position in the part. */
struct sar_slot {
    uint32_t part;
    uint64_t slot;
};

/** Returns a map with slot_base 0. grain is a power of two from 1 to 256; range ignores it. parts > 0. */
struct sar_partition_map sar_partition_map_make(enum sar_partition_kind kind, uint64_t count, uint32_t parts,
                                                unsigned grain, uint32_t seed);

/** Returns the map whose part r owns the elements i with (i / block) mod parts = r. Its kind is CYCLIC,
 * BLOCKS or RANGE; that of RANGE has parts of `block` elements. block > 0, parts > 0. */
struct sar_partition_map sar_partition_map_of_blocks(uint64_t count, uint32_t parts, uint64_t block);

/** Returns the name of the map's partition. */
const char *sar_partition_map_name(const struct sar_partition_map *map);

/** Returns the number of slots of a part, at most map->slots_max. map->slot_base must be 0. */
uint64_t sar_partition_map_slots(const struct sar_partition_map *map, uint32_t part);

/** Returns block / parts for 32-bit blocks, by the round-up method (Granlund and Montgomery). */
SAR_HOST_DEVICE static inline uint32_t sar_partition_map_divide(const struct sar_partition_map *map,
                                                                uint32_t block)
{
    uint32_t high = (uint32_t)(((uint64_t)map->div_magic * block) >> 32);
    return map->parts == 1 ? block : (high + ((block - high) >> 1)) >> map->div_shift;
}

/** Returns the number of parts that a stripe is rotated by. */
SAR_HOST_DEVICE static inline uint32_t sar_partition_map_rotation(const struct sar_partition_map *map,
                                                                  uint64_t stripe)
{
    if (map->kind != SAR_PARTITION_HASH)
        return 0;
    return sar_hash_range(map->blocks_fit_32 ? sar_murmur3((uint32_t)stripe, map->seed)
                                             : sar_murmur3_u64(stripe, map->seed),
                          map->parts);
}

/** Returns part and slot of an element: h0 and the position in I_part of the paper. index < count. */
SAR_HOST_DEVICE static inline struct sar_slot sar_partition_map_locate(const struct sar_partition_map *map,
                                                                       uint64_t index)
{
    struct sar_slot found;
    if (map->kind == SAR_PARTITION_RANGE) {
        found.part = (uint32_t)(index / map->slots_max);
        found.slot = index - found.part * map->slots_max - map->slot_base;
        return found;
    }
    if (map->kind == SAR_PARTITION_BLOCKS) {
        uint64_t number = index / map->grain, row = number / map->parts;
        found.part = (uint32_t)(number - row * map->parts);
        found.slot = index - (number - row) * map->grain - map->slot_base;
        return found;
    }
    uint64_t block = index >> map->grain_shift;
    uint64_t stripe =
        map->blocks_fit_32 ? sar_partition_map_divide(map, (uint32_t)block) : block / map->parts;
    uint32_t part = (uint32_t)(block - stripe * map->parts) + sar_partition_map_rotation(map, stripe);
    found.part = part < map->parts ? part : part - map->parts;
    found.slot = ((stripe << map->grain_shift) | (index & ((1u << map->grain_shift) - 1))) - map->slot_base;
    return found;
}

/** Part and slot in 32 bits, so that a SIMD vector holds twice as many. */
struct sar_slot32 {
    uint32_t part, slot;
};

/** As sar_partition_map_locate, if indices and slots fit 32 bits. Not for range; parts > 1. */
SAR_HOST_DEVICE static inline struct sar_slot32 sar_partition_map_locate32(
    const struct sar_partition_map *map, uint32_t index)
{
    uint32_t block = index >> map->grain_shift, stripe = sar_partition_map_divide(map, block);
    uint32_t part = block - stripe * map->parts + sar_partition_map_rotation(map, stripe);
    uint32_t slot =
        (stripe << map->grain_shift | (index & ((1u << map->grain_shift) - 1))) - (uint32_t)map->slot_base;
    return (struct sar_slot32){ part < map->parts ? part : part - map->parts, slot };
}

/** Returns the index of the element at a slot of a part: the inverse of sar_partition_map_locate. */
SAR_HOST_DEVICE static inline uint64_t sar_partition_map_index(const struct sar_partition_map *map,
                                                               uint32_t part, uint64_t slot)
{
    slot += map->slot_base;
    if (map->kind == SAR_PARTITION_RANGE)
        return part * map->slots_max + slot;
    if (map->kind == SAR_PARTITION_BLOCKS)
        return slot + (slot / map->grain * (map->parts - 1) + part) * map->grain;
    uint64_t stripe = slot >> map->grain_shift;
    uint32_t rotation = sar_partition_map_rotation(map, stripe);
    uint32_t column = part >= rotation ? part - rotation : part + map->parts - rotation;
    return ((stripe * map->parts + column) << map->grain_shift) | (slot & ((1u << map->grain_shift) - 1));
}

#endif
