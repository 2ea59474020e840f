/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/deal.h"

enum {
    EACH = 2048 /* elements of a bucket, where fewer buckets than there may be will do */
};

static unsigned bits_of(uint64_t number)
{
    return number == 0 ? 0 : 64 - (unsigned)__builtin_clzll(number);
}

static struct sar_interval interval_between(uint64_t least, uint64_t most)
{
    return (struct sar_interval){ least, bits_of(most - least) };
}

SAR_INLINE struct sar_interval enclose(const void *index, unsigned size, size_t from, size_t n)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = from; i < from + n; i++) {
        uint64_t here = sar_index_get(index, size, i);
        least = here < least ? here : least;
        most = here > most ? here : most;
    }
    return interval_between(least, most);
}

SAR_CLONES struct sar_interval sar_interval_of(const struct sar_elements *from, size_t at, size_t n)
{
    SAR_FOR_INDEX_SIZE(from->index_size, return enclose(from->index, INDEX_SIZE, at, n));
}

SAR_INLINE size_t bucket_of(const struct sar_buckets *w, uint64_t index)
{
    uint64_t bucket = (index - w->base) >> w->shift;
    bucket = bucket < w->n ? bucket : w->n;
    return index < w->base ? 0 : bucket + 1;
}

SAR_INLINE void count_as(const struct sar_elements *from, unsigned index_size, size_t n,
                         const struct sar_buckets *w, size_t *count)
{
    for (size_t i = 0; i < n; i++)
        count[bucket_of(w, sar_index_get(from->index, index_size, i))]++;
}

struct sar_buckets sar_buckets_choose(const struct sar_elements *from, size_t n, struct sar_interval interval,
                                      size_t *count)
{
    unsigned bits = 1;
    while (bits < SAR_BUCKET_BITS && (size_t)EACH << bits < n)
        bits++;
    for (;;) {
        unsigned shift = interval.bits > bits ? interval.bits - bits : 0;
        struct sar_buckets w = { interval.base, (uint64_t)1 << bits, shift };
        size_t most = 1;
        memset(count, 0, SAR_BUCKETS * sizeof *count);
        SAR_FOR_INDEX_SIZE(from->index_size, count_as(from, INDEX_SIZE, n, &w, count));
        for (size_t b = 2; b <= w.n; b++)
            most = count[b] > count[most] ? b : most;
        if (shift == 0 || count[most] <= n / 2)
            return w;
        interval = (struct sar_interval){ w.base + ((uint64_t)(most - 1) << shift), shift };
    }
}

SAR_INLINE void deal_as(const struct sar_elements *from, unsigned index_size, unsigned carried_size, size_t n,
                        const struct sar_buckets *window, size_t *place, void *indices, unsigned to_size,
                        void *carried, unsigned to_carried)
{
    struct sar_buckets w = *window;
    for (size_t i = 0; i < n; i++) {
        uint64_t index = sar_index_get(from->index, index_size, i);
        size_t to = place[bucket_of(&w, index)]++;
        sar_index_set(indices, to_size, to, index);
        sar_index_set(carried, to_carried, to, sar_carried(from, carried_size, i));
    }
}

#define DEAL(from_index, from_carried, to_index, to_carried)                                                \
    if (from->index_size == (from_index) && sar_carried_size(from) == (from_carried) &&                     \
        to->index_size == (to_index) && to->carried_size == (to_carried)) {                                 \
        deal_as(from, from_index, from_carried, n, w, place, to->index, to_index, to->carried, to_carried); \
        return;                                                                                             \
    }

void sar_deal(const struct sar_elements *from, size_t n, const struct sar_buckets *w, size_t begin,
              size_t *place, const struct sar_elements *to)
{
    for (size_t b = 0; b < SAR_BUCKETS; b++) {
        size_t here = place[b];
        place[b] = begin;
        begin += here;
    }
    DEAL(4, 4, 4, 4)
    DEAL(8, 4, 4, 4)
    DEAL(8, 4, 8, 4)
    DEAL(4, 8, 4, 8)
    DEAL(8, 8, 4, 8)
    DEAL(8, 8, 8, 8)
    deal_as(from, from->index_size, sar_carried_size(from), n, w, place, to->index, to->index_size,
            to->carried, to->carried_size);
}

struct sar_interval sar_bucket_interval(const struct sar_buckets *w, size_t bucket,
                                        const struct sar_elements *of, size_t from, size_t n)
{
    if (bucket == 0 || bucket > w->n)
        return sar_interval_of(of, from, n);
    return (struct sar_interval){ w->base + ((uint64_t)(bucket - 1) << w->shift), w->shift };
}
