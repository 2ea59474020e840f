/* SPDX-License-Identifier: BSD-3-Clause */
/* A key is twice an index, less a base, plus the number of the vec. Keys are merged 16 at a time: a vector of
 * the list whose next key is less and the 16 largest keys so far go through a bitonic network, whose lower
 * half is next in order. No branch depends on keys.
 *
 * Each vec's values stay in order, so they are not moved with the keys. The lowest bits of 16 merged keys
 * tell which values come from which vec: vectors of both are expanded by these bits. Keys of the same index
 * follow each other, the first vec's first. The sum of both values goes to the first, and the second is
 * removed when the vector is compressed.
 *
 *     time = .6 ns to merge an element of the vecs, .4 to write it */

#include "vector/pair_sum.h"

#include <string.h>
#if defined(SAR_AVX512)
#include <immintrin.h>
#endif

#include "vector/accumulator.h"

enum {
    LANES = 16,   /* keys of a vector */
    CHUNK = 2048, /* keys that are merged before they are written, if all are not */
    ALL = 0xffff  /* mask of all lanes */
};

#define KEY_END UINT32_MAX

bool sar_pair_sum_works(const struct sar_vec_desc *desc, size_t n, unsigned index_size, uint64_t span)
{
    return n == 2 && sar_has_avx512() && span < KEY_END / 2 &&
           sar_accumulator_sums_are_plain(desc, index_size);
}

static void open_pair(const struct sar_vec_desc *desc, const struct sar_spvec vecs[2], uint32_t *keys,
                      struct sar_pair_sum *p)
{
    *p = (struct sar_pair_sum){
        .desc = desc, .vecs = vecs, .base = UINT32_MAX, .last = KEY_END, .keys = keys + LANES, .starts = true
    };
    p->keys[-1] = KEY_END;
    for (size_t r = 0; r < 2; r++) {
        uint32_t first = vecs[r].nnz == 0 ? UINT32_MAX : *(const uint32_t *)vecs[r].index;
        p->base = first < p->base ? first : p->base;
    }
}

#if defined(SAR_AVX512)
/* Sorts a vector that ascends and then descends. */
SAR_AVX512 static inline __m512i sort_bitonic(__m512i x)
{
    __m512i y = _mm512_shuffle_i64x2(x, x, 0x4e);
    x = _mm512_mask_max_epu32(_mm512_min_epu32(x, y), 0xff00, x, y);
    y = _mm512_shuffle_i64x2(x, x, 0xb1);
    x = _mm512_mask_max_epu32(_mm512_min_epu32(x, y), 0xf0f0, x, y);
    y = _mm512_shuffle_epi32(x, 0x4e);
    x = _mm512_mask_max_epu32(_mm512_min_epu32(x, y), 0xcccc, x, y);
    y = _mm512_shuffle_epi32(x, 0xb1);
    return _mm512_mask_max_epu32(_mm512_min_epu32(x, y), 0xaaaa, x, y);
}

/* The rest of a vec's indices. */
struct reader {
    const uint32_t *next, *end;
    uint64_t head; /* the next index, UINT64_MAX at the end */
};

SAR_AVX512 static inline __m512i read_keys(struct reader *r, uint32_t base, uint32_t vec)
{
    size_t left = (size_t)(r->end - r->next);
    __mmask16 mask = ALL;
    if (__builtin_expect(left <= LANES, 0)) {
        mask = (__mmask16)((1u << left) - 1);
        r->head = UINT64_MAX;
    } else {
        r->head = r->next[LANES];
    }
    __m512i index = _mm512_maskz_loadu_epi32(mask, r->next);
    __m512i keys = _mm512_slli_epi32(_mm512_sub_epi32(index, _mm512_set1_epi32((int)base)), 1);
    r->next += left < LANES ? left : LANES;
    return _mm512_mask_or_epi32(_mm512_set1_epi32(-1), mask, keys, _mm512_set1_epi32((int)vec));
}

SAR_AVX512 static inline __m512i reverse(__m512i x)
{
    return _mm512_permutexvar_epi32(_mm512_set_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                    x);
}

/* Keys that are listed, for the counts. */
struct seen {
    __m512i last;
    size_t pairs;
    unsigned repeats;
};

SAR_AVX512 static inline void look_at(struct seen *s, __m512i keys)
{
    __m512i differ = _mm512_xor_si512(keys, _mm512_alignr_epi32(keys, s->last, LANES - 1));
    __mmask16 exists = _mm512_cmpneq_epi32_mask(keys, _mm512_set1_epi32(-1)),
              pairs = _mm512_cmpeq_epi32_mask(differ, _mm512_set1_epi32(1));
    s->pairs += (size_t)__builtin_popcount(sar_mask_bits(pairs));
    s->repeats |= sar_mask_bits(_mm512_mask_testn_epi32_mask(exists, differ, differ));
    s->last = keys;
}

