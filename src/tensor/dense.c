/* SPDX-License-Identifier: BSD-3-Clause */
/* Between dense buffers and runs. The scan looks at a group of values at once and skips it when no bit is
 * set; within a group it writes every value and advances only behind those that count, without a branch.
 * Where the processor can move those that count to the front of a vector it does that, but for the few of
 * most groups, which are moved one by one.
 *
 *     time = count * element bytes / memory bandwidth, below one non-zero in ten */

#include "tensor/dense.h"

#include <string.h>
#if defined(SAR_WIDE)
#include <immintrin.h>
#endif

#include "hash/murmur3.h"
#include "tensor/reduce.h"

enum {
    GROUP = 16,
    SLACK = 16,        /* elements that a scan may write behind those that count */
    STRIDE = 4096,     /* elements scanned between looks at the room left */
    FEW = 3,           /* values of a wide group that are moved one by one */
    WIDE_GROUP = 256,  /* bytes */
    SAMPLE_GROUP = 64, /* values of a sample that lie together */
    COUNT_GROUP = 64
};

/* Elements of several bytes may be rows, which are aligned as what they are made of. */
typedef uint16_t two __attribute__((aligned(1)));
typedef uint32_t four __attribute__((aligned(1)));
typedef uint64_t eight __attribute__((aligned(1)));

/* scanN: values `from` … of N bytes, n of them, to out at k; returns the new k. */
#define DEFINE_SCAN(name, type)                                                                      \
    SAR_INLINE size_t name(const type *v, size_t from, size_t n, unsigned size, struct sar_run out,  \
                           size_t k)                                                                 \
    {                                                                                                \
        type *value = out.value;                                                                     \
        for (size_t i = from; i < from + n; i += GROUP) {                                            \
            size_t group = from + n - i < GROUP ? from + n - i : GROUP;                              \
            type any = 0;                                                                            \
            for (size_t j = 0; j < group; j++)                                                       \
                any |= v[i + j];                                                                     \
            for (size_t j = 0; any != 0 && j < group; j++) {                                         \
                sar_index_set(out.index, size, k, i + j);                                            \
                value[k] = v[i + j];                                                                 \
                k += v[i + j] != 0;                                                                  \
            }                                                                                        \
        }                                                                                            \
        return k;                                                                                    \
    }                                                                                                \
    SAR_CLONES static size_t name##_narrow(const type *v, size_t from, size_t n, struct sar_run out, \
                                           size_t k)                                                 \
    {                                                                                                \
        return name(v, from, n, 4, out, k);                                                          \
    }

DEFINE_SCAN(scan1, uint8_t)
DEFINE_SCAN(scan2, two)
DEFINE_SCAN(scan4, four)
DEFINE_SCAN(scan8, eight)

#if defined(SAR_WIDE)
/* Which of a vector's values of 4 or 8 bytes count. */
SAR_WIDE SAR_INLINE uint64_t counting(__m512i v, unsigned size)
{
    return size == 4 ? _mm512_test_epi32_mask(v, v) : _mm512_test_epi64_mask(v, v);
}

/* Those, and their indices. */
SAR_WIDE SAR_INLINE size_t pack(__m512i v, unsigned size, __m512i index, struct sar_run out, size_t k)
{
    uint64_t counts = counting(v, size);
    if (size == 4)
        _mm512_storeu_si512((uint32_t *)out.value + k, _mm512_maskz_compress_epi32((__mmask16)counts, v));
    else
        _mm512_storeu_si512((uint64_t *)out.value + k, _mm512_maskz_compress_epi64((__mmask8)counts, v));
    _mm512_storeu_si512((uint32_t *)out.index + k, _mm512_maskz_compress_epi32((__mmask16)counts, index));
    return k + (size_t)__builtin_popcountll(counts);
}

/* The first FEW that count of a group at v[i], and any where there are fewer: whether there is one cannot be
 * foreseen, and a wrong guess would keep loads from memory waiting. */
