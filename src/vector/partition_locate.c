/* SPDX-License-Identifier: BSD-3-Clause */
/* Location of elements by a partition map. With AVX-512 the rotations of some consecutive stripes, a window,
 * are hashed once, and looked up for the elements there: indices ascend.
 *
 *     time = .25 to .4 ns for an element or a run in windows, 1 ns with a hash for each one */

#include "vector/partition_locate.h"

#if defined(SAR_AVX512)
#include <immintrin.h>
#endif

#include "vector/spvec.h"

enum {
    LANES = SAR_LOCATE_SLACK,        /* elements in a vector of AVX-512 */
    WINDOW = 2 * LANES,              /* stripes whose rotations are looked up */
    WINDOW_MAX_PARTS = 1024,         /* parts for which MAGIC_BITS are enough */
    WINDOW_MIN_ELEMENTS = 4 * LANES, /* elements for which a window pays */
    MAGIC_BITS = 26,
    STORED_MAX_PARTS = 256 /* parts whose numbers fit a byte */
};

SAR_INLINE void locate_as(const struct sar_partition_map *map, const void *index, unsigned size, size_t from,
                          size_t n, struct sar_slots_batch *to)
{
    for (size_t i = 0; i < n; i++) {
        struct sar_slot at = sar_partition_map_locate(map, sar_index_get(index, size, from + i));
        to->part[i] = at.part;
        to->slot[i] = (uint32_t)at.slot;
    }
}

/* Elements [from, n). */
SAR_INLINE void locate32(const struct sar_partition_map *map, const uint32_t *index, size_t from, size_t n,
                         struct sar_slots_batch *to)
{
    for (size_t i = from; i < n; i++) {
        struct sar_slot32 at = sar_partition_map_locate32(map, index[i]);
        to->part[i] = at.part;
        to->slot[i] = at.slot;
    }
}

/* The common kinds of map have loops in which kind and index size are constants. */
#define DEFINE_LOCATE(name, map_kind)                                                                    \
    SAR_CLONES static void name(const struct sar_partition_map *map, const uint32_t *index, size_t from, \
                                size_t n, struct sar_slots_batch *to)                                    \
    {                                                                                                    \
        struct sar_partition_map fixed = *map;                                                           \
        fixed.kind = map_kind;                                                                           \
        fixed.blocks_fit_32 = true;                                                                      \
        locate32(&fixed, index, from, n, to);                                                            \
    }

DEFINE_LOCATE(locate_hash, SAR_PARTITION_HASH)
DEFINE_LOCATE(locate_cyclic, SAR_PARTITION_CYCLIC)

static void locate_by_hash(const struct sar_partition_map *map, const uint32_t *index, size_t from, size_t n,
                           struct sar_slots_batch *to)
{
    if (map->kind == SAR_PARTITION_HASH)
        locate_hash(map, index, from, n, to);
    else
        locate_cyclic(map, index, from, n, to);
}

/* Runs [from, n). */
SAR_INLINE void locate_runs_by(const struct sar_partition_map *map, size_t from, size_t n,
                               struct sar_runs_batch *runs)
{
    for (size_t i = from; i < n; i++) {
        uint32_t index = runs->block[i] << map->grain_shift;
        struct sar_slot32 at = sar_partition_map_locate32(map, index);
        runs->part[i] = at.part;
        runs->to_slot[i] = at.slot - index;
    }
}

/* As DEFINE_LOCATE. */
#define DEFINE_LOCATE_RUNS(name, map_kind)                                                  \
    SAR_CLONES static void name(const struct sar_partition_map *map, size_t from, size_t n, \
                                struct sar_runs_batch *to)                                  \
    {                                                                                       \
        struct sar_partition_map fixed = *map;                                              \
        fixed.kind = map_kind;                                                              \
        fixed.blocks_fit_32 = true;                                                         \
        locate_runs_by(&fixed, from, n, to);                                                \
    }

DEFINE_LOCATE_RUNS(locate_runs_hash, SAR_PARTITION_HASH)
DEFINE_LOCATE_RUNS(locate_runs_cyclic, SAR_PARTITION_CYCLIC)

static void locate_runs_by_hash(const struct sar_partition_map *map, size_t from, size_t n,
                                struct sar_runs_batch *runs)
{
    if (map->kind == SAR_PARTITION_HASH)
        locate_runs_hash(map, from, n, runs);
    else
        locate_runs_cyclic(map, from, n, runs);
}

#if defined(SAR_AVX512)
/* Blocks of WINDOW consecutive stripes. */
struct window {
    __m512i first_block, parts, magic;
    __m512i rotation[2];
    __m512i base; /* slot of the first block less its index */
    __m128i grain_shift;
    uint64_t end; /* block after the last */
};

SAR_CLONES static void hash_stripes(const struct sar_partition_map *map, uint32_t first,
                                    uint32_t rotation[WINDOW])
{
    struct sar_partition_map fixed = *map;
    fixed.blocks_fit_32 = true;
    for (uint32_t i = 0; i < WINDOW; i++)
        rotation[i] = sar_partition_map_rotation(&fixed, first + i);
}

