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
        uint32_t *restrict places = out->index, start = (uint32_t)tile->start;                       \
        type *restrict sums = out->value;                                                            \
        for (size_t i = from; i < end; i++) {                                                        \
            uint32_t slot = index[i] - start, word = slot / 64;                                      \
            uint64_t lower = bits[word] & (((uint64_t)1 << slot % 64) - 1);                          \
            size_t place = before[word] + (size_t)__builtin_popcountll(lower);                       \
            places[place] = index[i];                                                                \
            sums[place] += value[i];                                                                 \
        }                                                                                            \
    }

DEFINE_TOTALS(total_floats, float)
DEFINE_TOTALS(total_doubles, double)
DEFINE_TOTALS(total_words, uint32_t)
DEFINE_TOTALS(total_long_words, uint64_t)

sar_totals *sar_totals_of(const struct sar_shape *shape, unsigned index_size)
{
    bool narrow = shape->index_size == sizeof(uint32_t) && index_size == sizeof(uint32_t);
    if (shape->op != SAR_SUM || shape->row != 1 || !narrow || shape->absent_is_zero)
        return NULL;
    switch (shape->base) {
    case SAR_FLOAT: return total_floats;
    case SAR_DOUBLE: return total_doubles;
    case SAR_INT32:
    case SAR_UINT32: return total_words;
    case SAR_INT64:
    case SAR_UINT64: return total_long_words;
    default: return NULL;
    }
}
