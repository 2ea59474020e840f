/* SPDX-License-Identifier: BSD-3-Clause */
/* Selection by a threshold that may be too low. Candidates are collected in ascending order of index. When
 * they are twice the capacity, the smaller half is removed and the threshold rises. This is the hierarchical
 * selection of Deep Gradient Compression (Lin et al., ICLR 2018) as a stream.
 *
 *     time = count * element bytes / memory bandwidth + at most two more visits of each candidate */

#include "vector/topk.h"

#include <string.h>
#if defined(SAR_AVX512)
#include <immintrin.h>
#endif

#include "vector/magnitude.h"

enum {
    GROUP = 16,   /* values that a scan tests at once */
    BLOCK = 1024, /* values that are updated and then scanned in the L1 cache */
    SLACK = GROUP /* candidates that a scan may write after the last one */
};

/* Append the values among v[from, from + n) with a magnitude of at least `threshold` to vec; returns its new
 * nnz. Within a group the scan writes every value and advances only after candidates, without a branch. */
#define DEFINE_SCAN(name, type, most)                                                            \
    SAR_INLINE size_t name(const type *v, size_t from, size_t n, unsigned size, type threshold,  \
                           struct sar_spvec vec)                                                 \
    {                                                                                            \
        type *value = vec.value;                                                                 \
        size_t k = vec.nnz;                                                                      \
        for (size_t i = from; i < from + n; i += GROUP) {                                        \
            size_t group = from + n - i < GROUP ? from + n - i : GROUP;                          \
            type largest = 0;                                                                    \
            for (size_t j = 0; j < group; j++)                                                   \
                largest = (v[i + j] & (most)) > largest ? v[i + j] & (most) : largest;           \
            for (size_t j = 0; largest >= threshold && j < group; j++) {                         \
                sar_index_set(vec.index, size, k, i + j);                                        \
                value[k] = v[i + j];                                                             \
                k += (v[i + j] & (most)) >= threshold;                                           \
            }                                                                                    \
        }                                                                                        \
        return k;                                                                                \
    }                                                                                            \
    SAR_CLONES static size_t name##_narrow(const type *v, size_t from, size_t n, type threshold, \
                                           struct sar_spvec vec)                                 \
    {                                                                                            \
        return name(v, from, n, 4, threshold, vec);                                              \
    }

DEFINE_SCAN(scan2, uint16_t, INT16_MAX)
DEFINE_SCAN(scan4, uint32_t, INT32_MAX)
DEFINE_SCAN(scan8, uint64_t, INT64_MAX)

#if defined(SAR_AVX512)
/* As scan4, for indices of 4 bytes and a whole block. */
SAR_AVX512 static size_t scan4_wide(const uint32_t *v, size_t from, uint32_t threshold, struct sar_spvec vec)
{
    const __m512i bound = _mm512_set1_epi32((int)threshold), bits = _mm512_set1_epi32(INT32_MAX);
    const __m512i first = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    uint32_t *index = vec.index, *value = vec.value;
    size_t k = vec.nnz;
    for (size_t i = from; i < from + BLOCK; i += GROUP) {
        __m512i a = _mm512_loadu_si512(v + i);
        __mmask16 reached = _mm512_cmpge_epu32_mask(_mm512_and_si512(a, bits), bound);
        __m512i index_of_value = _mm512_add_epi32(first, _mm512_set1_epi32((int)i));
        _mm512_storeu_si512(value + k, _mm512_maskz_compress_epi32(reached, a));
        _mm512_storeu_si512(index + k, _mm512_maskz_compress_epi32(reached, index_of_value));
        k += (size_t)__builtin_popcount(reached);
    }
    return k;
}
#else
#define scan4_wide(v, from, threshold, vec) ((vec).nnz)
#endif

