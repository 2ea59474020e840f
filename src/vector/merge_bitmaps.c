/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocks of the vector are visited in order, as in sar_partition_merge. The words of a block are listed
 * as indices in place, and the next values of the part are copied behind the others.
 *
 * First the bits of each part are counted, for ranges of stripes that are merged in parallel: the counts tell
 * where the range of a part begins, and that the part has as many bits as elements. */

#include "vector/merge_bitmaps.h"

#include <string.h>

#include "base/parallel.h"
#include "base/word.h"
#include "vector/bit_list.h"
#include "vector/pieces.h"

enum {
    WORD_BITS = 64,
    LANES = 16,                           /* values of 4 bytes in a vector of AVX-512 */
    ROOM = WORD_BITS + SAR_BIT_LIST_SLACK /* elements that a word's may overwrite */
};

/* The rest of a part, in a range of stripes. */
struct source {
    const unsigned char *value;
    size_t left; /* elements */
};

/* The parts of a map, and ranges of stripes. */
struct merge {
    const struct sar_partition_map *map;
    const struct sar_vec_desc *desc;
    const struct sar_part_bitmap *parts;
    struct sar_spvec out;
    uint64_t stripes; /* from map->slot_base on */
    size_t pieces;
    size_t *before;         /* elements of each part before a piece; rows of map->parts, pieces + 1 of them */
    struct source *sources; /* rows of `stride` for the pieces, map->parts of them used */
    size_t stride;
};

struct target {
    unsigned char *index, *value;
    size_t left; /* room for elements */
};

static uint64_t first_stripe(const struct merge *m, size_t piece)
{
    return sar_parallel_bound((size_t)m->stripes, 1, m->pieces, piece);
}

SAR_INLINE uint64_t load(const struct sar_part_bitmap *part, uint64_t word)
{
    return word * 8 < part->bytes ? sar_bitmap_word(part->bits, part->bytes, word) : 0;
}

static enum sar_status count_piece(void *arg, size_t i)
{
    const struct merge *m = arg;
    unsigned shift = m->map->grain_shift - 6;
    for (uint32_t p = 0; p < m->map->parts; p++)
        m->before[(i + 1) * m->map->parts + p] =
            sar_bitmap_count(m->parts[p].bits, m->parts[p].bytes, first_stripe(m, i) << shift,
                             first_stripe(m, i + 1) << shift);
    return SAR_OK;
}

SAR_INLINE void advance(struct source *from, struct target *to, size_t n, unsigned size, size_t bytes)
{
    from->value += n * bytes;
    from->left -= n;
    to->index += n * size;
    to->value += n * bytes;
    to->left -= n;
}

/* The last elements of the part or the result, of any size. */
SAR_INLINE size_t copy_few(uint64_t bits, uint64_t index, const struct source *from, const struct target *to,
                           unsigned size, size_t bytes)
{
    size_t n = 0;
    for (; bits != 0; bits &= bits - 1)
        sar_index_set(to->index, size, n++, index + (unsigned)__builtin_ctzll(bits));
    memcpy(to->value, from->value, n * bytes);
    return n;
}

#if defined(SAR_AVX512)
SAR_AVX512 static inline size_t copy_wide(uint64_t bits, uint64_t index, const struct source *from,
                                          const struct target *to)
{
    size_t n = sar_bit_list_avx512(bits, (uint32_t)index, (uint32_t *)to->index);
    _mm512_storeu_si512(to->value, _mm512_loadu_si512(from->value));
    for (size_t i = LANES; __builtin_expect(i < n, 0); i += LANES)
        _mm512_storeu_si512(to->value + i * 4, _mm512_loadu_si512(from->value + i * 4));
    return n;
}

/* Copies the elements of a block whose words are all in the bitmap: all indices, then all values. */
SAR_AVX512 static inline void copy_whole_block(const unsigned char *bits, size_t words, uint64_t index,
                                               struct source *from, struct target *to)
{
    size_t n = 0;
    for (size_t w = 0; w < words; w++, index += WORD_BITS)
        n += sar_bit_list_avx512(sar_load_word(bits + w * 8), (uint32_t)index, (uint32_t *)to->index + n);
    for (size_t i = 0; i < n; i += LANES)
        _mm512_storeu_si512(to->value + i * 4, _mm512_loadu_si512(from->value + i * 4));
    advance(from, to, n, 4, 4);
}
#else
#define copy_wide(bits, index, from, to) copy_few(bits, index, from, to, 4, 4)
#define copy_whole_block(bits, words, index, from, to) ((void)0)
#endif

/* Copies the elements of a word. */
SAR_INLINE void copy_word(uint64_t bits, uint64_t index, struct source *from, struct target *to,
                          unsigned size, size_t bytes, bool wide)
{
    size_t n;
    if (from->left < ROOM || to->left < ROOM) {
        n = bits == 0 ? 0 : copy_few(bits, index, from, to, size, bytes);
    } else if (wide) {
        n = copy_wide(bits, index, from, to);
    } else {
        n = sar_bit_list(bits, index, to->index, size, 0);
        memcpy(to->value, from->value, n * bytes);
    }
    advance(from, to, n, size, bytes);
}

