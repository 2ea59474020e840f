/* SPDX-License-Identifier: BSD-3-Clause */
/* A caller's coordinate buffers become a run. One pass finds indices out of range and tells ascending
 * from unsorted input; ascending 32-bit input is used where it lies. Unsorted input goes through a stable
 * radix sort of (index, position) pairs, so that equal indices keep the caller's order, and then through
 * sar_reduce. */

#include "tensor/ingest.h"

#include <string.h>

#include "tensor/reduce.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

struct pair {
    uint64_t index;
    size_t position;
};

/* What a pass over the indices found. A negative index looks huge. */
struct findings {
    uint64_t most;  /* the largest index */
    bool ascending; /* each index above the one before it */
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

SAR_CLONES static struct findings look32(const uint32_t *index, size_t n)
{
    uint32_t most = index[0], descents = 0;
    for (size_t i = 1; i < n; i++) {
        most = index[i] > most ? index[i] : most;
        descents |= index[i] <= index[i - 1];
    }
    return (struct findings){ most, descents == 0 };
}

SAR_CLONES static struct findings look64(const uint64_t *index, size_t n)
{
    uint64_t most = index[0], descents = 0;
    for (size_t i = 1; i < n; i++) {
        most = index[i] > most ? index[i] : most;
        descents |= index[i] <= index[i - 1];
    }
    return (struct findings){ most, descents == 0 };
}

static long long first_bad(const struct sar_coo *coo, uint64_t count)
{
    unsigned size = sar_index_type_size(coo->type);
    size_t i = 0;
    while (sar_index_get(coo->indices, size, i) < count)
        i++;
    uint64_t bad = sar_index_get(coo->indices, size, i);
    return coo->type == SAR_INDEX_INT32 ? (int32_t)(uint32_t)bad : (long long)bad;
}

static void sort_digit(const struct pair *from, struct pair *to, size_t n, unsigned shift)
{
    size_t place[DIGITS] = { 0 };
    for (size_t i = 0; i < n; i++)
        place[(from[i].index >> shift) % DIGITS]++;
    for (size_t d = 0, begin = 0; d < DIGITS; d++) {
        size_t here = place[d];
        place[d] = begin;
        begin += here;
    }
    for (size_t i = 0; i < n; i++)
        to[place[(from[i].index >> shift) % DIGITS]++] = from[i];
}

/* Sort pairs by index, least significant digit first; returns the array that holds the outcome. */
static struct pair *sort_pairs(struct pair *pairs, struct pair *spare, size_t n, uint64_t most)
{
    for (unsigned shift = 0; shift < 64 && most >> shift != 0; shift += DIGIT_BITS) {
        sort_digit(pairs, spare, n, shift);
        struct pair *swap = pairs;
        pairs = spare;
        spare = swap;
    }
    return pairs;
}

static enum sar_status sort_run(const struct sar_shape *shape, const struct sar_coo *coo, uint64_t most,
                                struct sar_arena *arena, struct sar_run *run)
{
    void *pairs, *spare;
    struct sar_run sorted;
    SAR_TRY(sar_arena_take(arena, coo->nnz, sizeof(struct pair), &pairs));
    SAR_TRY(sar_arena_take(arena, coo->nnz, sizeof(struct pair), &spare));
    SAR_TRY(sar_run_take(shape, coo->nnz, arena, &sorted));
    struct pair *pair = pairs;
    for (size_t i = 0; i < coo->nnz; i++)
        pair[i] = (struct pair){ sar_index_get(coo->indices, sar_index_type_size(coo->type), i), i };
    pair = sort_pairs(pair, spare, coo->nnz, most);
    size_t bytes = shape->element_size;
    for (size_t i = 0; i < coo->nnz; i++) {
        sar_index_set(sorted.index, shape->index_size, i, pair[i].index);
        memcpy((unsigned char *)sorted.value + i * bytes,
               (const unsigned char *)coo->values + pair[i].position * bytes, bytes);
    }
    struct sar_shape union_only = *shape;
    union_only.absent_is_zero = false;
    return sar_reduce_taken(&union_only, &sorted, 1, arena, run);
}

/* Copy indices to the library's width. */
static enum sar_status resize_indices(const struct sar_shape *shape, const struct sar_coo *coo,
                                      struct sar_arena *arena, struct sar_run *run)
{
    SAR_TRY(sar_arena_take(arena, coo->nnz, shape->index_size, &run->index));
    if (shape->index_size == 4)
        for (size_t i = 0; i < coo->nnz; i++)
            ((uint32_t *)run->index)[i] = (uint32_t)((const uint64_t *)coo->indices)[i];
    else
        for (size_t i = 0; i < coo->nnz; i++)
            ((uint64_t *)run->index)[i] = ((const uint32_t *)coo->indices)[i];
    return SAR_OK;
}

enum sar_status sar_ingest(const struct sar_shape *shape, const struct sar_coo *coo, struct sar_arena *arena,
                           struct sar_run *run, long long *bad)
{
    unsigned size = sar_index_type_size(coo->type);
    *run = (struct sar_run){ (void *)coo->indices, (void *)coo->values, coo->nnz };
    if (coo->nnz == 0)
        return SAR_OK;
    struct findings found = size == 4 ? look32(coo->indices, coo->nnz) : look64(coo->indices, coo->nnz);
    if (found.most >= shape->count) {
        *bad = first_bad(coo, shape->count);
        return coo->type == SAR_INDEX_UINT64 ? SAR_BAD_UNSIGNED_INDEX : SAR_BAD_INDEX;
    }
    if (!found.ascending)
        return sort_run(shape, coo, found.most, arena, run);
    return size == shape->index_size ? SAR_OK : resize_indices(shape, coo, arena, run);
}