static struct reader reader_of(const struct sar_pair_sum *p, size_t r)
{
    const uint32_t *index = p->vecs[r].index;
    struct reader reader = { index + p->merged[r], index + p->vecs[r].nnz, UINT64_MAX };
    if (reader.next < reader.end)
        reader.head = *reader.next;
    return reader;
}

/* Lists the next keys, at most `capacity` of them, a multiple of LANES, and returns their number. */
SAR_AVX512 static size_t merge_keys(struct sar_pair_sum *p, uint32_t *keys, size_t capacity)
{
    struct reader readers[2] = { reader_of(p, 0), reader_of(p, 1) };
    struct seen seen = { _mm512_set1_epi32((int)p->last), 0, 0 };
    __m512i high = _mm512_loadu_si512(p->high);
    size_t n = 0, total = p->vecs[0].nnz + p->vecs[1].nnz - p->merged[0] - p->merged[1];
    if (p->starts) {
        size_t first = readers[1].head < readers[0].head;
        high = read_keys(&readers[first], p->base, (uint32_t)first);
    } else {
        for (size_t i = 0; i < LANES; i++)
            total += p->high[i] != KEY_END;
    }
    p->starts = false;
    while (n < capacity && n < total) {
        size_t r = readers[1].head < readers[0].head;
        __m512i more = _mm512_set1_epi32(-1), low;
        if (__builtin_expect(readers[r].head != UINT64_MAX, 1))
            more = reverse(read_keys(&readers[r], p->base, (uint32_t)r));
        low = sort_bitonic(_mm512_min_epu32(high, more));
        high = sort_bitonic(_mm512_max_epu32(high, more));
        look_at(&seen, low);
        _mm512_storeu_si512(keys + n, low);
        n += LANES;
    }
    n = n < total ? n : total;
    for (size_t r = 0; r < 2; r++)
        p->merged[r] = (size_t)(readers[r].next - (const uint32_t *)p->vecs[r].index);
    _mm512_storeu_si512(p->high, high);
    p->distinct += n - seen.pairs;
    p->last = n == 0 ? p->last : keys[n - 1];
    p->repeats = p->repeats || seen.repeats != 0;
    return n;
}

/* The elements of LANES keys. */
struct lanes {
    unsigned valid, odd, keep; /* lanes that exist; of the second vec; with the first element of an index */
    unsigned pair;             /* lanes whose index the next lane has too */
};

SAR_AVX512 static inline struct lanes lanes_of(const uint32_t *keys, unsigned valid)
{
    const __m512i one = _mm512_set1_epi32(1);
    __m512i now = _mm512_loadu_si512(keys), before = _mm512_loadu_si512(keys - 1),
            after = _mm512_loadu_si512(keys + 1);
    unsigned same = sar_mask_bits(_mm512_cmpeq_epi32_mask(_mm512_xor_si512(now, before), one));
    unsigned pair = sar_mask_bits(_mm512_cmpeq_epi32_mask(_mm512_xor_si512(now, after), one));
    unsigned odd = sar_mask_bits(_mm512_test_epi32_mask(now, one));
    return (struct lanes){ valid, odd & valid, valid & ~same, valid & pair };
}

/* Values to be read, and how many there are. */
struct values {
    const unsigned char *at;
    size_t left;
};

SAR_AVX512 static inline __m512i load4(const struct values *v, size_t skip, unsigned mask, bool whole)
{
    if (whole)
        return _mm512_loadu_si512(v->at + skip * 4);
    size_t left = v->left - skip;
    return _mm512_maskz_loadu_epi32((__mmask16)(left < LANES ? mask & ((1u << left) - 1) : mask),
                                    v->at + skip * 4);
}

SAR_AVX512 static inline __m512i load8(const struct values *v, size_t skip, unsigned mask, bool whole)
{
    if (whole)
        return _mm512_loadu_si512(v->at + skip * 8);
    size_t left = v->left - skip;
    return _mm512_maskz_loadu_epi64((__mmask8)(left < LANES / 2 ? mask & ((1u << left) - 1) : mask),
                                    v->at + skip * 8);
}

/* a + b in the lanes of `mask`, of a value of this type. */
SAR_AVX512 static inline __m512i add_lanes(enum sar_dtype type, unsigned mask, __m512i a, __m512i b)
{
    switch (type) {
    case SAR_FLOAT: {
        __m512 x = _mm512_castsi512_ps(a);
        return _mm512_castps_si512(_mm512_mask_add_ps(x, (__mmask16)mask, x, _mm512_castsi512_ps(b)));
    }
    case SAR_DOUBLE: {
        __m512d x = _mm512_castsi512_pd(a);
        return _mm512_castpd_si512(_mm512_mask_add_pd(x, (__mmask8)mask, x, _mm512_castsi512_pd(b)));
    }
    case SAR_UINT32: return _mm512_mask_add_epi32(a, (__mmask16)mask, a, b);
    default: return _mm512_mask_add_epi64(a, (__mmask8)mask, a, b);
    }
}

