/* SPDX-License-Identifier: BSD-3-Clause */
/* The result of a sort: elements are appended in ascending order, and reduced if their indices are equal. */

#include "vector/sort_output.h"

#include <string.h>

/* Add a value to the last element of the result, `top`. */
static void add_wide(const struct sar_vec_desc *desc, struct sar_wide_sum *to, size_t nnz, void *top,
                     const void *value)
{
    const struct sar_op_kernels *wide = desc->kernels->wide;
    if (to->nnz != nnz) {
        wide->fill_identity(to->sums, desc->row_len);
        wide->apply(to->sums, top, desc->row_len);
        to->nnz = nnz;
    }
    wide->apply(to->sums, value, desc->row_len);
    desc->kernels->round(top, to->sums, desc->row_len);
}

/* Append an element to the result. `bytes` and `index_size` are constants in the frequent cases. */
SAR_INLINE void emit(const struct sar_vec_desc *desc, struct sar_sorted *sorted, uint64_t index,
                     const void *value, size_t bytes, unsigned index_size)
{
    struct sar_spvec *vec = &sorted->vec;
    unsigned char *top = (unsigned char *)vec->value + vec->nnz * bytes;
    if (vec->nnz != 0 && index == sorted->last) {
        if (desc->kernels->wide == NULL)
            desc->kernels->apply(top - bytes, value, desc->row_len);
        else
            add_wide(desc, sorted->wide, vec->nnz, top - bytes, value);
        return;
    }
    memcpy(top, value, bytes);
    sar_index_set(vec->index, index_size, vec->nnz++, index);
    sorted->last = index;
}

/* Append an element whose value is the payload, of 1, 2, 4 or 8 bytes. */
SAR_INLINE void emit_value(const struct sar_vec_desc *desc, struct sar_sorted *sorted, uint64_t index,
                           uint64_t value, size_t bytes, unsigned index_size)
{
    uint8_t u8 = (uint8_t)value;
    uint16_t u16 = (uint16_t)value;
    uint32_t u32 = (uint32_t)value;
    const void *at = bytes == 1   ? (void *)&u8
                     : bytes == 2 ? (void *)&u16
                     : bytes == 4 ? (void *)&u32
                                  : &value;
    emit(desc, sorted, index, at, bytes, index_size);
}

SAR_INLINE void emit_values(const struct sar_vec_desc *desc, struct sar_sorted *sorted, const uint64_t *item,
                            size_t n, uint64_t base, size_t bytes, unsigned index_size)
{
    struct sar_sorted local = *sorted; /* a local copy: stores cannot alias it */
    for (size_t i = 0; i < n; i++)
        emit_value(desc, &local, base + (item[i] >> 32), (uint32_t)item[i], bytes, index_size);
    *sorted = local;
}

static void emit_positions(const struct sar_vec_desc *desc, const unsigned char *value, const uint64_t *item,
                           size_t n, uint64_t base, struct sar_sorted *sorted)
{
    size_t bytes = desc->element_size;
    for (size_t i = 0; i < n; i++)
        emit(desc, sorted, base + (item[i] >> 32), value + (uint32_t)item[i] * bytes, bytes,
             desc->index_size);
}

void sar_sorted_append_items(const struct sar_vec_desc *desc, const void *value, const uint64_t *item,
                             size_t n, uint64_t base, struct sar_sorted *sorted)
{
    unsigned size = desc->index_size;
    if (value != NULL)
        emit_positions(desc, value, item, n, base, sorted);
    else if (desc->element_size == 4)
        SAR_FOR_INDEX_SIZE(size, emit_values(desc, sorted, item, n, base, 4, INDEX_SIZE));
    else if (desc->element_size == 2)
        SAR_FOR_INDEX_SIZE(size, emit_values(desc, sorted, item, n, base, 2, INDEX_SIZE));
    else
        emit_values(desc, sorted, item, n, base, 1, size);
}

SAR_INLINE void emit_entry_values(const struct sar_vec_desc *desc, struct sar_sorted *sorted,
                                  const uint64_t *item, size_t n, const struct sar_sort_entry *entries,
                                  size_t bytes, unsigned index_size)
{
    struct sar_sorted local = *sorted;
    for (size_t i = 0; i < n; i++) {
        struct sar_sort_entry entry = entries[(uint32_t)item[i]];
        emit_value(desc, &local, entry.index, entry.payload, bytes, index_size);
    }
    *sorted = local;
}

void sar_sorted_append_entries(const struct sar_vec_desc *desc, const void *value, const uint64_t *item,
                               size_t n, const struct sar_sort_entry *entries, struct sar_sorted *sorted)
{
    size_t bytes = desc->element_size;
    unsigned size = desc->index_size;
    if (value == NULL && bytes == 8)
        SAR_FOR_INDEX_SIZE(size, emit_entry_values(desc, sorted, item, n, entries, 8, INDEX_SIZE));
    else if (value == NULL)
        emit_entry_values(desc, sorted, item, n, entries, bytes, size);
    for (size_t i = 0; value != NULL && i < n; i++) {
        struct sar_sort_entry entry = entries[(uint32_t)item[i]];
        emit(desc, sorted, entry.index, (const unsigned char *)value + entry.payload * bytes, bytes, size);
    }
}
