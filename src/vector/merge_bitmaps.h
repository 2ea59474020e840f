/* SPDX-License-Identifier: BSD-3-Clause */
/* Merge of parts whose slots are bits: the elements go from the messages to the result without lists of
 * slots between. */

#ifndef SAR_VECTOR_MERGE_BITMAPS_H
#define SAR_VECTOR_MERGE_BITMAPS_H

#include "hash/partition_map.h"
#include "vector/spvec.h"

/** The payload of a message in the format hash_bitmap, not decoded. */
struct sar_part_bitmap {
    const unsigned char *bits; /**< a bit for each slot, from map->slot_base on; unaligned */
    uint64_t bytes;            /**< bytes of bits; later slots are empty */
    const void *value;         /**< elements of the set bits, in order; unaligned */
    size_t nnz;                /**< elements */
};

/** True if the merge works for parts of a map: a block consists of whole words. */
static inline bool sar_merge_bitmaps_works(const struct sar_partition_map *map)
{
    return map->kind != SAR_PARTITION_RANGE && map->grain_shift >= 6;
}

/** True if the merge is faster on this processor than lists of slots and sar_partition_merge. Ranks may
 * differ. */
bool sar_merge_bitmaps_is_faster(const struct sar_vec_desc *desc);

/** As sar_partition_merge, for bitmaps. Returns SAR_CORRUPT if a part has not nnz bits. The caller checks
 * that no bit is at the part's number of slots or above, as sar_hash_bitmap_open does. */
enum sar_status sar_merge_bitmaps(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                                  const struct sar_part_bitmap parts[], struct sar_arena *arena,
                                  struct sar_spvec *out);

#endif