/* As all sums, these begin at the identity: it makes signalling NaNs quiet. */
SAR_AVX512 static inline __m512i begin_sums(enum sar_dtype type, __m512i values)
{
    switch (type) {
    case SAR_FLOAT: return add_lanes(type, ALL, _mm512_castps_si512(_mm512_set1_ps(-0.0f)), values);
    case SAR_DOUBLE: return add_lanes(type, ALL, _mm512_castpd_si512(_mm512_set1_pd(-0.0)), values);
    default: return values;
    }
}

/* Writes the sums of LANES keys to `to`, and returns the elements of each vec that are read. */
SAR_AVX512 static inline void sum4(enum sar_dtype type, const struct lanes *l, struct values v[2],
                                   uint32_t *to, size_t room, bool whole)
{
    unsigned even = l->valid & ~l->odd, odd = l->odd, n = (unsigned)__builtin_popcount(l->keep);
    size_t used = (size_t)__builtin_popcount(odd);
    __m512i sums = _mm512_maskz_expand_epi32((__mmask16)even, load4(&v[0], 0, ALL, whole));
    sums = _mm512_mask_expand_epi32(sums, (__mmask16)odd, load4(&v[1], 0, ALL, whole));
    __m512i carry = load4(&v[1], used, l->pair >> (LANES - 1), whole);
    __m512i next = _mm512_alignr_epi32(carry, sums, 1);
    sums = _mm512_maskz_compress_epi32((__mmask16)l->keep,
                                       add_lanes(type, l->pair, begin_sums(type, sums), next));
    if (whole || room >= LANES)
        _mm512_storeu_si512(to, sums);
    else
        _mm512_mask_storeu_epi32(to, (__mmask16)((1u << n) - 1), sums);
}

/* sum4 for values of 8 bytes, half of the lanes at a time. */
SAR_AVX512 static inline void sum8(enum sar_dtype type, const struct lanes *l, struct values v[2],
                                   uint64_t *to, size_t room, bool whole)
{
    enum { HALF = LANES / 2 };
    __m512i half[3];
    size_t used[2] = { 0, 0 };
    for (unsigned h = 0; h < 2; h++) {
        unsigned odd = l->odd >> h * HALF & 0xff, even = (l->valid & ~l->odd) >> h * HALF & 0xff;
        half[h] = _mm512_maskz_expand_epi64((__mmask8)even, load8(&v[0], used[0], 0xff, whole));
        half[h] = _mm512_mask_expand_epi64(half[h], (__mmask8)odd, load8(&v[1], used[1], 0xff, whole));
        used[0] += (size_t)__builtin_popcount(even);
        used[1] += (size_t)__builtin_popcount(odd);
    }
    half[2] = load8(&v[1], used[1], l->pair >> (LANES - 1), whole);
    for (unsigned h = 0; h < 2; h++) {
        unsigned keep = l->keep >> h * HALF & 0xff, pair = l->pair >> h * HALF & 0xff;
        unsigned n = (unsigned)__builtin_popcount(keep);
        __m512i next = _mm512_alignr_epi64(half[h + 1], half[h], 1);
        __m512i sums = _mm512_maskz_compress_epi64((__mmask8)keep,
                                                   add_lanes(type, pair, begin_sums(type, half[h]), next));
        if (whole || room >= LANES)
            _mm512_storeu_si512(to, sums);
        else
            _mm512_mask_storeu_epi64(to, (__mmask8)((1u << n) - 1), sums);
        to += n;
    }
}

