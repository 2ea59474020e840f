/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts of non-zeros, and single elements of dense buffers. Runs at memory bandwidth. dense_scan.c makes a
 * vec of a buffer, and dense_write.c a buffer of vecs. */

#include "vector/dense.h"

#include <string.h>

#include "hash/murmur3.h"
#include "vector/pieces.h"

enum {
    SAMPLE_GROUP = 64,   /* basic values of a sample that are adjacent */
    SAMPLE_RANGES = 256, /* of a buffer, for quantiles */
    COUNT_GROUP = 64,    /* values counted at once */
    UNIT = 64,      /* elements: pieces of an array that is written share no cache line if it is aligned */
    CACHE_LINE = 64 /* bytes */
};

/* Elements of 2, 4 and 8 bytes may be rows, which have the alignment of their basic type. */
typedef uint16_t unaligned16 __attribute__((aligned(1)));
typedef uint32_t unaligned32 __attribute__((aligned(1)));
typedef uint64_t unaligned64 __attribute__((aligned(1)));

SAR_CLONES bool sar_row_is_nonzero(const unsigned char *row, size_t bytes)
{
    const unaligned64 *word = (const void *)row;
    uint64_t any = 0;
    for (size_t i = 0; i < bytes / sizeof *word; i++)
        any |= word[i];
    for (size_t i = bytes / sizeof *word * sizeof *word; i < bytes; i++)
        any |= row[i];
    return any != 0;
}

/* countN: non-zeros among n values of N bytes. Groups of fixed length compile to whole SIMD vectors. */
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
DEFINE_COUNT(count2, unaligned16)
DEFINE_COUNT(count4, unaligned32)
DEFINE_COUNT(count8, unaligned64)

static size_t count_rows(const unsigned char *buf, size_t bytes, size_t n)
{
    size_t counted = 0;
    for (size_t i = 0; i < n; i++)
        counted += sar_row_is_nonzero(buf + i * bytes, bytes);
    return counted;
}

static size_t count(const struct sar_vec_desc *desc, const void *buf, size_t n)
{
    switch (desc->element_size) {
    case 1: return count1(buf, n);
    case 2: return count2(buf, n);
    case 4: return count4(buf, n);
    case 8: return count8(buf, n);
    default: return count_rows(buf, desc->element_size, n);
    }
}

/* Elements to count, and how many non-zeros are counted. */
struct counted {
    const struct sar_vec_desc *desc;
    const unsigned char *buf;
    size_t nonzero;
};

static void count_range(void *counted, size_t from, size_t to)
{
    struct counted *c = counted;
    size_t nonzero = count(c->desc, c->buf + from * c->desc->element_size, to - from);
    __atomic_fetch_add(&c->nonzero, nonzero, __ATOMIC_RELAXED);
}

size_t sar_dense_count_nonzero(const struct sar_vec_desc *desc, const void *buf, size_t n)
{
    size_t pieces = sar_pieces(n * desc->element_size);
    struct counted counted = { desc, buf, 0 };
    if (pieces == 1)
        return count(desc, buf, n);
    sar_ranges_run((struct sar_ranges){ n, UNIT, pieces, count_range, &counted });
    return counted.nonzero;
}

/* Returns the first element of sample group g: a hashed position in interval g of `stride` elements. */
static size_t sample_begin(uint32_t g, size_t stride, size_t group)
{
    size_t slack = stride - group;
    return g * stride +
           sar_hash_range(sar_mix32(g + 1), slack < UINT32_MAX ? (uint32_t)slack + 1 : UINT32_MAX);
}

size_t sar_dense_estimate_nonzero(const struct sar_vec_desc *desc, const void *buf, size_t sample,
                                  struct sar_quantiles *quantiles)
{
    uint16_t counts[SAMPLE_RANGES] = { 0 };
    const unsigned char *bytes = buf;
    size_t all = (size_t)desc->count, group = SAMPLE_GROUP < desc->row_len ? 1 : SAMPLE_GROUP / desc->row_len;
    size_t groups = sample / group, present = 0;
    *quantiles = (struct sar_quantiles){ { 0 } };
    if (groups == 0 || sample >= all)
        return sar_dense_count_nonzero(desc, buf, all);
    for (uint32_t g = 0; g < groups; g++) {
        size_t found = count(desc, bytes + sample_begin(g, all / groups, group) * desc->element_size, group);
        counts[g * SAMPLE_RANGES / groups] += (uint16_t)found;
        present += found;
    }
    *quantiles = sar_quantiles_of_counts(counts, SAMPLE_RANGES);
    return (size_t)((double)present / (double)(groups * group) * (double)all);
}

