/* SPDX-License-Identifier: BSD-3-Clause */
/* The two radix steps of sort.c: scatter to buckets by the leading bits of indices, and a sort of one bucket
 * by digits. */

#ifndef SAR_VECTOR_RADIX_SORT_H
#define SAR_VECTOR_RADIX_SORT_H

#include <string.h>

#include "vector/spvec.h"

/** Indices in any order, each with a payload: its value, or its position in the caller's arrays. */
struct sar_pairs {
    void *index, *payload;             /**< payload is NULL if the payload of pair i is the position i */
    unsigned index_size, payload_size; /**< bytes */
};

/** Indices that differ from `base` in the lowest `bits` bits only, base <= index. */
struct sar_index_range {
    uint64_t base;
    unsigned bits;
};

enum {
    SAR_BUCKET_BITS = 8, /**< more buckets write more streams than a processor has TLB entries for */
    SAR_BUCKETS = (1 << SAR_BUCKET_BITS) + 2 /**< one more for lower indices, one for higher ones */
};

/** Buckets 1 … n hold 2^shift indices each, from index `base` on. Bucket 0 holds lower indices, n+1 higher
 * ones. */
struct sar_buckets {
    uint64_t base, n;
    unsigned shift;
};

/** Returns the bytes of a payload to read; 0 if the payload is the position. */
static inline unsigned sar_pairs_payload_size(const struct sar_pairs *from)
{
    return from->payload == NULL ? 0 : from->payload_size;
}

/** Returns the payload of pair i. size is sar_pairs_payload_size(from), a constant in inlined loops. */
SAR_INLINE uint64_t sar_pairs_payload(const struct sar_pairs *from, unsigned size, size_t i)
{
    const unsigned char *payload = from->payload;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    switch (size) {
    case 0: return i;
    case 1: return payload[i];
    case 2: memcpy(&u16, payload + 2 * i, 2); return u16;
    case 4: memcpy(&u32, payload + 4 * i, 4); return u32;
    default: memcpy(&u64, payload + 8 * i, 8); return u64;
    }
}

/** Returns the least range that contains the indices of pairs [at, at + n). */
struct sar_index_range sar_index_range_of(const struct sar_pairs *from, size_t at, size_t n);

/** Chooses buckets so that none has more than half of all n pairs, except a bucket of one index.
 * @param pieces  that the pairs are split into
 * @param count   for each piece SAR_BUCKETS numbers, set to its pairs of each bucket */
struct sar_buckets sar_buckets_choose(const struct sar_pairs *from, size_t n, struct sar_index_range range,
                                      size_t pieces, size_t *count);

/** Copies n pairs to their buckets, which follow each other. The copy is stable.
 * @param begin   where the first bucket begins in `to`
 * @param offset  the pairs of each bucket, as by sar_buckets_choose; overwritten
 * Returns where each bucket ends, a part of offset. */
const size_t *sar_bucket_scatter(const struct sar_pairs *from, size_t n, const struct sar_buckets *buckets,
                                 size_t begin, size_t pieces, size_t *offset, const struct sar_pairs *to);

/** Returns a range that contains the indices of a bucket, which is pairs [from, from + n) of `pairs`. */
struct sar_index_range sar_buckets_index_range(const struct sar_buckets *buckets, size_t bucket,
                                               const struct sar_pairs *pairs, size_t from, size_t n);

/** Sorts fewer than 2^32 items by their upper 32 bits, of which only the lowest `bits` bits are set. The sort
 * is stable.
 * @param spare  n items of scratch memory
 * Returns the array with the result, items or spare. */
uint64_t *sar_radix_sort(uint64_t *items, uint64_t *spare, size_t n, unsigned bits);

#endif
