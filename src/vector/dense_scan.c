/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversion of a dense buffer to a vec, at the beginning of dense calls. The scan skips a group of values
 * without a bit set. In other groups it writes every value and advances only after non-zeros, without a
 * branch. With AVX-512 it compresses the non-zeros of a SIMD vector, or moves them one by one if a group has
 * few.
 *
 *     time = count * element bytes / memory bandwidth, below one non-zero in ten
 *
 * Several threads scan pieces of a wave at once, into scratch memory. When the non-zeros of all pieces are
 * counted, they move to their places, out of the caches. The rest of a piece that fills its scratch memory is
 * counted at first, and scanned when its place is known. */

#include "vector/dense.h"

#include <string.h>
#if defined(SAR_AVX512)
#include <immintrin.h>
#endif

#include "vector/pieces.h"

enum {
    GROUP = 16,             /* values that a scan tests at once */
    SLACK = 16,             /* elements that a scan may write after the last non-zero */
    STRIDE = 4096,          /* elements scanned between tests of the capacity */
    FEW = 3,                /* non-zeros of an AVX-512 group that are moved one by one */
    WIDE_GROUP = 256,       /* bytes of an AVX-512 group */
    WAVE_PIECE = 512 << 10, /* bytes of a piece of a wave, so that those of a thread fit into its L2 cache */
    ROW_STEP = 32 << 10,    /* bytes of rows scanned at a time */
    SCRATCH_SHARE = 4       /* bytes of a piece per byte of its scratch memory */
};

/* Elements of 2, 4 and 8 bytes may be rows, which have the alignment of their basic type. */
typedef uint16_t unaligned16 __attribute__((aligned(1)));
typedef uint32_t unaligned32 __attribute__((aligned(1)));
typedef uint64_t unaligned64 __attribute__((aligned(1)));

/* scanN: append the non-zeros among n values of N bytes, from v[from], to out at k; returns the new k. */
#define DEFINE_SCAN(name, type)                                                                        \
    SAR_INLINE size_t name(const type *v, size_t from, size_t n, unsigned size, struct sar_spvec out,  \
                           size_t k)                                                                   \
    {                                                                                                  \
        type *value = out.value;                                                                       \
        for (size_t i = from; i < from + n; i += GROUP) {                                              \
            size_t group = from + n - i < GROUP ? from + n - i : GROUP;                                \
            type any = 0;                                                                              \
            for (size_t j = 0; j < group; j++)                                                         \
                any |= v[i + j];                                                                       \
            for (size_t j = 0; any != 0 && j < group; j++) {                                           \
                sar_index_set(out.index, size, k, i + j);                                              \
                value[k] = v[i + j];                                                                   \
                k += v[i + j] != 0;                                                                    \
            }                                                                                          \
        }                                                                                              \
        return k;                                                                                      \
    }                                                                                                  \
    SAR_CLONES static size_t name##_narrow(const type *v, size_t from, size_t n, struct sar_spvec out, \
                                           size_t k)                                                   \
    {                                                                                                  \
        return name(v, from, n, 4, out, k);                                                            \
    }

DEFINE_SCAN(scan1, uint8_t)
DEFINE_SCAN(scan2, unaligned16)
DEFINE_SCAN(scan4, unaligned32)
DEFINE_SCAN(scan8, unaligned64)

#if defined(SAR_AVX512)
/* Returns the mask of non-zeros among values of 4 or 8 bytes. */
SAR_AVX512 SAR_INLINE uint64_t nonzero_mask(__m512i v, unsigned size)
{
    return sar_mask_bits(size == 4 ? _mm512_test_epi32_mask(v, v) : _mm512_test_epi64_mask(v, v));
}

/* Append the non-zeros of a SIMD vector and their indices. */
SAR_AVX512 SAR_INLINE size_t pack(__m512i v, unsigned size, __m512i index, struct sar_spvec out, size_t k)
{
    uint64_t nonzero = nonzero_mask(v, size);
    if (size == 4)
        _mm512_storeu_si512((uint32_t *)out.value + k, _mm512_maskz_compress_epi32((__mmask16)nonzero, v));
    else
        _mm512_storeu_si512((uint64_t *)out.value + k, _mm512_maskz_compress_epi64((__mmask8)nonzero, v));
    _mm512_storeu_si512((uint32_t *)out.index + k, _mm512_maskz_compress_epi32((__mmask16)nonzero, index));
    return k + (size_t)__builtin_popcountll(nonzero);
}

