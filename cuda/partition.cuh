/* SPDX-License-Identifier: BSD-3-Clause */
/* What each thread does that splits a run, for coalesce.cu. Cells are the parts of segments (dense.cuh). */

#ifndef SAR_CUDA_PARTITION_CUH
#define SAR_CUDA_PARTITION_CUH

#include "cuda/dense.cuh"

/** The cell of element i. Host twin: locate_body in tensor/partition.c. */
template <class Index> struct sar_locate_body {
    sar_cells cells;
    const Index *index;
    uint32_t *cell, *position;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        struct sar_place place = sar_map_place(&cells.map, index[i]);
        size_t segment = sar_quotient((size_t)place.slot, (size_t)cells.width);
        cell[i] = (uint32_t)(segment * cells.map.parts + place.part);
        position[i] = (uint32_t)i;
    }
};

/** Of the i-th in the order of cells: its slot, and where its cell begins, as well as the empty ones before
 * it, or behind it if it is the last. Host twin: move_body. */
template <class Index> struct sar_slots_of_body {
    sar_cells cells;
    size_t n, cells_n;
    const Index *index;
    const uint32_t *cell, *position; /* sorted */
    uint32_t *slot;
    unsigned long long *first;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        struct sar_place place = sar_map_place(&cells.map, index[position[i]]);
        size_t segment = sar_quotient(cell[i], cells.map.parts);
        slot[i] = (uint32_t)(place.slot - segment * cells.width);
        for (size_t c = i == 0 ? 0 : (size_t)cell[i - 1] + 1; c <= cell[i]; c++)
            first[c] = i;
        for (size_t c = (size_t)cell[i] + 1; i + 1 == n && c < cells_n; c++)
            first[c] = n;
    }
};

#endif
