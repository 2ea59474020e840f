/* SPDX-License-Identifier: BSD-3-Clause */
/* A stable sort of a caller's coordinates, in two steps. The first scatters indices to buckets by their
 * leading bits, each with its value, or with its position if the value has another size than 1, 2, 4 or 8
 * bytes. The second sorts each bucket, which fits into a cache, by digits of the other bits, and writes the
 * result; equal indices are reduced to one.
 *
 * Buckets share memory with the result, so the only other memory is for one bucket and for positions. A large
 * bucket is copied and scattered again. It has at most half of all elements: if the leading bits distinguish
 * few indices, sar_buckets_choose takes lower bits.
 *
 *     time = nnz * 7 ns, half of that in a cache
 *
 * Several threads scatter pieces, and sort the buckets of a wave at once. The results of a wave are written when
 * all its buckets are sorted, since only then the places of the results are known, and their memory is free. */

#include "vector/sort.h"

#include <string.h>

#include "vector/pieces.h"
#include "vector/radix_sort.h"

enum {
    ONE_BUCKET_MAX = 8192, /* elements that are sorted as one bucket */
    RESPLIT_SHARE = 32,    /* a bucket with more than 1 / RESPLIT_SHARE of all elements is scattered again */
    SORT_BYTES = 24,       /* bytes that an element counts for when the work is split: a sort takes long */
    WAVE_SHARE = 8,        /* elements of a wave: 1 / WAVE_SHARE of all, or WAVE_MIN */
    WAVE_MIN = 32768,
    WAVE_BUCKETS = 128 /* most buckets of a wave */
};

/* An element that does not fit into an item of 8 bytes. */
struct entry {
    uint64_t index, payload;
};

/* The unrounded sum of the result's last element, for types of 16 bits: only the last addition may round. */
struct wide_sum {
    size_t nnz; /* elements of the result when the sum was begun; 0 for no sum */
    void *sums; /* a row of floats */
};

/* The result so far. */
struct sorted_out {
    struct sar_spvec vec;
    uint64_t last; /* index of the last element */
    struct wide_sum *wide;
};

/* A bucket: n scattered pairs from pair `from` on. */
struct bucket {
    size_t from, n;
    struct sar_index_range range;
    void *memory;           /* items, or copies of pairs */
    const uint64_t *sorted; /* the items in their order, in this memory */
    size_t distinct, place; /* elements of the result, and where they begin */
};

/* Buckets that are sorted at once. */
struct wave {
    struct bucket *buckets;
    size_t n, used, bytes; /* buckets, bytes of their memory, and most bytes */
};

/* The state of one sort. */
struct sorter {
    const struct sar_vec_desc *desc;
    const struct sar_sort_input *from;
    bool payload_is_value; /* else it is a position */
    struct wide_sum wide;
    struct sorted_out sorted_out;
    struct sar_pairs scattered; /* pairs in buckets; shares memory with sorted_out, except positions */
    struct {
        size_t most;  /* elements that it can sort */
        void *memory; /* items, or copies of pairs; of a wave with several threads */
    } bucket;
    size_t pieces;  /* of pairs that are scattered */
    size_t *offset; /* of buckets, for each piece */
    struct wave wave;
};

/* Add a value to the last element of the result, `top`. */
static void add_wide(const struct sar_vec_desc *desc, struct wide_sum *to, size_t nnz, void *top,
                     const void *value)
{
    const struct sar_op_kernels *wide = desc->kernels->wide;
    if (to->nnz != nnz) {
        wide->fill_identity(to->sums, desc->row_len);
        wide->apply(to->sums, top, desc->row_len);
        to->nnz = nnz;
    }
    wide->apply(to->sums, value, desc->row_len);
    desc->kernels->round(top, to->sums, desc->row_len);
}