/* Opens the window that begins with the stripe of a block. */
SAR_AVX512 static void open_window(const struct sar_partition_map *map, uint32_t block, struct window *w)
{
    uint32_t rotation[WINDOW], stripe = sar_partition_map_divide(map, block), first = stripe * map->parts;
    hash_stripes(map, stripe, rotation);
    w->rotation[0] = _mm512_loadu_si512(rotation);
    w->rotation[1] = _mm512_loadu_si512(rotation + LANES);
    w->first_block = _mm512_set1_epi32((int)first);
    w->base = _mm512_set1_epi32((int)(((stripe - first) << map->grain_shift) - (uint32_t)map->slot_base));
    w->parts = _mm512_set1_epi32((int)map->parts);
    w->magic = _mm512_set1_epi32((int)(((1u << MAGIC_BITS) + map->parts - 1) / map->parts));
    w->grain_shift = _mm_cvtsi32_si128((int)map->grain_shift);
    w->end = ((uint64_t)stripe + WINDOW) * map->parts;
}

/* Parts of blocks, and the difference of slots from indices. For x < WINDOW parts, x / parts is
 * x magic / 2^MAGIC_BITS: x magic fits 32 bits, and magic is too large by less than 1, so that the quotient
 * is too large by less than WINDOW parts / 2^MAGIC_BITS, which is at most 1 / parts. */
SAR_AVX512 static inline __m512i locate_in_window(const struct window *w, __m512i block, __m512i *part)
{
    __m512i x = _mm512_sub_epi32(block, w->first_block);
    __m512i stripe = _mm512_srli_epi32(_mm512_mullo_epi32(x, w->magic), MAGIC_BITS);
    __m512i column = _mm512_sub_epi32(x, _mm512_mullo_epi32(stripe, w->parts));
    __m512i turned =
        _mm512_add_epi32(column, _mm512_permutex2var_epi32(w->rotation[0], stripe, w->rotation[1]));
    *part = _mm512_min_epu32(turned, _mm512_sub_epi32(turned, w->parts)); /* turned < 2 parts */
    return _mm512_add_epi32(_mm512_sll_epi32(_mm512_sub_epi32(stripe, x), w->grain_shift), w->base);
}

/* Locates whole vectors of elements; returns the number of elements. A vector may be spread over more stripes
 * than a window has. */
SAR_AVX512 static size_t locate_wide(const struct sar_partition_map *map, const uint32_t *index, size_t n,
                                     struct sar_slots_batch *to)
{
    struct window w = { .end = 0 };
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        uint32_t last = index[i + LANES - 1] >> map->grain_shift;
        if (last >= w.end)
            open_window(map, index[i] >> map->grain_shift, &w);
        if (last >= w.end) {
            locate_by_hash(map, index, i, i + LANES, to);
            continue;
        }
        __m512i at = _mm512_loadu_si512(index + i), part;
        __m512i to_slot = locate_in_window(&w, _mm512_srl_epi32(at, w.grain_shift), &part);
        _mm512_storeu_si512(to->part + i, part);
        _mm512_storeu_si512(to->slot + i, _mm512_add_epi32(at, to_slot));
    }
    return i;
}

/* As locate_wide, for runs. */
SAR_AVX512 static size_t locate_runs_wide(const struct sar_partition_map *map, struct sar_runs_batch *runs)
{
    struct window w = { .end = 0 };
    size_t i = 0;
    for (; i + LANES <= runs->n; i += LANES) {
        uint32_t last = runs->block[i + LANES - 1];
        if (last >= w.end)
            open_window(map, runs->block[i], &w);
        if (last >= w.end) {
            locate_runs_by_hash(map, i, i + LANES, runs);
            continue;
        }
        __m512i part, to_slot = locate_in_window(&w, _mm512_loadu_si512(runs->block + i), &part);
        _mm512_storeu_si512(runs->part + i, part);
        _mm512_storeu_si512(runs->to_slot + i, to_slot);
    }
    return i;
}
#else
#define locate_wide(map, index, n, to) ((size_t)0)
#define locate_runs_wide(map, runs) ((size_t)0)
#endif

/* True if windows pay for n elements, or runs, between two blocks. */
static bool has_windows(const struct sar_partition_map *map, uint32_t first_block, uint32_t last_block,
                        size_t n)
{
    uint64_t windows = ((uint64_t)last_block - first_block) / ((uint64_t)WINDOW * map->parts) + 1;
    return map->parts <= WINDOW_MAX_PARTS && n / windows >= WINDOW_MIN_ELEMENTS && sar_has_avx512();
}

/* Indices ascend: all below `end` are in the block of the one before. */
SAR_INLINE void locate_in_blocks(const struct sar_partition_map *map, const void *index, unsigned size,
                                 size_t from, size_t n, struct sar_slots_batch *to)
{
    uint64_t end = 0, to_slot = 0;
    uint32_t part = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t at = sar_index_get(index, size, from + i);
        if (at >= end) {
            struct sar_slot slot = sar_partition_map_locate(map, at);
            part = slot.part;
            to_slot = slot.slot - at;
            end = at - at % map->grain + map->grain;
        }
        to->part[i] = part;
        to->slot[i] = (uint32_t)(at + to_slot);
    }
}

