/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_TENSOR_PARTITION_H
#define SAR_TENSOR_PARTITION_H

#include "base/arena.h"
#include "hash/map.h"
#include "tensor/shape.h"

/** Split a run by a map into map->parts runs whose indices are slots of 4 bytes. The order is kept, so that
 * the slots of each part ascend. map->span is at most 2^32. Time: two passes over the indices, one over
 * the values. */
enum sar_status sar_partition(const struct sar_map *map, const struct sar_shape *shape,
                              const struct sar_run *run, struct sar_arena *arena, struct sar_run parts[]);

/** The same into memory of the caller's, with room for run->nnz slots and values: parts lie there one behind
 * the other. */
enum sar_status sar_partition_into(const struct sar_map *map, const struct sar_shape *shape,
                                   const struct sar_run *run, struct sar_arena *arena,
                                   const struct sar_run *memory, struct sar_run parts[]);

/** Turn the slots of one part back into indices of shape->index_size bytes. The values stay where they
 * are. */
enum sar_status sar_unpartition(const struct sar_map *map, const struct sar_shape *shape, uint32_t part,
                                struct sar_arena *arena, struct sar_run *run);

#endif
