/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements are hashed once, in batches, and their parts stored. */

#include "bench/studies/index_hash.h"

#include <stdlib.h>
#include <string.h>

#include "bench/lib/base.h"
#include "hash/murmur3.h"

enum { BATCH = 1024 };

struct perf_index_hash {
    uint32_t parts, seed;
    uint32_t *slot; /* of each element of the tensor */
};

static uint32_t part_of(const struct perf_index_hash *hash, uint32_t index)
{
    return sar_hash_range(sar_murmur3(index, hash->seed), hash->parts);
}

struct perf_index_hash *perf_index_hash_make(uint64_t count, uint32_t parts, uint32_t seed)
{
    struct perf_index_hash *hash = perf_alloc(1, sizeof *hash);
    uint32_t *next = perf_alloc(parts, sizeof *next);

    *hash = (struct perf_index_hash){ parts, seed, perf_alloc(count, sizeof *hash->slot) };
    for (uint64_t i = 0; i < count; i++)
        hash->slot[i] = next[part_of(hash, (uint32_t)i)]++;
    free(next);
    return hash;
}

void perf_index_hash_free(struct perf_index_hash *hash)
{
    if (hash != NULL)
        free(hash->slot);
    free(hash);
}

SAR_CLONES static void find_parts(const struct perf_index_hash *hash, const uint32_t *index, size_t n,
                                  uint16_t *part)
{
    for (size_t i = 0; i < n; i++)
        part[i] = (uint16_t)sar_hash_range(sar_murmur3(index[i], hash->seed), hash->parts);
}

static void count_parts(const struct perf_index_hash *hash, const struct sar_spvec *vec, uint16_t *part,
                        size_t *count)
{
    for (size_t from = 0, n; from < vec->nnz; from += n) {
        n = vec->nnz - from < BATCH ? vec->nnz - from : BATCH;
        find_parts(hash, (const uint32_t *)vec->index + from, n, part + from);
        for (size_t i = from; i < from + n; i++)
            count[part[i]]++;
    }
}

SAR_INLINE void move_as(const struct perf_index_hash *hash, const struct sar_spvec *vec, const uint16_t *part,
                        size_t bytes, size_t *next, const struct sar_spvec *out)
{
    const uint32_t *index = vec->index;
    uint32_t *slot = out->index;

    for (size_t i = 0; i < vec->nnz; i++) {
        size_t to = next[part[i]]++;
        slot[to] = hash->slot[index[i]];
        memcpy((char *)out->value + to * bytes, (const char *)vec->value + i * bytes, bytes);
    }
}

enum sar_status perf_index_hash_split(const struct perf_index_hash *hash, const struct sar_vec_desc *desc,
                                      const struct sar_spvec *vec, struct sar_arena *arena,
                                      struct sar_spvec parts[])
{
    size_t bytes = desc->element_size, begin = 0;
    struct sar_spvec out = { .nnz = vec->nnz };
    void *part, *next;

    SAR_TRY(sar_arena_alloc(arena, vec->nnz, sizeof(uint16_t), &part));
    SAR_TRY(sar_arena_alloc_zeroed(arena, hash->parts, sizeof(size_t), &next));
    SAR_TRY(sar_arena_alloc(arena, vec->nnz, sizeof(uint32_t), &out.index));
    SAR_TRY(sar_arena_alloc(arena, vec->nnz, bytes, &out.value));
    count_parts(hash, vec, part, next);
    for (uint32_t p = 0; p < hash->parts; p++) {
        size_t n = ((size_t *)next)[p];
        parts[p] = sar_spvec_slice(&(struct sar_vec_desc){ .index_size = 4, .element_size = bytes }, &out,
                                   begin, begin + n);
        ((size_t *)next)[p] = begin;
        begin += n;
    }
    if (bytes == 4)
        move_as(hash, vec, part, 4, next, &out);
    else
        move_as(hash, vec, part, bytes, next, &out);
    return SAR_OK;
}

size_t perf_index_hash_misplaced(const struct perf_index_hash *hash, const struct sar_vec_desc *desc,
                                 const struct sar_spvec *vec, const struct sar_spvec parts[])
{
    size_t *next = perf_alloc(hash->parts, sizeof *next), bytes = desc->element_size, good = 0;

    for (size_t i = 0; i < vec->nnz; i++) {
        uint32_t index = ((const uint32_t *)vec->index)[i], p = part_of(hash, index);
        size_t k = next[p]++;
        good += k < parts[p].nnz && ((const uint32_t *)parts[p].index)[k] == hash->slot[index] &&
                memcmp((const char *)parts[p].value + k * bytes, (const char *)vec->value + i * bytes,
                       bytes) == 0;
    }
    free(next);
    return vec->nnz - good;
}