static void locate_narrow(const struct sar_partition_map *map, const uint32_t *index, size_t n,
                          struct sar_slots_batch *to)
{
    size_t located = 0;
    if (has_windows(map, index[0] >> map->grain_shift, index[n - 1] >> map->grain_shift, n))
        located = locate_wide(map, index, n, to);
    locate_by_hash(map, index, located, n, to);
}

void sar_locate_slots(const struct sar_partition_map *map, const struct sar_vec_desc *desc, const void *index,
                      size_t from, size_t n, struct sar_slots_batch *to)
{
    bool stripes = map->kind == SAR_PARTITION_HASH || map->kind == SAR_PARTITION_CYCLIC;
    if (stripes && map->blocks_fit_32 && map->parts > 1 && desc->index_size == 4)
        locate_narrow(map, (const uint32_t *)index + from, n, to);
    else if (map->kind == SAR_PARTITION_BLOCKS)
        SAR_FOR_INDEX_SIZE(desc->index_size, locate_in_blocks(map, index, INDEX_SIZE, from, n, to));
    else
        SAR_FOR_INDEX_SIZE(desc->index_size, locate_as(map, index, INDEX_SIZE, from, n, to));
}

bool sar_locate_stores_parts(const struct sar_partition_map *map, const struct sar_vec_desc *desc)
{
    return map->kind == SAR_PARTITION_HASH && map->blocks_fit_32 && map->parts > 1 &&
           map->parts <= STORED_MAX_PARTS && desc->index_size == 4;
}

SAR_CLONES void sar_locate_store_parts(const struct sar_slots_batch *from, size_t n, uint8_t *part)
{
    for (size_t i = 0; i < n; i++)
        part[i] = (uint8_t)from->part[i];
}

/* Slots do not depend on the rotation of a stripe, so that those of a cyclic map are equal. */
SAR_CLONES void sar_locate_stored_parts(const struct sar_partition_map *map, const void *index,
                                        const uint8_t *part, size_t from, size_t n,
                                        struct sar_slots_batch *to)
{
    struct sar_partition_map fixed = *map;
    fixed.kind = SAR_PARTITION_CYCLIC;
    for (size_t i = 0; i < n; i++) {
        to->part[i] = part[i];
        to->slot[i] = sar_partition_map_locate32(&fixed, ((const uint32_t *)index)[from + i]).slot;
    }
}

/* Adds the runs that start at elements [from, n), from > 0. */
SAR_INLINE void find_runs_from(const uint32_t *index, size_t from, size_t n, unsigned shift,
                               struct sar_runs_batch *runs)
{
    size_t k = runs->n;
    for (size_t i = from; i < n; i++) {
        uint32_t block = index[i] >> shift;
        runs->start[k] = (uint32_t)i;
        runs->block[k] = block;
        k += block != index[i - 1] >> shift;
    }
    runs->start[k] = (uint32_t)n;
    runs->n = k;
}

#if defined(SAR_AVX512)
SAR_AVX512 static void find_runs_wide(const uint32_t *index, size_t n, unsigned shift,
                                      struct sar_runs_batch *runs)
{
    const __m512i step = _mm512_set1_epi32(LANES);
    __m512i at = _mm512_add_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                                  _mm512_set1_epi32(1));
    __m128i bits = _mm_cvtsi32_si128((int)shift);
    size_t i = 1, k = runs->n;
    for (; i + LANES <= n; i += LANES, at = _mm512_add_epi32(at, step)) {
        __m512i block = _mm512_srl_epi32(_mm512_loadu_si512(index + i), bits);
        __m512i before = _mm512_srl_epi32(_mm512_loadu_si512(index + i - 1), bits);
        __mmask16 starts = _mm512_cmpneq_epi32_mask(block, before);
        _mm512_storeu_si512(runs->start + k, _mm512_maskz_compress_epi32(starts, at));
        _mm512_storeu_si512(runs->block + k, _mm512_maskz_compress_epi32(starts, block));
        k += (size_t)__builtin_popcount(sar_mask_bits(starts));
    }
    runs->n = k;
    find_runs_from(index, i, n, shift, runs);
}
#else
#define find_runs_wide(index, n, shift, runs) ((void)0)
#endif

static void find_runs(const uint32_t *index, size_t n, unsigned shift, struct sar_runs_batch *runs)
{
    runs->n = 1;
    runs->start[0] = 0;
    runs->block[0] = index[0] >> shift;
    if (sar_has_avx512())
        find_runs_wide(index, n, shift, runs);
    else
        find_runs_from(index, 1, n, shift, runs);
}

void sar_locate_runs(const struct sar_partition_map *map, const uint32_t *index, size_t n,
                     struct sar_runs_batch *runs)
{
    size_t located = 0;
    find_runs(index, n, map->grain_shift, runs);
    if (has_windows(map, runs->block[0], runs->block[runs->n - 1], runs->n))
        located = locate_runs_wide(map, runs);
    locate_runs_by_hash(map, located, runs->n, runs);
}
