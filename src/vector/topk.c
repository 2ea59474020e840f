/* SPDX-License-Identifier: BSD-3-Clause */
/* Selection by a threshold that may be too low. Candidates are collected in ascending order of index. When
 * they are twice the capacity, the smaller half is removed and the threshold rises. This is the hierarchical
 * selection of Deep Gradient Compression (Lin et al., ICLR 2018) as a stream.
 *
 *     time = count * element bytes / memory bandwidth + at most two more visits of each candidate
 *
 * Several threads scan pieces of a wave at once, into scratch memory, from where their candidates move to the
 * others. If a piece has more candidates than scratch memory, or all have more than fit, one thread scans the
 * wave again and raises the threshold. When candidates are removed does not change which are left at the
 * end. */

#include "vector/topk.h"

#include <string.h>
#if defined(SAR_AVX512)
#include <immintrin.h>
#endif

#include "vector/magnitude.h"
#include "vector/pieces.h"

enum {
    GROUP = 16,             /* values that a scan tests at once */
    BLOCK = 1024,           /* values that are updated and then scanned in the L1 cache */
    SLACK = GROUP,          /* candidates that a scan may write after the last one */
    WAVE_PIECE = 256 << 10, /* bytes of a piece of a wave */
    SCRATCH_SHARE = 4,      /* bytes of a piece per byte of its scratch memory, if the capacity is small */
    UNIT = 64 /* elements: pieces of an array that is written share no cache line if it is aligned */
};

static const double CAPACITY_SLACK = 1.25; /* room of a piece over its share of the capacity */

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
        k += (size_t)__builtin_popcount(sar_mask_bits(reached));
    }
    return k;
}
#else
#define scan4_wide(v, from, threshold, vec) ((vec).nnz)
#endif

/* Append the candidates among values [from, from + n) to vec; returns its new nnz. */
static size_t scan(const struct sar_topk *t, const void *values, size_t from, size_t n, struct sar_spvec vec)
{
    size_t bytes = t->desc.element_size;
    bool narrow = t->desc.index_size == 4;
    if (bytes == 4 && narrow && n == BLOCK && sar_has_avx512())
        return scan4_wide(values, from, (uint32_t)t->threshold, vec);
    if (bytes == 2)
        return narrow ? scan2_narrow(values, from, n, (uint16_t)t->threshold, vec)
                      : scan2(values, from, n, 8, (uint16_t)t->threshold, vec);
    if (bytes == 4)
        return narrow ? scan4_narrow(values, from, n, (uint32_t)t->threshold, vec)
                      : scan4(values, from, n, 8, (uint32_t)t->threshold, vec);
    return narrow ? scan8_narrow(values, from, n, t->threshold, vec)
                  : scan8(values, from, n, 8, t->threshold, vec);
}

/* Values [from, to) of a wave. */
struct sar_topk_piece {
    size_t from, to;
    struct sar_spvec found; /* candidates, in scratch memory */
    size_t place;           /* where they begin in the selection */
};

/* Returns the most values of a piece: waves have equal lengths. */
static size_t piece_length(const struct sar_topk *t)
{
    size_t count = (size_t)t->desc.count, bytes = t->desc.element_size;
    size_t waves = count * bytes / (t->pieces * WAVE_PIECE) + 1;
    return (count / (waves * t->pieces) / BLOCK + 1) * BLOCK;
}

/* Returns the most candidates in the scratch memory of a piece. */
static size_t piece_room(const struct sar_topk *t)
{
    size_t bytes = t->desc.element_size, length = piece_length(t);
    size_t room = length * bytes / SCRATCH_SHARE / (bytes + t->desc.index_size);
    double share = (double)t->capacity / (double)t->desc.count;
    size_t wanted = share < 1 / CAPACITY_SLACK ? (size_t)((double)length * share * CAPACITY_SLACK) : length;
    return wanted > room ? wanted : room;
}

