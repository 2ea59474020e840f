/* SPDX-License-Identifier: BSD-3-Clause */
/* Scans two versions of a vector for units whose bits differ. Groups of 64 bytes without a difference cost a
 * comparison of SIMD vectors. In other groups each unit is written, and the position advances after changed
 * ones, without a branch. With AVX-512 a group gives a mask of its differences, and its set bits are listed.
 *
 *     time = 2 n unit / memory bandwidth, below one change in twenty */

#include "vector/delta.h"

#include <string.h>
#if defined(SAR_AVX512)
#include <immintrin.h>
#endif

#include "hash/murmur3.h"

enum {
    GROUP_BYTES = 64,    /* compared at once */
    SAMPLE_GROUP = 64,   /* units of a sample that are adjacent */
    PREFETCH_AHEAD = 16, /* elements */
    HALF_WORD = 32       /* bits */
};

/* The caller's buffers have the alignment of their basic type at most. */
typedef uint8_t unaligned1;
typedef uint16_t unaligned2 __attribute__((aligned(1)));
typedef uint32_t unaligned4 __attribute__((aligned(1)));
typedef uint64_t unaligned8 __attribute__((aligned(1)));

/* Compiles `call` with TYPE as the type of a unit, so that its loops do not test the size. */
#define FOR_UNIT(unit, call)         \
    do {                             \
        if ((unit) == 1) {           \
            typedef unaligned1 TYPE; \
            call;                    \
        } else if ((unit) == 2) {    \
            typedef unaligned2 TYPE; \
            call;                    \
        } else if ((unit) == 4) {    \
            typedef unaligned4 TYPE; \
            call;                    \
        } else {                     \
            typedef unaligned8 TYPE; \
            call;                    \
        }                            \
    } while (0)

/* scanN: append the changed units of a[0, n) to index and value at k; returns the new k. */
#define DEFINE_SCAN(name, type)                                                                         \
    SAR_CLONES static size_t name(const type *a, const type *b, size_t n, uint32_t *index, type *value) \
    {                                                                                                   \
        enum { GROUP = GROUP_BYTES / sizeof(type) };                                                    \
        size_t k = 0;                                                                                   \
        for (size_t i = 0; i < n; i += GROUP) {                                                         \
            size_t group = n - i < GROUP ? n - i : GROUP;                                               \
            type any = 0;                                                                               \
            for (size_t j = 0; j < group; j++)                                                          \
                any |= (type)(a[i + j] ^ b[i + j]);                                                     \
            for (size_t j = 0; any != 0 && j < group; j++) {                                            \
                index[k] = (uint32_t)(i + j);                                                           \
                value[k] = b[i + j];                                                                    \
                k += a[i + j] != b[i + j];                                                              \
            }                                                                                           \
        }                                                                                               \
        return k;                                                                                       \
    }

DEFINE_SCAN(scan1, unaligned1)
DEFINE_SCAN(scan2, unaligned2)
DEFINE_SCAN(scan4, unaligned4)
DEFINE_SCAN(scan8, unaligned8)

static size_t scan(const unsigned char *a, const unsigned char *b, unsigned unit, size_t n, uint32_t *index,
                   void *value)
{
    switch (unit) {
    case 1: return scan1(a, b, n, index, value);
    case 2: return scan2((const void *)a, (const void *)b, n, index, value);
    case 4: return scan4((const void *)a, (const void *)b, n, index, value);
    default: return scan8((const void *)a, (const void *)b, n, index, value);
    }
}

#if defined(SAR_AVX512)
enum { WIDE_GROUP_BYTES = 2 * GROUP_BYTES };

SAR_AVX512 SAR_INLINE uint64_t changed_mask(const unsigned char *a, const unsigned char *b, unsigned unit)
{
    __m512i x = _mm512_loadu_si512(a), y = _mm512_loadu_si512(b);
    if (unit == 2)
        return _mm512_cmpneq_epi16_mask(x, y);
    return sar_mask_bits(unit == 4 ? _mm512_cmpneq_epi32_mask(x, y) : _mm512_cmpneq_epi64_mask(x, y));
}

/* Appends the units at the set bits of a mask, which belong to the group at unit i. */
SAR_AVX512 SAR_INLINE size_t list_bits(const unsigned char *b, unsigned unit, size_t i, uint64_t mask,
                                       uint32_t *index, unsigned char *value, size_t k)
{
    for (; mask != 0; mask &= mask - 1, k++) {
        size_t at = i + (size_t)__builtin_ctzll(mask);
        index[k] = (uint32_t)at;
        memcpy(value + k * unit, b + at * unit, unit);
    }
    return k;
}

/* Scans whole groups of units of 2, 4 or 8 bytes; returns the changes, and in *done the units scanned. */
SAR_AVX512 SAR_INLINE size_t scan_wide(const unsigned char *a, const unsigned char *b, unsigned unit,
                                       size_t n, uint32_t *index, unsigned char *value, size_t *done)
{
    size_t lanes = GROUP_BYTES / unit, group = WIDE_GROUP_BYTES / unit, i = 0, k = 0;
    for (; n - i >= group; i += group) {
        const unsigned char *x = a + i * unit, *y = b + i * unit;
        uint64_t mask = changed_mask(x, y, unit);
        mask |= changed_mask(x + GROUP_BYTES, y + GROUP_BYTES, unit) << lanes;
        k = list_bits(b, unit, i, mask, index, value, k);
    }
    *done = i;
    return k;
}