/* Append an element to the result. `bytes` and `index_size` are constants in the frequent cases. */
SAR_INLINE void emit(const struct sar_vec_desc *desc, struct sorted_out *sorted_out, uint64_t index,
                     const void *value, size_t bytes, unsigned index_size)
{
    struct sar_spvec *vec = &sorted_out->vec;
    unsigned char *top = (unsigned char *)vec->value + vec->nnz * bytes;
    if (vec->nnz != 0 && index == sorted_out->last) {
        if (desc->kernels->wide == NULL)
            desc->kernels->apply(top - bytes, value, desc->row_len);
        else
            add_wide(desc, sorted_out->wide, vec->nnz, top - bytes, value);
        return;
    }
    memcpy(top, value, bytes);
    sar_index_set(vec->index, index_size, vec->nnz++, index);
    sorted_out->last = index;
}

/* Append an element whose value is the payload, of 1, 2, 4 or 8 bytes. */
SAR_INLINE void emit_value(const struct sar_vec_desc *desc, struct sorted_out *sorted_out, uint64_t index,
                           uint64_t value, size_t bytes, unsigned index_size)
{
    uint8_t u8 = (uint8_t)value;
    uint16_t u16 = (uint16_t)value;
    uint32_t u32 = (uint32_t)value;
    const void *at = bytes == 1   ? (void *)&u8
                     : bytes == 2 ? (void *)&u16
                     : bytes == 4 ? (void *)&u32
                                  : &value;
    emit(desc, sorted_out, index, at, bytes, index_size);
}

SAR_INLINE void emit_values(const struct sar_vec_desc *desc, struct sorted_out *sorted_out,
                            const uint64_t *item, size_t n, uint64_t base, size_t bytes, unsigned index_size)
{
    struct sorted_out local = *sorted_out; /* a local copy: stores cannot alias it */
    for (size_t i = 0; i < n; i++)
        emit_value(desc, &local, base + (item[i] >> 32), (uint32_t)item[i], bytes, index_size);
    *sorted_out = local;
}

static void emit_positions(const struct sorter *s, struct sorted_out *out, const uint64_t *item, size_t n,
                           uint64_t base)
{
    size_t bytes = s->desc->element_size;
    const unsigned char *value = s->from->value;
    for (size_t i = 0; i < n; i++)
        emit(s->desc, out, base + (item[i] >> 32), value + (uint32_t)item[i] * bytes, bytes,
             s->desc->index_size);
}

static void emit_items(const struct sorter *s, struct sorted_out *out, const uint64_t *item, size_t n,
                       uint64_t base)
{
    const struct sar_vec_desc *desc = s->desc;
    unsigned size = desc->index_size;
    if (!s->payload_is_value)
        emit_positions(s, out, item, n, base);
    else if (desc->element_size == 4)
        SAR_FOR_INDEX_SIZE(size, emit_values(desc, out, item, n, base, 4, INDEX_SIZE));
    else if (desc->element_size == 2)
        SAR_FOR_INDEX_SIZE(size, emit_values(desc, out, item, n, base, 2, INDEX_SIZE));
    else
        emit_values(desc, out, item, n, base, 1, size);
}

SAR_INLINE void make_items(const struct sar_pairs *from, unsigned index_size, unsigned payload_size,
                           size_t at, size_t n, uint64_t base, uint64_t *items)
{
    for (size_t i = 0; i < n; i++)
        items[i] = (sar_index_get(from->index, index_size, at + i) - base) << 32 |
                   sar_pairs_payload(from, payload_size, at + i);
}

/* Sort items of 8 bytes: the index less range.base in the upper half, the payload in the lower half. */
static const uint64_t *sort_items(const struct sar_pairs *from, const struct bucket *b)
{
    uint64_t *items = b->memory;
    if (from->payload_size == 4 && from->payload != NULL)
        SAR_FOR_INDEX_SIZE(from->index_size,
                           make_items(from, INDEX_SIZE, 4, b->from, b->n, b->range.base, items));
    else
        make_items(from, from->index_size, sar_pairs_payload_size(from), b->from, b->n, b->range.base, items);
    return sar_radix_sort(items, items + b->n, b->n, b->range.bits);
}