SAR_WIDE SAR_INLINE void move_few(const void *v, unsigned size, size_t i, uint64_t counts, struct sar_run out,
                                  size_t k)
{
    const unsigned char *from = v;
    unsigned char *to = (unsigned char *)out.value + k * size;
    for (size_t j = 0; j < FEW; j++, counts &= counts - 1) {
        size_t at = i + (size_t)__builtin_ctzll(counts | (uint64_t)1 << (WIDE_GROUP / size - 1));
        sar_index_set(out.index, 4, k + j, at);
        memcpy(to + j * size, from + at * size, size);
    }
}

/* A group at v[i]. */
SAR_WIDE SAR_INLINE size_t scan_group(const void *v, unsigned size, size_t i, struct sar_run out, size_t k)
{
    const __m512i first = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const unsigned char *bytes = (const unsigned char *)v + i * size;
    unsigned each = 64 / size;
    __m512i a[4];
    uint64_t counts = 0;
    for (unsigned j = 0; j < 4; j++) {
        a[j] = _mm512_loadu_si512(bytes + j * 64);
        counts |= counting(a[j], size) << j * each;
    }
    size_t n = (size_t)__builtin_popcountll(counts);
    if (n <= FEW) {
        move_few(v, size, i, counts, out, k);
        return k + n;
    }
    for (unsigned j = 0; j < 4; j++)
        k = pack(a[j], size, _mm512_add_epi32(first, _mm512_set1_epi32((int)(i + j * each))), out, k);
    return k;
}

/* Values of 4 or 8 bytes, indices of 4, and whole groups. */
SAR_WIDE static size_t scan_wide(const struct sar_shape *shape, const void *buf, size_t from, size_t n,
                                 struct sar_run out, size_t k)
{
    for (size_t i = from; shape->element_size == 4 && i < from + n; i += WIDE_GROUP / 4)
        k = scan_group(buf, 4, i, out, k);
    for (size_t i = from; shape->element_size == 8 && i < from + n; i += WIDE_GROUP / 8)
        k = scan_group(buf, 8, i, out, k);
    return k;
}
#else
#define scan_wide(shape, buf, from, n, out, k) (k)
#endif

SAR_CLONES static bool row_counts(const unsigned char *row, size_t bytes)
{
    const eight *word = (const void *)row;
    uint64_t any = 0;
    for (size_t i = 0; i < bytes / sizeof *word; i++)
        any |= word[i];
    for (size_t i = bytes / sizeof *word * sizeof *word; i < bytes; i++)
        any |= row[i];
    return any != 0;
}

static size_t scan_rows(const unsigned char *buf, const struct sar_shape *shape, size_t from, size_t n,
                        struct sar_run out, size_t k)
{
    size_t bytes = shape->element_size;
    for (size_t i = from; i < from + n; i++) {
        if (!row_counts(buf + i * bytes, bytes))
            continue;
        sar_index_set(out.index, shape->index_size, k, i);
        memcpy((unsigned char *)out.value + k * bytes, buf + i * bytes, bytes);
        k++;
    }
    return k;
}

static size_t scan(const struct sar_shape *shape, const void *buf, size_t from, size_t n, struct sar_run out,
                   size_t k)
{
    bool scalar = shape->element_size == 4 || shape->element_size == 8;
    if (scalar && n == STRIDE && shape->index_size == 4 && sar_is_wide())
        return scan_wide(shape, buf, from, n, out, k);
    if (shape->element_size == 1)
        return shape->index_size == 4 ? scan1_narrow(buf, from, n, out, k) : scan1(buf, from, n, 8, out, k);
    if (shape->element_size == 2)
        return shape->index_size == 4 ? scan2_narrow(buf, from, n, out, k) : scan2(buf, from, n, 8, out, k);
    if (shape->element_size == 4)
        return shape->index_size == 4 ? scan4_narrow(buf, from, n, out, k) : scan4(buf, from, n, 8, out, k);
    if (shape->element_size == 8)
        return shape->index_size == 4 ? scan8_narrow(buf, from, n, out, k) : scan8(buf, from, n, 8, out, k);
    return scan_rows(buf, shape, from, n, out, k);
}

