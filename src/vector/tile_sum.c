/* SPDX-License-Identifier: BSD-3-Clause */
/* The index space is divided into tiles. The vecs set a bit for each index that they have in a tile. The bits
 * in order are the indices of the result, and the bits before an element's own bit are its position. A vec
 * adds its values at these positions. A tile's arrays and sums fit the L1 or the L2 cache.
 *
 * Dense tiles are marked by flags with AVX-512, which become bits: a store of a byte depends on no other. If
 * they are denser, or the build has no variant with an instruction that counts bits, a table has the position
 * of each index. Otherwise the bits before an element's own bit are counted for each element.
 *
 *     time = .25 ns to mark an element and .025 for a slot with flags; 1 ns without
 *            .75 ns to add an element and .08 for a slot by the table; 1.3 ns without */

#include "vector/tile_sum.h"

#include <string.h>
#if defined(SAR_AVX512)
#include <immintrin.h>
#endif

#include "vector/accumulator.h"
#include "vector/bit_list.h"

enum {
    WORD = 64,                 /* slots of a word */
    TABLE_SLOTS = 5,           /* most slots for an element with which a table is used */
    FLAG_SLOTS = 16,           /* likewise flags, and tables in builds for any processor */
    SLOTS_MIN = 8192,          /* slots of a tile, unless all vecs lie in fewer */
    SLOTS_MAX = 1 << 20,       /* most slots of a tile */
    TABLE_SLOTS_MAX = 1 << 16, /* with a table or flags: positions have 16 bits */
    ELEMENTS = 1024,           /* elements of a tile, on average, if SLOTS_MAX are enough */
    VEC_ELEMENTS = 64          /* likewise elements of a vec */
};

/* Adds the elements of a vec from element i on that are in the tile to its sums; returns the end. */
typedef size_t add_elements(const struct sar_tile_sum *s, const uint64_t *bits, const struct sar_spvec *vec,
                            size_t i, uint32_t start, const struct sar_spvec *out);

bool sar_tile_sum_works(const struct sar_tile_sum_args *args, unsigned index_size, unsigned slots)
{
    return args->nnz != 0 && args->span / slots <= args->nnz &&
           sar_accumulator_sums_are_plain(args->desc, index_size);
}

static bool is_denser(const struct sar_tile_sum_args *args, unsigned slots)
{
    return args->span <= args->nnz * slots;
}

static uint32_t choose_slots(const struct sar_tile_sum_args *args, uint32_t most)
{
    uint64_t elements = (uint64_t)VEC_ELEMENTS * args->n, slots_per_element = args->span / args->nnz + 1;
    uint64_t wanted = (elements > ELEMENTS ? elements : ELEMENTS) * slots_per_element;
    uint32_t slots = WORD;
    wanted = wanted > SLOTS_MIN ? wanted : SLOTS_MIN;
    while (slots < most && slots < args->span && slots < wanted)
        slots *= 2;
    return slots;
}

/* Allocates what positions are found with. */
static enum sar_status open_positions(struct sar_tile_sum *s, struct sar_arena *arena)
{
    void *flags = NULL, *position = NULL, *prefix = NULL;
    bool wide = sar_has_avx512(), flagged = is_denser(&s->args, FLAG_SLOTS);
    bool table = wide ? is_denser(&s->args, TABLE_SLOTS) : flagged && !SAR_HAS_CLONES;
    s->slots = choose_slots(&s->args, flagged ? TABLE_SLOTS_MAX : SLOTS_MAX);
    if (wide && flagged)
        SAR_TRY(sar_arena_alloc_zeroed(arena, s->slots, sizeof *s->flags, &flags));
    SAR_TRY(table ? sar_arena_alloc(arena, s->slots, sizeof *s->position, &position)
                  : sar_arena_alloc(arena, s->slots / WORD, sizeof *s->rank_prefix, &prefix));
    s->flags = flags;
    s->position = position;
    s->rank_prefix = prefix;
    return SAR_OK;
}

