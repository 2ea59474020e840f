/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts of non-zeros, and single elements of dense buffers. Runs at memory bandwidth. dense_scan.c makes a vec
 * of a buffer, and dense_write.c a buffer of vecs. */

#include "vector/dense.h"

#include <string.h>

#include "hash/murmur3.h"

enum {
    SAMPLE_GROUP = 64, /* basic values of a sample that are adjacent */
    COUNT_GROUP = 64   /* values counted at once */
};

/* Elements of 2, 4 and 8 bytes may be rows, which have the alignment of their basic type. */
typedef uint16_t unaligned16 __attribute__((aligned(1)));
typedef uint32_t unaligned32 __attribute__((aligned(1)));
typedef uint64_t unaligned64 __attribute__((aligned(1)));

SAR_CLONES bool sar_row_is_nonzero(const unsigned char *row, size_t bytes)
{
    const unaligned64 *word = (const void *)row;
    uint64_t any = 0;
    for (size_t i = 0; i < bytes / sizeof *word; i++)
        any |= word[i];
    for (size_t i = bytes / sizeof *word * sizeof *word; i < bytes; i++)
        any |= row[i];
    return any != 0;
}

/* countN: non-zeros among n values of N bytes. Groups of fixed length compile to whole SIMD vectors. */
#define DEFINE_COUNT(name, type)                           \
    SAR_CLONES static size_t name(const type *v, size_t n) \
    {                                                      \
        size_t counted = 0, i = 0;                         \
        for (; n - i >= COUNT_GROUP; i += COUNT_GROUP) {   \
            type here = 0;                                 \
            for (size_t j = 0; j < COUNT_GROUP; j++)       \
                here = (type)(here + (v[i + j] != 0));     \
            counted += (size_t)here;                       \
        }                                                  \
        for (; i < n; i++)                                 \
            counted += v[i] != 0;                          \
        return counted;                                    \
    }

DEFINE_COUNT(count1, uint8_t)
DEFINE_COUNT(count2, unaligned16)
DEFINE_COUNT(count4, unaligned32)
DEFINE_COUNT(count8, unaligned64)

static size_t count_rows(const unsigned char *buf, size_t bytes, size_t n)
{
    size_t counted = 0;
    for (size_t i = 0; i < n; i++)
        counted += sar_row_is_nonzero(buf + i * bytes, bytes);
    return counted;
}

size_t sar_dense_count_nonzero(const struct sar_vec_desc *desc, const void *buf, size_t n)
{
    switch (desc->element_size) {
    case 1: return count1(buf, n);
    case 2: return count2(buf, n);
    case 4: return count4(buf, n);
    case 8: return count8(buf, n);
    default: return count_rows(buf, desc->element_size, n);
    }
}

/* Returns the first element of sample group g: a hashed position in interval g of `stride` elements. */
static size_t sample_begin(uint32_t g, size_t stride, size_t group)
{
    size_t slack = stride - group;
    return g * stride +
           sar_hash_range(sar_mix32(g + 1), slack < UINT32_MAX ? (uint32_t)slack + 1 : UINT32_MAX);
}

size_t sar_dense_estimate_nonzero(const struct sar_vec_desc *desc, const void *buf, size_t sample)
{
    const unsigned char *bytes = buf;
    size_t count = (size_t)desc->count,
           group = SAMPLE_GROUP < desc->row_len ? 1 : SAMPLE_GROUP / desc->row_len;
    size_t groups = sample / group, present = 0;
    if (groups == 0 || sample >= count)
        return sar_dense_count_nonzero(desc, buf, count);
    for (uint32_t g = 0; g < groups; g++)
        present +=
            sar_dense_count_nonzero(desc, bytes + sample_begin(g, count / groups, group) * desc->element_size,
                                    group);
    return (size_t)((double)present / (double)(groups * group) * (double)count);
}

