/* SPDX-License-Identifier: BSD-3-Clause */
/* Packed: the values, then the differences of slots by StreamVByte (Lemire, Kurz and Rupp 2018), at 1 to 4
 * bytes and 2 control bits each. The fastest format with small indices. A block has 2048 elements: all
 * control bits, then all bytes. With 8-byte indices a block has two streams, for the lower and the upper
 * halves of the differences; upper halves take 0, 1, 2 or 4 bytes.
 *
 *     bytes = nnz s + ceil(nnz / 4) + sum of the bytes of each difference */

#include "base/parallel.h"
#include "wire/index_util.h"

#ifdef HAVE_STREAMVBYTE

#include <math.h>
#include <streamvbyte.h>
#include <streamvbytedelta.h>

enum {
    BLOCK = 2048,
    CONTROLS = BLOCK / 4,
    SLACK = 32, /* bytes that the library may write and read past the end, as it uses SIMD vectors */
    STREAM = CONTROLS + 4 * BLOCK + SLACK
};

static uint64_t min_bytes(const struct sar_wire_layout *layout, uint64_t nnz)
{
    uint64_t controls = nnz / 4 + (nnz % 4 != 0), value_bytes = layout->element_size + 1;
    return sar_add_saturate(sar_mul_saturate(nnz, value_bytes),
                            sar_mul_saturate(controls, layout->index_size / 4));
}

SAR_CLONES static uint64_t data_u32(const uint32_t *index, size_t n)
{
    uint64_t bytes = 0;
    for (size_t i = 1; i < n; i++) {
        uint32_t gap = index[i] - index[i - 1];
        bytes += 1 + (gap > 0xff) + (gap > 0xffff) + (gap > 0xffffff);
    }
    return bytes + 1 + (index[0] > 0xff) + (index[0] > 0xffff) + (index[0] > 0xffffff);
}

static uint64_t data_u64(const uint64_t *index, size_t n)
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

static uint64_t bytes_of(const struct sar_wire_layout *layout, const struct sar_spvec *vec)
{
    uint64_t nnz = vec->nnz, controls = nnz / 4 + (nnz % 4 != 0);
    if (nnz == 0)
        return 0;
    uint64_t data = layout->index_size == 4 ? data_u32(vec->index, vec->nnz) : data_u64(vec->index, vec->nnz);
    return sar_add_saturate(sar_mul_saturate(nnz, layout->element_size),
                            data + controls * (layout->index_size / 4));
}

/* At density p the gaps between slots are geometric: a gap exceeds g with probability (1 - p)^g. */
static double expected(const struct sar_wire_layout *layout, double nnz)
{
    double density = layout->slots == 0 ? 1 : fmin(nnz / (double)layout->slots, 1), data = 1;
    for (int bytes = 1; bytes < 4; bytes++)
        data += exp(log1p(-density) * (double)(1u << (8 * bytes)));
    return nnz * ((double)layout->element_size + data + 0.25 * layout->index_size / 4);
}

static unsigned char *append(unsigned char *out, const unsigned char *stream, size_t bytes)
{
    memcpy(out, stream, bytes);
    return out + bytes;
}

static void encode_u32(const uint32_t *index, size_t n, unsigned char *out)
{
    unsigned char stream[STREAM];
    uint32_t before = 0;
    for (size_t at = 0; at < n; at += BLOCK) {
        uint32_t block = (uint32_t)(n - at < BLOCK ? n - at : BLOCK);
        out = append(out, stream, streamvbyte_delta_encode(index + at, block, stream, before));
        before = index[at + block - 1];
    }
}

static void encode_u64(const uint64_t *index, size_t n, unsigned char *out)
{
    unsigned char stream[STREAM];
    uint32_t low[BLOCK], high[BLOCK];
    uint64_t before = 0;
    for (size_t at = 0; at < n; at += BLOCK) {
        uint32_t block = (uint32_t)(n - at < BLOCK ? n - at : BLOCK);
        for (uint32_t i = 0; i < block; before = index[at + i++]) {
            low[i] = (uint32_t)(index[at + i] - before);
            high[i] = (uint32_t)((index[at + i] - before) >> 32);
        }
        out = append(out, stream, streamvbyte_encode(low, block, stream));
        out = append(out, stream, streamvbyte_encode_0124(high, block, stream));
    }
}

