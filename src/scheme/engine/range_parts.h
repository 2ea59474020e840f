/* SPDX-License-Identifier: BSD-3-Clause */
/* Contiguous parts of the vector, one a rank: the part of rank r is [bounds[r], bounds[r + 1]). */

#ifndef SAR_SCHEME_ENGINE_RANGE_PARTS_H
#define SAR_SCHEME_ENGINE_RANGE_PARTS_H

#include "scheme/engine/task.h"

/** Returns the map of equal parts. The functions up to sar_range_parts_even_share are pure, and their
 * results are equal on all ranks. */
struct sar_partition_map sar_range_parts_map(const struct sar_agreed *agreed);

/** Returns the predicted share of a rank's elements that the largest part has. */
double sar_range_parts_max_share(const struct sar_agreed *agreed);

/** Returns the predicted share of the largest part in the union of k ranks. Unions are less skewed: where
 * elements are dense, ranks have more indices in common. */
double sar_range_parts_max_union_share(const struct sar_agreed *agreed, double k);

/** Returns the share of the map's largest part in elements that are spread evenly: blocks of a caller may be
 * longer than equal parts. */
double sar_range_parts_even_share(const struct sar_partition_map *map);

/** Allocates the bounds of a map in the call arena, map->parts + 1 of them. Local. */
enum sar_status sar_range_parts_bounds(struct sar_task *task, const struct sar_partition_map *map,
                                       const uint64_t **bounds);

/** Returns the layout of messages about a rank's part; indices count from its beginning. */
struct sar_wire_layout sar_range_parts_layout(const struct sar_task *task, const uint64_t *bounds, int rank);

/** Splits the input at the bounds. Indices count from the beginning of each part, in the step arena; values
 * are not copied, so the input must stay. Local; the input is sorted.
 * @param parts  one for each rank */
enum sar_status sar_range_parts_split(struct sar_task *task, const uint64_t *bounds,
                                      struct sar_spvec parts[]);

/** Writes the parts to the output, one after the other; they become task->result.vec. Local.
 * @param parts  one for each rank, sorted, with indices as sar_range_parts_layout says */
enum sar_status sar_range_parts_write_output(struct sar_task *task, const uint64_t *bounds,
                                             const struct sar_spvec parts[]);

#endif