/* Write FEW values of the group at v[i]: its non-zeros, then any. A loop of variable length would mispredict
 * and delay the next loads. */
SAR_AVX512 SAR_INLINE void move_few(const void *v, unsigned size, size_t i, uint64_t nonzero,
                                    struct sar_spvec out, size_t k)
{
    const unsigned char *from = v;
    unsigned char *to = (unsigned char *)out.value + k * size;
    for (size_t j = 0; j < FEW; j++, nonzero &= nonzero - 1) {
        size_t at = i + (size_t)__builtin_ctzll(nonzero | (uint64_t)1 << (WIDE_GROUP / size - 1));
        sar_index_set(out.index, 4, k + j, at);
        memcpy(to + j * size, from + at * size, size);
    }
}

/* Append the non-zeros of the group at v[i]. */
SAR_AVX512 SAR_INLINE size_t scan_group(const void *v, unsigned size, size_t i, struct sar_spvec out,
                                        size_t k)
{
    const __m512i first = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const unsigned char *bytes = (const unsigned char *)v + i * size;
    unsigned lanes = 64 / size;
    __m512i a[4];
    uint64_t nonzero = 0;
    for (unsigned j = 0; j < 4; j++) {
        a[j] = _mm512_loadu_si512(bytes + j * 64);
        nonzero |= nonzero_mask(a[j], size) << j * lanes;
    }
    size_t n = (size_t)__builtin_popcountll(nonzero);
    if (n <= FEW) {
        move_few(v, size, i, nonzero, out, k);
        return k + n;
    }
    for (unsigned j = 0; j < 4; j++)
        k = pack(a[j], size, _mm512_add_epi32(first, _mm512_set1_epi32((int)(i + j * lanes))), out, k);
    return k;
}

/* Scan values of 4 or 8 bytes with indices of 4 bytes, in whole groups. */
SAR_AVX512 static size_t scan_wide(const struct sar_vec_desc *desc, const void *buf, size_t from, size_t n,
                                   struct sar_spvec out, size_t k)
{
    for (size_t i = from; desc->element_size == 4 && i < from + n; i += WIDE_GROUP / 4)
        k = scan_group(buf, 4, i, out, k);
    for (size_t i = from; desc->element_size == 8 && i < from + n; i += WIDE_GROUP / 8)
        k = scan_group(buf, 8, i, out, k);
    return k;
}
#else
#define scan_wide(desc, buf, from, n, out, k) (k)
#endif

static size_t scan_rows(const unsigned char *buf, const struct sar_vec_desc *desc, size_t from, size_t n,
                        struct sar_spvec out, size_t k)
{
    size_t bytes = desc->element_size;
    for (size_t i = from; i < from + n; i++) {
        if (!sar_row_is_nonzero(buf + i * bytes, bytes))
            continue;
        sar_index_set(out.index, desc->index_size, k, i);
        memcpy((unsigned char *)out.value + k * bytes, buf + i * bytes, bytes);
        k++;
    }
    return k;
}

static size_t scan(const struct sar_vec_desc *desc, const void *buf, size_t from, size_t n,
                   struct sar_spvec out, size_t k)
{
    bool scalar = desc->element_size == 4 || desc->element_size == 8;
    if (scalar && n == STRIDE && desc->index_size == 4 && sar_has_avx512())
        return scan_wide(desc, buf, from, n, out, k);
    if (desc->element_size == 1)
        return desc->index_size == 4 ? scan1_narrow(buf, from, n, out, k) : scan1(buf, from, n, 8, out, k);
    if (desc->element_size == 2)
        return desc->index_size == 4 ? scan2_narrow(buf, from, n, out, k) : scan2(buf, from, n, 8, out, k);
    if (desc->element_size == 4)
        return desc->index_size == 4 ? scan4_narrow(buf, from, n, out, k) : scan4(buf, from, n, 8, out, k);
    if (desc->element_size == 8)
        return desc->index_size == 4 ? scan8_narrow(buf, from, n, out, k) : scan8(buf, from, n, 8, out, k);
    return scan_rows(buf, desc, from, n, out, k);
}

