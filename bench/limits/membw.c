/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/limits/membw.h"

#include <string.h>

#include "base/compiler.h"
#include "bench/lib/base.h"
#include "vector/nt_store.h"

enum { WORDS = 32, AHEAD = 4 /* groups */ };

/* Where sums end up, so that what they are made of must be read. */
static volatile uint64_t read_checksum;

/* Four lines a turn: with one a turn it takes a third longer. */
SAR_CLONES static uint64_t sum_of(const char *data, size_t bytes)
{
    uint64_t word[WORDS], sum[WORDS] = { 0 }, all = 0;
    const char *end = data + bytes;

    for (; data < end; data += sizeof word) {
        memcpy(word, data, sizeof word);
        for (int k = 0; k < WORDS; k++)
            sum[k] ^= word[k];
    }
    for (int k = 0; k < WORDS; k++)
        all ^= sum[k];
    return all;
}

void perf_membw_read(const void *data, size_t bytes)
{
    size_t whole_bytes = bytes / (WORDS * sizeof(uint64_t)) * (WORDS * sizeof(uint64_t));
    uint64_t rest[WORDS] = { 0 };

    if (bytes > whole_bytes)
        memcpy(rest, (const char *)data + whole_bytes, bytes - whole_bytes);
    read_checksum = sum_of(data, whole_bytes) ^ sum_of((const char *)rest, sizeof rest);
}

/* Stores past the caches would wait for the address of a page, so a load asks for it ahead. */
static void prefetch_page(const char *to, size_t group, size_t groups)
{
    if (group + AHEAD < groups)
        __builtin_prefetch(to + (group + AHEAD) * PERF_GROUP_BYTES);
}

void perf_membw_fill(void *to, size_t bytes, bool nt_stores)
{
    size_t groups = nt_stores ? bytes / PERF_GROUP_BYTES : 0;
    char *at = to;

    for (size_t g = 0; g < groups; g++) {
        prefetch_page(at, g, groups);
        sar_nt_zero(at + g * PERF_GROUP_BYTES, PERF_GROUP_BYTES);
    }
    if (nt_stores)
        sar_nt_fence();
    if (bytes > groups * PERF_GROUP_BYTES)
        memset(at + groups * PERF_GROUP_BYTES, 0, bytes - groups * PERF_GROUP_BYTES);
}

static void stream_lines(char *to, const uint64_t *lines, size_t words)
{
    for (size_t g = 0; g < words; g++) {
        if (lines[g] != 0)
            prefetch_page(to, g, words);
        for (uint64_t left = lines[g]; left != 0; left &= left - 1)
            sar_nt_zero(to + g * PERF_GROUP_BYTES + (size_t)__builtin_ctzll(left) * PERF_CACHE_LINE,
                        PERF_CACHE_LINE);
    }
    sar_nt_fence();
}

static inline void store_lines(char *to, const uint64_t *lines, size_t words, size_t bytes)
{
    for (size_t g = 0; g < words; g++)
        for (uint64_t left = lines[g]; left != 0; left &= left - 1)
            memset(to + g * PERF_GROUP_BYTES + (size_t)__builtin_ctzll(left) * PERF_CACHE_LINE, 0, bytes);
}

void perf_membw_fill_lines(void *to, const uint64_t *lines, size_t words, bool whole, bool nt_stores)
{
    if (nt_stores)
        stream_lines(to, lines, words);
    else if (whole)
        store_lines(to, lines, words, PERF_CACHE_LINE);
    else
        store_lines(to, lines, words, sizeof(uint64_t));
}
