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
 * Several threads scatter pieces, and sort several buckets at once. Each of these leaves its result at the
 * beginning of its own memory. Then the results move together, if there were equal indices. */

#include "vector/sort.h"

#include <string.h>

#include "vector/pieces.h"
#include "vector/radix_sort.h"
#include "vector/sort_output.h"

enum {
    ONE_BUCKET_MAX = 8192, /* elements that are sorted as one bucket */
    RESPLIT_SHARE = 32,    /* a bucket with more than 1 / RESPLIT_SHARE of all elements is scattered again */
    SORT_BYTES = 24,       /* bytes that an element counts for when the work is split: a sort takes long */
    GROUP = SAR_BUCKETS    /* most buckets that are sorted at once */
};

/* A bucket of a group: pairs [from, from + n). */
struct grouped {
    size_t from, n;
    struct sar_index_range range;
    size_t distinct, place; /* elements of its result, and where they begin in the result */
};

/* Several threads: buckets that are sorted at once, and memory for as many as there are threads. */
struct group {
    size_t threads;          /* 1: no groups */
    struct grouped *buckets; /* GROUP */
    size_t n;
    size_t *next; /* bucket that the next thread takes */
    size_t bytes; /* of the memory of each thread */
};

/* The state of one sort. */
struct sorter {
    const struct sar_vec_desc *desc;
    const struct sar_sort_input *from;
    bool payload_is_value; /* else it is a position */
    struct sar_wide_sum wide;
    struct sar_sorted sorted_out;
    struct sar_pairs scattered; /* pairs in buckets; shares memory with sorted_out, except positions */
    struct {
        size_t most;  /* elements that it can sort */
        void *memory; /* items, or copies of pairs */
    } bucket;
    size_t *offset; /* of buckets, for each thread */
    struct group group;
};

SAR_INLINE void make_items(const struct sar_pairs *from, unsigned index_size, unsigned payload_size,
                           size_t at, size_t n, uint64_t base, uint64_t *items)
{
    for (size_t i = 0; i < n; i++)
        items[i] = (sar_index_get(from->index, index_size, at + i) - base) << 32 |
                   sar_pairs_payload(from, payload_size, at + i);
}

/* Returns the caller's values; NULL if the payloads are the values. */
static const void *values_of(const struct sorter *s)
{
    return s->payload_is_value ? NULL : s->from->value;
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
    sar_sorted_append_items(s->desc, values_of(s), sar_radix_sort(items, items + n, n, range.bits), n,
                            range.base, &s->sorted_out);
}

/* Sort items of half of an index above the number of an entry: by the lower halves, then by the upper
 * halves. */