SAR_INLINE void emit_entry_values(const struct sar_vec_desc *desc, struct sorted_out *sorted_out,
                                  const uint64_t *item, size_t n, const struct entry *entries, size_t bytes,
                                  unsigned index_size)
{
    struct sorted_out local = *sorted_out;
    for (size_t i = 0; i < n; i++) {
        struct entry entry = entries[(uint32_t)item[i]];
        emit_value(desc, &local, entry.index, entry.payload, bytes, index_size);
    }
    *sorted_out = local;
}

static void emit_entries(const struct sorter *s, struct sorted_out *out, const uint64_t *item, size_t n,
                         const struct entry *entries)
{
    const struct sar_vec_desc *desc = s->desc;
    const unsigned char *value = s->from->value;
    size_t bytes = desc->element_size;
    unsigned size = desc->index_size;
    if (s->payload_is_value && bytes == 8)
        SAR_FOR_INDEX_SIZE(size, emit_entry_values(desc, out, item, n, entries, 8, INDEX_SIZE));
    else if (s->payload_is_value)
        emit_entry_values(desc, out, item, n, entries, bytes, size);
    for (size_t i = 0; !s->payload_is_value && i < n; i++) {
        struct entry entry = entries[(uint32_t)item[i]];
        emit(desc, out, entry.index, value + entry.payload * bytes, bytes, size);
    }
}

static struct entry *entries_of(const struct bucket *b)
{
    return (struct entry *)((uint64_t *)b->memory + 2 * b->n);
}

/* Sort items of half of an index above the number of an entry: by the lower halves, then by the upper
 * halves. */
static const uint64_t *sort_entries(const struct sar_pairs *from, const struct bucket *b)
{
    uint64_t *items = b->memory, *spare = items + b->n;
    struct entry *entries = entries_of(b);
    size_t n = b->n;
    for (size_t i = 0; i < n; i++) {
        uint64_t index = sar_index_get(from->index, from->index_size, b->from + i);
        entries[i] = (struct entry){ index - b->range.base,
                                     sar_pairs_payload(from, sar_pairs_payload_size(from), b->from + i) };
        items[i] = entries[i].index << 32 | i;
    }
    uint64_t *sorted = sar_radix_sort(items, spare, n, b->range.bits < 32 ? b->range.bits : 32);
    if (b->range.bits > 32) {
        for (size_t i = 0; i < n; i++)
            sorted[i] = entries[(uint32_t)sorted[i]].index >> 32 << 32 | (uint32_t)sorted[i];
        sorted = sar_radix_sort(sorted, sorted == items ? spare : items, n, b->range.bits - 32);
    }
    for (size_t i = 0; i < n; i++)
        entries[i].index += b->range.base;
    return sorted;
}

static bool fits_items(const struct sar_pairs *from, struct sar_index_range range)
{
    return sar_pairs_payload_size(from) <= sizeof(uint32_t) && range.bits <= 32;
}

static size_t bytes_of_bucket(const struct sar_pairs *from, struct sar_index_range range, size_t n)
{
    return n * (2 * sizeof(uint64_t) + (fits_items(from, range) ? 0 : sizeof(struct entry)));
}

static void sort_bucket(const struct sar_pairs *from, struct bucket *b)
{
    b->sorted = fits_items(from, b->range) ? sort_items(from, b) : sort_entries(from, b);
}

static void emit_bucket(const struct sorter *s, struct sorted_out *out, const struct sar_pairs *from,
                        const struct bucket *b)
{
    if (fits_items(from, b->range))
        emit_items(s, out, b->sorted, b->n, b->range.base);
    else
        emit_entries(s, out, b->sorted, b->n, entries_of(b));
}

/* Sort n pairs, from pair `at`, and append them to the result. */
static void sort_alone(struct sorter *s, const struct sar_pairs *from, size_t at, size_t n,
                       struct sar_index_range range)
{
    struct bucket b = { .from = at, .n = n, .range = range, .memory = s->bucket.memory };
    sort_bucket(from, &b);
    emit_bucket(s, &s->sorted_out, from, &b);
}

