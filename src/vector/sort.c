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
 *     time = nnz * 7 ns, half of that in a cache */

#include "vector/sort.h"

#include <string.h>

#include "vector/radix_sort.h"

enum {
    ONE_BUCKET_MAX = 8192, /* elements that are sorted as one bucket */
    RESPLIT_SHARE = 32     /* a bucket with more than 1 / RESPLIT_SHARE of all elements is scattered again */
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
        void *memory; /* items, or copies of pairs */
    } bucket;
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

static void emit_positions(struct sorter *s, const uint64_t *item, size_t n, uint64_t base)
{
    size_t bytes = s->desc->element_size;
    const unsigned char *value = s->from->value;
    for (size_t i = 0; i < n; i++)
        emit(s->desc, &s->sorted_out, base + (item[i] >> 32), value + (uint32_t)item[i] * bytes, bytes,
             s->desc->index_size);
}

static void emit_items(struct sorter *s, const uint64_t *item, size_t n, uint64_t base)
{
    const struct sar_vec_desc *desc = s->desc;
    unsigned size = desc->index_size;
    if (!s->payload_is_value)
        emit_positions(s, item, n, base);
    else if (desc->element_size == 4)
        SAR_FOR_INDEX_SIZE(size, emit_values(desc, &s->sorted_out, item, n, base, 4, INDEX_SIZE));
    else if (desc->element_size == 2)
        SAR_FOR_INDEX_SIZE(size, emit_values(desc, &s->sorted_out, item, n, base, 2, INDEX_SIZE));
    else
        emit_values(desc, &s->sorted_out, item, n, base, 1, size);
}

SAR_INLINE void make_items(const struct sar_pairs *from, unsigned index_size, unsigned payload_size,
                           size_t at, size_t n, uint64_t base, uint64_t *items)
{
    for (size_t i = 0; i < n; i++)
        items[i] = (sar_index_get(from->index, index_size, at + i) - base) << 32 |
                   sar_pairs_payload(from, payload_size, at + i);
}

