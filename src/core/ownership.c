/* SPDX-License-Identifier: BSD-3-Clause */
/* Candidates: the block of the last reduce_scatter on the communicator, whose results an allgather often has;
 * cyclic; contiguous parts. */

#include "core/ownership.h"

enum { CANDIDATES = 3, ALL = (1 << CANDIDATES) - 1 };

/* Returns the block of a candidate; 0: none. */
static uint64_t candidate(const struct sar_comm_state *comm_state, uint64_t count, int k)
{
    uint64_t ranks = (uint64_t)comm_state->comm.ranks;
    const uint64_t blocks[CANDIDATES] = { comm_state->scatter_block, 1,
                                          count / ranks + (count % ranks != 0) };
    return blocks[k];
}

static uint64_t index_of(const struct sar_vec_desc *desc, const struct sar_spvec *vec, size_t i)
{
    return sar_index_get(vec->index, desc->index_size, i);
}

/* A contiguous part has all elements between two of its own. In other parts, the first element of each block
 * is looked up. */
static bool owns_all(const struct sar_partition_map *map, uint32_t rank, const struct sar_vec_desc *desc,
                     const struct sar_spvec *vec)
{
    uint64_t end = 0;
    if (map->kind == SAR_PARTITION_RANGE)
        return vec->nnz == 0 ||
               (sar_partition_map_locate(map, index_of(desc, vec, 0)).part == rank &&
                sar_partition_map_locate(map, index_of(desc, vec, vec->nnz - 1)).part == rank);
    for (size_t i = 0; i < vec->nnz; i++) {
        uint64_t index = index_of(desc, vec, i);
        if (index < end)
            continue;
        if (sar_partition_map_locate(map, index).part != rank)
            return false;
        end = index - index % map->grain + map->grain;
    }
    return true;
}

uint8_t sar_ownership_violations(const struct sar_comm_state *comm_state, const struct sar_vec_desc *desc,
                                 const struct sar_spvec *vec)
{
    uint8_t violations = 0;
    for (int k = 0; k < CANDIDATES; k++) {
        uint64_t block = candidate(comm_state, desc->count, k);
        if (block == 0)
            continue;
        struct sar_partition_map map =
            sar_partition_map_of_blocks(desc->count, (uint32_t)comm_state->comm.ranks, block);
        if (!owns_all(&map, (uint32_t)comm_state->comm.rank, desc, vec))
            violations |= (uint8_t)(1 << k);
    }
    return violations;
}

uint64_t sar_ownership_block(const struct sar_comm_state *comm_state, const struct sar_vec_desc *desc,
                             uint8_t violations)
{
    for (int k = 0; k < CANDIDATES && violations != ALL; k++) {
        uint64_t block = candidate(comm_state, desc->count, k);
        if (block > 0 && (violations & (1 << k)) == 0)
            return block;
    }
    return 0;
}
