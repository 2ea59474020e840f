/* SPDX-License-Identifier: BSD-3-Clause */
/* Scatter by leading bits (most significant digit first), and a sort by digits (least significant first).
 * sort.c uses the first to make buckets that fit into a cache, and the second to sort a bucket.
 *
 *     time of the scatter = three passes over the indices, one over the payload
 *     time of the sort = ceil(bits / 11) passes over the items, or more and shorter digits for few items
 *
 * Several threads scatter pieces of the pairs at once. For each piece and bucket it is known where the pairs
 * go, so that the copy is stable. */

#include "vector/radix_sort.h"

#include "vector/pieces.h"

enum {
    BUCKET_TARGET = 2048, /* pairs of a bucket, unless SAR_BUCKETS is too few */
    DIGIT_BITS_MAX = 11,  /* bits of a digit */
    DIGIT_BITS_MIN = 5,
    DIGITS = 1 << DIGIT_BITS_MAX,
    INSERTION_MAX = 16 /* items that are sorted by insertion */
};

struct min_max {
    uint64_t min, max;
};

SAR_INLINE struct min_max min_max_of(const void *index, unsigned size, size_t from, size_t to)
{
    uint64_t min_index = UINT64_MAX, max_index = 0;
    for (size_t i = from; i < to; i++) {
        uint64_t value = sar_index_get(index, size, i);
        min_index = value < min_index ? value : min_index;
        max_index = value > max_index ? value : max_index;
    }
    return (struct min_max){ min_index, max_index };
}

SAR_CLONES static struct min_max min_max_of_pairs(const struct sar_pairs *from, size_t at, size_t end)
{
    SAR_FOR_INDEX_SIZE(from->index_size, return min_max_of(from->index, INDEX_SIZE, at, end));
}

/* Pairs whose least and largest index several threads search. */
struct searched {
    const struct sar_pairs *from;
    size_t at;
    struct min_max found[SAR_RANGES_MAX];
    size_t n, pieces;
};

static enum sar_status search_piece(void *searched, size_t i)
{
    struct searched *s = searched;
    s->found[i] = min_max_of_pairs(s->from, s->at + sar_parallel_bound(s->n, 1, s->pieces, i),
                                   s->at + sar_parallel_bound(s->n, 1, s->pieces, i + 1));
    return SAR_OK;
}

static struct min_max search(const struct sar_pairs *from, size_t at, size_t n, size_t pieces)
{
    struct searched s = { .from = from, .at = at, .n = n, .pieces = pieces };
    struct min_max all = { UINT64_MAX, 0 };
    sar_parallel_for(pieces, search_piece, &s);
    for (size_t i = 0; i < pieces; i++) {
        all.min = s.found[i].min < all.min ? s.found[i].min : all.min;
        all.max = s.found[i].max > all.max ? s.found[i].max : all.max;
    }
    return all;
}

struct sar_index_range sar_index_range_of(const struct sar_pairs *from, size_t at, size_t n)
{
    size_t pieces = sar_pieces(n * from->index_size);
    struct min_max found = pieces == 1 ? min_max_of_pairs(from, at, at + n) : search(from, at, n, pieces);
    unsigned bits = found.max == found.min ? 0 : 64 - (unsigned)__builtin_clzll(found.max - found.min);
    return (struct sar_index_range){ found.min, bits };
}

SAR_INLINE size_t bucket_of(const struct sar_buckets *buckets, uint64_t index)
{
    uint64_t bucket = (index - buckets->base) >> buckets->shift;
    bucket = bucket < buckets->n ? bucket : buckets->n;
    return index < buckets->base ? 0 : bucket + 1;
}

SAR_INLINE void count_buckets(const struct sar_pairs *from, unsigned index_size, size_t begin, size_t end,
                              const struct sar_buckets *buckets, size_t *count)
{
    for (size_t i = begin; i < end; i++)
        count[bucket_of(buckets, sar_index_get(from->index, index_size, i))]++;
}