enum sar_status sar_dense_compact_into(const struct sar_shape *shape, const void *buf, size_t expected,
                                       struct sar_space *space, struct sar_run *run)
{
    size_t count = (size_t)shape->count;
    *run = (struct sar_run){ NULL, NULL, 0 };
    for (size_t i = 0; i < count; i += STRIDE) {
        size_t n = count - i < STRIDE ? count - i : STRIDE, least = run->nnz + n + SLACK;
        if (least > space->nnz) {
            size_t ample = space->nnz == 0 ? expected + expected / 8 : space->nnz + space->nnz / 2;
            SAR_TRY(space->make(space, ample > least ? ample : least, run));
        }
        run->nnz = scan(shape, buf, i, n, *run, run->nnz);
    }
    return SAR_OK;
}

struct arena_space {
    struct sar_space space; /* first */
    const struct sar_shape *shape;
    struct sar_arena *arena;
};

/* Move a run to larger arrays. */
static enum sar_status widen(struct sar_space *space, size_t nnz, struct sar_run *run)
{
    struct arena_space *of = (struct arena_space *)space;
    struct sar_run wider;
    SAR_TRY(sar_run_take(of->shape, nnz, of->arena, &wider));
    sar_run_copy(of->shape, run, &wider);
    wider.nnz = run->nnz;
    *run = wider;
    space->nnz = nnz;
    return SAR_OK;
}

enum sar_status sar_dense_compact(const struct sar_shape *shape, const void *buf, size_t expected,
                                  struct sar_arena *arena, struct sar_run *run)
{
    struct arena_space space = { { widen, 0 }, shape, arena };
    return sar_dense_compact_into(shape, buf, expected, &space.space, run);
}

/* countN: values of N bytes that count. A group of a fixed length becomes whole vectors. */
#define DEFINE_COUNT(name, type)                           \
    SAR_CLONES static size_t name(const type *v, size_t n) \
    {                                                      \
        size_t counted = 0, i = 0;                         \
        for (; n - i >= COUNT_GROUP; i += COUNT_GROUP) {   \
            type here = 0;                                 \
            for (size_t j = 0; j < COUNT_GROUP; j++)       \
                here = (type)(here + (v[i + j] != 0));     \
            counted += (size_t)here;                       \
        }                                                  \
        for (; i < n; i++)                                 \
            counted += v[i] != 0;                          \
        return counted;                                    \
    }

DEFINE_COUNT(count1, uint8_t)
DEFINE_COUNT(count2, two)
DEFINE_COUNT(count4, four)
DEFINE_COUNT(count8, eight)

static size_t count_rows(const unsigned char *buf, size_t bytes, size_t n)
{
    size_t counted = 0;
    for (size_t i = 0; i < n; i++)
        counted += row_counts(buf + i * bytes, bytes);
    return counted;
}

size_t sar_dense_count(const struct sar_shape *shape, const void *buf, size_t n)
{
    switch (shape->element_size) {
    case 1: return count1(buf, n);
    case 2: return count2(buf, n);
    case 4: return count4(buf, n);
    case 8: return count8(buf, n);
    default: return count_rows(buf, shape->element_size, n);
    }
}

/* Begin of group g of those that the buffer is cut into: where a hash puts it. */
static size_t place_of(uint32_t g, size_t stride, size_t group)
{
    size_t room = stride - group;
    return g * stride + sar_hash_range(sar_mix32(g + 1), room < UINT32_MAX ? (uint32_t)room + 1 : UINT32_MAX);
}

size_t sar_dense_estimate(const struct sar_shape *shape, const void *buf, size_t sample)
{
    const unsigned char *bytes = buf;
    size_t count = (size_t)shape->count, group = SAMPLE_GROUP < shape->row ? 1 : SAMPLE_GROUP / shape->row;
    size_t groups = sample / group, present = 0;
    if (groups == 0 || sample >= count)
        return sar_dense_count(shape, buf, count);
    for (uint32_t g = 0; g < groups; g++)
        present +=
            sar_dense_count(shape, bytes + place_of(g, count / groups, group) * shape->element_size, group);
    return (size_t)((double)present / (double)(groups * group) * (double)count);
}