SAR_CLONES static bool any_zero4(const unaligned32 *value, size_t n)
{
    uint32_t found = 0;
    for (size_t i = 0; i < n; i++)
        found |= value[i] == 0;
    return found != 0;
}

enum sar_status sar_spvec_drop_zeros(const struct sar_vec_desc *desc, struct sar_arena *arena,
                                     struct sar_spvec *vec)
{
    struct sar_spvec kept;
    size_t bytes = desc->element_size, k = 0;
    if (bytes == 4 && !any_zero4(vec->value, vec->nnz))
        return SAR_OK;
    if (sar_dense_count_nonzero(desc, vec->value, vec->nnz) == vec->nnz)
        return SAR_OK;
    SAR_TRY(sar_spvec_alloc(desc, vec->nnz, arena, &kept));
    for (size_t i = 0; i < vec->nnz; i++) {
        const unsigned char *value = (const unsigned char *)vec->value + i * bytes;
        if (!sar_row_is_nonzero(value, bytes))
            continue;
        sar_index_set(kept.index, desc->index_size, k, sar_index_get(vec->index, desc->index_size, i));
        memcpy((unsigned char *)kept.value + k++ * bytes, value, bytes);
    }
    *vec = (struct sar_spvec){ kept.index, kept.value, k };
    return SAR_OK;
}

/* findN: true if one of n values of N bytes has the sign bit set and no other. */
#define DEFINE_FIND(name, type)                                             \
    SAR_CLONES static bool name(const type *value, size_t n)                \
    {                                                                       \
        type found = 0;                                                     \
        for (size_t i = 0; i < n; i++)                                      \
            found |= value[i] == (type)((type)1 << (8 * sizeof(type) - 1)); \
        return found != 0;                                                  \
    }

DEFINE_FIND(find2, uint16_t)
DEFINE_FIND(find4, uint32_t)
DEFINE_FIND(find8, uint64_t)

bool sar_dense_has_negative_zero(enum sar_dtype dtype, const void *values, size_t n)
{
    switch (dtype) {
    case SAR_FLOAT: return find4(values, n);
    case SAR_DOUBLE: return find8(values, n);
    case SAR_BF16:
    case SAR_FP16: return find2(values, n);
    default: return false;
    }
}

SAR_INLINE void scatter(const struct sar_spvec *vec, unsigned size, size_t bytes, unsigned char *buf)
{
    const unsigned char *value = vec->value;
    for (size_t i = 0; i < vec->nnz; i++)
        memcpy(buf + sar_index_get(vec->index, size, i) * bytes, value + i * bytes, bytes);
}

void sar_dense_scatter(const struct sar_vec_desc *desc, const struct sar_spvec *vec, void *buf)
{
    if (desc->element_size == 4)
        SAR_FOR_INDEX_SIZE(desc->index_size, scatter(vec, INDEX_SIZE, 4, buf));
    else if (desc->element_size == 8)
        SAR_FOR_INDEX_SIZE(desc->index_size, scatter(vec, INDEX_SIZE, 8, buf));
    else
        scatter(vec, desc->index_size, desc->element_size, buf);
}

SAR_INLINE void clear(const struct sar_spvec *vec, unsigned size, size_t bytes, unsigned char *buf)
{
    for (size_t i = 0; i < vec->nnz; i++)
        memset(buf + sar_index_get(vec->index, size, i) * bytes, 0, bytes);
}

void sar_dense_clear(const struct sar_vec_desc *desc, const struct sar_spvec *vec, void *buf)
{
    if (desc->element_size == 4)
        SAR_FOR_INDEX_SIZE(desc->index_size, clear(vec, INDEX_SIZE, 4, buf));
    else if (desc->element_size == 8)
        SAR_FOR_INDEX_SIZE(desc->index_size, clear(vec, INDEX_SIZE, 8, buf));
    else
        clear(vec, desc->index_size, desc->element_size, buf);
}