/* Pairs that several threads count or scatter. */
struct scattered {
    const struct sar_pairs *from, *to;
    const struct sar_buckets *buckets;
    size_t n, pieces;
    size_t *offset; /* SAR_BUCKETS numbers for each piece */
};

static enum sar_status count_piece(void *scattered, size_t i)
{
    const struct scattered *s = scattered;
    size_t begin = sar_parallel_bound(s->n, 1, s->pieces, i),
           end = sar_parallel_bound(s->n, 1, s->pieces, i + 1), *count = s->offset + i * SAR_BUCKETS;
    memset(count, 0, SAR_BUCKETS * sizeof *count);
    SAR_FOR_INDEX_SIZE(s->from->index_size,
                       count_buckets(s->from, INDEX_SIZE, begin, end, s->buckets, count));
    return SAR_OK;
}

/* Returns the pairs of a bucket in all pieces. */
static size_t pairs_in(const size_t *count, size_t pieces, size_t bucket)
{
    size_t n = count[bucket];
    for (size_t i = 1; i < pieces; i++)
        n += count[i * SAR_BUCKETS + bucket];
    return n;
}

struct sar_buckets sar_buckets_choose(const struct sar_pairs *from, size_t n, struct sar_index_range range,
                                      size_t pieces, size_t *count)
{
    unsigned bits = 1;
    while (bits < SAR_BUCKET_BITS && (size_t)BUCKET_TARGET << bits < n)
        bits++;
    for (;;) {
        unsigned shift = range.bits > bits ? range.bits - bits : 0;
        struct sar_buckets w = { range.base, (uint64_t)1 << bits, shift };
        struct scattered counted = { from, NULL, &w, n, pieces, count };
        size_t fullest = 1, most = 0;
        sar_parallel_for(pieces, count_piece, &counted);
        for (size_t b = 1; b <= w.n; b++) {
            size_t here = pairs_in(count, pieces, b);
            fullest = here > most ? b : fullest;
            most = here > most ? here : most;
        }
        if (shift == 0 || most <= n / 2)
            return w;
        range = (struct sar_index_range){ w.base + ((uint64_t)(fullest - 1) << shift), shift };
    }
}

SAR_INLINE void scatter_as(const struct sar_pairs *from, unsigned index_size, unsigned payload_size,
                           size_t begin, size_t end, const struct sar_buckets *buckets, size_t *offset,
                           void *indices, unsigned to_size, void *payload, unsigned to_payload)
{
    struct sar_buckets w = *buckets; /* a local copy: stores cannot alias it */
    for (size_t i = begin; i < end; i++) {
        uint64_t index = sar_index_get(from->index, index_size, i);
        size_t to = offset[bucket_of(&w, index)]++;
        sar_index_set(indices, to_size, to, index);
        sar_index_set(payload, to_payload, to, sar_pairs_payload(from, payload_size, i));
    }
}

#define SCATTER(from_index, from_payload, to_index, to_payload)                                         \
    if (from->index_size == (from_index) && sar_pairs_payload_size(from) == (from_payload) &&           \
        to->index_size == (to_index) && to->payload_size == (to_payload)) {                             \
        scatter_as(from, from_index, from_payload, begin, end, s->buckets, offset, to->index, to_index, \
                   to->payload, to_payload);                                                            \
        return SAR_OK;                                                                                  \
    }

static enum sar_status scatter_piece(void *scattered, size_t i)
{
    const struct scattered *s = scattered;
    const struct sar_pairs *from = s->from, *to = s->to;
    size_t begin = sar_parallel_bound(s->n, 1, s->pieces, i),
           end = sar_parallel_bound(s->n, 1, s->pieces, i + 1), *offset = s->offset + i * SAR_BUCKETS;
    SCATTER(4, 4, 4, 4)
    SCATTER(8, 4, 4, 4)
    SCATTER(8, 4, 8, 4)
    SCATTER(4, 8, 4, 8)
    SCATTER(8, 8, 4, 8)
    SCATTER(8, 8, 8, 8)
    scatter_as(from, from->index_size, sar_pairs_payload_size(from), begin, end, s->buckets, offset,
               to->index, to->index_size, to->payload, to->payload_size);
    return SAR_OK;
}