static void encode(const struct sar_wire_layout *layout, const struct sar_spvec *vec, void *payload)
{
    size_t values = vec->nnz * layout->element_size;
    unsigned char *out = (unsigned char *)payload + values;
    if (vec->nnz == 0)
        return;
    sar_parallel_copy(payload, vec->value, values);
    if (layout->index_size == 4)
        encode_u32(vec->index, vec->nnz, out);
    else
        encode_u64(vec->index, vec->nnz, out);
}

/* Returns the data bytes of n differences from their control bits. zero_based: the 0-1-2-4 variant. */
static size_t data_bytes(const unsigned char *controls, uint32_t n, bool zero_based)
{
    size_t bytes = zero_based ? 0 : n;
    for (uint32_t i = 0; i < n; i++) {
        unsigned code = controls[i / 4] >> (2 * (i % 4)) & 3;
        bytes += code + (zero_based && code == 3);
    }
    return bytes;
}

/* As data_bytes, for a full block, by counting bits. */
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

/* Copies the next stream of n differences to a buffer with slack. Returns its bytes, 0 if `left` has
 * fewer. */
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

static bool decode_u32(const unsigned char *in, uint64_t left, size_t n, uint32_t *index)
{
    unsigned char stream[STREAM] = { 0 };
    uint32_t before = 0;
    for (size_t at = 0; at < n; at += BLOCK) {
        uint32_t block = (uint32_t)(n - at < BLOCK ? n - at : BLOCK);
        size_t bytes = fetch(in, left, block, false, stream);
        if (bytes == 0)
            return false;
        streamvbyte_delta_decode(stream, index + at, block, before);
        before = index[at + block - 1];
        in += bytes;
        left -= bytes;
    }
    return left == 0;
}

static bool decode_u64(const unsigned char *in, uint64_t left, size_t n, uint64_t *index)
{
    unsigned char stream[STREAM] = { 0 };
    uint32_t low[BLOCK + SLACK], high[BLOCK + SLACK];
    uint64_t before = 0;
    for (size_t at = 0; at < n; at += BLOCK) {
        uint32_t block = (uint32_t)(n - at < BLOCK ? n - at : BLOCK);
        for (int half = 0; half < 2; half++) {
            size_t bytes = fetch(in, left, block, half == 1, stream);
            if (bytes == 0)
                return false;
            if (half == 0)
                streamvbyte_decode(stream, low, block);
            else
                streamvbyte_decode_0124(stream, high, block);
            in += bytes;
            left -= bytes;
        }
        for (uint32_t i = 0; i < block; i++)
            index[at + i] = before += (uint64_t)high[i] << 32 | low[i];
    }
    return left == 0;
}

static enum sar_status decode(const struct sar_wire_layout *layout, void *payload, uint64_t bytes,
                              struct sar_arena *arena, struct sar_spvec *vec)
{
    if (vec->nnz > layout->slots || bytes < min_bytes(layout, vec->nnz))
        return SAR_CORRUPT;
    uint64_t values = vec->nnz * layout->element_size;
    const unsigned char *in = (const unsigned char *)payload + values;
    vec->value = payload;
    SAR_TRY(sar_arena_alloc(arena, vec->nnz + SLACK, layout->index_size, &vec->index));
    bool good = layout->index_size == 4 ? decode_u32(in, bytes - values, vec->nnz, vec->index)
                                        : decode_u64(in, bytes - values, vec->nnz, vec->index);
    return good && sar_indices_are_sorted(layout, vec->index, vec->nnz) ? SAR_OK : SAR_CORRUPT;
}

const struct sar_wire sar_wire_packed = {
    .name = "packed",
    .summary = "the values, and the differences of slots by StreamVByte",
    .min_bytes = min_bytes,
    .exact_bytes = bytes_of,
    .expected_bytes = expected,
    .nnz_cost = 4.6,
    .pull_nnz_cost = 2.3,
    .encode = encode,
    .decode = decode,
};

#endif