static size_t scan(const struct sar_topk *t, const void *values, size_t from, size_t n)
{
    size_t bytes = t->desc.element_size;
    bool narrow = t->desc.index_size == 4;
    if (bytes == 4 && narrow && n == BLOCK && sar_has_avx512())
        return scan4_wide(values, from, (uint32_t)t->threshold, t->vec);
    if (bytes == 2)
        return narrow ? scan2_narrow(values, from, n, (uint16_t)t->threshold, t->vec)
                      : scan2(values, from, n, 8, (uint16_t)t->threshold, t->vec);
    if (bytes == 4)
        return narrow ? scan4_narrow(values, from, n, (uint32_t)t->threshold, t->vec)
                      : scan4(values, from, n, 8, (uint32_t)t->threshold, t->vec);
    return narrow ? scan8_narrow(values, from, n, t->threshold, t->vec)
                  : scan8(values, from, n, 8, t->threshold, t->vec);
}

enum sar_status sar_topk_open(const struct sar_vec_desc *desc, size_t capacity, struct sar_arena *arena,
                              struct sar_topk *topk)
{
    void *memory;
    size_t count = (size_t)desc->count, limit = capacity < count / 2 ? 2 * capacity : count;
    *topk = (struct sar_topk){ .capacity = capacity, .desc = *desc, .prune_limit = limit };
    SAR_TRY(sar_spvec_alloc(desc, limit + BLOCK + SLACK, arena, &topk->vec));
    topk->vec.nnz = 0;
    SAR_TRY(sar_arena_alloc(arena, limit + BLOCK, sizeof *topk->magnitudes, &memory));
    topk->magnitudes = memory;
    return SAR_OK;
}

/* Returns the capacity-th largest magnitude of all candidates; sets `equal` to the number of candidates of
 * exactly this magnitude that stay. */
static uint64_t find_bound(const struct sar_topk *t, size_t *equal)
{
    enum sar_dtype dtype = t->desc.dtype;
    for (size_t i = 0; i < t->vec.nnz; i++)
        t->magnitudes[i] = sar_magnitude(dtype, t->vec.value, i);
    uint64_t bound = sar_magnitude_select(dtype, t->magnitudes, t->vec.nnz, t->capacity);
    *equal = t->capacity;
    for (size_t i = 0; i < t->vec.nnz; i++)
        *equal -= sar_magnitude(dtype, t->vec.value, i) > bound;
    return bound;
}

static void move(const struct sar_vec_desc *desc, const struct sar_spvec *vec, size_t from, size_t to)
{
    unsigned char *value = vec->value;
    size_t bytes = desc->element_size;
    sar_index_set(vec->index, desc->index_size, to, sar_index_get(vec->index, desc->index_size, from));
    memmove(value + to * bytes, value + from * bytes, bytes);
}

/* Remove the smallest candidates. Later candidates must exceed the bound, since of equal ones the first
 * stay. */
static void prune(struct sar_topk *t)
{
    size_t equal, kept = 0;
    uint64_t bound = find_bound(t, &equal);
    for (size_t i = 0; i < t->vec.nnz; i++) {
        uint64_t magnitude = sar_magnitude(t->desc.dtype, t->vec.value, i);
        bool stays = magnitude > bound || (magnitude == bound && equal > 0);
        equal -= magnitude == bound && stays;
        if (stays)
            move(&t->desc, &t->vec, i, kept++);
    }
    t->vec.nnz = kept;
    t->threshold = bound + 1;
}

void sar_topk_select(struct sar_topk *t, const struct sar_dgc *dgc, uint64_t threshold)
{
    uint64_t last = sar_magnitude_max(dgc->dtype);
    t->threshold = t->capacity == 0 ? last + 1 : threshold > 1 ? threshold : 1;
    for (size_t from = 0; from < dgc->count; from += BLOCK) {
        size_t n = dgc->count - from < BLOCK ? (size_t)dgc->count - from : BLOCK;
        sar_dgc_update(dgc, from, n);
        if (t->threshold <= last)
            t->vec.nnz = scan(t, dgc->values, from, n);
        if (t->vec.nnz > t->prune_limit)
            prune(t);
    }
    if (t->vec.nnz > t->capacity)
        prune(t);
}