/* Writes n keys, after which one follows, and returns the elements written. */
SAR_AVX512 static inline size_t write_keys(struct sar_pair_sum *p, const uint32_t *keys, size_t n,
                                           enum sar_dtype type, unsigned size, const struct sar_spvec *out)
{
    const __m512i base = _mm512_set1_epi32((int)p->base);
    uint32_t *index = out->index;
    unsigned char *value = out->value;
    struct values v[2];
    size_t k = 0;
    for (size_t r = 0; r < 2; r++)
        v[r] = (struct values){ (const unsigned char *)p->vecs[r].value + p->written[r] * size,
                                p->vecs[r].nnz - p->written[r] };
    for (size_t i = 0; i < n; i += LANES) {
        struct lanes lanes = lanes_of(keys + i, n - i < LANES ? (1u << (n - i)) - 1 : ALL);
        size_t odd = (size_t)__builtin_popcount(lanes.odd), room = out->nnz - k;
        size_t even = (size_t)__builtin_popcount(lanes.valid) - odd;
        unsigned kept = (unsigned)__builtin_popcount(lanes.keep);
        bool whole = room >= LANES && v[0].left >= 2 * LANES && v[1].left >= 2 * LANES;
        __m512i sorted =
            _mm512_maskz_compress_epi32((__mmask16)lanes.keep,
                                        _mm512_add_epi32(_mm512_srli_epi32(_mm512_loadu_si512(keys + i), 1),
                                                         base));
        if (__builtin_expect(whole, 1)) {
            _mm512_storeu_si512(index + k, sorted);
            if (size == 4)
                sum4(type, &lanes, v, (uint32_t *)value + k, room, true);
            else
                sum8(type, &lanes, v, (uint64_t *)value + k, room, true);
        } else {
            _mm512_mask_storeu_epi32(index + k, (__mmask16)((1u << kept) - 1), sorted);
            if (size == 4)
                sum4(type, &lanes, v, (uint32_t *)value + k, room, false);
            else
                sum8(type, &lanes, v, (uint64_t *)value + k, room, false);
        }
        k += kept;
        v[0] = (struct values){ v[0].at + even * size, v[0].left - even };
        v[1] = (struct values){ v[1].at + odd * size, v[1].left - odd };
    }
    for (size_t r = 0; r < 2; r++)
        p->written[r] = p->vecs[r].nnz - v[r].left;
    return k;
}

SAR_AVX512 static size_t write_any(struct sar_pair_sum *p, const uint32_t *keys, size_t n,
                                   const struct sar_spvec *out)
{
    switch (p->desc->dtype) {
    case SAR_FLOAT: return write_keys(p, keys, n, SAR_FLOAT, 4, out);
    case SAR_DOUBLE: return write_keys(p, keys, n, SAR_DOUBLE, 8, out);
    default:
        return p->desc->element_size == 4 ? write_keys(p, keys, n, SAR_UINT32, 4, out)
                                          : write_keys(p, keys, n, SAR_UINT64, 8, out);
    }
}
#else
/* sar_pair_sum_works returns false. */
static size_t merge_keys(struct sar_pair_sum *p, uint32_t *keys, size_t capacity)
{
    (void)p;
    (void)keys;
    (void)capacity;
    return 0;
}

static size_t write_any(struct sar_pair_sum *p, const uint32_t *keys, size_t n, const struct sar_spvec *out)
{
    (void)p;
    (void)keys;
    (void)out;
    return n;
}
#endif

bool sar_pair_sum(const struct sar_vec_desc *desc, const struct sar_spvec vecs[2], struct sar_spvec *out)
{
    uint32_t memory[LANES + CHUNK + 2 * LANES] __attribute__((aligned(SAR_ALIGNMENT)));
    size_t total = vecs[0].nnz + vecs[1].nnz, listed = 0, have = 0;
    struct sar_pair_sum p;
    struct sar_spvec rest = *out;
    open_pair(desc, vecs, memory, &p);
    while (listed < total) {
        size_t more = merge_keys(&p, p.keys + have, CHUNK), n, written;
        if (p.repeats)
            return false;
        listed += more;
        have += more;
        n = listed < total ? have - LANES : have;
        p.keys[have] = KEY_END;
        written = write_any(&p, p.keys, n, &rest);
        rest = (struct sar_spvec){ (uint32_t *)rest.index + written,
                                   (unsigned char *)rest.value + written * desc->element_size,
                                   rest.nnz - written };
        p.keys[-1] = p.keys[n - 1];
        memmove(p.keys, p.keys + n, (have - n) * sizeof *p.keys);
        have -= n;
    }
    out->nnz -= rest.nnz;
    return true;
}

enum sar_status sar_pair_sum_count(const struct sar_vec_desc *desc, const struct sar_spvec vecs[2],
                                   struct sar_arena *arena, struct sar_pair_sum *p)
{
    void *memory;
    size_t total = vecs[0].nnz + vecs[1].nnz;
    SAR_TRY(sar_arena_alloc(arena, total + 3 * LANES, sizeof *p->keys, &memory));
    open_pair(desc, vecs, memory, p);
    merge_keys(p, p->keys, total);
    p->keys[total] = KEY_END;
    return SAR_OK;
}

void sar_pair_sum_write(struct sar_pair_sum *p, const struct sar_spvec *out)
{
    const struct sar_spvec all = { out->index, out->value, p->distinct };
    write_any(p, p->keys, p->vecs[0].nnz + p->vecs[1].nnz, &all);
}
