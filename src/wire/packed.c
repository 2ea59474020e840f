/* SPDX-License-Identifier: BSD-3-Clause */
/* Packed: the values, then the differences of slots by StreamVByte (Lemire, Kurz and Rupp 2018), 1 to 4
 * bytes and 2 bits each: the fastest format with small indices. In blocks of 2048 elements: the bits of
 * all, the bytes of all. Where indices have 8 bytes a block has two such streams, of the lower and the
 * upper halves of the differences, the upper ones at 0, 1, 2 or 4 bytes.
 *
 *     bytes = nnz s + ceil(nnz / 4) + sum of the bytes of each difference */

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "wire/indices.h"

#ifdef HAVE_STREAMVBYTE

#include <math.h>
#include <streamvbyte.h>
#include <streamvbytedelta.h>

enum {
    BLOCK = 2048,
    CONTROLS = BLOCK / 4,
    SLACK = 32, /* the library writes and reads whole vectors */
    STREAM = CONTROLS + 4 * BLOCK + SLACK
};

static uint64_t least(const struct sar_layout *layout, uint64_t nnz)
{
    uint64_t controls = nnz / 4 + (nnz % 4 != 0), each = layout->element_size + 1;
    return sar_plus(sar_times(nnz, each), sar_times(controls, layout->index_size / 4));
}

SAR_CLONES static uint64_t data_narrow(const uint32_t *index, size_t n)
{
    uint64_t bytes = 0;
    for (size_t i = 1; i < n; i++) {
        uint32_t gap = index[i] - index[i - 1];
        bytes += 1 + (gap > 0xff) + (gap > 0xffff) + (gap > 0xffffff);
    }
    return bytes + 1 + (index[0] > 0xff) + (index[0] > 0xffff) + (index[0] > 0xffffff);
}

static uint64_t data_wide(const uint64_t *index, size_t n)
{
    uint64_t bytes = 0, before = 0;
    for (size_t i = 0; i < n; before = index[i++]) {
        uint64_t gap = index[i] - before;
        uint32_t low = (uint32_t)gap, high = (uint32_t)(gap >> 32);
        bytes += 1 + (low > 0xff) + (low > 0xffff) + (low > 0xffffff);
        bytes += (high > 0) + (high > 0xff) + 2 * (high > 0xffff);
    }
    return bytes;
}

static uint64_t bytes_of(const struct sar_layout *layout, const struct sar_run *run)
{
    uint64_t nnz = run->nnz, controls = nnz / 4 + (nnz % 4 != 0);
    if (nnz == 0)
        return 0;
    uint64_t data =
        layout->index_size == 4 ? data_narrow(run->index, run->nnz) : data_wide(run->index, run->nnz);
    return sar_plus(sar_times(nnz, layout->element_size), data + controls * (layout->index_size / 4));
}

/* Gaps between slots of a share p of all are geometric: above g with probability (1-p)^g. */
static double expected(const struct sar_layout *layout, double nnz)
{
    double density = layout->span == 0 ? 1 : fmin(nnz / (double)layout->span, 1), data = 1;
    for (int bytes = 1; bytes < 4; bytes++)
        data += exp(log1p(-density) * (double)(1u << (8 * bytes)));
    return nnz * ((double)layout->element_size + data + 0.25 * layout->index_size / 4);
}

static unsigned char *append(unsigned char *out, const unsigned char *stream, size_t bytes)
{
    memcpy(out, stream, bytes);
    return out + bytes;
}

static void encode_narrow(const uint32_t *index, size_t n, unsigned char *out)
{
    unsigned char stream[STREAM];
    uint32_t before = 0;
    for (size_t at = 0; at < n; at += BLOCK) {
        uint32_t some = (uint32_t)(n - at < BLOCK ? n - at : BLOCK);
        out = append(out, stream, streamvbyte_delta_encode(index + at, some, stream, before));
        before = index[at + some - 1];
    }
}

static void encode_wide(const uint64_t *index, size_t n, unsigned char *out)
{
    unsigned char stream[STREAM];
    uint32_t low[BLOCK], high[BLOCK];
    uint64_t before = 0;
    for (size_t at = 0; at < n; at += BLOCK) {
        uint32_t some = (uint32_t)(n - at < BLOCK ? n - at : BLOCK);
        for (uint32_t i = 0; i < some; before = index[at + i++]) {
            low[i] = (uint32_t)(index[at + i] - before);
            high[i] = (uint32_t)((index[at + i] - before) >> 32);
        }
        out = append(out, stream, streamvbyte_encode(low, some, stream));
        out = append(out, stream, streamvbyte_encode_0124(high, some, stream));
    }
}

