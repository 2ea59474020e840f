/* SPDX-License-Identifier: BSD-3-Clause */
/* Split of a sorted sparse vector into the parts of a partition map by hierarchical hashing, Algorithm 1 of
 * the Zen paper (hash/hierarchical.h). The parts are those of vector/partition.h, bit for bit. */

#ifndef SAR_VECTOR_PARTITION_HIERARCHICAL_H
#define SAR_VECTOR_PARTITION_HIERARCHICAL_H

#include "hash/hierarchical.h"
#include "vector/spvec.h"

/** As sar_partition_split and sar_partition_into, by hierarchical hashing, on as many threads as loops of the
 * calling thread may use (base/parallel.h). An index occurs once in a vec. Temporary memory, some 26 bytes an
 * element, stays taken from the arena: others may take pieces of it while a loop makes progress.
 *
 *     time = nnz * 12 to 25 ns on one thread (k = 3)
 *
 * @param params  NULL: the paper's; parallel_for and sorted are ignored
 * @param memory  NULL: the arena owns the parts
 * @param stats   increased */
enum sar_status sar_partition_hierarchical(const struct sar_hierarchical_params *params,
                                           const struct sar_partition_map *map,
                                           const struct sar_vec_desc *desc, const struct sar_spvec *vec,
                                           struct sar_arena *arena, const struct sar_spvec *memory,
                                           struct sar_spvec parts[], struct sar_hash_stats *stats);

#endif