SAR_CLONES static bool any_zero4(const unaligned32 *value, size_t n)
{
    uint32_t found = 0;
    for (size_t i = 0; i < n; i++)
        found |= value[i] == 0;
    return found != 0;
}

/* Copy the non-zeros among elements [from, to) of a vec to kept, from element k on. */
static size_t keep_nonzeros(const struct sar_vec_desc *desc, const struct sar_spvec *vec, size_t from,
                            size_t to, const struct sar_spvec *kept, size_t k)
{
    size_t bytes = desc->element_size;
    for (size_t i = from; i < to; i++) {
        const unsigned char *value = (const unsigned char *)vec->value + i * bytes;
        if (!sar_row_is_nonzero(value, bytes))
            continue;
        sar_index_set(kept->index, desc->index_size, k, sar_index_get(vec->index, desc->index_size, i));
        memcpy((unsigned char *)kept->value + k++ * bytes, value, bytes);
    }
    return k;
}

/* Pieces of a vec whose zeros are dropped. */
struct drop {
    const struct sar_vec_desc *desc;
    const struct sar_spvec *vec;
    struct sar_spvec kept;
    size_t pieces, begin[SAR_RANGES_MAX + 1]; /* of a piece in kept; first, its non-zeros */
};

static enum sar_status count_piece(void *drop, size_t i)
{
    struct drop *d = drop;
    size_t from = sar_parallel_bound(d->vec->nnz, UNIT, d->pieces, i);
    const unsigned char *value = (const unsigned char *)d->vec->value + from * d->desc->element_size;
    d->begin[i] = count(d->desc, value, sar_parallel_bound(d->vec->nnz, UNIT, d->pieces, i + 1) - from);
    return SAR_OK;
}

static enum sar_status keep_piece(void *drop, size_t i)
{
    const struct drop *d = drop;
    size_t from = sar_parallel_bound(d->vec->nnz, UNIT, d->pieces, i);
    keep_nonzeros(d->desc, d->vec, from, sar_parallel_bound(d->vec->nnz, UNIT, d->pieces, i + 1), &d->kept,
                  d->begin[i]);
    return SAR_OK;
}

static enum sar_status drop_parallel(struct drop *d, struct sar_arena *arena, struct sar_spvec *vec)
{
    size_t nonzero = 0;
    sar_parallel_for(d->pieces, count_piece, d);
    for (size_t i = 0; i < d->pieces; i++) {
        size_t here = d->begin[i];
        d->begin[i] = nonzero;
        nonzero += here;
    }
    if (nonzero == vec->nnz)
        return SAR_OK;
    SAR_TRY(sar_spvec_alloc(d->desc, nonzero, arena, &d->kept));
    sar_parallel_for(d->pieces, keep_piece, d);
    *vec = d->kept;
    return SAR_OK;
}

enum sar_status sar_spvec_drop_zeros(const struct sar_vec_desc *desc, struct sar_arena *arena,
                                     struct sar_spvec *vec)
{
    struct sar_spvec kept;
    size_t bytes = desc->element_size, pieces = sar_pieces(vec->nnz * (bytes + desc->index_size));
    if (pieces > 1) {
        struct drop drop = { .desc = desc, .vec = vec, .pieces = pieces };
        return drop_parallel(&drop, arena, vec);
    }
    if (bytes == 4 && !any_zero4(vec->value, vec->nnz))
        return SAR_OK;
    if (count(desc, vec->value, vec->nnz) == vec->nnz)
        return SAR_OK;
    SAR_TRY(sar_spvec_alloc(desc, vec->nnz, arena, &kept));
    kept.nnz = keep_nonzeros(desc, vec, 0, vec->nnz, &kept, 0);
    *vec = kept;
    return SAR_OK;
}