/* Provide arrays for nnz elements, or more. */
static enum sar_status reserve(struct sar_growable *growable, size_t expected, size_t nnz,
                               struct sar_spvec *vec)
{
    size_t wanted =
        growable->capacity == 0 ? expected + expected / 8 : growable->capacity + growable->capacity / 2;
    return growable->grow(growable, wanted > nnz ? wanted : nnz, vec);
}

/* A piece of a wave: elements [from, to) of the buffer. */
struct wave_piece {
    size_t from, to;
    size_t scanned;         /* first element that is not in scratch memory */
    struct sar_spvec found; /* non-zeros of [from, scanned), in scratch memory */
    size_t nnz, place;      /* non-zeros of [from, to), and where they begin in the vec */
};

struct wave {
    const struct sar_vec_desc *desc;
    const unsigned char *buf;
    struct sar_spvec *vec;
    size_t step, slack;   /* elements scanned at a time, and those written after the last non-zero */
    size_t room;          /* elements of a piece's scratch memory */
    size_t pieces, piece; /* most pieces of a wave, and most elements of a piece */
    size_t n;             /* pieces of this wave */
    struct wave_piece of[SAR_RANGES_MAX];
};

/* Append the non-zeros of the step that begins at element `at` to the scratch memory; returns its end. */
static size_t scan_step(const struct wave *w, struct wave_piece *piece, size_t at)
{
    size_t n = piece->to - at < w->step ? piece->to - at : w->step;
    piece->found.nnz = scan(w->desc, w->buf, at, n, piece->found, piece->found.nnz);
    return at + n;
}

static enum sar_status find_piece(void *wave, size_t i)
{
    struct wave *w = wave;
    struct wave_piece *piece = &w->of[i];
    size_t at = piece->from;
    piece->found.nnz = 0;
    while (at < piece->to && piece->found.nnz + w->step + w->slack <= w->room)
        at = scan_step(w, piece, at);
    piece->scanned = at;
    piece->nnz = piece->found.nnz;
    if (at < piece->to)
        piece->nnz += sar_dense_count_nonzero(w->desc, w->buf + at * w->desc->element_size, piece->to - at);
    return SAR_OK;
}

/* Move the elements in scratch memory to element `place` of the vec; returns where they end. */
static size_t place_found(const struct wave *w, struct wave_piece *piece, size_t place)
{
    size_t nnz = piece->found.nnz, bytes = w->desc->element_size, size = w->desc->index_size;
    memcpy((unsigned char *)w->vec->index + place * size, piece->found.index, nnz * size);
    memcpy((unsigned char *)w->vec->value + place * bytes, piece->found.value, nnz * bytes);
    piece->found.nnz = 0;
    return place + nnz;
}

static enum sar_status place_piece(void *wave, size_t i)
{
    struct wave *w = wave;
    struct wave_piece *piece = &w->of[i];
    size_t place = place_found(w, piece, piece->place);
    for (size_t at = piece->scanned; at < piece->to;) {
        at = scan_step(w, piece, at);
        place = place_found(w, piece, place);
    }
    return SAR_OK;
}

/* Plan waves of equal length, and allocate their scratch memory. */
static enum sar_status open_waves(struct wave *w, struct sar_arena *arena)
{
    size_t bytes = w->desc->element_size, count = (size_t)w->desc->count;
    bool scalar = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    w->step = scalar ? STRIDE : ROW_STEP / bytes + 1;
    w->slack = scalar ? SLACK : 0;
    w->pieces = sar_pieces(count * bytes);
    size_t waves = count * bytes / (w->pieces * WAVE_PIECE) + 1;
    w->piece = (count / (waves * w->pieces) / w->step + 1) * w->step;
    w->room = w->step + w->slack + w->piece * bytes / SCRATCH_SHARE / (bytes + w->desc->index_size);
    for (size_t i = 0; i < w->pieces; i++)
        SAR_TRY(sar_spvec_alloc(w->desc, w->room, arena, &w->of[i].found));
    return SAR_OK;
}