static enum sar_status open_sum(const struct sar_tile_sum_args *args, bool keep, struct sar_arena *arena,
                                struct sar_tile_sum *s)
{
    void *bits, *marked, *added;
    *s = (struct sar_tile_sum){ .args = *args };
    SAR_TRY(open_positions(s, arena));
    s->start = args->first & ~(uint64_t)(s->slots - 1);
    s->tiles = (size_t)((args->first + args->span - s->start + s->slots - 1) / s->slots);
    SAR_TRY(sar_arena_alloc(arena, (keep ? s->tiles : 1) * (s->slots / WORD), sizeof *s->bits, &bits));
    SAR_TRY(sar_arena_alloc_zeroed(arena, args->n, sizeof *s->marked, &marked));
    SAR_TRY(sar_arena_alloc_zeroed(arena, args->n, sizeof *s->added, &added));
    s->bits = bits;
    s->marked = marked;
    s->added = added;
    return SAR_OK;
}

/* Indices are ascending, so one comparison tells that four are in the tile. */
static size_t set_flags(uint8_t *restrict flags, const uint32_t *restrict index, size_t i, size_t nnz,
                        uint32_t start, uint32_t slots)
{
    for (; i + 4 <= nnz && index[i + 3] - start < slots; i += 4) {
        flags[index[i] - start] = 1;
        flags[index[i + 1] - start] = 1;
        flags[index[i + 2] - start] = 1;
        flags[index[i + 3] - start] = 1;
    }
    for (; i < nnz && index[i] - start < slots; i++)
        flags[index[i] - start] = 1;
    return i;
}

SAR_INLINE void set_bit(uint64_t *bits, uint32_t slot)
{
    bits[slot / WORD] |= UINT64_C(1) << slot % WORD;
}

SAR_CLONES static size_t set_bits(uint64_t *restrict bits, const uint32_t *restrict index, size_t i,
                                  size_t nnz, uint32_t start, uint32_t slots)
{
    for (; i + 4 <= nnz && index[i + 3] - start < slots; i += 4) {
        set_bit(bits, index[i] - start);
        set_bit(bits, index[i + 1] - start);
        set_bit(bits, index[i + 2] - start);
        set_bit(bits, index[i + 3] - start);
    }
    for (; i < nnz && index[i] - start < slots; i++)
        set_bit(bits, index[i] - start);
    return i;
}

#if defined(SAR_AVX512)
/* Turns the flags of a tile into bits, and clears them; returns their number. */
SAR_AVX512 static size_t collect_flags(const struct sar_tile_sum *s, uint64_t *bits)
{
    size_t count = 0;
    for (size_t word = 0; word < s->slots / WORD; word++) {
        __m512i set = _mm512_load_si512(s->flags + word * WORD);
        bits[word] = _mm512_test_epi8_mask(set, set);
        count += (size_t)__builtin_popcountll(bits[word]);
        _mm512_store_si512(s->flags + word * WORD, _mm512_setzero_si512());
    }
    return count;
}
#else
#define collect_flags(s, bits) ((void)(s), (void)(bits), (size_t)0)
#endif

/* Sets the bits of a tile; returns their number. */
static size_t mark_tile(const struct sar_tile_sum *s, uint32_t start, uint64_t *bits)
{
    if (s->flags == NULL)
        memset(bits, 0, s->slots / 8);
    for (size_t r = 0; r < s->args.n; r++) {
        const struct sar_spvec *vec = &s->args.vecs[r];
        s->marked[r] = s->flags != NULL
                           ? set_flags(s->flags, vec->index, s->marked[r], vec->nnz, start, s->slots)
                           : set_bits(bits, vec->index, s->marked[r], vec->nnz, start, s->slots);
    }
    return s->flags != NULL ? collect_flags(s, bits) : sar_tile_count(bits, s->slots / WORD);
}

/* Lists the indices of a tile's bits, and fills the table; returns the number of indices. */
SAR_CLONES static size_t list_bits(const struct sar_tile_sum *s, const uint64_t *bits, uint32_t start,
                                   uint32_t *out)
{
    uint16_t *restrict position = s->position;
    size_t n = 0;
    for (uint32_t word = 0; word < s->slots / WORD; word++) {
        for (uint64_t left = bits[word]; left != 0; left &= left - 1, n++) {
            uint32_t slot = word * WORD + (uint32_t)__builtin_ctzll(left);
            position[slot] = (uint16_t)n;
            out[n] = start + slot;
        }
    }
    return n;
}

