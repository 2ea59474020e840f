/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_TENSOR_ASSEMBLE_H
#define SAR_TENSOR_ASSEMBLE_H

#include "base/arena.h"
#include "hash/map.h"
#include "tensor/shape.h"

enum { SAR_BLOCKS_EACH = 2 /**< most blocks for each element that are gone through */ };

/** Whether parts that lie in so many lines are put together block by block, and not as any runs. */
static inline bool sar_assembles_blocks(const struct sar_map *map, uint64_t lines, uint64_t nnz)
{
    return map->kind != SAR_PARTITION_RANGE && lines <= nnz / map->parts * SAR_BLOCKS_EACH;
}

/** Put the parts of a map together, as sar_partition makes them: the slots of each ascend, and count from
 * map->base on.
 * @param parts  map->parts of them
 * @param out    its arrays have room for all elements; nnz is set */
enum sar_status sar_assemble(const struct sar_map *map, const struct sar_shape *shape,
                             const struct sar_run parts[], struct sar_arena *arena, struct sar_run *out);

#endif