/* Scan the wave from element `from` on. Returns its end, or count. */
static size_t find_wave(struct wave *w, size_t from, size_t *nnz)
{
    size_t count = (size_t)w->desc->count, n = 0, place = w->vec->nnz;
    for (; n < w->pieces && from < count; from = w->of[n++].to) {
        w->of[n].from = from;
        w->of[n].to = count - from < w->piece ? count : from + w->piece;
    }
    w->n = n;
    sar_parallel_for(n, find_piece, w);
    for (size_t i = 0; i < n; i++) {
        w->of[i].place = place;
        place += w->of[i].nnz;
    }
    *nnz = place;
    return from;
}

static enum sar_status compact_in_waves(struct wave *w, size_t expected, struct sar_growable *growable)
{
    size_t count = (size_t)w->desc->count, nnz;
    for (size_t from = 0; from < count;) {
        from = find_wave(w, from, &nnz);
        if (nnz == w->vec->nnz)
            continue;
        if (nnz > growable->capacity)
            SAR_TRY(reserve(growable, expected, nnz, w->vec));
        sar_parallel_for(w->n, place_piece, w);
        w->vec->nnz = nnz;
    }
    return SAR_OK;
}

/* The scratch memory goes back to the arena if nothing else has been taken from it meanwhile. */
static enum sar_status compact_parallel(const struct sar_vec_desc *desc, const void *buf, size_t expected,
                                        struct sar_growable *growable, struct sar_spvec *vec)
{
    struct wave w = { .desc = desc, .buf = buf, .vec = vec };
    if (expected > 0)
        SAR_TRY(reserve(growable, expected, 0, vec));
    struct sar_arena_mark before = sar_arena_mark(growable->scratch);
    SAR_TRY(open_waves(&w, growable->scratch));
    size_t used = growable->scratch->used;
    SAR_TRY(compact_in_waves(&w, expected, growable));
    if (growable->scratch->used == used)
        sar_arena_rewind(growable->scratch, before);
    return SAR_OK;
}

enum sar_status sar_dense_compact_into(const struct sar_vec_desc *desc, const void *buf, size_t expected,
                                       struct sar_growable *growable, struct sar_spvec *vec)
{
    size_t count = (size_t)desc->count;
    *vec = (struct sar_spvec){ NULL, NULL, 0 };
    if (sar_pieces(count * desc->element_size) > 1)
        return compact_parallel(desc, buf, expected, growable, vec);
    for (size_t i = 0; i < count; i += STRIDE) {
        size_t n = count - i < STRIDE ? count - i : STRIDE, needed = vec->nnz + n + SLACK;
        if (needed > growable->capacity)
            SAR_TRY(reserve(growable, expected, needed, vec));
        vec->nnz = scan(desc, buf, i, n, *vec, vec->nnz);
    }
    return SAR_OK;
}

struct arena_growable {
    struct sar_growable growable; /* the first member: grow_in_arena casts back */
    const struct sar_vec_desc *desc;
    struct sar_arena *arena;
};

/* Move a vec to larger arrays from the arena. */
static enum sar_status grow_in_arena(struct sar_growable *growable, size_t nnz, struct sar_spvec *vec)
{
    struct arena_growable *memory = (struct arena_growable *)growable;
    struct sar_spvec larger;
    SAR_TRY(sar_spvec_alloc(memory->desc, nnz, memory->arena, &larger));
    sar_spvec_copy(memory->desc, vec, &larger);
    larger.nnz = vec->nnz;
    *vec = larger;
    growable->capacity = nnz;
    return SAR_OK;
}

enum sar_status sar_dense_compact(const struct sar_vec_desc *desc, const void *buf, size_t expected,
                                  struct sar_arena *arena, struct sar_spvec *vec)
{
    struct arena_growable growable = { { grow_in_arena, 0, arena }, desc, arena };
    return sar_dense_compact_into(desc, buf, expected, &growable.growable, vec);
}
