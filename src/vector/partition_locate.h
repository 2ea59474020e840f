/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts and slots of consecutive elements of a sorted vector, a batch at a time. */

#ifndef SAR_VECTOR_PARTITION_LOCATE_H
#define SAR_VECTOR_PARTITION_LOCATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hash/partition_map.h"
#include "vector/vec_desc.h"

enum {
    SAR_LOCATE_BATCH = 1024, /**< elements of a batch, at most */
    SAR_LOCATE_SLACK = 16    /**< elements that are written after the last run */
};

/** Part and slot of each element of a batch. */
struct sar_slots_batch {
    uint32_t part[SAR_LOCATE_BATCH], slot[SAR_LOCATE_BATCH];
};

/** The runs of a batch: the elements of one block, which go to one part. Their slots follow each other at a
 * constant difference from their indices. */
struct sar_runs_batch {
    size_t n;
    uint32_t start[SAR_LOCATE_BATCH + SAR_LOCATE_SLACK + 1]; /**< first element; of run n: the batch's end */
    uint32_t block[SAR_LOCATE_BATCH + SAR_LOCATE_SLACK];
    uint32_t part[SAR_LOCATE_BATCH];
    uint32_t to_slot[SAR_LOCATE_BATCH]; /**< slot = index + to_slot, modulo 2^32 */
};

/** Locates elements [from, from + n) of a vector with the desc's index size. n is at most SAR_LOCATE_BATCH,
 * and slots fit 32 bits. */
void sar_locate_slots(const struct sar_partition_map *map, const struct sar_vec_desc *desc, const void *index,
                      size_t from, size_t n, struct sar_slots_batch *to);

/** True if sar_locate_stored_parts is faster than to hash the elements again. */
bool sar_locate_stores_parts(const struct sar_partition_map *map, const struct sar_vec_desc *desc);

/** Stores the parts of n located elements, in a byte each. */
void sar_locate_store_parts(const struct sar_slots_batch *from, size_t n, uint8_t *part);

/** As sar_locate_slots, for elements whose parts are stored: `part` is that of element `from`. */
void sar_locate_stored_parts(const struct sar_partition_map *map, const void *index, const uint8_t *part,
                             size_t from, size_t n, struct sar_slots_batch *to);

/** Finds and locates the runs of n elements, 1 to SAR_LOCATE_BATCH. For maps of kind HASH or CYCLIC whose
 * blocks fit 32 bits, with two parts or more. */
void sar_locate_runs(const struct sar_partition_map *map, const uint32_t *index, size_t n,
                     struct sar_runs_batch *runs);

#endif
