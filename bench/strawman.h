/* SPDX-License-Identifier: BSD-3-Clause */
/* The lossy hash that the Zen paper sets out from (its appendix, Algorithm 2): one hash function picks a part
 * and a cell in its memory, and who comes last stays. Here to be compared with, never in the library. */
#ifndef PERF_STRAWMAN_H
#define PERF_STRAWMAN_H

#include "hash/hierarchical.h"

struct perf_strawman {
    uint32_t parts, seed;
    size_t cells; /* of each part; all parts together have less than 2^32 */
};

/* Sort what is not lost into parts, by that hash alone. Fewer than 2^32 - 1 occurrences. The output lives in
 * the arena; its first[parts] tells how many are left. */
enum sar_status perf_strawman_hash(const struct perf_strawman *how, const struct sar_hash_input *input,
                                   struct sar_arena *arena, struct sar_hash_output *out);

/* Share of n different indices that c n cells are expected to lose, for large n. */
double perf_strawman_loss(double c);

#endif
