/* SPDX-License-Identifier: BSD-3-Clause */
/* Elias-Fano (Elias 1974, Fano 1971): the values, then the l low bits of each slot, packed, then the high
 * bits of all slots in unary: bit (slot >> l) + i is set for element i. Ascending slots take 2 + log2(slots /
 * nnz) bits each, half a bit more than the information-theoretic minimum at the densities of gradients.
 *
 *     bytes = nnz s + ceil(nnz l / 8) + ceil((nnz + ((slots - 1) >> l)) / 8)
 *
 * with the l that makes this least. */

#include "base/parallel.h"
#include "wire/elias_fano.h"
#include "wire/elias_fano_avx2.h"
#include "wire/index_util.h"

enum { BATCH = 4 /* bits of a word extracted without a test */ };

static uint64_t bytes_of(const struct sar_wire_layout *layout, uint64_t nnz)
{
    struct sar_elias_fano_sizes s = sar_elias_fano_sizes_make(layout, nnz);
    return sar_add_saturate(s.values, sar_add_saturate(s.low, s.high));
}

/* Lists of low bits begin at multiples of as many elements, so that they begin with a whole word. */
enum { PIECE_ELEMENTS = 64 };

/* A payload whose ranges are written, or read, in parallel. The low bits are divided by elements, the high
 * bits by words. */
struct payload {
    const struct sar_wire_layout *layout;
    const struct sar_spvec *vec;
    struct sar_elias_fano_sizes s;
    unsigned char *low, *high;
    size_t pieces;
    size_t *before; /* decode: elements before each piece of the high bits; pieces + 1 */
};

static size_t first_element(const struct payload *p, size_t piece)
{
    return sar_parallel_bound(p->vec->nnz, PIECE_ELEMENTS, p->pieces, piece);
}

static uint64_t first_word(const struct payload *p, size_t piece)
{
    return sar_parallel_bound((size_t)(p->s.high / 8 + (p->s.high % 8 != 0)), 1, p->pieces, piece);
}

/* Collects the low bits of elements [from, end) in a register and stores each full word. `from` is a multiple
 * of eight. So is `end`, unless it is the end of the list: another thread may write the next bytes. */
SAR_INLINE void pack_low(const void *index, unsigned size, size_t from, size_t end,
                         const struct sar_elias_fano_sizes *s, unsigned char *out)
{
    uint64_t mask = ((uint64_t)1 << s->low_bits) - 1, word = 0, at = (uint64_t)from * s->low_bits / 8;
    unsigned used = 0;
    for (size_t i = from; i < end; i++) {
        uint64_t low = sar_index_get(index, size, i) & mask;
        word |= low << used;
        used += s->low_bits;
        if (used >= 64) {
            sar_store_word(out + at, word);
            at += 8;
            used -= 64;
            word = low >> (s->low_bits - used);
        }
    }
    if (used > 0)
        sar_store_partial_word(out + at, sar_bitmap_bytes((uint64_t)end * s->low_bits) - at, word);
}

SAR_INLINE uint64_t high_bit(const void *index, unsigned size, size_t i, const struct sar_elias_fano_sizes *s)
{
    return (sar_index_get(index, size, i) >> s->low_bits) + i;
}

/* A word of the high bits that is not stored yet. */
struct high_word {
    uint64_t at, bits;
};

/* Sets the bits of elements [from, end), and stores all words but the last one. */
SAR_INLINE void set_high(const void *index, unsigned size, size_t from, size_t end, struct high_word *word,
                         const struct sar_elias_fano_sizes *s, unsigned char *out)
{
    for (size_t i = from; i < end; i++) {
        uint64_t bit = high_bit(index, size, i, s);
        if (bit / 64 != word->at) {
            sar_bitmap_set_word(out, s->high, word->at, word->bits);
            *word = (struct high_word){ .at = bit / 64 };
        }
        word->bits |= (uint64_t)1 << (bit % 64);
    }
}

