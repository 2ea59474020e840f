/* SPDX-License-Identifier: BSD-3-Clause */
/* Hierarchical hashing, Algorithm 1 of the Zen paper: many threads sort non-zeros into parts, and none is
 * lost. One text for CPU threads and for CUDA.
 *
 * Each part has r1 cells of parallel memory, followed by r2 cells of serial memory:
 *
 *     | part 0: parallel | serial | part 1: parallel | serial | …
 *
 * A thread asks the partition map for the part of its index (h0, the same on all ranks), then tries the
 * cells that h_1 … h_k name in the part's parallel memory. Where all are taken it appends to the serial
 * memory, whose next cell comes from an atomic counter. The lists are then read off the cells in order.
 *
 * What is decided here and not in the paper:
 *
 * Cells hold positions in the input, plus 1 since 0 is an empty cell: not indices. A position finds both
 * the index and the value of coordinate input, tells equal indices apart, and fits 4 bytes whenever there
 * are fewer than 2^32 - 1 non-zeros, however large the vector.
 *
 * Cells are claimed by compare-and-swap. The paper writes, reads back, and takes an unchanged cell as its
 * own; but a thread that found the cell empty may be delayed, and overwrite it after the owner has read and
 * gone on. Only a barrier of all threads between the writes and the reads of each round mends that, and
 * 2 k rounds cost more than one atomic operation where it is needed.
 *
 * h_i names a cell of its own level. Level 1 is half of the parallel memory, level 2 half of the rest, and
 * so on; the last has all that remains. The few that reach a late level find it nearly empty, where the
 * paper's h_i all share r1 cells that are filled by a half. With r1 = 2 nnz / parts the share of serial
 * writes is, for k = 1 2 3 4: 21.3, 6.0, 1.1, 0.08 %, and with shared cells 21.3, 7.6, 3.0, 1.2 %.
 *
 * h_i hashes the position. A cell means nothing to other ranks, so ranks may differ in it, and equal indices
 * do not chase the same k cells. `paper` gives both as printed.
 *
 * Serial memory that overflows loses nothing: the counter shows it, and the driver counts the parts and runs
 * again with memory that fits each, so that skew costs no more than memory in proportion to nnz. */

#ifndef SAR_HASH_HIERARCHICAL_H
#define SAR_HASH_HIERARCHICAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "hash/map.h"

enum { SAR_MOST_HASHES = 8 };

/** Work on the occurrences [begin, end). */
typedef void sar_range_fn(void *context, size_t begin, size_t end);

/** How to hash. sar_hierarchical_defaults fills in all of it. */
struct sar_hierarchical {
    unsigned hashes;         /**< k, from 1 to SAR_MOST_HASHES */
    unsigned cell_size;      /**< 4, or 8 from 2^32 - 1 occurrences on */
    uint32_t seed;           /**< of h_1 … h_k; ranks may differ in it */
    bool paper;              /**< h_i as printed: of the index, onto all of the parallel memory */
    bool sorted;             /**< lists ascend by index, equal indices by position */
    size_t parallel, serial; /**< r1 and r2, cells a part in the first run */
    /** Call body for ranges that cover [0, n) on any threads, return when all are done. NULL: one thread. */
    void (*each)(size_t n, sar_range_fn *body, void *context);
};

/** Occurrences in any order, equal indices allowed. Points into memory that others own. */
struct sar_hash_input {
    const void *index; /**< nnz indices below map->count, of index_size bytes (4 or 8) */
    const void *value; /**< nnz values of value_size bytes; NULL if positions are all that is wanted */
    unsigned index_size;
    size_t value_size;
    size_t nnz;
};

/** The occurrences of part p are those from first[p] to first[p + 1]. */
struct sar_hash_output {
    size_t *first;    /**< parts + 1 */
    size_t *position; /**< nnz positions in the input */
    void *index;      /**< nnz indices, of the input's size */
    void *value;      /**< nnz values; NULL without values in the input */
    size_t serial;    /**< occurrences that went to serial memory in the last run */
    unsigned reruns;  /**< runs that overflowed */
};

/** The memory of one run. On a device all pointers are the device's. */
struct sar_hash_memory {
    struct sar_hierarchical how;
    bool wide_key;               /**< what h_i hashes may exceed 32 bits */
    const size_t *first;         /**< first cell of each part, and the number of all cells */
    const size_t *serial;        /**< first serial cell of each part */
    unsigned long long *appends; /**< a part's occurrences that found no parallel cell, written or not */
    void *cells;                 /**< zeroed before the run */
};

/** The paper's parameters: k = 3, r1 = 2 nnz / parts, r2 = r1 / 10, and a little more for small nnz. */
struct sar_hierarchical sar_hierarchical_defaults(size_t nnz, uint32_t parts, uint32_t seed);

/** Reruns that can be needed at most, whatever the input. */
enum { SAR_MOST_RERUNS = 4 };

