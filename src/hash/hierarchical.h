/* SPDX-License-Identifier: BSD-3-Clause */
/* Hierarchical hashing, Algorithm 1 of the Zen paper: any number of threads sort nonzeros into parts, without
 * loss. CPU threads and CUDA compile this text. Costs one to k + 1 atomic operations an element.
 *
 * Each part has r1 cells of parallel memory, followed by r2 cells of serial memory:
 *
 *     | part 0: parallel | serial | part 1: parallel | serial | …
 *
 * A thread gets the part of its index from the partition map (h0, equal on all ranks). It tries the cells h_1
 * … h_k of the part's parallel memory. If all are taken, it appends to the serial memory, at the position
 * that an atomic counter gives. Reading the cells in order then yields the lists.
 *
 * Differences from the paper:
 *
 * Cells hold positions in the input plus 1, not indices; 0 is an empty cell. A position leads to index and
 * value, distinguishes equal indices, and fits 4 bytes if there are fewer than 2^32 - 1 nonzeros.
 *
 * Threads claim cells by compare-and-swap; a thread that works alone needs no atomic operations. The paper
 * writes a cell, reads it back, and owns the cell if it is unchanged. But a delayed thread that found the
 * cell empty may overwrite it after the owner has read it. Only a barrier of all threads between writes and
 * reads prevents that, and 2 k barriers cost more.
 *
 * Each h_i has its own level of cells. Level 1 is half of the parallel memory, level 2 half of the rest, and
 * so on; the last level is all that remains. Late levels are nearly empty, whereas the paper's h_i share r1
 * cells that fill up by half. With r1 = 2 nnz / parts the share of serial writes is, for k = 1 2 3 4: 21.3,
 * 6.0, 1.1, 0.08 %; with shared cells it is 21.3, 7.6, 3.0, 1.2 %.
 *
 * h_i hashes the position, not the index, so that equal indices do not compete for the same k cells. Ranks
 * may differ in cells. The parameter `paper` selects levels and keys as printed.
 *
 * An overflow of serial memory loses nothing: the counter shows it. The driver then counts the elements of
 * each part and reruns with memory to match, so that skewed input needs memory in proportion to nnz only. */

#ifndef SAR_HASH_HIERARCHICAL_H
#define SAR_HASH_HIERARCHICAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "hash/partition_map.h"

/** Most hash functions, k. */
enum { SAR_HASHES_MAX = 8 };

/** Body of a parallel loop over the occurrences [begin, end). */
typedef void sar_range_fn(void *context, size_t begin, size_t end);

/** Parameters. sar_hierarchical_params_make sets all of them. */
struct sar_hierarchical_params {
    unsigned hashes;    /**< k, from 1 to SAR_HASHES_MAX */
    unsigned cell_size; /**< 4, or 8 from 2^32 - 1 occurrences on */
    uint32_t seed;      /**< seed of h_1 … h_k; may differ between ranks */
    bool paper;         /**< h_i of the index, onto all parallel memory, as printed in the paper */
    bool sorted;        /**< sort lists by index, equal indices by position */
    size_t parallel_cells, serial_cells; /**< r1 and r2: cells of a part in the first run */
    /** Runs body on ranges that cover [0, n), on any threads, and returns when all are done. NULL: one
     * thread. */
    void (*parallel_for)(size_t n, sar_range_fn *body, void *context);
};

/** Occurrences in any order, equal indices allowed. Owns nothing. */
struct sar_hash_input {
    const void *index; /**< nnz indices below map->count, of index_size bytes (4 or 8) */
    const void *value; /**< nnz values of value_size bytes; NULL: return positions only */
    unsigned index_size;
    size_t value_size;
    size_t nnz;
};

/** Output, in memory of the arena. Part p has the occurrences from first[p] to first[p + 1]. */
struct sar_hash_output {
    size_t *first;       /**< parts + 1 positions */
    size_t *position;    /**< nnz positions in the input */
    void *index;         /**< nnz indices of the input's index_size */
    void *value;         /**< nnz values; NULL without values in the input */
    size_t serial_count; /**< occurrences in serial memory in the last run */
    unsigned reruns;     /**< runs that overflowed */
};