#if defined(SAR_AVX512)
/* Sets the positions of a word's bits, which are n on. Slots without a bit get any. */
SAR_AVX512 static inline void fill_positions(uint64_t bits, size_t n, uint16_t *position)
{
    const __m512i numbers = _mm512_set_epi16(31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16,
                                             15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    __mmask32 low = (__mmask32)bits, high = (__mmask32)(bits >> 32);
    __m512i first = _mm512_add_epi16(_mm512_set1_epi16((short)n), numbers);
    __m512i second =
        _mm512_add_epi16(_mm512_set1_epi16((short)(n + (unsigned)__builtin_popcount(low))), numbers);
    _mm512_store_si512(position, _mm512_maskz_expand_epi16(low, first));
    _mm512_store_si512(position + 32, _mm512_maskz_expand_epi16(high, second));
}

/* As list_bits. The list writes whole vectors, as far as `room` indices go. */
SAR_AVX512 static size_t list_bits_wide(const struct sar_tile_sum *s, const uint64_t *bits, uint32_t start,
                                        uint32_t *out, size_t room)
{
    size_t n = 0;
    for (uint32_t word = 0; word < s->slots / WORD; word++) {
        uint32_t some[WORD + SAR_BIT_LIST_SLACK];
        fill_positions(bits[word], n, s->position + word * WORD);
        if (__builtin_expect(room - n >= WORD + SAR_BIT_LIST_SLACK, 1)) {
            n += sar_bit_list_avx512(bits[word], start + word * WORD, out + n);
        } else {
            size_t few = sar_bit_list_avx512(bits[word], start + word * WORD, some);
            memcpy(out + n, some, few * sizeof *out);
            n += few;
        }
    }
    return n;
}
#else
#define list_bits_wide(s, bits, start, out, room) list_bits(s, bits, start, out)
#endif

/* Adds elements i … of a vec by ADD(i), as long as they are in the tile. */
#define ADD_ELEMENTS(ADD)                                          \
    for (; i + 4 <= nnz && index[i + 3] - start < slots; i += 4) { \
        ADD(i);                                                    \
        ADD(i + 1);                                                \
        ADD(i + 2);                                                \
        ADD(i + 3);                                                \
    }                                                              \
    for (; i < nnz && index[i] - start < slots; i++)               \
        ADD(i);

#define ADD_BY_TABLE(i) sums[position[index[i] - start]] += value[i]

/* Elements with the same index write that index to the same position. */
#define ADD_BY_RANK(i)                                                      \
    do {                                                                    \
        size_t at = sar_tile_position(bits, rank_prefix, index[i] - start); \
        out_index[at] = index[i];                                           \
        sums[at] += value[i];                                               \
    } while (0)

#define DEFINE_ADD(name, type)                                                                        \
    static size_t add_##name(const struct sar_tile_sum *s, const uint64_t *bits,                      \
                             const struct sar_spvec *vec, size_t i, uint32_t start,                   \
                             const struct sar_spvec *out)                                             \
    {                                                                                                 \
        const uint16_t *restrict position = s->position;                                              \
        const uint32_t *restrict index = vec->index;                                                  \
        const type *restrict value = vec->value;                                                      \
        type *restrict sums = out->value;                                                             \
        const uint32_t slots = s->slots;                                                              \
        const size_t nnz = vec->nnz;                                                                  \
        (void)bits;                                                                                   \
        ADD_ELEMENTS(ADD_BY_TABLE)                                                                    \
        return i;                                                                                     \
    }                                                                                                 \
    SAR_CLONES static size_t rank_##name(const struct sar_tile_sum *s, const uint64_t *restrict bits, \
                                         const struct sar_spvec *vec, size_t i, uint32_t start,       \
                                         const struct sar_spvec *out)                                 \
    {                                                                                                 \
        const uint32_t *restrict rank_prefix = s->rank_prefix, *restrict index = vec->index;          \
        const type *restrict value = vec->value;                                                      \
        uint32_t *restrict out_index = out->index;                                                    \
        type *restrict sums = out->value;                                                             \
        const uint32_t slots = s->slots;                                                              \
        const size_t nnz = vec->nnz;                                                                  \
        ADD_ELEMENTS(ADD_BY_RANK)                                                                     \
        return i;                                                                                     \
    }

