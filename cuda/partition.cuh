/* SPDX-License-Identifier: BSD-3-Clause */
/* Functors of the kernels in coalesce.cu that partition a vector. Cells: struct sar_partition_cells in
 * dense.cuh. */

#ifndef SAR_CUDA_PARTITION_CUH
#define SAR_CUDA_PARTITION_CUH

#include "cuda/dense.cuh"

/** Writes the cell of element i. Host twin: vector/partition.c. */
template <class Index> struct sar_locate_functor {
    sar_partition_cells cells;
    const Index *index;
    uint32_t *cell, *position;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        struct sar_slot location = sar_partition_map_locate(&cells.map, index[i]);
        size_t segment = sar_divide((size_t)location.slot, (size_t)cells.part_slots);
        cell[i] = (uint32_t)(segment * cells.map.parts + location.part);
        position[i] = (uint32_t)i;
    }
};

/** Writes the slot of the i-th element in the order of cells. If element i begins a cell, writes where that
 * cell and the empty cells before it begin; the last element also ends the empty cells behind it. Host
 * twin: vector/partition.c. */
template <class Index> struct sar_sorted_slots_functor {
    sar_partition_cells cells;
    size_t n, cells_n;
    const Index *index;
    const uint32_t *cell, *position; /* sorted */
    uint32_t *slot;
    unsigned long long *first;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        struct sar_slot location = sar_partition_map_locate(&cells.map, index[position[i]]);
        size_t segment = sar_divide(cell[i], cells.map.parts);
        slot[i] = (uint32_t)(location.slot - segment * cells.part_slots);
        for (size_t c = i == 0 ? 0 : (size_t)cell[i - 1] + 1; c <= cell[i]; c++)
            first[c] = i;
        for (size_t c = (size_t)cell[i] + 1; i + 1 == n && c < cells_n; c++)
            first[c] = n;
    }
};

#endif
