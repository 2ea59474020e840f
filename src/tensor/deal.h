/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements in any order, dealt out to buckets by the leading bits of their indices. */

#ifndef SAR_TENSOR_DEAL_H
#define SAR_TENSOR_DEAL_H

#include <string.h>

#include "tensor/shape.h"

/** Indices, and with each a number: its value, or a position. */
struct sar_elements {
    void *index, *carried; /**< the latter is NULL for positions in order */
    unsigned index_size, carried_size;
};

/** The indices from `base` on that differ from it in so many bits. */
struct sar_interval {
    uint64_t base;
    unsigned bits;
};

/** SAR_BUCKET_BITS: more buckets make more streams to memory than a processor has translations for.
 * SAR_BUCKETS: with one for indices below all others, and one for those above. */
enum { SAR_BUCKET_BITS = 8, SAR_BUCKETS = (1 << SAR_BUCKET_BITS) + 2 };

/** n buckets of 2^shift indices from `base` on: the first but one and the following. */
struct sar_buckets {
    uint64_t base, n;
    unsigned shift;
};

/** Bytes of a number that is read; 0 for positions in order. */
static inline unsigned sar_carried_size(const struct sar_elements *from)
{
    return from->carried == NULL ? 0 : from->carried_size;
}

SAR_INLINE uint64_t sar_carried(const struct sar_elements *from, unsigned size, size_t i)
{
    const unsigned char *carried = from->carried;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (size) {
    case 0: return i;
    case 1: return carried[i];
    case 2: memcpy(&two, carried + 2 * i, 2); return two;
    case 4: memcpy(&four, carried + 4 * i, 4); return four;
    default: memcpy(&eight, carried + 8 * i, 8); return eight;
    }
}

/** What the indices of n elements span. */
struct sar_interval sar_interval_of(const struct sar_elements *from, size_t at, size_t n);

/** Find buckets of which none has more than half of all elements, but with a single index.
 * @param count  is set to how many each of SAR_BUCKETS has */
struct sar_buckets sar_buckets_choose(const struct sar_elements *from, size_t n, struct sar_interval interval,
                                      size_t *count);

/** Copy elements to their buckets, one behind the other, in each of which they stay in order.
 * @param begin  of the first
 * @param place  how many each bucket has; then where it ends */
void sar_deal(const struct sar_elements *from, size_t n, const struct sar_buckets *w, size_t begin,
              size_t *place, const struct sar_elements *to);

/** What the indices of a bucket, in `of` from a place on, span at most. */
struct sar_interval sar_bucket_interval(const struct sar_buckets *w, size_t bucket,
                                        const struct sar_elements *of, size_t from, size_t n);

#endif