DEFINE_ADD(float32, float)
DEFINE_ADD(float64, double)
DEFINE_ADD(uint32, uint32_t)
DEFINE_ADD(uint64, uint64_t)

static add_elements *add_of(const struct sar_tile_sum *s)
{
    bool table = s->position != NULL;
    switch (s->args.desc->dtype) {
    case SAR_FLOAT: return table ? add_float32 : rank_float32;
    case SAR_DOUBLE: return table ? add_float64 : rank_float64;
    case SAR_INT32:
    case SAR_UINT32: return table ? add_uint32 : rank_uint32;
    default: return table ? add_uint64 : rank_uint64;
    }
}

SAR_CLONES static size_t build_prefix(const struct sar_tile_sum *s, const uint64_t *restrict bits)
{
    uint32_t *restrict prefix = s->rank_prefix, count = 0;
    for (size_t word = 0; word < s->slots / WORD; word++) {
        prefix[word] = count;
        count += (uint32_t)__builtin_popcountll(bits[word]);
    }
    return count;
}

/* Finds the positions of a tile's bits; returns their number. `out` has room for out->nnz. */
static size_t find_positions(const struct sar_tile_sum *s, const uint64_t *bits, uint32_t start,
                             const struct sar_spvec *out)
{
    if (s->position == NULL)
        return build_prefix(s, bits);
    return sar_has_avx512() ? list_bits_wide(s, bits, start, out->index, out->nnz)
                            : list_bits(s, bits, start, out->index);
}

/* Writes the sums of a tile whose bits are set, and moves the beginning of `rest` past them. */
static void write_tile(const struct sar_tile_sum *s, const uint64_t *bits, uint32_t start,
                       struct sar_spvec *rest)
{
    add_elements *add = add_of(s);
    size_t n = find_positions(s, bits, start, rest);
    s->args.desc->kernels->fill_identity(rest->value, n);
    for (size_t r = 0; r < s->args.n; r++)
        s->added[r] = add(s, bits, &s->args.vecs[r], s->added[r], start, rest);
    *rest =
        (struct sar_spvec){ (uint32_t *)rest->index + n,
                            (unsigned char *)rest->value + n * s->args.desc->element_size, rest->nnz - n };
}

enum sar_status sar_tile_sum(const struct sar_tile_sum_args *args, struct sar_arena *arena,
                             struct sar_spvec *out)
{
    struct sar_tile_sum s;
    struct sar_spvec rest = *out;
    SAR_TRY(open_sum(args, false, arena, &s));
    for (size_t t = 0; t < s.tiles; t++) {
        uint32_t start = (uint32_t)(s.start + t * s.slots);
        if (mark_tile(&s, start, s.bits) != 0)
            write_tile(&s, s.bits, start, &rest);
    }
    out->nnz -= rest.nnz;
    return SAR_OK;
}

enum sar_status sar_tile_sum_count(const struct sar_tile_sum_args *args, struct sar_arena *arena,
                                   struct sar_tile_sum *s)
{
    SAR_TRY(open_sum(args, true, arena, s));
    for (size_t t = 0; t < s->tiles; t++)
        s->nnz += mark_tile(s, (uint32_t)(s->start + t * s->slots), s->bits + t * (s->slots / WORD));
    return SAR_OK;
}

void sar_tile_sum_write(struct sar_tile_sum *s, const struct sar_spvec *out)
{
    struct sar_spvec rest = { out->index, out->value, s->nnz };
    for (size_t t = 0; t < s->tiles; t++)
        write_tile(s, s->bits + t * (s->slots / WORD), (uint32_t)(s->start + t * s->slots), &rest);
}
