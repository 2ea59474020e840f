/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversion of a caller's coordinates to a vec, at the beginning of every coordinate call. One pass finds
 * indices out of range and tests the order. Unsorted input is sorted; ascending input with indices of the
 * library's size is used in place.
 *
 *     time = bytes of indices / memory bandwidth, and sar_sort of unsorted input */

#include "vector/canonicalize.h"

#include "vector/pieces.h"
#include "vector/sort.h"

enum { UNIT = 64 /* elements: pieces of an array that is written share no cache line if it is aligned */ };

/* Result of a pass over the indices. Indices are read as unsigned, so a negative index is huge. */
struct index_stats {
    uint64_t max_index; /* the largest index */
    bool ascending;     /* each index above the one before it */
};

unsigned sar_index_type_size(enum sar_index_type type)
{
    return type == SAR_INDEX_INT32 || type == SAR_INDEX_UINT32 ? 4 : 8;
}

uint64_t sar_index_type_limit(enum sar_index_type type)
{
    static const uint64_t limit[SAR_INDEX_TYPES] = { (uint64_t)1 << 31, (uint64_t)1 << 32, (uint64_t)1 << 63,
                                                     UINT64_MAX };
    return limit[type];
}

SAR_CLONES static struct index_stats scan32(const uint32_t *index, size_t n)
{
    uint32_t max_index = index[0], descents = 0;
    for (size_t i = 1; i < n; i++) {
        max_index = index[i] > max_index ? index[i] : max_index;
        descents |= index[i] <= index[i - 1];
    }
    return (struct index_stats){ max_index, descents == 0 };
}

SAR_CLONES static struct index_stats scan64(const uint64_t *index, size_t n)
{
    uint64_t max_index = index[0], descents = 0;
    for (size_t i = 1; i < n; i++) {
        max_index = index[i] > max_index ? index[i] : max_index;
        descents |= index[i] <= index[i - 1];
    }
    return (struct index_stats){ max_index, descents == 0 };
}

static struct index_stats scan(const void *index, unsigned size, size_t n)
{
    return size == 4 ? scan32(index, n) : scan64(index, n);
}

/* Indices that several threads read, and what is known so far. */
struct scanned {
    const struct sar_coo_args *coo;
    unsigned size; /* bytes of an index */
    struct index_stats stats;
};

/* Compares the first index with the one before it, too. */
static void scan_range(void *scanned, size_t from, size_t to)
{
    struct scanned *s = scanned;
    size_t before = from > 0 ? from - 1 : 0;
    const unsigned char *index = (const unsigned char *)s->coo->indices + before * s->size;
    struct index_stats here = scan(index, s->size, to - before);
    uint64_t max_index = __atomic_load_n(&s->stats.max_index, __ATOMIC_RELAXED);
    while (here.max_index > max_index &&
           !__atomic_compare_exchange_n(&s->stats.max_index, &max_index, here.max_index, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    if (!here.ascending)
        __atomic_store_n(&s->stats.ascending, false, __ATOMIC_RELAXED);
}

static struct index_stats scan_all(const struct sar_coo_args *coo, unsigned size)
{
    size_t pieces = sar_pieces(coo->nnz * size);
    struct scanned scanned = { coo, size, { 0, true } };
    if (pieces == 1)
        return scan(coo->indices, size, coo->nnz);
    sar_ranges_run((struct sar_ranges){ coo->nnz, UNIT, pieces, scan_range, &scanned });
    return scanned.stats;
}

static long long first_invalid(const struct sar_coo_args *coo, uint64_t count)
{
    unsigned size = sar_index_type_size(coo->type);
    size_t i = 0;
    while (sar_index_get(coo->indices, size, i) < count)
        i++;
    uint64_t bad = sar_index_get(coo->indices, size, i);
    return coo->type == SAR_INDEX_INT32 ? (int32_t)(uint32_t)bad : (long long)bad;
}

/* Indices of 4 bytes to make of 8 bytes, or the reverse. */
struct resized {
    const void *from;
    void *to;
    unsigned to_size;
};

static void resize_range(void *resized, size_t from, size_t to)
{
    const struct resized *r = resized;
    if (r->to_size == 4)
        for (size_t i = from; i < to; i++)
            ((uint32_t *)r->to)[i] = (uint32_t)((const uint64_t *)r->from)[i];
    else
        for (size_t i = from; i < to; i++)
            ((uint64_t *)r->to)[i] = ((const uint32_t *)r->from)[i];
}

/* Copy indices to indices of the library's size. */
static enum sar_status resize_indices(const struct sar_vec_desc *desc, const struct sar_coo_args *coo,
                                      struct sar_arena *arena, struct sar_spvec *vec)
{
    SAR_TRY(sar_arena_alloc(arena, coo->nnz, desc->index_size, &vec->index));
    struct resized resized = { coo->indices, vec->index, desc->index_size };
    sar_ranges_run((struct sar_ranges){ coo->nnz, UNIT,
                                        sar_pieces(coo->nnz * (sizeof(uint32_t) + sizeof(uint64_t))),
                                        resize_range, &resized });
    return SAR_OK;
}

/* Values to normalize. */
struct normalized {
    const struct sar_op_kernels *kernels;
    const unsigned char *from;
    unsigned char *to;
};

static void normalize_range(void *normalized, size_t from, size_t to)
{
    const struct normalized *v = normalized;
    size_t at = from * v->kernels->size;
    v->kernels->fill_identity(v->to + at, to - from);
    v->kernels->apply(v->to + at, v->from + at, to - from);
}

/* A logical op returns 0 or 1. Normalize values, since elements of one rank only are never reduced. */
static enum sar_status normalize_logical(const struct sar_vec_desc *desc, struct sar_arena *arena,
                                         struct sar_spvec *vec)
{
    const void *input = vec->value;
    if (!sar_op_is_logical(desc->op))
        return SAR_OK;
    SAR_TRY(sar_arena_alloc(arena, vec->nnz, desc->element_size, &vec->value));
    struct normalized normalized = { desc->kernels, input, vec->value };
    sar_ranges_run((struct sar_ranges){ vec->nnz * desc->row_len, UNIT,
                                        sar_pieces(2 * vec->nnz * desc->element_size), normalize_range,
                                        &normalized });
    return SAR_OK;
}

enum sar_status sar_canonicalize(const struct sar_vec_desc *desc, const struct sar_coo_args *coo,
                                 struct sar_arena *arena, struct sar_spvec *vec, long long *bad)
{
    unsigned size = sar_index_type_size(coo->type);
    *vec = (struct sar_spvec){ (void *)coo->indices, (void *)coo->values, coo->nnz };
    if (coo->nnz == 0)
        return SAR_OK;
    struct index_stats stats = scan_all(coo, size);
    if (stats.max_index >= desc->count) {
        *bad = first_invalid(coo, desc->count);
        return coo->type == SAR_INDEX_UINT64 ? SAR_BAD_UNSIGNED_INDEX : SAR_BAD_INDEX;
    }
    struct sar_sort_input unsorted = { coo->indices, coo->values, coo->nnz, size, stats.max_index };
    if (!stats.ascending)
        SAR_TRY(sar_sort(desc, &unsorted, arena, vec));
    else if (size != desc->index_size)
        SAR_TRY(resize_indices(desc, coo, arena, vec));
    return normalize_logical(desc, arena, vec);
}