static void sort_as_entries(struct sorter *s, const struct sar_pairs *from, size_t at, size_t n,
                            struct sar_index_range range)
{
    uint64_t *items = s->bucket.memory, *spare = items + n;
    struct sar_sort_entry *entries = (struct sar_sort_entry *)(spare + n);
    for (size_t i = 0; i < n; i++) {
        uint64_t index = sar_index_get(from->index, from->index_size, at + i);
        entries[i] = (struct sar_sort_entry){ index - range.base,
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
    sar_sorted_append_entries(s->desc, values_of(s), sorted, n, entries, &s->sorted_out);
}

static bool fits_items(const struct sar_pairs *from, struct sar_index_range range)
{
    return sar_pairs_payload_size(from) <= sizeof(uint32_t) && range.bits <= 32;
}

static size_t bytes_of_bucket(const struct sar_pairs *from, struct sar_index_range range, size_t n)
{
    return n * (2 * sizeof(uint64_t) + (fits_items(from, range) ? 0 : sizeof(struct sar_sort_entry)));
}

static void sort_bucket(struct sorter *s, const struct sar_pairs *from, size_t at, size_t n,
                        struct sar_index_range range)
{
    if (fits_items(from, range))
        sort_as_items(s, from, at, n, range);
    else
        sort_as_entries(s, from, at, n, range);
}

static size_t bytes_of_sums(const struct sorter *s)
{
    const struct sar_op_kernels *wide = s->desc->kernels->wide;
    return wide == NULL ? 0 : s->desc->row_len * wide->size;
}

/* Sort a bucket of the group, with memory of this number. The result takes the place of the pairs. */
static void sort_grouped(const struct sorter *s, struct grouped *b, size_t memory)
{
    const struct sar_pairs *pairs = &s->scattered;
    size_t bytes = s->desc->element_size;
    struct sorter own = *s;
    own.bucket.memory = (unsigned char *)s->bucket.memory + memory * s->group.bytes;
    own.wide =
        (struct sar_wide_sum){ 0, (unsigned char *)own.bucket.memory + s->group.bytes - bytes_of_sums(s) };
    own.sorted_out.wide = &own.wide;
    own.sorted_out.vec =
        (struct sar_spvec){ (unsigned char *)pairs->index + b->from * pairs->index_size,
                            (unsigned char *)s->sorted_out.vec.value +
                                b->from * (s->payload_is_value ? pairs->payload_size : bytes),
                            0 };
    sort_bucket(&own, pairs, b->from, b->n, b->range);
    b->distinct = own.sorted_out.vec.nnz;
}

/* Sort buckets of the group until none is left. */
static enum sar_status sort_worker(void *sorter, size_t i)
{
    struct sorter *s = sorter;
    size_t next;
    while ((next = __atomic_fetch_add(s->group.next, 1, __ATOMIC_RELAXED)) < s->group.n)
        sort_grouped(s, &s->group.buckets[next], i);
    return SAR_OK;
}

/* Items of `bytes` bytes, the result of each bucket of a group, that move to their places. */
struct moved {
    const struct grouped *buckets;
    unsigned char *array;
    size_t bytes, stride; /* stride: bytes from one pair to the next */
};

static enum sar_status move_bucket(void *moved, size_t i)
{
    const struct moved *m = moved;
    const struct grouped *b = &m->buckets[i];
    memmove(m->array + b->place * m->bytes, m->array + b->from * m->stride, b->distinct * m->bytes);
    return SAR_OK;
}

/* Returns the end of the buckets, from the first on, that can move at once: their places are free. */
static size_t free_places(const struct moved *m, size_t n)
{
    size_t i = 0;
    while (i < n &&
           (m->buckets[i].place + m->buckets[i].distinct) * m->bytes <= m->buckets[0].from * m->stride)
        i++;
    return i;
}

/* Move results together, in ascending order. */
static void move_results(const struct sorter *s, unsigned char *array, size_t bytes, size_t stride)
{
    const struct grouped *b = s->group.buckets, *end = b + s->group.n;
    for (size_t n; b < end; b += n) {
        struct moved moved = { b, array, bytes, stride };
        bool moves = b->place * bytes != b->from * stride || bytes != stride;
        n = free_places(&moved, (size_t)(end - b));
        if (n > 1)
            sar_parallel_for(n, move_bucket, &moved);
        else if (moves)
            move_bucket(&moved, 0);
        n = n > 1 ? n : 1;
    }
}

/* Sort the buckets of the group, and append them to the result. */
static void run_group(struct sorter *s)
{
    struct sar_spvec *vec = &s->sorted_out.vec;
    size_t next = 0;
    if (s->group.n == 0)
        return;
    s->group.next = &next;
    sar_parallel_for(s->group.threads, sort_worker, s);
    for (size_t i = 0; i < s->group.n; i++) {
        s->group.buckets[i].place = vec->nnz;
        vec->nnz += s->group.buckets[i].distinct;
    }
    move_results(s, vec->index, s->desc->index_size, s->scattered.index_size);
    size_t bytes = s->desc->element_size;
    move_results(s, vec->value, bytes, s->payload_is_value ? s->scattered.payload_size : bytes);
    s->sorted_out.last = sar_index_get(vec->index, s->desc->index_size, vec->nnz - 1);
    s->group.n = 0;
}

static void add_to_group(struct sorter *s, size_t from, size_t n, struct sar_index_range range)
{
    if (s->group.n == GROUP)
        run_group(s);
    s->group.buckets[s->group.n++] = (struct grouped){ .from = from, .n = n, .range = range };
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

/* Copy n scattered pairs, from pair `from`, to the memory of buckets. */
static struct sar_pairs copy_of(const struct sorter *s, size_t from, size_t n)
{
    struct sar_pairs copy = s->scattered;
    copy.index = s->bucket.memory;
    copy.payload = (unsigned char *)copy.index + sar_align_up(n * copy.index_size);
    struct copied copied = { &s->scattered, &copy, from };
    sar_ranges_run((struct sar_ranges){ n, SAR_ALIGNMENT, s->group.threads, copy_range, &copied });
    return copy;
}

/* Scatter n pairs to buckets from pair `begin` on; sets end to where each bucket ends. */
static struct sar_buckets scatter(const struct sorter *s, const struct sar_pairs *from, size_t n,
                                  struct sar_index_range range, size_t begin, size_t end[SAR_BUCKETS])
{
    size_t *offset = s->group.threads == 1 ? end : s->offset;
    struct sar_buckets buckets = sar_buckets_choose(from, n, range, s->group.threads, offset);
    const size_t *ends =
        sar_bucket_scatter(from, n, &buckets, begin, s->group.threads, offset, &s->scattered);
    if (ends != end)
        memcpy(end, ends, SAR_BUCKETS * sizeof *end);
    return buckets;
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
    size_t end[SAR_BUCKETS], most = s->bucket.most;
    if (s->group.threads > 1 && n <= most) {
        add_to_group(s, from, n, range);
        return;
    }
    run_group(s);
    if (n > most && range.bits > 0) {
        struct sar_pairs copy = copy_of(s, from, n);
        struct sar_buckets buckets = scatter(s, &copy, n, range, from, end);
        sort_buckets(s, from, &buckets, end);
        return;
    }
    for (size_t part; n != 0; from += part, n -= part) {
        part = n < most ? n : most;
        sort_bucket(s, &s->scattered, from, part, range);
    }
}

/* Allocate memory to sort any bucket, on each thread, and to copy a bucket that is scattered again. */
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
    if (s->group.threads > 1) {
        s->group.bytes = sar_align_up(sorted + bytes_of_sums(s));
        sorted = s->group.threads * s->group.bytes;
    }
    return sar_arena_alloc(arena, sorted > copied ? sorted : copied, 1, &s->bucket.memory);
}

/* Find how many threads to use, and allocate what several need. */
static enum sar_status open_group(struct sorter *s, struct sar_arena *arena)
{
    void *offset, *buckets;
    size_t pieces = sar_pieces(s->from->nnz * SORT_BYTES), threads = (size_t)sar_parallel_threads();
    s->group.threads = pieces < threads ? pieces : threads;
    if (s->group.threads == 1)
        return SAR_OK;
    SAR_TRY(sar_arena_alloc(arena, s->group.threads * SAR_BUCKETS, sizeof *s->offset, &offset));
    SAR_TRY(sar_arena_alloc(arena, GROUP, sizeof *s->group.buckets, &buckets));
    s->offset = offset;
    s->group.buckets = buckets;
    return SAR_OK;
}

/* Returns the elements of the largest bucket that is not scattered again; less if threads are many, which
 * then have enough buckets, and not too much memory. */
static size_t most_of_bucket(const struct sorter *s)
{
    size_t share = 8 * s->group.threads;
    share = share < RESPLIT_SHARE ? RESPLIT_SHARE : share < 4 * RESPLIT_SHARE ? share : 4 * RESPLIT_SHARE;
    return s->from->nnz / share > ONE_BUCKET_MAX ? s->from->nnz / share : ONE_BUCKET_MAX;
}

static enum sar_status sort_many(struct sorter *s, const struct sar_pairs *from, struct sar_index_range range,
                                 struct sar_arena *arena)
{
    size_t end[SAR_BUCKETS], n = s->from->nnz;
    SAR_TRY(open_group(s, arena));
    if (!s->payload_is_value)
        SAR_TRY(sar_arena_alloc(arena, n, s->scattered.payload_size, &s->scattered.payload));
    struct sar_buckets buckets = scatter(s, from, n, range, 0, end);
    s->bucket.most = most_of_bucket(s);
    SAR_TRY(alloc_bucket(s, &buckets, end, range, arena));
    sort_buckets(s, 0, &buckets, end);
    run_group(s);
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