SAR_AVX512 static size_t scan_wide2(const unsigned char *a, const unsigned char *b, size_t n, uint32_t *index,
                                    unsigned char *value, size_t *done)
{
    return scan_wide(a, b, 2, n, index, value, done);
}

SAR_AVX512 static size_t scan_wide4(const unsigned char *a, const unsigned char *b, size_t n, uint32_t *index,
                                    unsigned char *value, size_t *done)
{
    return scan_wide(a, b, 4, n, index, value, done);
}

SAR_AVX512 static size_t scan_wide8(const unsigned char *a, const unsigned char *b, size_t n, uint32_t *index,
                                    unsigned char *value, size_t *done)
{
    return scan_wide(a, b, 8, n, index, value, done);
}

/* Scans the first *done units, none without AVX-512. */
static size_t scan_first(const unsigned char *a, const unsigned char *b, unsigned unit, size_t n,
                         uint32_t *index, unsigned char *value, size_t *done)
{
    *done = 0;
    if (unit == 1 || !sar_has_avx512())
        return 0;
    return (unit == 2 ? scan_wide2 : unit == 4 ? scan_wide4 : scan_wide8)(a, b, n, index, value, done);
}
#else
static size_t scan_first(const unsigned char *a, const unsigned char *b, unsigned unit, size_t n,
                         uint32_t *index, unsigned char *value, size_t *done)
{
    (void)a, (void)b, (void)unit, (void)n, (void)index, (void)value;
    *done = 0;
    return 0;
}
#endif

void sar_delta_scan(const struct sar_delta *delta, uint64_t from, size_t n, struct sar_spvec *vec)
{
    unsigned unit = delta->unit;
    const unsigned char *a = (const unsigned char *)delta->before + from * unit;
    const unsigned char *b = (const unsigned char *)delta->after + from * unit;
    size_t done, k = scan_first(a, b, unit, n, vec->index, vec->value, &done);
    uint32_t *index = (uint32_t *)vec->index + k;
    size_t more =
        scan(a + done * unit, b + done * unit, unit, n - done, index, (unsigned char *)vec->value + k * unit);
    for (size_t i = 0; i < more; i++)
        index[i] += (uint32_t)done;
    vec->nnz = k + more;
}

static uint64_t count_changes(const struct sar_delta *delta, uint64_t from, size_t n)
{
    unsigned unit = delta->unit;
    const unsigned char *a = (const unsigned char *)delta->before + from * unit;
    const unsigned char *b = (const unsigned char *)delta->after + from * unit;
    uint64_t changes = 0;
    for (size_t i = 0; i < n; i++)
        changes += memcmp(a + i * unit, b + i * unit, unit) != 0;
    return changes;
}

uint64_t sar_delta_estimate(const struct sar_delta *delta, uint64_t n, uint64_t sample)
{
    uint64_t groups = sample / SAMPLE_GROUP, changes = 0;
    if (groups == 0 || sample >= n)
        return count_changes(delta, 0, (size_t)n);
    uint64_t stride = n / groups, slack = stride - SAMPLE_GROUP;
    for (uint64_t g = 0; g < groups; g++) {
        uint32_t hashed = sar_mix32((uint32_t)g + 1);
        uint64_t offset = sar_hash_range(hashed, slack < UINT32_MAX ? (uint32_t)slack + 1 : UINT32_MAX);
        changes += count_changes(delta, g * stride + offset, SAMPLE_GROUP);
    }
    return (uint64_t)((double)changes / (double)(groups * SAMPLE_GROUP) * (double)n);
}

SAR_INLINE uint64_t mix(uint64_t index, uint64_t bits)
{
    uint64_t x = (bits ^ bits >> HALF_WORD) + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> HALF_WORD) * UINT64_C(0xd6e8feb86659fd93) + bits;
    return (x ^ x >> HALF_WORD) * UINT64_C(0xd6e8feb86659fd93);
}

#define HASH_LIST(values)                 \
    for (size_t i = 0; i < vec->nnz; i++) \
    hash += mix(index[i], (uint64_t)((const TYPE *)(values))[i])

/* A sum, so that the elements may be hashed in any order. */
uint64_t sar_delta_hash(const struct sar_spvec *vec, unsigned unit)
{
    const uint32_t *index = vec->index;
    uint64_t hash = vec->nnz;
    FOR_UNIT(unit, HASH_LIST(vec->value));
    return hash;
}

/* The units are far apart in memory: several cache misses are in flight at a time. */
#define HASH_AT(buf)                                                                \
    for (size_t i = 0; i < vec->nnz; i++) {                                         \
        if (i + PREFETCH_AHEAD < vec->nnz)                                          \
            __builtin_prefetch((const TYPE *)(buf) + index[i + PREFETCH_AHEAD], 1); \
        hash += mix(index[i], (uint64_t)((const TYPE *)(buf))[index[i]]);           \
    }

uint64_t sar_delta_hash_at(const struct sar_spvec *vec, unsigned unit, const void *buf)
{
    const uint32_t *index = vec->index;
    uint64_t hash = vec->nnz;
    FOR_UNIT(unit, HASH_AT(buf));
    return hash;
}

#define APPLY(buf)                        \
    for (size_t i = 0; i < vec->nnz; i++) \
    ((TYPE *)(buf))[index[i]] = ((const TYPE *)vec->value)[i]

void sar_delta_apply(const struct sar_spvec *vec, unsigned unit, void *buf)
{
    const uint32_t *index = vec->index;
    FOR_UNIT(unit, APPLY(buf));
}