/* findN: true if one of n values of N bytes has the sign bit set and no other. */
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

/* Values to search. */
struct search {
    const unsigned char *values;
    size_t bytes; /* of a value: 2, 4 or 8 */
    bool found;
};

static bool find(const void *values, size_t bytes, size_t n)
{
    return bytes == 4 ? find4(values, n) : bytes == 8 ? find8(values, n) : find2(values, n);
}

static void find_range(void *search, size_t from, size_t to)
{
    struct search *s = search;
    if (find(s->values + from * s->bytes, s->bytes, to - from))
        __atomic_store_n(&s->found, true, __ATOMIC_RELAXED);
}

bool sar_dense_has_negative_zero(enum sar_dtype dtype, const void *values, size_t n)
{
    static const size_t sizes[SAR_DTYPES] = {
        [SAR_FLOAT] = 4, [SAR_DOUBLE] = 8, [SAR_BF16] = 2, [SAR_FP16] = 2
    };
    struct search search = { values, sizes[dtype], false };
    if (search.bytes == 0)
        return false;
    size_t pieces = sar_pieces(n * search.bytes);
    if (pieces == 1)
        return find(values, search.bytes, n);
    sar_ranges_run((struct sar_ranges){ n, UNIT, pieces, find_range, &search });
    return search.found;
}

/* Elements of a vec that are written or cleared at their indices. */
struct elements {
    const struct sar_vec_desc *desc;
    const struct sar_spvec *vec;
    unsigned char *buf;
};

SAR_INLINE void scatter(const struct sar_spvec *vec, unsigned size, size_t bytes, size_t from, size_t to,
                        unsigned char *buf)
{
    const unsigned char *value = vec->value;
    for (size_t i = from; i < to; i++)
        memcpy(buf + sar_index_get(vec->index, size, i) * bytes, value + i * bytes, bytes);
}

static void scatter_range(void *elements, size_t from, size_t to)
{
    const struct elements *e = elements;
    const struct sar_vec_desc *desc = e->desc;
    if (desc->element_size == 4)
        SAR_FOR_INDEX_SIZE(desc->index_size, scatter(e->vec, INDEX_SIZE, 4, from, to, e->buf));
    else if (desc->element_size == 8)
        SAR_FOR_INDEX_SIZE(desc->index_size, scatter(e->vec, INDEX_SIZE, 8, from, to, e->buf));
    else
        scatter(e->vec, desc->index_size, desc->element_size, from, to, e->buf);
}

SAR_INLINE void clear(const struct sar_spvec *vec, unsigned size, size_t bytes, size_t from, size_t to,
                      unsigned char *buf)
{
    for (size_t i = from; i < to; i++)
        memset(buf + sar_index_get(vec->index, size, i) * bytes, 0, bytes);
}

static void clear_range(void *elements, size_t from, size_t to)
{
    const struct elements *e = elements;
    const struct sar_vec_desc *desc = e->desc;
    if (desc->element_size == 4)
        SAR_FOR_INDEX_SIZE(desc->index_size, clear(e->vec, INDEX_SIZE, 4, from, to, e->buf));
    else if (desc->element_size == 8)
        SAR_FOR_INDEX_SIZE(desc->index_size, clear(e->vec, INDEX_SIZE, 8, from, to, e->buf));
    else
        clear(e->vec, desc->index_size, desc->element_size, from, to, e->buf);
}

/* Do all elements. Each touches a cache line of the buffer. */
static void do_all(struct elements *e, void (*body)(void *elements, size_t from, size_t to))
{
    size_t each = e->desc->index_size + e->desc->element_size + CACHE_LINE,
           pieces = sar_pieces(e->vec->nnz * each);
    sar_ranges_run((struct sar_ranges){ e->vec->nnz, UNIT, pieces, body, e });
}

void sar_dense_scatter(const struct sar_vec_desc *desc, const struct sar_spvec *vec, void *buf)
{
    struct elements elements = { desc, vec, buf };
    do_all(&elements, scatter_range);
}

void sar_dense_clear(const struct sar_vec_desc *desc, const struct sar_spvec *vec, void *buf)
{
    struct elements elements = { desc, vec, buf };
    do_all(&elements, clear_range);
}
