/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/totals.h"

/* Elements that have an index in common write the same one. */
#define DEFINE_TOTALS(name, type)                                                                    \
    SAR_CLONES static void name(const struct sar_tile *tile, const struct sar_run *run, size_t from, \
                                size_t end, const struct sar_run *out)                               \
    {                                                                                                \
        const uint64_t *restrict bits = tile->bits;                                                  \
        const uint32_t *restrict before = tile->before, *restrict index = run->index;                \
        const type *restrict value = run->value;                                                     \
        uint32_t *restrict out_index = out->index, start = (uint32_t)tile->start;                    \
        type *restrict sums = out->value;                                                            \
        for (size_t i = from; i < end; i++) {                                                        \
            size_t place = sar_tile_place(bits, before, index[i] - start);                           \
            out_index[place] = index[i];                                                             \
            sums[place] += value[i];                                                                 \
        }                                                                                            \
    }

DEFINE_TOTALS(float32_totals, float)
DEFINE_TOTALS(float64_totals, double)
DEFINE_TOTALS(uint32_totals, uint32_t)
DEFINE_TOTALS(uint64_totals, uint64_t)

sar_totals_fn *sar_totals_of(const struct sar_shape *shape, unsigned index_size)
{
    bool narrow = shape->index_size == sizeof(uint32_t) && index_size == sizeof(uint32_t);
    if (shape->op != SAR_SUM || shape->row != 1 || !narrow || shape->absent_is_zero)
        return NULL;
    switch (shape->base) {
    case SAR_FLOAT: return float32_totals;
    case SAR_DOUBLE: return float64_totals;
    case SAR_INT32:
    case SAR_UINT32: return uint32_totals;
    case SAR_INT64:
    case SAR_UINT64: return uint64_totals;
    default: return NULL;
    }
}