/* Count the distinct indices of a sorted bucket. */
static size_t count_distinct(const struct sar_pairs *from, const struct bucket *b)
{
    const struct entry *entries = entries_of(b);
    size_t distinct = 1;
    if (fits_items(from, b->range))
        for (size_t i = 1; i < b->n; i++)
            distinct += b->sorted[i] >> 32 != b->sorted[i - 1] >> 32;
    else
        for (size_t i = 1; i < b->n; i++)
            distinct += entries[(uint32_t)b->sorted[i]].index != entries[(uint32_t)b->sorted[i - 1]].index;
    return distinct;
}

static enum sar_status sort_of_wave(void *sorter, size_t i)
{
    const struct sorter *s = sorter;
    struct bucket *b = &s->wave.buckets[i];
    sort_bucket(&s->scattered, b);
    b->distinct = count_distinct(&s->scattered, b);
    return SAR_OK;
}

static size_t bytes_of_sums(const struct sorter *s)
{
    const struct sar_op_kernels *wide = s->desc->kernels->wide;
    return wide == NULL ? 0 : s->desc->row_len * wide->size;
}

/* Write the result of a bucket to its place. Unrounded sums are at the end of the bucket's memory. */
static enum sar_status emit_of_wave(void *sorter, size_t i)
{
    const struct sorter *s = sorter;
    const struct bucket *b = &s->wave.buckets[i];
    size_t sorted = sar_align_up(bytes_of_bucket(&s->scattered, b->range, b->n));
    struct wide_sum wide = { 0, (unsigned char *)b->memory + sorted };
    struct sorted_out out = { sar_spvec_slice(s->desc, &s->sorted_out.vec, b->place, b->place), 0, &wide };
    emit_bucket(s, &out, &s->scattered, b);
    return SAR_OK;
}

/* Sort the buckets of the wave, and append them to the result. */
static void run_wave(struct sorter *s)
{
    struct wave *wave = &s->wave;
    if (wave->n == 0)
        return;
    sar_parallel_for(wave->n, sort_of_wave, s);
    for (size_t i = 0; i < wave->n; i++) {
        wave->buckets[i].place = s->sorted_out.vec.nnz;
        s->sorted_out.vec.nnz += wave->buckets[i].distinct;
    }
    sar_parallel_for(wave->n, emit_of_wave, s);
    s->sorted_out.last =
        sar_index_get(s->sorted_out.vec.index, s->desc->index_size, s->sorted_out.vec.nnz - 1);
    wave->n = wave->used = 0;
}

static void add_to_wave(struct sorter *s, size_t from, size_t n, struct sar_index_range range)
{
    struct wave *wave = &s->wave;
    size_t bytes = sar_align_up(bytes_of_bucket(&s->scattered, range, n)) + sar_align_up(bytes_of_sums(s));
    if (wave->n == WAVE_BUCKETS || wave->used + bytes > wave->bytes)
        run_wave(s);
    void *memory = (unsigned char *)s->bucket.memory + wave->used;
    wave->buckets[wave->n++] = (struct bucket){ .from = from, .n = n, .range = range, .memory = memory };
    wave->used += bytes;
}

/* Arrays to copy. */
struct copied {
    const struct sar_pairs *from, *to;
    size_t at; /* pair of `from` */
};

static void copy_range(void *copied, size_t from, size_t to)
{
    const struct copied *c = copied;
    size_t size = c->from->index_size, bytes = c->from->payload_size, at = c->at + from;
    memcpy((unsigned char *)c->to->index + from * size, (unsigned char *)c->from->index + at * size,
           (to - from) * size);
    memcpy((unsigned char *)c->to->payload + from * bytes, (unsigned char *)c->from->payload + at * bytes,
           (to - from) * bytes);
}

/* Copy n scattered pairs, from pair `from`, to the memory of one bucket. */
static struct sar_pairs copy_of(const struct sorter *s, size_t from, size_t n, size_t pieces)
{
    struct sar_pairs copy = s->scattered;
    copy.index = s->bucket.memory;
    copy.payload = (unsigned char *)copy.index + sar_align_up(n * copy.index_size);
    struct copied copied = { &s->scattered, &copy, from };
    sar_ranges_run((struct sar_ranges){ n, SAR_ALIGNMENT, pieces, copy_range, &copied });
    return copy;
}