/* Copies the elements of words [word, word + words), which are a block that begins at `index`. */
SAR_INLINE void copy_block(const struct sar_part_bitmap *part, uint64_t word, size_t words, uint64_t index,
                           struct source *from, struct target *to, unsigned size, size_t bytes, bool wide)
{
    size_t room = words * WORD_BITS + SAR_BIT_LIST_SLACK;
    if (wide && (word + words) * 8 <= part->bytes && from->left >= room && to->left >= room) {
        copy_whole_block(part->bits + word * 8, words, index, from, to);
        return;
    }
    for (size_t w = 0; w < words; w++, index += WORD_BITS)
        copy_word(load(part, word + w), index, from, to, size, bytes, wide);
}

SAR_INLINE void copy_stripes(const struct merge *m, size_t piece, struct source *sources, struct target to,
                             unsigned size, size_t bytes, bool wide)
{
    const struct sar_partition_map map = *m->map;
    unsigned shift = map.grain_shift - 6;
    uint64_t base = map.slot_base >> map.grain_shift, end = first_stripe(m, piece + 1);
    for (uint64_t stripe = first_stripe(m, piece); stripe < end; stripe++) {
        uint32_t part = sar_partition_map_rotation(&map, base + stripe);
        uint64_t index = (base + stripe) * map.parts << map.grain_shift;
        for (uint32_t i = 0; i < map.parts; i++) {
            struct source from = sources[part];
            copy_block(&m->parts[part], stripe << shift, (size_t)1 << shift, index, &from, &to, size, bytes,
                       wide);
            sources[part] = from;
            index += (uint64_t)WORD_BITS << shift;
            part = part + 1 < map.parts ? part + 1 : 0;
        }
    }
}

#if defined(SAR_AVX512)
SAR_AVX512 static void copy_stripes_wide(const struct merge *m, size_t piece, struct source *sources,
                                         struct target to)
{
    copy_stripes(m, piece, sources, to, 4, 4, true);
}
#else
#define copy_stripes_wide(m, piece, sources, to) ((void)0)
#endif

/* Other loops take 2.5 times as long as lists for doubles, and 1.1 to 2.5 times without AVX-512. */
bool sar_merge_bitmaps_is_faster(const struct sar_vec_desc *desc)
{
    return desc->index_size == 4 && desc->element_size == 4 && sar_has_avx512();
}

static void copy_all(const struct merge *m, size_t piece, struct source *sources, struct target to)
{
    unsigned size = m->desc->index_size;
    size_t bytes = m->desc->element_size;
    if (sar_merge_bitmaps_is_faster(m->desc))
        copy_stripes_wide(m, piece, sources, to);
    else if (bytes == 4)
        SAR_FOR_INDEX_SIZE(size, copy_stripes(m, piece, sources, to, INDEX_SIZE, 4, false));
    else if (bytes == 8)
        SAR_FOR_INDEX_SIZE(size, copy_stripes(m, piece, sources, to, INDEX_SIZE, 8, false));
    else
        copy_stripes(m, piece, sources, to, size, bytes, false);
}

static enum sar_status merge_piece(void *arg, size_t i)
{
    const struct merge *m = arg;
    size_t bytes = m->desc->element_size, elements = 0;
    const size_t *before = m->before + i * m->map->parts;
    struct target to = { m->out.index, m->out.value, 0 };
    struct source *sources = m->sources + i * m->stride;
    for (uint32_t p = 0; p < m->map->parts; p++) {
        size_t n = before[m->map->parts + p] - before[p];
        sources[p] = (struct source){ (const unsigned char *)m->parts[p].value + before[p] * bytes, n };
        elements += before[p];
        to.left += n;
    }
    to.index += elements * m->desc->index_size;
    to.value += elements * bytes;
    copy_all(m, i, sources, to);
    return SAR_OK;
}

/* Counts each part's elements before each piece, and checks that there are nnz. */
static enum sar_status count_pieces(struct merge *m)
{
    size_t parts = m->map->parts, rows = m->pieces + 1;
    (void)sar_parallel_for(m->pieces, count_piece, m);
    for (size_t at = parts; at < rows * parts; at++)
        m->before[at] += m->before[at - parts];
    for (size_t p = 0; p < parts; p++)
        if (m->before[m->pieces * parts + p] != m->parts[p].nnz)
            return SAR_CORRUPT;
    return SAR_OK;
}

enum sar_status sar_merge_bitmaps(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                                  const struct sar_part_bitmap parts[], struct sar_arena *arena,
                                  struct sar_spvec *out)
{
    struct merge m = { .map = map, .desc = desc, .parts = parts, .out = *out };
    size_t nnz = 0, block_bytes = ((size_t)1 << map->grain_shift) / 8;
    void *before, *sources;
    for (uint32_t p = 0; p < map->parts; p++) {
        uint64_t stripes = parts[p].bytes / block_bytes + (parts[p].bytes % block_bytes != 0);
        m.stripes = stripes > m.stripes ? stripes : m.stripes;
        nnz += parts[p].nnz;
    }
    m.pieces = sar_parallel_steps(2 * nnz * (desc->element_size + desc->index_size),
                                  map->parts * SAR_MERGE_STEP_BYTES);
    SAR_TRY(sar_arena_alloc_zeroed(arena, (m.pieces + 1) * map->parts, sizeof *m.before, &before));
    m.stride = sar_row_stride(map->parts, sizeof *m.sources);
    SAR_TRY(sar_arena_alloc(arena, m.pieces * m.stride, sizeof *m.sources, &sources));
    m.before = before;
    m.sources = sources;
    SAR_TRY(count_pieces(&m));
    SAR_TRY(sar_parallel_for(m.pieces, merge_piece, &m));
    out->nnz = nnz;
    return SAR_OK;
}