SAR_CLONES static bool any_zero4(const four *value, size_t n)
{
    uint32_t found = 0;
    for (size_t i = 0; i < n; i++)
        found |= value[i] == 0;
    return found != 0;
}

/* Whether it is worth a closer look. */
static bool may_have_zeros(const struct sar_shape *shape, const struct sar_run *run)
{
    return shape->element_size != 4 || any_zero4(run->value, run->nnz);
}

enum sar_status sar_drop_zeros(const struct sar_shape *shape, struct sar_arena *arena, struct sar_run *run)
{
    struct sar_run kept;
    size_t bytes = shape->element_size, k = 0;
    if (!may_have_zeros(shape, run) || sar_dense_count(shape, run->value, run->nnz) == run->nnz)
        return SAR_OK;
    SAR_TRY(sar_run_take(shape, run->nnz, arena, &kept));
    for (size_t i = 0; i < run->nnz; i++) {
        const unsigned char *value = (const unsigned char *)run->value + i * bytes;
        if (!row_counts(value, bytes))
            continue;
        sar_index_set(kept.index, shape->index_size, k, sar_index_get(run->index, shape->index_size, i));
        memcpy((unsigned char *)kept.value + k++ * bytes, value, bytes);
    }
    *run = (struct sar_run){ kept.index, kept.value, k };
    return SAR_OK;
}

/* Whether one of n values has a sign and nothing else. */
#define DEFINE_FIND(name, type)                                             \
    SAR_CLONES static bool name(const type *value, size_t n)                \
    {                                                                       \
        type found = 0;                                                     \
        for (size_t i = 0; i < n; i++)                                      \
            found |= value[i] == (type)((type)1 << (8 * sizeof(type) - 1)); \
        return found != 0;                                                  \
    }

DEFINE_FIND(find2, uint16_t)
DEFINE_FIND(find4, uint32_t)
DEFINE_FIND(find8, uint64_t)

bool sar_has_negative_zero(enum sar_base base, const void *values, size_t n)
{
    switch (base) {
    case SAR_FLOAT: return find4(values, n);
    case SAR_DOUBLE: return find8(values, n);
    case SAR_BF16:
    case SAR_FP16: return find2(values, n);
    default: return false;
    }
}

SAR_INLINE void scatter(const struct sar_run *run, unsigned size, size_t bytes, unsigned char *buf)
{
    const unsigned char *value = run->value;
    for (size_t i = 0; i < run->nnz; i++)
        memcpy(buf + sar_index_get(run->index, size, i) * bytes, value + i * bytes, bytes);
}

void sar_dense_scatter(const struct sar_shape *shape, const struct sar_run *run, void *buf)
{
    if (shape->element_size == 4)
        SAR_FOR_INDEX_SIZE(shape->index_size, scatter(run, INDEX_SIZE, 4, buf));
    else if (shape->element_size == 8)
        SAR_FOR_INDEX_SIZE(shape->index_size, scatter(run, INDEX_SIZE, 8, buf));
    else
        scatter(run, shape->index_size, shape->element_size, buf);
}

SAR_INLINE void clear(const struct sar_run *run, unsigned size, size_t bytes, unsigned char *buf)
{
    for (size_t i = 0; i < run->nnz; i++)
        memset(buf + sar_index_get(run->index, size, i) * bytes, 0, bytes);
}

void sar_dense_clear(const struct sar_shape *shape, const struct sar_run *run, void *buf)
{
    if (shape->element_size == 4)
        SAR_FOR_INDEX_SIZE(shape->index_size, clear(run, INDEX_SIZE, 4, buf));
    else if (shape->element_size == 8)
        SAR_FOR_INDEX_SIZE(shape->index_size, clear(run, INDEX_SIZE, 8, buf));
    else
        clear(run, shape->index_size, shape->element_size, buf);
}