const size_t *sar_bucket_scatter(const struct sar_pairs *from, size_t n, const struct sar_buckets *buckets,
                                 size_t begin, size_t pieces, size_t *offset, const struct sar_pairs *to)
{
    struct scattered scattered = { from, to, buckets, n, pieces, offset };
    for (size_t b = 0; b < SAR_BUCKETS; b++)
        for (size_t i = 0; i < pieces; i++) {
            size_t here = offset[i * SAR_BUCKETS + b];
            offset[i * SAR_BUCKETS + b] = begin;
            begin += here;
        }
    sar_parallel_for(pieces, scatter_piece, &scattered);
    return offset + (pieces - 1) * SAR_BUCKETS;
}

struct sar_index_range sar_buckets_index_range(const struct sar_buckets *buckets, size_t bucket,
                                               const struct sar_pairs *pairs, size_t from, size_t n)
{
    if (bucket == 0 || bucket > buckets->n)
        return sar_index_range_of(pairs, from, n);
    return (struct sar_index_range){ buckets->base + ((uint64_t)(bucket - 1) << buckets->shift),
                                     buckets->shift };
}

/* A sort of `passes` digits of `bits` bits each. */
struct digit_layout {
    unsigned passes, bits;
};

/* Use the fewest passes, but no digit with more values than there are items. */
static struct digit_layout choose_digits(size_t n, unsigned bits)
{
    unsigned digit = DIGIT_BITS_MIN;
    while (digit < DIGIT_BITS_MAX && (size_t)1 << digit < n)
        digit++;
    unsigned passes = (bits + digit - 1) / digit;
    return (struct digit_layout){ passes, passes == 0 ? 0 : (bits + passes - 1) / passes };
}

static void insertion_sort(uint64_t *items, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint64_t item = items[i];
        size_t k = i;
        for (; k > 0 && items[k - 1] >> 32 > item >> 32; k--)
            items[k] = items[k - 1];
        items[k] = item;
    }
}

/* Sort items by one digit, and count the values of the next digit unless `next` is NULL. */
SAR_INLINE void scatter_pass(const uint64_t *from, uint64_t *to, size_t n, unsigned shift, unsigned bits,
                             uint32_t *offset, uint32_t *next)
{
    uint32_t begin = 0, mask = (1u << bits) - 1;
    for (size_t d = 0; d <= mask; d++) {
        uint32_t here = offset[d];
        offset[d] = begin;
        begin += here;
    }
    if (next != NULL)
        memset(next, 0, sizeof *next << bits);
    for (size_t i = 0; i < n; i++) {
        uint64_t item = from[i];
        if (next != NULL)
            next[item >> 32 >> shift >> bits & mask]++;
        to[offset[item >> 32 >> shift & mask]++] = item;
    }
}

uint64_t *sar_radix_sort(uint64_t *items, uint64_t *spare, size_t n, unsigned bits)
{
    uint32_t offsets[2][DIGITS];
    struct digit_layout layout = choose_digits(n, bits);
    if (n <= INSERTION_MAX) {
        insertion_sort(items, n);
        return items;
    }
    memset(offsets[0], 0, sizeof *offsets[0] << layout.bits);
    for (size_t i = 0; layout.passes > 0 && i < n; i++)
        offsets[0][items[i] >> 32 & ((1u << layout.bits) - 1)]++;
    for (unsigned pass = 0; pass < layout.passes; pass++) {
        unsigned shift = pass * layout.bits;
        uint32_t *offset = offsets[pass % 2], *next = offsets[1 - pass % 2];
        if (pass + 1 < layout.passes)
            scatter_pass(items, spare, n, shift, layout.bits, offset, next);
        else
            scatter_pass(items, spare, n, shift, layout.bits, offset, NULL);
        uint64_t *swap = items;
        items = spare;
        spare = swap;
    }
    return items;
}
