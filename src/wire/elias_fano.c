/* SPDX-License-Identifier: BSD-3-Clause */
/* Elias-Fano (Elias 1974, Fano 1971): the values, then the l low bits of each slot, packed, then the high
 * bits of all slots in unary: bit (slot >> l) + i is set for element i. Ascending slots take 2 + log2(slots /
 * nnz) bits each, half a bit more than the information-theoretic minimum at the densities of gradients.
 *
 *     bytes = nnz s + ceil(nnz l / 8) + ceil((nnz + ((slots - 1) >> l)) / 8)
 *
 * with the l that makes this least. */

#include "wire/elias_fano.h"
#include "wire/index_util.h"

enum { BATCH = 4 /* bits of a word extracted without a test */ };

static uint64_t bytes_of(const struct sar_wire_layout *layout, uint64_t nnz)
{
    struct sar_elias_fano_sizes s = sar_elias_fano_sizes_make(layout, nnz);
    return sar_add_saturate(s.values, sar_add_saturate(s.low, s.high));
}

/* Collects low bits in a register and stores each full word. */
SAR_INLINE void pack_low(const void *index, unsigned size, size_t n, const struct sar_elias_fano_sizes *s,
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
        sar_store_partial_word(out + 8 * words, s->low - 8 * words, word);
}

SAR_INLINE void set_high(const void *index, unsigned size, size_t n, const struct sar_elias_fano_sizes *s,
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

static void encode(const struct sar_wire_layout *layout, const struct sar_spvec *vec, void *payload)
{
    struct sar_elias_fano_sizes s = sar_elias_fano_sizes_make(layout, vec->nnz);
    unsigned char *low = (unsigned char *)payload + s.values, *high = low + s.low;
    if (vec->nnz == 0)
        return;
    memcpy(payload, vec->value, s.values);
    if (s.low_bits != 0)
        SAR_FOR_INDEX_SIZE(layout->index_size, pack_low(vec->index, INDEX_SIZE, vec->nnz, &s, low));
    SAR_FOR_INDEX_SIZE(layout->index_size, set_high(vec->index, INDEX_SIZE, vec->nnz, &s, high));
}

SAR_CLONES static uint64_t count_bits(const unsigned char *bitmap, uint64_t bytes)
{
    uint64_t n = 0;
    for (uint64_t word = 0; word * 8 < bytes; word++)
        n += (uint64_t)__builtin_popcountll(sar_bitmap_word(bitmap, bytes, word));
    return n;
}

/* Sets index[k] to the high bits of element k. Most words hold few bits: writing a fixed number of entries,
 * some of them unused, is faster than a loop whose end the processor mispredicts. index has room for BATCH
 * more. */
SAR_INLINE void list_high(const unsigned char *in, const struct sar_elias_fano_sizes *s, void *index,
                          unsigned size)
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

/* Adds the low bits. The last elements are read byte by byte, so as not to read past the payload. */
SAR_INLINE void add_low(const unsigned char *in, const struct sar_elias_fano_sizes *s, size_t n, void *index,
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
        uint64_t low = sar_load_partial_word(in + bit / 8, left - bit / 8) >> (bit % 8) & mask;
        sar_index_set(index, size, i, sar_index_get(index, size, i) | low);
    }
}

SAR_INLINE void list(const unsigned char *low, const struct sar_elias_fano_sizes *s, size_t n, void *index,
                     unsigned size)
{
    list_high(low + s->low, s, index, size);
    if (s->low_bits != 0)
        add_low(low, s, n, index, size);
}

SAR_CLONES static void list_u32(const unsigned char *low, const struct sar_elias_fano_sizes *s, size_t n,
                                uint32_t *index)
{
    list(low, s, n, index, 4);
}

static enum sar_status decode(const struct sar_wire_layout *layout, void *payload, uint64_t bytes,
                              struct sar_arena *arena, struct sar_spvec *vec)
{
    if (vec->nnz > layout->slots || bytes != bytes_of(layout, vec->nnz))
        return SAR_CORRUPT;
    struct sar_elias_fano_sizes s = sar_elias_fano_sizes_make(layout, vec->nnz);
    unsigned char *low = (unsigned char *)payload + s.values;
    if (count_bits(low + s.low, s.high) != vec->nnz)
        return SAR_CORRUPT;
    vec->value = payload;
    SAR_TRY(sar_arena_alloc(arena, vec->nnz + BATCH, layout->index_size, &vec->index));
    if (layout->index_size == 4)
        list_u32(low, &s, vec->nnz, vec->index);
    else
        list(low, &s, vec->nnz, vec->index, 8);
    return sar_indices_are_sorted(layout, vec->index, vec->nnz) ? SAR_OK : SAR_CORRUPT;
}

const struct sar_wire sar_wire_elias_fano = {
    .name = "elias_fano",
    .summary = "the values, and slots at 2 + log2(slots / nnz) bits each",
    .codec_id = SAR_CODEC_ELIAS_FANO,
    .min_bytes = bytes_of,
    .nnz_cost = 0.75,
    .encode = encode,
    .decode = decode,
};