static enum sar_status open_pieces(struct sar_topk *t, struct sar_arena *arena)
{
    void *memory;
    SAR_TRY(sar_arena_alloc_zeroed(arena, t->pieces, sizeof *t->piece, &memory));
    t->piece = memory;
    for (size_t i = 0; i < t->pieces; i++)
        SAR_TRY(sar_spvec_alloc(&t->desc, piece_room(t) + BLOCK + SLACK, arena, &t->piece[i].found));
    return SAR_OK;
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
    topk->pieces = sar_pieces(count * desc->element_size);
    return topk->pieces > 1 ? open_pieces(topk, arena) : SAR_OK;
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

/* Candidates of which the smallest are removed, in pieces. */
struct pruned {
    const struct sar_topk *t;
    uint64_t bound;
    size_t pieces;
    unsigned char *array;             /* indices or values */
    size_t bytes;                     /* of an index or a value */
    size_t equal[SAR_RANGES_MAX];     /* candidates of magnitude `bound`; then, those that stay */
    size_t place[SAR_RANGES_MAX + 1]; /* larger candidates; then, where those that stay begin */
};

static void find_magnitudes(void *topk, size_t from, size_t to)
{
    const struct sar_topk *t = topk;
    for (size_t i = from; i < to; i++)
        t->magnitudes[i] = sar_magnitude(t->desc.dtype, t->vec.value, i);
}

static enum sar_status count_piece(void *pruned, size_t piece)
{
    struct pruned *p = pruned;
    size_t end = sar_parallel_bound(p->t->vec.nnz, UNIT, p->pieces, piece + 1), larger = 0, equal = 0;
    for (size_t i = sar_parallel_bound(p->t->vec.nnz, UNIT, p->pieces, piece); i < end; i++) {
        uint64_t magnitude = sar_magnitude(p->t->desc.dtype, p->t->vec.value, i);
        larger += magnitude > p->bound;
        equal += magnitude == p->bound;
    }
    p->place[piece] = larger;
    p->equal[piece] = equal;
    return SAR_OK;
}

/* If more candidates are equal than fit, the first are kept. */
static void plan_places(struct pruned *p)
{
    size_t equal = p->t->capacity, place = 0;
    for (size_t i = 0; i < p->pieces; i++)
        equal -= p->place[i];
    for (size_t i = 0; i < p->pieces; i++) {
        size_t larger = p->place[i];
        p->equal[i] = p->equal[i] < equal ? p->equal[i] : equal;
        equal -= p->equal[i];
        p->place[i] = place;
        place += larger + p->equal[i];
    }
    p->place[p->pieces] = place;
}

SAR_INLINE void pack(const struct pruned *p, size_t piece, size_t bytes, unsigned char *to)
{
    size_t k = p->place[piece], end = p->place[piece + 1], equal = p->equal[piece];
    for (size_t i = sar_parallel_bound(p->t->vec.nnz, UNIT, p->pieces, piece); k < end; i++) {
        uint64_t magnitude = sar_magnitude(p->t->desc.dtype, p->t->vec.value, i);
        bool equals = magnitude == p->bound && equal > 0;
        memcpy(to + k * bytes, p->array + i * bytes, bytes);
        k += magnitude > p->bound || equals;
        equal -= equals;
    }
}

static enum sar_status pack_piece(void *pruned, size_t piece)
{
    const struct pruned *p = pruned;
    unsigned char *to = (unsigned char *)p->t->magnitudes;
    if (p->bytes == 4)
        pack(p, piece, 4, to);
    else if (p->bytes == 8)
        pack(p, piece, 8, to);
    else
        pack(p, piece, 2, to);
    return SAR_OK;
}

static void unpack(void *pruned, size_t from, size_t to)
{
    const struct pruned *p = pruned;
    memcpy(p->array + from, (const unsigned char *)p->t->magnitudes + from, to - from);
}

/* Pack an array into the memory of the magnitudes, and move it back. */
static void pack_array(struct pruned *p, void *array, size_t bytes)
{
    p->array = array;
    p->bytes = bytes;
    sar_parallel_for(p->pieces, pack_piece, p);
    sar_ranges_run((struct sar_ranges){ p->place[p->pieces] * bytes, UNIT, p->pieces, unpack, p });
}

static void prune_parallel(struct sar_topk *t, size_t pieces)
{
    struct pruned p = { .t = t, .pieces = pieces };
    sar_ranges_run((struct sar_ranges){ t->vec.nnz, UNIT, pieces, find_magnitudes, t });
    p.bound = sar_magnitude_select(t->desc.dtype, t->magnitudes, t->vec.nnz, t->capacity);
    sar_parallel_for(pieces, count_piece, &p);
    plan_places(&p);
    pack_array(&p, t->vec.index, t->desc.index_size);
    pack_array(&p, t->vec.value, t->desc.element_size);
    t->vec.nnz = p.place[pieces];
    t->threshold = p.bound + 1;
}

/* Remove the smallest candidates. Later candidates must exceed the bound, since of equal ones the first
 * stay. */
static void prune(struct sar_topk *t)
{
    size_t equal, kept = 0, pieces = sar_pieces(t->vec.nnz * (sizeof *t->magnitudes + t->desc.element_size));
    if (pieces > 1) {
        prune_parallel(t, pieces);
        return;
    }
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

/* Scan [from, to), block by block, after an update if `dgc` is not NULL. */
static void scan_blocks(struct sar_topk *t, const struct sar_dgc *dgc, const void *values, size_t from,
                        size_t to)
{
    uint64_t last = sar_magnitude_max(t->desc.dtype);
    for (size_t n; from < to; from += n) {
        n = to - from < BLOCK ? to - from : BLOCK;
        if (dgc != NULL)
            sar_dgc_update(dgc, from, n);
        if (t->threshold <= last)
            t->vec.nnz = scan(t, values, from, n, t->vec);
        if (t->vec.nnz > t->prune_limit)
            prune(t);
    }
}

struct wave {
    const struct sar_topk *t;
    const struct sar_dgc *dgc;
    size_t room;
};

static enum sar_status find_piece(void *wave, size_t i)
{
    const struct wave *w = wave;
    struct sar_topk_piece *piece = &w->t->piece[i];
    uint64_t last = sar_magnitude_max(w->dgc->dtype);
    piece->found.nnz = 0;
    for (size_t n, from = piece->from; from < piece->to; from += n) {
        n = piece->to - from < BLOCK ? piece->to - from : BLOCK;
        sar_dgc_update(w->dgc, from, n);
        if (w->t->threshold <= last && piece->found.nnz <= w->room)
            piece->found.nnz = scan(w->t, w->dgc->values, from, n, piece->found);
    }
    return SAR_OK;
}

static enum sar_status place_piece(void *wave, size_t i)
{
    const struct wave *w = wave;
    const struct sar_vec_desc *desc = &w->t->desc;
    const struct sar_topk_piece *piece = &w->t->piece[i];
    struct sar_spvec to = sar_spvec_slice(desc, &w->t->vec, piece->place, piece->place);
    memcpy(to.index, piece->found.index, piece->found.nnz * desc->index_size);
    memcpy(to.value, piece->found.value, piece->found.nnz * desc->element_size);
    return SAR_OK;
}

/* Scan a wave from value `from` on; returns its end. */
static size_t select_wave(struct sar_topk *t, struct wave *w, size_t from)
{
    size_t count = (size_t)w->dgc->count, n = 0, begin = from, length = piece_length(t), nnz = t->vec.nnz;
    bool full = false;
    for (; n < t->pieces && from < count; from = t->piece[n++].to) {
        t->piece[n].from = from;
        t->piece[n].to = count - from < length ? count : from + length;
    }
    sar_parallel_for(n, find_piece, w);
    for (size_t i = 0; i < n; i++) {
        full |= t->piece[i].found.nnz > w->room;
        t->piece[i].place = nnz;
        nnz += t->piece[i].found.nnz;
    }
    if (full || nnz > t->prune_limit) {
        scan_blocks(t, NULL, w->dgc->values, begin, from);
        return from;
    }
    sar_parallel_for(n, place_piece, w);
    t->vec.nnz = nnz;
    return from;
}

void sar_topk_select(struct sar_topk *t, const struct sar_dgc *dgc, uint64_t threshold)
{
    uint64_t last = sar_magnitude_max(dgc->dtype);
    struct wave wave = { t, dgc, t->pieces > 1 ? piece_room(t) : 0 };
    t->threshold = t->capacity == 0 ? last + 1 : threshold > 1 ? threshold : 1;
    if (t->pieces == 1)
        scan_blocks(t, dgc, dgc->values, 0, (size_t)dgc->count);
    for (size_t from = 0; t->pieces > 1 && from < dgc->count;)
        from = select_wave(t, &wave, from);
    if (t->vec.nnz > t->capacity)
        prune(t);
}