/* Sort items of 8 bytes: the index less range.base in the upper half, the payload in the lower half. */
static void sort_as_items(struct sorter *s, const struct sar_pairs *from, size_t at, size_t n,
                          struct sar_index_range range)
{
    uint64_t *items = s->bucket.memory;
    if (from->payload_size == 4 && from->payload != NULL)
        SAR_FOR_INDEX_SIZE(from->index_size, make_items(from, INDEX_SIZE, 4, at, n, range.base, items));
    else
        make_items(from, from->index_size, sar_pairs_payload_size(from), at, n, range.base, items);
    emit_items(s, sar_radix_sort(items, items + n, n, range.bits), n, range.base);
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

static void emit_entries(struct sorter *s, const uint64_t *item, size_t n, const struct entry *entries)
{
    const struct sar_vec_desc *desc = s->desc;
    const unsigned char *value = s->from->value;
    size_t bytes = desc->element_size;
    unsigned size = desc->index_size;
    if (s->payload_is_value && bytes == 8)
        SAR_FOR_INDEX_SIZE(size, emit_entry_values(desc, &s->sorted_out, item, n, entries, 8, INDEX_SIZE));
    else if (s->payload_is_value)
        emit_entry_values(desc, &s->sorted_out, item, n, entries, bytes, size);
    for (size_t i = 0; !s->payload_is_value && i < n; i++) {
        struct entry entry = entries[(uint32_t)item[i]];
        emit(desc, &s->sorted_out, entry.index, value + entry.payload * bytes, bytes, size);
    }
}

/* Sort items of half of an index above the number of an entry: by the lower halves, then by the upper
 * halves. */
static void sort_as_entries(struct sorter *s, const struct sar_pairs *from, size_t at, size_t n,
                            struct sar_index_range range)
{
    uint64_t *items = s->bucket.memory, *spare = items + n;
    struct entry *entries = (struct entry *)(spare + n);
    for (size_t i = 0; i < n; i++) {
        uint64_t index = sar_index_get(from->index, from->index_size, at + i);
        entries[i] = (struct entry){ index - range.base,
                                     sar_pairs_payload(from, sar_pairs_payload_size(from), at + i) };
        items[i] = entries[i].index << 32 | i;
    }
    uint64_t *sorted = sar_radix_sort(items, spare, n, range.bits < 32 ? range.bits : 32);
    if (range.bits > 32) {
        for (size_t i = 0; i < n; i++)
            sorted[i] = entries[(uint32_t)sorted[i]].index >> 32 << 32 | (uint32_t)sorted[i];
        sorted = sar_radix_sort(sorted, sorted == items ? spare : items, n, range.bits - 32);
    }
    for (size_t i = 0; i < n; i++)
        entries[i].index += range.base;
    emit_entries(s, sorted, n, entries);
}

static bool fits_items(const struct sar_pairs *from, struct sar_index_range range)
{
    return sar_pairs_payload_size(from) <= sizeof(uint32_t) && range.bits <= 32;
}

static size_t bytes_of_bucket(const struct sar_pairs *from, struct sar_index_range range, size_t n)
{
    return n * (2 * sizeof(uint64_t) + (fits_items(from, range) ? 0 : sizeof(struct entry)));
}

static void sort_bucket(struct sorter *s, const struct sar_pairs *from, size_t at, size_t n,
                        struct sar_index_range range)
{
    if (fits_items(from, range))
        sort_as_items(s, from, at, n, range);
    else
        sort_as_entries(s, from, at, n, range);
}

/* Copy n scattered pairs, from pair `from`, to the memory of one bucket. */
static struct sar_pairs copy_of(const struct sorter *s, size_t from, size_t n)
{
    struct sar_pairs copy = s->scattered;
    unsigned char *index = s->bucket.memory, *payload = index + sar_align_up(n * copy.index_size);
    memcpy(index, (unsigned char *)s->scattered.index + from * copy.index_size, n * copy.index_size);
    memcpy(payload, (unsigned char *)s->scattered.payload + from * copy.payload_size, n * copy.payload_size);
    copy.index = index;
    copy.payload = payload;
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

/* Sort n scattered pairs: scatter them again if they are many, else sort them as buckets. */
static void sort_part(struct sorter *s, size_t from, size_t n, struct sar_index_range range)
{
    size_t offset[SAR_BUCKETS], most = s->bucket.most;
    if (n > most && range.bits > 0) {
        struct sar_pairs copy = copy_of(s, from, n);
        struct sar_buckets buckets = sar_buckets_choose(&copy, n, range, offset);
        sar_bucket_scatter(&copy, n, &buckets, from, offset, &s->scattered);
        sort_buckets(s, from, &buckets, offset);
        return;
    }
    for (size_t part; n != 0; from += part, n -= part) {
        part = n < most ? n : most;
        sort_bucket(s, &s->scattered, from, part, range);
    }
}

/* Allocate memory to sort any bucket, and to copy a bucket that is scattered again. */
static enum sar_status alloc_bucket(struct sorter *s, const struct sar_buckets *buckets, const size_t *end,
                                    struct sar_index_range range, struct sar_arena *arena)
{
    size_t sorted = 0, copied = 0;
    for (size_t b = 0, from = 0; b < SAR_BUCKETS; from = end[b++]) {
        bool one_index = buckets->shift == 0 && b > 0 && b <= buckets->n;
        size_t n = end[b] - from;
        sorted = n > sorted ? n : sorted;
        copied = n > s->bucket.most && n > copied && !one_index ? n : copied;
    }
    sorted = bytes_of_bucket(&s->scattered, range, sorted < s->bucket.most ? sorted : s->bucket.most);
    copied = sar_align_up(copied * s->scattered.index_size) + copied * s->scattered.payload_size;
    return sar_arena_alloc(arena, sorted > copied ? sorted : copied, 1, &s->bucket.memory);
}

static enum sar_status sort_many(struct sorter *s, const struct sar_pairs *from, struct sar_index_range range,
                                 struct sar_arena *arena)
{
    size_t offset[SAR_BUCKETS], n = s->from->nnz;
    struct sar_buckets buckets = sar_buckets_choose(from, n, range, offset);
    if (!s->payload_is_value)
        SAR_TRY(sar_arena_alloc(arena, n, s->scattered.payload_size, &s->scattered.payload));
    sar_bucket_scatter(from, n, &buckets, 0, offset, &s->scattered);
    s->bucket.most = n / RESPLIT_SHARE > ONE_BUCKET_MAX ? n / RESPLIT_SHARE : ONE_BUCKET_MAX;
    SAR_TRY(alloc_bucket(s, &buckets, offset, range, arena));
    sort_buckets(s, 0, &buckets, offset);
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
    sort_bucket(s, &input, 0, from->nnz, range);
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
