/* SPDX-License-Identifier: BSD-3-Clause */
/* Elias-Fano (Elias 1974, Fano 1971): the values, then of each slot its l low bits, packed, and the rest
 * in unary: bit (slot >> l) + i is set for element i. Ascending slots take 2 + log2(span / nnz) bits
 * each, half a bit more than any format needs at the densities of gradients.
 *
 *     bytes = nnz s + ceil(nnz l / 8) + ceil((nnz + ((span - 1) >> l)) / 8)
 *
 * with the l that makes this the least. */

#include "wire/elias_fano.h"
#include "wire/indices.h"

enum { BATCH = 4 /* bits of a word taken out without a test */ };

static uint64_t bytes_of(const struct sar_layout *layout, uint64_t nnz)
{
    struct sar_sections s = sar_elias_fano_sections(layout, nnz);
    return sar_plus(s.values, sar_plus(s.low, s.high));
}

/* Words are gathered in a register and written when they are full. */
SAR_INLINE void pack_low(const void *index, unsigned size, size_t n, const struct sar_sections *s,
                         unsigned char *out)
{
    uint64_t mask = ((uint64_t)1 << s->low_bits) - 1, word = 0, words = 0;
    unsigned used = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t low = sar_index_get(index, size, i) & mask;
        word |= low << used;
        used += s->low_bits;
        if (used >= 64) {
            sar_store_word(out + 8 * words++, word);
            used -= 64;
            word = low >> (s->low_bits - used);
        }
    }
    if (s->low > 8 * words)
        sar_store_rest(out + 8 * words, s->low - 8 * words, word);
}

SAR_INLINE void mark_high(const void *index, unsigned size, size_t n, const struct sar_sections *s,
                          unsigned char *out)
{
    uint64_t bits = 0, at = 0;
    memset(out, 0, s->high);
    for (size_t i = 0; i < n; i++) {
        uint64_t bit = (sar_index_get(index, size, i) >> s->low_bits) + i;
        if (bit / 64 != at) {
            sar_bitmap_set_word(out, s->high, at, bits);
            bits = 0;
            at = bit / 64;
        }
        bits |= (uint64_t)1 << (bit % 64);
    }
    sar_bitmap_set_word(out, s->high, at, bits);
}

static void encode(const struct sar_layout *layout, const struct sar_run *run, void *payload)
{
    struct sar_sections s = sar_elias_fano_sections(layout, run->nnz);
    unsigned char *low = (unsigned char *)payload + s.values, *high = low + s.low;
    if (run->nnz == 0)
        return;
    memcpy(payload, run->value, s.values);
    if (s.low_bits != 0)
        SAR_FOR_INDEX_SIZE(layout->index_size, pack_low(run->index, INDEX_SIZE, run->nnz, &s, low));
    SAR_FOR_INDEX_SIZE(layout->index_size, mark_high(run->index, INDEX_SIZE, run->nnz, &s, high));
}

/* Number of bits set. */
SAR_CLONES static uint64_t count_bits(const unsigned char *bitmap, uint64_t bytes)
{
    uint64_t n = 0;
    for (uint64_t word = 0; word * 8 < bytes; word++)
        n += (uint64_t)__builtin_popcountll(sar_bitmap_word(bitmap, bytes, word));
    return n;
}

/* index[k] = high part of element k, for all bits set. Most words hold a few: a fixed number of writes of
 * which only some count is faster than a loop whose end cannot be foreseen. index has room for BATCH
 * more. */
SAR_INLINE void list_high(const unsigned char *in, const struct sar_sections *s, void *index, unsigned size)
{
    size_t k = 0;
    for (uint64_t word = 0; word * 8 < s->high; word++) {
        uint64_t bits = sar_bitmap_word(in, s->high, word);
        size_t n = (size_t)__builtin_popcountll(bits);
        for (size_t first = 0; first < n; first += BATCH) {
#pragma GCC unroll 4
            for (size_t i = 0; i < BATCH; i++, bits &= bits - 1) {
                uint64_t bit = word * 64 + (unsigned)__builtin_ctzll(bits | (uint64_t)1 << 63);
                sar_index_set(index, size, k + first + i, (bit - (k + first + i)) << s->low_bits);
            }
        }
        k += n;
    }
}

/* Add the low parts. The last elements must not read behind the payload. */
SAR_INLINE void add_low(const unsigned char *in, const struct sar_sections *s, size_t n, void *index,
                        unsigned size)
{
    uint64_t mask = ((uint64_t)1 << s->low_bits) - 1, left = s->low + s->high;
    size_t safe = left < 8 ? 0 : (size_t)((left - 8) * 8 / s->low_bits);
    safe = safe < n ? safe : n;
    for (size_t i = 0; i < safe; i++) {
        uint64_t bit = i * s->low_bits;
        uint64_t low = sar_load_word(in + bit / 8) >> (bit % 8) & mask;
        sar_index_set(index, size, i, sar_index_get(index, size, i) | low);
    }
    for (size_t i = safe; i < n; i++) {
        uint64_t bit = i * s->low_bits;
        uint64_t low = sar_load_rest(in + bit / 8, left - bit / 8) >> (bit % 8) & mask;
        sar_index_set(index, size, i, sar_index_get(index, size, i) | low);
    }
}

SAR_CLONES static void list_narrow(const unsigned char *low, const unsigned char *high,
                                   const struct sar_sections *s, size_t n, uint32_t *index)
{
    list_high(high, s, index, 4);
    if (s->low_bits != 0)
        add_low(low, s, n, index, 4);
}

static void list_wide(const unsigned char *low, const unsigned char *high, const struct sar_sections *s,
                      size_t n, uint64_t *index)
{
    list_high(high, s, index, 8);
    if (s->low_bits != 0)
        add_low(low, s, n, index, 8);
}

static enum sar_status decode(const struct sar_layout *layout, void *payload, uint64_t bytes,
                              struct sar_arena *arena, struct sar_run *run)
{
    if (run->nnz > layout->span || bytes != bytes_of(layout, run->nnz))
        return SAR_CORRUPT;
    struct sar_sections s = sar_elias_fano_sections(layout, run->nnz);
    unsigned char *low = (unsigned char *)payload + s.values, *high = low + s.low;
    if (count_bits(high, s.high) != run->nnz)
        return SAR_CORRUPT;
    run->value = payload;
    SAR_TRY(sar_arena_take(arena, run->nnz + BATCH, layout->index_size, &run->index));
    if (layout->index_size == 4)
        list_narrow(low, high, &s, run->nnz, run->index);
    else
        list_wide(low, high, &s, run->nnz, run->index);
    return sar_indices_ascend(layout, run->index, run->nnz) ? SAR_OK : SAR_CORRUPT;
}

static double work(const struct sar_layout *layout, double nnz)
{
    (void)layout;
    return 0.75 * nnz;
}

const struct sar_wire sar_wire_elias_fano = {
    .name = "elias_fano",
    .summary = "the values, and slots at 2 + log2(slots / nnz) bits each",
    .packing = SAR_PACKING_ELIAS_FANO,
    .least = bytes_of,
    .work = work,
    .encode = encode,
    .decode = decode,
};