/** The memory of one run. On a device all pointers are device memory. */
struct sar_hash_memory {
    struct sar_hierarchical_params params;
    bool key_is_64bit;                /**< keys of h_i may exceed 32 bits */
    const size_t *first;              /**< first cell of each part; last entry: number of cells */
    const size_t *first_serial;       /**< first serial cell of each part */
    unsigned long long *serial_count; /**< occurrences of each part without a parallel cell, stored or not */
    void *cells;                      /**< zeroed before the run */
    bool exclusive;                   /**< one host thread fills the cells: without atomic operations */
};

/** Returns the paper's parameters: k = 3, r1 = 2 nnz / parts, r2 = r1 / 10; r2 is larger for small nnz. */
struct sar_hierarchical_params sar_hierarchical_params_make(size_t nnz, uint32_t parts, uint32_t seed);

/** Most reruns that any input needs. */
enum { SAR_RERUNS_MAX = 4 };

/** Sets `first` and `serial` of struct sar_hash_memory for run 0, 1, 2 …. Run 0 gives each part r1 + r2
 * cells. Later runs give each part cells in proportion to its total. Returns SAR_NO_MEMORY on overflow. */
enum sar_status sar_hash_layout(const struct sar_hierarchical_params *params, uint32_t parts, unsigned run,
                                const unsigned long long *totals, size_t *first, size_t *serial);

/** True if an occurrence found no cell, so that another run is needed. */
bool sar_hash_overflowed(const struct sar_hash_memory *memory, uint32_t parts);

/** Algorithm 1 up to the lists: writes all occurrences to cells, with more memory in each run until none
 * overflows. Allocates from the arena. Local.
 * @param memory  set to the last run's memory
 * @param reruns  set to the runs that overflowed */
enum sar_status sar_hash_fill(const struct sar_hierarchical_params *params,
                              const struct sar_partition_map *map, const struct sar_hash_input *input,
                              struct sar_arena *arena, struct sar_hash_memory *memory, unsigned *reruns);

/** Sorts the occurrences into the parts of the map. Allocates from the arena. Local. */
enum sar_status sar_hierarchical_hash(const struct sar_hierarchical_params *params,
                                      const struct sar_partition_map *map, const struct sar_hash_input *input,
                                      struct sar_arena *arena, struct sar_hash_output *out);

/** Returns the index of the occurrence at a position of the input. */
SAR_HOST_DEVICE static inline uint64_t sar_hash_index(const struct sar_hash_input *input, size_t at)
{
    return input->index_size == 4 ? ((const uint32_t *)input->index)[at]
                                  : ((const uint64_t *)input->index)[at];
}

/** As sar_hash_claim_cell, for a thread that fills the cells alone. */
SAR_HOST_DEVICE static inline bool sar_hash_claim_alone(const struct sar_hash_memory *memory, size_t cell,
                                                        uint64_t mark)
{
    uint32_t *narrow = (uint32_t *)memory->cells;
    uint64_t *wide = (uint64_t *)memory->cells;
    bool is_narrow = memory->params.cell_size == 4;
    if (is_narrow ? narrow[cell] != 0 : wide[cell] != 0)
        return false;
    if (is_narrow)
        narrow[cell] = (uint32_t)mark;
    else
        wide[cell] = mark;
    return true;
}

/** Writes mark to a cell if it is empty; returns false if it is taken. Relaxed order suffices, since cells
 * are read only after all threads have finished. */