/* Returns the first element whose high bit is in a word or after it. */
static size_t first_in_word(const struct payload *p, uint64_t word)
{
    size_t low = 0, high = p->vec->nnz;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (high_bit(p->vec->index, p->layout->index_size, middle, &p->s) / 64 < word)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Elements whose low bits, and whose high bits, are in a range of the payload, and its first word. */
struct range {
    size_t low_from, low_end, high_from, high_end;
    uint64_t word;
};

SAR_INLINE void write_plain(const struct payload *p, const struct range *r, unsigned size)
{
    struct high_word word = { .at = r->word };
    if (p->s.low_bits != 0)
        pack_low(p->vec->index, size, r->low_from, r->low_end, &p->s, p->low);
    set_high(p->vec->index, size, r->high_from, r->high_end, &word, &p->s, p->high);
    if (r->high_from < r->high_end)
        sar_bitmap_set_word(p->high, p->s.high, word.at, word.bits);
}

#if defined(SAR_AVX2)
SAR_AVX2 static void write_avx2(const struct payload *p, const struct range *r)
{
    const struct sar_elias_fano_sizes *s = &p->s;
    const uint32_t *index = p->vec->index;
    size_t packed = r->low_from;
    struct high_word word = { .at = r->word };
    if (s->low_bits != 0 && s->low_bits <= SAR_AVX2_PACK_BITS)
        packed = sar_elias_fano_pack_low(index, r->low_from, r->low_end, s->low_bits, p->low);
    if (s->low_bits != 0)
        pack_low(index, 4, packed, r->low_end, s, p->low);
    for (size_t i = r->high_from, next; i < r->high_end; i = next) {
        i = sar_elias_fano_set_high(index, i, r->high_end, s->low_bits, s->high / 8, &word.at, &word.bits,
                                    p->high);
        next = r->high_end - i < SAR_AVX2_LANES ? r->high_end : i + SAR_AVX2_LANES;
        set_high(index, 4, i, next, &word, s, p->high);
    }
    if (r->high_from < r->high_end)
        sar_bitmap_set_word(p->high, s->high, word.at, word.bits);
}
#endif

static enum sar_status write_range(void *arg, size_t i)
{
    const struct payload *p = arg;
    bool last = i + 1 == p->pieces;
    uint64_t word = first_word(p, i), end_word = first_word(p, i + 1);
    uint64_t begin = 8 * word, end = last ? p->s.high : 8 * end_word;
    struct range r = { first_element(p, i), first_element(p, i + 1), i == 0 ? 0 : first_in_word(p, word),
                       last ? p->vec->nnz : first_in_word(p, end_word), word };
    memset(p->high + begin, 0, end - begin);
#if defined(SAR_AVX2)
    if (p->layout->index_size == 4 && sar_has_avx2()) {
        write_avx2(p, &r);
        return SAR_OK;
    }
#endif
    SAR_FOR_INDEX_SIZE(p->layout->index_size, write_plain(p, &r, INDEX_SIZE));
    return SAR_OK;
}

static void encode(const struct sar_wire_layout *layout, const struct sar_spvec *vec, void *payload)
{
    struct payload p = { layout, vec, sar_elias_fano_sizes_make(layout, vec->nnz), NULL, NULL, 1, NULL };
    if (vec->nnz == 0)
        return;
    p.low = (unsigned char *)payload + p.s.values;
    p.high = p.low + p.s.low;
    p.pieces = sar_parallel_pieces(vec->nnz * layout->index_size + p.s.low + p.s.high);
    sar_parallel_copy(payload, vec->value, p.s.values);
    (void)sar_parallel_for(p.pieces, write_range, &p);
}

/* Sets index[k] to the high bits of element k, for the elements of words [word, end), of which index[k] is
 * the first. Most words hold few bits: writing a fixed number of entries, some of them unused, is faster than
 * a loop whose end the processor mispredicts. Entries from index[limit] on are not written. */
SAR_INLINE void list_high(const unsigned char *in, const struct sar_elias_fano_sizes *s, uint64_t word,
                          uint64_t end, size_t k, size_t limit, void *index, unsigned size)
{
    for (; word < end; word++) {
        uint64_t bits = sar_bitmap_word(in, s->high, word);
        size_t n = (size_t)__builtin_popcountll(bits);
        for (size_t first = 0; first < n; first += BATCH) {
            size_t at = k + first, batch = limit - at < BATCH ? limit - at : BATCH;
            if (__builtin_expect(batch < BATCH, 0)) {
                for (size_t i = 0; i < batch && bits != 0; i++, bits &= bits - 1)
                    sar_index_set(index, size, at + i,
                                  (word * 64 + (unsigned)__builtin_ctzll(bits) - (at + i)) << s->low_bits);
                continue;
            }
#pragma GCC unroll 4
            for (size_t i = 0; i < BATCH; i++, bits &= bits - 1) {
                uint64_t bit = word * 64 + (unsigned)__builtin_ctzll(bits | (uint64_t)1 << 63);
                sar_index_set(index, size, at + i, (bit - (at + i)) << s->low_bits);
            }
        }
        k += n;
    }
}

/* Adds the low bits of elements [from, end). The last elements of all are read byte by byte, so as not to
 * read past the payload. */
SAR_INLINE void add_low(const unsigned char *in, const struct sar_elias_fano_sizes *s, size_t from,
                        size_t end, void *index, unsigned size)
{
    uint64_t mask = ((uint64_t)1 << s->low_bits) - 1, left = s->low + s->high;
    size_t safe = left < 8 ? 0 : (size_t)((left - 8) * 8 / s->low_bits);
    safe = safe < from ? from : safe < end ? safe : end;
    for (size_t i = from; i < safe; i++) {
        uint64_t bit = i * s->low_bits;
        uint64_t low = sar_load_word(in + bit / 8) >> (bit % 8) & mask;
        sar_index_set(index, size, i, sar_index_get(index, size, i) | low);
    }
    for (size_t i = safe; i < end; i++) {
        uint64_t bit = i * s->low_bits;
        uint64_t low = sar_load_partial_word(in + bit / 8, left - bit / 8) >> (bit % 8) & mask;
        sar_index_set(index, size, i, sar_index_get(index, size, i) | low);
    }
}

/* The elements of a range of words, complete. */
SAR_INLINE void list(const struct payload *p, size_t piece, unsigned size)
{
    size_t from = p->before[piece], end = p->before[piece + 1];
    list_high(p->high, &p->s, first_word(p, piece), first_word(p, piece + 1), from, end, p->vec->index, size);
    if (p->s.low_bits != 0)
        add_low(p->low, &p->s, from, end, p->vec->index, size);
}

SAR_CLONES static void list_u32(const struct payload *p, size_t piece)
{
    list(p, piece, 4);
}

#if defined(SAR_AVX2)
SAR_AVX2 static void list_avx2(const struct payload *p, size_t piece)
{
    size_t from = p->before[piece], end = p->before[piece + 1];
    uint64_t word = first_word(p, piece), end_word = first_word(p, piece + 1);
    uint32_t *index = p->vec->index;
    size_t k = sar_elias_fano_list_high(p->high, p->s.low_bits, &word, end_word, from, end, index);
    list_high(p->high, &p->s, word, end_word, k, end, index, 4);
    if (p->s.low_bits == 0)
        return;
    size_t aligned = (from + SAR_AVX2_LANES - 1) / SAR_AVX2_LANES * SAR_AVX2_LANES, i = from;
    if (p->s.low_bits <= SAR_AVX2_READ_BITS && aligned <= end) {
        add_low(p->low, &p->s, from, aligned, index, 4);
        i = sar_elias_fano_add_low(p->low, p->s.low + p->s.high, p->s.low_bits, aligned, end, index);
    }
    add_low(p->low, &p->s, i, end, index, 4);
}
#endif

static enum sar_status list_range(void *arg, size_t i)
{
    const struct payload *p = arg;
#if defined(SAR_AVX2)
    if (p->layout->index_size == 4 && sar_has_avx2()) {
        list_avx2(p, i);
        return SAR_OK;
    }
#endif
    if (p->layout->index_size == 4)
        list_u32(p, i);
    else
        list(p, i, 8);
    return SAR_OK;
}

static enum sar_status count_range(void *arg, size_t i)
{
    const struct payload *p = arg;
    p->before[i + 1] = sar_bitmap_count(p->high, p->s.high, first_word(p, i), first_word(p, i + 1));
    return SAR_OK;
}

static enum sar_status decode(const struct sar_wire_layout *layout, void *payload, uint64_t bytes,
                              struct sar_arena *arena, struct sar_spvec *vec)
{
    size_t before[SAR_PIECES_MAX + 1];
    struct payload p = { layout, vec, sar_elias_fano_sizes_make(layout, vec->nnz), NULL, NULL, 1, before };
    if (vec->nnz > layout->slots || bytes != bytes_of(layout, vec->nnz))
        return SAR_CORRUPT;
    p.low = (unsigned char *)payload + p.s.values;
    p.high = p.low + p.s.low;
    p.pieces = sar_parallel_pieces(vec->nnz * layout->index_size + p.s.low + p.s.high);
    before[0] = 0;
    SAR_TRY(sar_parallel_for(p.pieces, count_range, &p));
    for (size_t i = 0; i < p.pieces; i++)
        before[i + 1] += before[i];
    if (before[p.pieces] != vec->nnz)
        return SAR_CORRUPT;
    vec->value = payload;
    SAR_TRY(sar_arena_alloc(arena, vec->nnz, layout->index_size, &vec->index));
    SAR_TRY(sar_parallel_for(p.pieces, list_range, &p));
    return sar_indices_are_sorted(layout, vec->index, vec->nnz) ? SAR_OK : SAR_CORRUPT;
}

const struct sar_wire sar_wire_elias_fano = {
    .name = "elias_fano",
    .summary = "the values, and slots at 2 + log2(slots / nnz) bits each",
    .codec_id = SAR_CODEC_ELIAS_FANO,
    .min_bytes = bytes_of,
    .nnz_cost = 0.6,
    .pull_nnz_cost = 0.33,
    .encode = encode,
    .decode = decode,
};