static void sort_part(struct sorter *s, size_t from, size_t n, struct sar_index_range range);

static void sort_buckets(struct sorter *s, size_t from, const struct sar_buckets *buckets, const size_t *end)
{
    for (size_t b = 0; b < SAR_BUCKETS; from = end[b++])
        if (end[b] != from)
            sort_part(s, from, end[b] - from,
                      sar_buckets_index_range(buckets, b, &s->scattered, from, end[b] - from));
}

/* Scatter n scattered pairs again. */
static void sort_large(struct sorter *s, size_t from, size_t n, struct sar_index_range range)
{
    size_t end[SAR_BUCKETS], pieces = s->pieces == 1 ? 1 : sar_pieces(n * SORT_BYTES);
    size_t *offset = s->pieces == 1 ? end : s->offset;
    pieces = pieces < s->pieces ? pieces : s->pieces;
    struct sar_pairs copy = copy_of(s, from, n, pieces);
    struct sar_buckets buckets = sar_buckets_choose(&copy, n, range, pieces, offset);
    const size_t *ends = sar_bucket_scatter(&copy, n, &buckets, from, pieces, offset, &s->scattered);
    if (ends != end)
        memcpy(end, ends, sizeof end);
    sort_buckets(s, from, &buckets, end);
}

/* Sort n scattered pairs: scatter them again if they are many, else sort them as buckets. */
static void sort_part(struct sorter *s, size_t from, size_t n, struct sar_index_range range)
{
    size_t most = s->bucket.most;
    if (s->pieces > 1 && n <= most) {
        add_to_wave(s, from, n, range);
        return;
    }
    run_wave(s);
    if (n > most && range.bits > 0) {
        sort_large(s, from, n, range);
        return;
    }
    for (size_t part; n != 0; from += part, n -= part) {
        part = n < most ? n : most;
        sort_alone(s, &s->scattered, from, part, range);
    }
}

/* Returns the bytes to sort any bucket, or a wave, and to copy a bucket that is scattered again. */
static size_t bytes_to_sort(struct sorter *s, const struct sar_buckets *buckets, const size_t *end,
                            struct sar_index_range range)
{
    size_t sorted = 0, copied = 0, n = s->from->nnz;
    for (size_t b = 0, from = 0; b < SAR_BUCKETS; from = end[b++]) {
        bool one_index = buckets->shift == 0 && b > 0 && b <= buckets->n;
        size_t here = end[b] - from;
        sorted = here > sorted ? here : sorted;
        copied = here > s->bucket.most && here > copied && !one_index ? here : copied;
    }
    sorted = sorted < s->bucket.most ? sorted : s->bucket.most;
    if (s->pieces > 1)
        sorted = n < WAVE_MIN ? n : n / WAVE_SHARE > WAVE_MIN ? n / WAVE_SHARE : WAVE_MIN;
    sorted = bytes_of_bucket(&s->scattered, range, sorted);
    if (s->pieces > 1)
        sorted += WAVE_BUCKETS * (size_t)SAR_ALIGNMENT + 4 * s->pieces * sar_align_up(bytes_of_sums(s));
    s->wave.bytes = sorted;
    copied = sar_align_up(copied * s->scattered.index_size) + copied * s->scattered.payload_size;
    return sorted > copied ? sorted : copied;
}

/* Allocate what several threads need besides. */
static enum sar_status open_pieces(struct sorter *s, struct sar_arena *arena)
{
    void *offset, *buckets;
    s->pieces = sar_pieces(s->from->nnz * SORT_BYTES);
    if (s->pieces == 1)
        return SAR_OK;
    SAR_TRY(sar_arena_alloc(arena, s->pieces * SAR_BUCKETS, sizeof *s->offset, &offset));
    SAR_TRY(sar_arena_alloc(arena, WAVE_BUCKETS, sizeof *s->wave.buckets, &buckets));
    s->offset = offset;
    s->wave.buckets = buckets;
    return SAR_OK;
}

