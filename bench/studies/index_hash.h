/* SPDX-License-Identifier: BSD-3-Clause */
/* Split by a hash of each index, the first level of the Zen paper, as fast as a counting sort makes it. The
 * library splits by a hash of each stripe. The slot of an element, its position in the paper's I_i, is in a
 * table with an entry for each element of the tensor, since no formula gives it. */

#ifndef BENCH_STUDIES_INDEX_HASH_H
#define BENCH_STUDIES_INDEX_HASH_H

#include "vector/spvec.h"

struct perf_index_hash;

/** Makes the table of slots; ends the program without memory. count is at most 2^32, parts at most 2^16. */
struct perf_index_hash *perf_index_hash_make(uint64_t count, uint32_t parts, uint32_t seed);

/** Frees the table; NULL is allowed. */
void perf_index_hash_free(struct perf_index_hash *hash);

/** Splits a vec with indices of 4 bytes into parts whose indices are slots, in memory from the arena. */
enum sar_status perf_index_hash_split(const struct perf_index_hash *hash, const struct sar_vec_desc *desc,
                                      const struct sar_spvec *vec, struct sar_arena *arena,
                                      struct sar_spvec parts[]);

/** Returns the elements that are not in their place of their part. */
size_t perf_index_hash_misplaced(const struct perf_index_hash *hash, const struct sar_vec_desc *desc,
                                 const struct sar_spvec *vec, const struct sar_spvec parts[]);

#endif
