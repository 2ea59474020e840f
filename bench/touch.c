/* SPDX-License-Identifier: BSD-3-Clause */
#include "touch.h"

#include <string.h>

#include "base.h"
#include "tensor/shape.h"
#include "tensor/stream.h"

enum { WORDS = 32, AHEAD = 4 /* groups */ };

/* Where sums end up, so that what they are made of must be read. */
static volatile uint64_t sink;

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

void perf_read(const void *data, size_t bytes)
{
    size_t turns = bytes / (WORDS * sizeof(uint64_t)) * (WORDS * sizeof(uint64_t));
    uint64_t rest[WORDS] = { 0 };

    if (bytes > turns)
        memcpy(rest, (const char *)data + turns, bytes - turns);
    sink = sum_of(data, turns) ^ sum_of((const char *)rest, sizeof rest);
}

/* Stores past the caches would wait for the address of a page, so a load asks for it ahead. */
static void look_up(const char *to, size_t group, size_t groups)
{
    if (group + AHEAD < groups)
        __builtin_prefetch(to + (group + AHEAD) * PERF_GROUP);
}

void perf_fill(void *to, size_t bytes, bool streams)
{
    size_t groups = streams ? bytes / PERF_GROUP : 0;
    char *at = to;

    for (size_t g = 0; g < groups; g++) {
        look_up(at, g, groups);
        sar_stream_zeros(at + g * PERF_GROUP, PERF_GROUP);
    }
    if (streams)
        sar_stream_settle();
    if (bytes > groups * PERF_GROUP)
        memset(at + groups * PERF_GROUP, 0, bytes - groups * PERF_GROUP);
}

static void stream_lines(char *to, const uint64_t *lines, size_t words)
{
    for (size_t g = 0; g < words; g++) {
        if (lines[g] != 0)
            look_up(to, g, words);
        for (uint64_t left = lines[g]; left != 0; left &= left - 1)
            sar_stream_zeros(to + g * PERF_GROUP + (size_t)__builtin_ctzll(left) * PERF_LINE, PERF_LINE);
    }
    sar_stream_settle();
}

static inline void store_lines(char *to, const uint64_t *lines, size_t words, size_t bytes)
{
    for (size_t g = 0; g < words; g++)
        for (uint64_t left = lines[g]; left != 0; left &= left - 1)
            memset(to + g * PERF_GROUP + (size_t)__builtin_ctzll(left) * PERF_LINE, 0, bytes);
}

void perf_fill_lines(void *to, const uint64_t *lines, size_t words, bool whole, bool streams)
{
    if (streams)
        stream_lines(to, lines, words);
    else if (whole)
        store_lines(to, lines, words, PERF_LINE);
    else
        store_lines(to, lines, words, sizeof(uint64_t));
}
