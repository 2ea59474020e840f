/* SPDX-License-Identifier: BSD-3-Clause */
/* Split of a sorted sparse vector into the parts of a partition map, and the inverse. */

#ifndef SAR_VECTOR_PARTITION_H
#define SAR_VECTOR_PARTITION_H

#include "hash/partition_map.h"
#include "vector/spvec.h"

/** Splits a vec by a map into map->parts vecs whose indices are slots of 4 bytes. The split is stable: the
 * slots of each part ascend. map->slots_max is at most 2^32. The arena owns the parts.
 *
 *     time = two passes over the indices, one over the values */
enum sar_status sar_partition_split(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                                    const struct sar_spvec *vec, struct sar_arena *arena,
                                    struct sar_spvec parts[]);

/** As sar_partition_split, into the caller's memory: arrays for vec->nnz slots and elements, in which the
 * parts follow each other. */
enum sar_status sar_partition_into(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                                   const struct sar_spvec *vec, struct sar_arena *arena,
                                   const struct sar_spvec *memory, struct sar_spvec parts[]);

/** Returns the blocks between the first and the last element if a split moves whole runs of elements of a
 * block, 0 if it moves each element by itself. */
uint64_t sar_partition_run_blocks(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                                  const struct sar_spvec *vec);

/** Replaces the slots of one part by indices of desc->index_size bytes from the arena. The values stay in
 * place. */
enum sar_status sar_partition_restore_indices(const struct sar_partition_map *map,
                                              const struct sar_vec_desc *desc, uint32_t part,
                                              struct sar_arena *arena, struct sar_spvec *vec);

/** Converts n ascending slots of one part to indices, block by block. In place if both sizes are equal. */
void sar_partition_slots_to_indices(const struct sar_partition_map *map, uint32_t part, const void *slots,
                                    unsigned slot_size, size_t n, void *index, unsigned index_size);

/** True if sar_partition_merge goes block by block for parts that occupy this many stripes of a map; else it
 * reduces them as unrelated vecs, always of maps of kind BLOCKS. It visits at most 2 blocks for each
 * element. */
static inline bool sar_partition_merges_by_block(const struct sar_partition_map *map, uint64_t stripes,
                                                 uint64_t nnz)
{
    return (map->kind == SAR_PARTITION_HASH || map->kind == SAR_PARTITION_CYCLIC) &&
           stripes <= nnz / map->parts * 2;
}

/** Merges the map->parts parts of a map into one vec; the inverse of sar_partition_split. The slots of each
 * part ascend and count from map->slot_base.
 * @param out  arrays with capacity for all elements; nnz is set */
enum sar_status sar_partition_merge(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                                    const struct sar_spvec parts[], struct sar_arena *arena,
                                    struct sar_spvec *out);

#endif
