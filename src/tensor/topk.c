/* SPDX-License-Identifier: BSD-3-Clause */
/* Selection by a threshold that may turn out too low: candidates are collected in ascending order, and when
 * they are twice as many as may stay the smaller half leaves and the threshold rises (the hierarchical
 * selection of Deep Gradient Compression, Lin et al., ICLR 2018, as a stream).
 *
 *     time = count * element bytes / memory bandwidth + candidates, each looked at less than twice again */

#include "tensor/topk.h"

#include <string.h>
#if defined(SAR_WIDE)
#include <immintrin.h>
#endif

#include "tensor/magnitude.h"
#include "tensor/reduce.h"

enum {
    GROUP = 16,
    BLOCK = 1024, /* values that are looked at while they are in the L1 cache */
    SLACK = GROUP /* candidates that a scan may write behind those that count */
};

/* Values `from` ... of a block, n of them, that reach `least` to run at k; returns the new k. Within a group
 * every value is written, and only those that count are kept, without a branch. */
#define DEFINE_SCAN(name, type, most)                                                        \
    SAR_INLINE size_t name(const type *v, size_t from, size_t n, unsigned size, type least,  \
                           struct sar_run run)                                               \
    {                                                                                        \
        type *value = run.value;                                                             \
        size_t k = run.nnz;                                                                  \
        for (size_t i = from; i < from + n; i += GROUP) {                                    \
            size_t group = from + n - i < GROUP ? from + n - i : GROUP;                      \
            type largest = 0;                                                                \
            for (size_t j = 0; j < group; j++)                                               \
                largest = (v[i + j] & (most)) > largest ? v[i + j] & (most) : largest;       \
            for (size_t j = 0; largest >= least && j < group; j++) {                         \
                sar_index_set(run.index, size, k, i + j);                                    \
                value[k] = v[i + j];                                                         \
                k += (v[i + j] & (most)) >= least;                                           \
            }                                                                                \
        }                                                                                    \
        return k;                                                                            \
    }                                                                                        \
    SAR_CLONES static size_t name##_narrow(const type *v, size_t from, size_t n, type least, \
                                           struct sar_run run)                               \
    {                                                                                        \
        return name(v, from, n, 4, least, run);                                              \
    }

DEFINE_SCAN(scan2, uint16_t, INT16_MAX)
DEFINE_SCAN(scan4, uint32_t, INT32_MAX)
DEFINE_SCAN(scan8, uint64_t, INT64_MAX)

#if defined(SAR_WIDE)
/* scan4 for indices of 4 bytes and a whole block. */
SAR_WIDE static size_t scan4_wide(const uint32_t *v, size_t from, uint32_t least, struct sar_run run)
{
    const __m512i bound = _mm512_set1_epi32((int)least), bits = _mm512_set1_epi32(INT32_MAX);
    const __m512i first = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    uint32_t *index = run.index, *value = run.value;
    size_t k = run.nnz;
    for (size_t i = from; i < from + BLOCK; i += GROUP) {
        __m512i a = _mm512_loadu_si512(v + i);
        __mmask16 counts = _mm512_cmpge_epu32_mask(_mm512_and_si512(a, bits), bound);
        __m512i place = _mm512_add_epi32(first, _mm512_set1_epi32((int)i));
        _mm512_storeu_si512(value + k, _mm512_maskz_compress_epi32(counts, a));
        _mm512_storeu_si512(index + k, _mm512_maskz_compress_epi32(counts, place));
        k += (size_t)__builtin_popcount(counts);
    }
    return k;
}
#else
#define scan4_wide(v, from, least, run) ((run).nnz)
#endif

static size_t scan(const struct sar_topk *t, const void *values, size_t from, size_t n)
{
    size_t bytes = t->shape.element_size;
    bool narrow = t->shape.index_size == 4;
    if (bytes == 4 && narrow && n == BLOCK && sar_is_wide())
        return scan4_wide(values, from, (uint32_t)t->least, t->run);
    if (bytes == 2)
        return narrow ? scan2_narrow(values, from, n, (uint16_t)t->least, t->run)
                      : scan2(values, from, n, 8, (uint16_t)t->least, t->run);
    if (bytes == 4)
        return narrow ? scan4_narrow(values, from, n, (uint32_t)t->least, t->run)
                      : scan4(values, from, n, 8, (uint32_t)t->least, t->run);
    return narrow ? scan8_narrow(values, from, n, t->least, t->run)
                  : scan8(values, from, n, 8, t->least, t->run);
}

enum sar_status sar_topk_open(const struct sar_shape *shape, size_t capacity, struct sar_arena *arena,
                              struct sar_topk *topk)
{
    void *memory;
    size_t count = (size_t)shape->count, limit = capacity < count / 2 ? 2 * capacity : count;
    *topk = (struct sar_topk){ .capacity = capacity, .shape = *shape, .limit = limit };
    SAR_TRY(sar_run_take(shape, limit + BLOCK + SLACK, arena, &topk->run));
    topk->run.nnz = 0;
    SAR_TRY(sar_arena_take(arena, limit + BLOCK, sizeof *topk->magnitudes, &memory));
    topk->magnitudes = memory;
    return SAR_OK;
}

/* The magnitude from which on there are at most `capacity` candidates, and how many of exactly that magnitude
 * stay. */
static uint64_t find_bound(const struct sar_topk *t, size_t *equal)
{
    enum sar_base base = t->shape.base;
    for (size_t i = 0; i < t->run.nnz; i++)
        t->magnitudes[i] = sar_magnitude(base, t->run.value, i);
    uint64_t bound = sar_magnitude_select(base, t->magnitudes, t->run.nnz, t->capacity);
    *equal = t->capacity;
    for (size_t i = 0; i < t->run.nnz; i++)
        *equal -= sar_magnitude(base, t->run.value, i) > bound;
    return bound;
}

static void move(const struct sar_shape *shape, const struct sar_run *run, size_t from, size_t to)
{
    unsigned char *value = run->value;
    size_t bytes = shape->element_size;
    sar_index_set(run->index, shape->index_size, to, sar_index_get(run->index, shape->index_size, from));
    memmove(value + to * bytes, value + from * bytes, bytes);
}

/* Let the smallest candidates leave. Those to come must be larger than what stays, for of equal ones the
 * first stay. */
static void narrow_down(struct sar_topk *t)
{
    size_t equal, kept = 0;
    uint64_t bound = find_bound(t, &equal);
    for (size_t i = 0; i < t->run.nnz; i++) {
        uint64_t magnitude = sar_magnitude(t->shape.base, t->run.value, i);
        bool stays = magnitude > bound || (magnitude == bound && equal > 0);
        equal -= magnitude == bound && stays;
        if (stays)
            move(&t->shape, &t->run, i, kept++);
    }
    t->run.nnz = kept;
    t->least = bound + 1;
}

void sar_topk_run(struct sar_topk *t, const struct sar_dgc *of, uint64_t least)
{
    uint64_t last = sar_magnitude_last(of->base);
    t->least = t->capacity == 0 ? last + 1 : least > 1 ? least : 1;
    for (size_t from = 0; from < of->count; from += BLOCK) {
        size_t n = of->count - from < BLOCK ? (size_t)of->count - from : BLOCK;
        sar_dgc_advance(of, from, n);
        if (t->least <= last)
            t->run.nnz = scan(t, of->values, from, n);
        if (t->run.nnz > t->limit)
            narrow_down(t);
    }
    if (t->run.nnz > t->capacity)
        narrow_down(t);
}