SAR_HOST_DEVICE static inline bool sar_hash_claim_cell(const struct sar_hash_memory *memory, size_t cell,
                                                       uint64_t mark)
{
#ifdef __CUDA_ARCH__
    if (memory->params.cell_size == 4)
        return atomicCAS((unsigned *)memory->cells + cell, 0u, (unsigned)mark) == 0;
    return atomicCAS((unsigned long long *)memory->cells + cell, 0ull, (unsigned long long)mark) == 0;
#else
    uint32_t empty = 0;
    uint64_t wide_empty = 0;
    if (memory->exclusive)
        return sar_hash_claim_alone(memory, cell, mark);
    if (memory->params.cell_size == 4)
        return __atomic_compare_exchange_n((uint32_t *)memory->cells + cell, &empty, (uint32_t)mark, false,
                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return __atomic_compare_exchange_n((uint64_t *)memory->cells + cell, &wide_empty, mark, false,
                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED);
#endif
}

/** Atomically adds 1 to a counter; returns its value before. */
SAR_HOST_DEVICE static inline unsigned long long sar_hash_fetch_increment(unsigned long long *counter)
{
#ifdef __CUDA_ARCH__
    return atomicAdd(counter, 1ull);
#else
    return __atomic_fetch_add(counter, 1ull, __ATOMIC_RELAXED);
#endif
}

/** Returns h_i of key, i = 0 … k-1, in [0, cells). */
SAR_HOST_DEVICE static inline size_t sar_hash_cell(const struct sar_hash_memory *memory, unsigned i,
                                                   uint64_t key, size_t cells)
{
    uint32_t seed = sar_mix32(memory->params.seed + (i + 1) * 0x9e3779b9u);
    uint32_t hash = memory->key_is_64bit ? sar_murmur3_u64(key, seed) : sar_murmur3((uint32_t)key, seed);
    return sar_hash_range(hash, (uint32_t)cells);
}

/** Appends the occurrence to the part's serial memory. The counter gives each cell to one thread only. */
SAR_HOST_DEVICE static inline void sar_hash_append(const struct sar_hash_memory *memory, uint32_t part,
                                                   size_t at)
{
    unsigned long long *counter = &memory->serial_count[part];
    unsigned long long serial_index = memory->exclusive ? (*counter)++ : sar_hash_fetch_increment(counter);
    if (serial_index >= memory->first[part + 1] - memory->first_serial[part])
        return;
    size_t cell = memory->first_serial[part] + (size_t)serial_index;
    if (memory->params.cell_size == 4)
        ((uint32_t *)memory->cells)[cell] = (uint32_t)(at + 1);
    else
        ((uint64_t *)memory->cells)[cell] = at + 1;
}

/** Writes the occurrence at a position of the input to a cell of its part. Thread-safe unless
 * memory->exclusive. */
SAR_HOST_DEVICE static inline void sar_hash_insert_into(const struct sar_hash_memory *memory, uint32_t part,
                                                        uint64_t index, size_t at)
{
    size_t start = memory->first[part], rest = memory->first_serial[part] - start;
    for (unsigned i = 0; i < memory->params.hashes && rest > 0; i++) {
        bool all = memory->params.paper || i + 1 == memory->params.hashes;
        size_t level = all ? rest : rest - rest / 2;
        uint64_t key = memory->params.paper ? index : at;
        if (sar_hash_claim_cell(memory, start + sar_hash_cell(memory, i, key, level), at + 1))
            return;
        start += all ? 0 : level;
        rest -= all ? 0 : level;
    }
    sar_hash_append(memory, part, at);
}

/** Loop body of Algorithm 1, for the occurrence at a position of the input. Thread-safe unless
 * memory->exclusive. */
SAR_HOST_DEVICE static inline void sar_hash_insert(const struct sar_hash_memory *memory,
                                                   const struct sar_partition_map *map,
                                                   const struct sar_hash_input *input, size_t at)
{
    uint64_t index = sar_hash_index(input, at);
    sar_hash_insert_into(memory, sar_partition_map_locate(map, index).part, index, at);
}

/** Adds the occurrence at a position to the total of its part. Thread-safe. */
SAR_HOST_DEVICE static inline void sar_hash_count(const struct sar_partition_map *map,
                                                  const struct sar_hash_input *input, size_t at,
                                                  unsigned long long *totals)
{
    sar_hash_fetch_increment(&totals[sar_partition_map_locate(map, sar_hash_index(input, at)).part]);
}

#endif