/* The largest bucket that is not scattered again: several threads need several buckets. */
static size_t most_of_bucket(const struct sorter *s)
{
    size_t share = s->pieces < RESPLIT_SHARE       ? RESPLIT_SHARE
                   : s->pieces < 4 * RESPLIT_SHARE ? s->pieces
                                                   : 4 * RESPLIT_SHARE;
    size_t most = s->from->nnz / share;
    return most > ONE_BUCKET_MAX ? most : ONE_BUCKET_MAX;
}

static enum sar_status sort_many(struct sorter *s, const struct sar_pairs *from, struct sar_index_range range,
                                 struct sar_arena *arena)
{
    size_t end[SAR_BUCKETS], n = s->from->nnz;
    SAR_TRY(open_pieces(s, arena));
    size_t *offset = s->pieces == 1 ? end : s->offset;
    struct sar_buckets buckets = sar_buckets_choose(from, n, range, s->pieces, offset);
    if (!s->payload_is_value)
        SAR_TRY(sar_arena_alloc(arena, n, s->scattered.payload_size, &s->scattered.payload));
    const size_t *ends = sar_bucket_scatter(from, n, &buckets, 0, s->pieces, offset, &s->scattered);
    if (ends != end)
        memcpy(end, ends, sizeof end);
    s->bucket.most = most_of_bucket(s);
    SAR_TRY(sar_arena_alloc(arena, bytes_to_sort(s, &buckets, end, range), 1, &s->bucket.memory));
    sort_buckets(s, 0, &buckets, end);
    run_wave(s);
    return SAR_OK;
}

/* Allocate the result. The scattered payload shares its memory and may be wider than a value. */
static enum sar_status open_sorter(struct sorter *s, struct sar_arena *arena)
{
    const struct sar_vec_desc *desc = s->desc;
    size_t bytes = desc->element_size, n = s->from->nnz;
    s->payload_is_value = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    s->scattered.index_size = desc->index_size;
    s->scattered.payload_size = (s->payload_is_value ? bytes == 8 : n > UINT32_MAX) ? 8 : 4;
    if (s->payload_is_value && bytes < s->scattered.payload_size)
        bytes = s->scattered.payload_size;
    SAR_TRY(sar_arena_alloc(arena, n, desc->index_size, &s->scattered.index));
    SAR_TRY(sar_arena_alloc(arena, n, bytes, &s->scattered.payload));
    s->sorted_out.vec = (struct sar_spvec){ s->scattered.index, s->scattered.payload, 0 };
    s->sorted_out.wide = &s->wide;
    return SAR_OK;
}

static enum sar_status sort(struct sorter *s, struct sar_arena *arena)
{
    const struct sar_vec_desc *desc = s->desc;
    const struct sar_sort_input *from = s->from;
    struct sar_pairs input = { (void *)from->index, s->payload_is_value ? (void *)from->value : NULL,
                               from->index_size, (unsigned)desc->element_size };
    struct sar_index_range range = sar_index_range_of(&input, 0, from->nnz);
    if (desc->kernels->wide != NULL)
        SAR_TRY(sar_arena_alloc(arena, desc->row_len, desc->kernels->wide->size, &s->wide.sums));
    if (from->nnz > ONE_BUCKET_MAX)
        return sort_many(s, &input, range, arena);
    SAR_TRY(sar_arena_alloc(arena, bytes_of_bucket(&input, range, from->nnz), 1, &s->bucket.memory));
    sort_alone(s, &input, 0, from->nnz, range);
    return SAR_OK;
}

enum sar_status sar_sort(const struct sar_vec_desc *desc, const struct sar_sort_input *from,
                         struct sar_arena *arena, struct sar_spvec *vec)
{
    struct sorter s = { .desc = desc, .from = from };
    SAR_TRY(open_sorter(&s, arena));
    struct sar_arena_mark mark = sar_arena_mark(arena);
    enum sar_status status = sort(&s, arena);
    sar_arena_rewind(arena, mark);
    *vec = s.sorted_out.vec;
    return status;
}