/** Lay out the memory of run 0, 1, 2 …: fill first and serial of struct sar_hash_memory. Run 0 gives all
 * parts r1 + r2 cells; later runs need the parts' totals, and give each part memory in proportion. */
enum sar_status sar_hash_layout(const struct sar_hierarchical *how, uint32_t parts, unsigned run,
                                const unsigned long long *totals, size_t *first, size_t *serial);

/** Whether an occurrence found no cell in the run: lay out the next. */
bool sar_hash_overflowed(const struct sar_hash_memory *memory, uint32_t parts);

/** Sort the occurrences into the map's parts. The output lives in the arena. */
enum sar_status sar_hierarchical_hash(const struct sar_hierarchical *how, const struct sar_map *map,
                                      const struct sar_hash_input *input, struct sar_arena *arena,
                                      struct sar_hash_output *out);

SAR_HOST_DEVICE static inline uint64_t sar_hash_index(const struct sar_hash_input *input, size_t at)
{
    return input->index_size == 4 ? ((const uint32_t *)input->index)[at]
                                  : ((const uint64_t *)input->index)[at];
}

/** Put mark into an empty cell; false if it was taken. Nothing is read through a cell before all threads have
 * met, so no order is asked for. */
SAR_HOST_DEVICE static inline bool sar_cell_claim(const struct sar_hash_memory *memory, size_t cell,
                                                  uint64_t mark)
{
#ifdef __CUDA_ARCH__
    if (memory->how.cell_size == 4)
        return atomicCAS((unsigned *)memory->cells + cell, 0u, (unsigned)mark) == 0;
    return atomicCAS((unsigned long long *)memory->cells + cell, 0ull, (unsigned long long)mark) == 0;
#else
    uint32_t empty = 0;
    uint64_t wide_empty = 0;
    if (memory->how.cell_size == 4)
        return __atomic_compare_exchange_n((uint32_t *)memory->cells + cell, &empty, (uint32_t)mark, false,
                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return __atomic_compare_exchange_n((uint64_t *)memory->cells + cell, &wide_empty, mark, false,
                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED);
#endif
}

/** Add 1 to a counter that many threads use; its value before. */
SAR_HOST_DEVICE static inline unsigned long long sar_counter_next(unsigned long long *counter)
{
#ifdef __CUDA_ARCH__
    return atomicAdd(counter, 1ull);
#else
    return __atomic_fetch_add(counter, 1ull, __ATOMIC_RELAXED);
#endif
}

/** h_i, for i = 0 … k-1, onto [0, cells). */
SAR_HOST_DEVICE static inline size_t sar_second_hash(const struct sar_hash_memory *memory, unsigned i,
                                                     uint64_t key, size_t cells)
{
    uint32_t seed = sar_mix32(memory->how.seed + (i + 1) * 0x9e3779b9u);
    uint32_t hash = memory->wide_key ? sar_murmur3_wide(key, seed) : sar_murmur3((uint32_t)key, seed);
    return sar_hash_range(hash, (uint32_t)cells);
}

/** The cell's owner is the counter's only caller to have got it, so no other thread writes there. */
SAR_HOST_DEVICE static inline void sar_hash_append(const struct sar_hash_memory *memory, uint32_t part,
                                                   size_t at)
{
    unsigned long long turn = sar_counter_next(&memory->appends[part]);
    if (turn >= memory->first[part + 1] - memory->serial[part])
        return;
    size_t cell = memory->serial[part] + (size_t)turn;
    if (memory->how.cell_size == 4)
        ((uint32_t *)memory->cells)[cell] = (uint32_t)(at + 1);
    else
        ((uint64_t *)memory->cells)[cell] = at + 1;
}

/** The loop body of Algorithm 1, for the occurrence at a position of the input. Any number of threads. */
SAR_HOST_DEVICE static inline void sar_hash_one(const struct sar_hash_memory *memory,
                                                const struct sar_map *map, const struct sar_hash_input *input,
                                                size_t at)
{
    uint64_t index = sar_hash_index(input, at);
    uint32_t part = sar_map_place(map, index).part;
    size_t start = memory->first[part], rest = memory->serial[part] - start;
    for (unsigned i = 0; i < memory->how.hashes && rest > 0; i++) {
        bool all = memory->how.paper || i + 1 == memory->how.hashes;
        size_t level = all ? rest : rest - rest / 2;
        uint64_t key = memory->how.paper ? index : at;
        if (sar_cell_claim(memory, start + sar_second_hash(memory, i, key, level), at + 1))
            return;
        start += all ? 0 : level;
        rest -= all ? 0 : level;
    }
    sar_hash_append(memory, part, at);
}

/** Count the occurrence at a position towards its part. Any number of threads. */
SAR_HOST_DEVICE static inline void sar_hash_count(const struct sar_map *map,
                                                  const struct sar_hash_input *input, size_t at,
                                                  unsigned long long *totals)
{
    sar_counter_next(&totals[sar_map_place(map, sar_hash_index(input, at)).part]);
}

#endif