static void encode(const struct sar_layout *layout, const struct sar_run *run, void *payload)
{
    size_t values = run->nnz * layout->element_size;
    unsigned char *out = (unsigned char *)payload + values;
    if (run->nnz == 0)
        return;
    memcpy(payload, run->value, values);
    if (layout->index_size == 4)
        encode_narrow(run->index, run->nnz, out);
    else
        encode_wide(run->index, run->nnz, out);
}

/* Sum over the two-bit fields of controls: of codes, or of the bytes that 0124 gives them. */
static size_t data_bytes(const unsigned char *controls, uint32_t n, bool zero_based)
{
    size_t bytes = zero_based ? 0 : n;
    for (uint32_t i = 0; i < n; i++) {
        unsigned code = controls[i / 4] >> (2 * (i % 4)) & 3;
        bytes += code + (zero_based && code == 3);
    }
    return bytes;
}

/* The same of a whole block by bits. */
static size_t full_data_bytes(const unsigned char *controls, bool zero_based)
{
    const uint64_t ones = 0x5555555555555555;
    size_t bytes = zero_based ? 0 : BLOCK;
    for (size_t i = 0; i < CONTROLS; i += 8) {
        uint64_t word = sar_load_word(controls + i), low = word & ones, high = word >> 1 & ones;
        bytes += (size_t)(__builtin_popcountll(low) + 2 * __builtin_popcountll(high));
        bytes += zero_based ? (size_t)__builtin_popcountll(low & high) : 0;
    }
    return bytes;
}

/* Copy the next stream of n differences to where its decoder may read on. 0 when there is not so much. */
static size_t fetch(const unsigned char *in, uint64_t left, uint32_t n, bool zero_based,
                    unsigned char *stream)
{
    size_t controls = (n + 3) / 4;
    if (left < controls)
        return 0;
    size_t data = n == BLOCK ? full_data_bytes(in, zero_based) : data_bytes(in, n, zero_based);
    if (left - controls < data)
        return 0;
    memcpy(stream, in, controls + data);
    return controls + data;
}

static bool decode_narrow(const unsigned char *in, uint64_t left, size_t n, uint32_t *index)
{
    unsigned char stream[STREAM] = { 0 };
    uint32_t before = 0;
    for (size_t at = 0; at < n; at += BLOCK) {
        uint32_t some = (uint32_t)(n - at < BLOCK ? n - at : BLOCK);
        size_t bytes = fetch(in, left, some, false, stream);
        if (bytes == 0)
            return false;
        streamvbyte_delta_decode(stream, index + at, some, before);
        before = index[at + some - 1];
        in += bytes;
        left -= bytes;
    }
    return left == 0;
}

static bool decode_wide(const unsigned char *in, uint64_t left, size_t n, uint64_t *index)
{
    unsigned char stream[STREAM] = { 0 };
    uint32_t low[BLOCK + SLACK], high[BLOCK + SLACK];
    uint64_t before = 0;
    for (size_t at = 0; at < n; at += BLOCK) {
        uint32_t some = (uint32_t)(n - at < BLOCK ? n - at : BLOCK);
        for (int half = 0; half < 2; half++) {
            size_t bytes = fetch(in, left, some, half == 1, stream);
            if (bytes == 0)
                return false;
            if (half == 0)
                streamvbyte_decode(stream, low, some);
            else
                streamvbyte_decode_0124(stream, high, some);
            in += bytes;
            left -= bytes;
        }
        for (uint32_t i = 0; i < some; i++)
            index[at + i] = before += (uint64_t)high[i] << 32 | low[i];
    }
    return left == 0;
}

static enum sar_status decode(const struct sar_layout *layout, void *payload, uint64_t bytes,
                              struct sar_arena *arena, struct sar_run *run)
{
    if (run->nnz > layout->span || bytes < least(layout, run->nnz))
        return SAR_CORRUPT;
    uint64_t values = run->nnz * layout->element_size;
    const unsigned char *in = (const unsigned char *)payload + values;
    run->value = payload;
    SAR_TRY(sar_arena_take(arena, run->nnz + SLACK, layout->index_size, &run->index));
    bool good = layout->index_size == 4 ? decode_narrow(in, bytes - values, run->nnz, run->index)
                                        : decode_wide(in, bytes - values, run->nnz, run->index);
    return good && sar_indices_ascend(layout, run->index, run->nnz) ? SAR_OK : SAR_CORRUPT;
}

static double work(const struct sar_layout *layout, double nnz)
{
    (void)layout;
    return 2.1 * nnz;
}

const struct sar_wire sar_wire_packed = {
    .name = "packed",
    .summary = "the values, and the differences of slots by StreamVByte",
    .least = least,
    .bytes = bytes_of,
    .expected = expected,
    .work = work,
    .encode = encode,
    .decode = decode,
};

#endif
