/* SPDX-License-Identifier: BSD-3-Clause */
/* Bitmap of two levels: the values, then one bit for each group of 64 slots, then 64 bits for each group that
 * holds elements. For clustered elements, an empty group costs one bit, where a hash bitmap spends 64.
 *
 *     bytes = nnz s + ceil(w / 8) + 8 u,   w = ceil(slots / 64) groups, u of them in use */

#include <math.h>

#include "base/parallel.h"
#include "vector/bit_list.h"
#include "wire/index_util.h"

enum { GROUP_SHIFT = 6, GROUP = 1 << GROUP_SHIFT };

static uint64_t groups(const struct sar_wire_layout *layout)
{
    return layout->slots / GROUP + (layout->slots % GROUP != 0);
}

static uint64_t bytes_with(const struct sar_wire_layout *layout, uint64_t nnz, uint64_t used)
{
    uint64_t values = sar_mul_saturate(nnz, layout->element_size), first = sar_bitmap_bytes(groups(layout));
    return sar_add_saturate(values, sar_add_saturate(first, sar_mul_saturate(used, 8)));
}

static uint64_t min_bytes(const struct sar_wire_layout *layout, uint64_t nnz)
{
    return bytes_with(layout, nnz, nnz / GROUP + (nnz % GROUP != 0));
}

static uint64_t bytes_of(const struct sar_wire_layout *layout, const struct sar_spvec *vec)
{
    return bytes_with(layout, vec->nnz, sar_indices_count_blocks(layout, vec, GROUP_SHIFT));
}

static double expected(const struct sar_wire_layout *layout, double nnz)
{
    double all = (double)groups(layout), density = layout->slots == 0 ? 0 : nnz / (double)layout->slots;
    double used = all * -expm1(GROUP * log1p(-fmin(density, 1)));
    return nnz * (double)layout->element_size + ceil(all / 8) + 8 * used;
}

SAR_INLINE void write_bits(const void *index, unsigned size, size_t n, unsigned char *first,
                           unsigned char *second)
{
    uint64_t at = sar_index_get(index, size, 0) / GROUP, bits = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t slot = sar_index_get(index, size, i);
        if (slot / GROUP != at) {
            sar_store_word(second, bits);
            second += 8;
            first[at / 8] |= (unsigned char)(1u << (at % 8));
            at = slot / GROUP;
            bits = 0;
        }
        bits |= (uint64_t)1 << (slot % GROUP);
    }
    sar_store_word(second, bits);
    first[at / 8] |= (unsigned char)(1u << (at % 8));
}

static void encode(const struct sar_wire_layout *layout, const struct sar_spvec *vec, void *payload)
{
    size_t values = vec->nnz * layout->element_size, level = (size_t)((groups(layout) + 7) / 8);
    unsigned char *first = (unsigned char *)payload + values;
    memset(first, 0, level);
    if (vec->nnz == 0)
        return;
    sar_parallel_copy(payload, vec->value, values);
    SAR_FOR_INDEX_SIZE(layout->index_size,
                       write_bits(vec->index, INDEX_SIZE, vec->nnz, first, first + level));
}

struct reader {
    const unsigned char *first, *second, *end;
    uint64_t level; /* bytes of first */
    size_t nnz;
};

/* Lists the slots of one group from index[k] on. Returns their number, 0 if there are too many or none. */
SAR_INLINE size_t list_group(struct reader *r, uint64_t group, size_t k, void *index, unsigned size,
                             bool wide)
{
    uint64_t bits = r->second == r->end ? 0 : sar_load_word(r->second);
    size_t n = (size_t)__builtin_popcountll(bits);
    if (n > r->nnz - k)
        return 0;
    r->second += r->second == r->end ? 0 : 8;
    if (wide)
        return sar_bit_list_avx512(bits, (uint32_t)group * GROUP, (uint32_t *)index + k);
    return sar_bit_list(bits, group * GROUP, index, size, k);
}

/* Returns true if the bitmap has exactly nnz bits and ends with the payload. */
SAR_INLINE bool list(struct reader *r, void *index, unsigned size, bool wide)
{
    size_t k = 0;
    for (uint64_t word = 0; word * 8 < r->level; word++) {
        uint64_t used = sar_bitmap_word(r->first, r->level, word);
        for (; used != 0; used &= used - 1) {
            size_t n = list_group(r, word * 64 + (unsigned)__builtin_ctzll(used), k, index, size, wide);
            if (n == 0)
                return false;
            k += n;
        }
    }
    return k == r->nnz && r->second == r->end;
}

SAR_CLONES static bool list_scalar(struct reader *r, uint32_t *index)
{
    return list(r, index, 4, false);
}

#if defined(SAR_AVX512)
SAR_AVX512 static bool list_simd(struct reader *r, uint32_t *index)
{
    return list(r, index, 4, true);
}
#else
#define list_simd list_scalar
#endif

static enum sar_status decode(const struct sar_wire_layout *layout, void *payload, uint64_t bytes,
                              struct sar_arena *arena, struct sar_spvec *vec)
{
    uint64_t none = bytes_with(layout, vec->nnz, 0);
    if (vec->nnz > layout->slots || bytes < none || (bytes - none) % 8 != 0 || (bytes - none) / 8 > vec->nnz)
        return SAR_CORRUPT;
    const unsigned char *in = payload;
    uint64_t values = vec->nnz * layout->element_size;
    struct reader r = { in + values, in + none, in + bytes, none - values, vec->nnz };
    vec->value = payload;
    SAR_TRY(sar_arena_alloc(arena, vec->nnz + SAR_BIT_LIST_SLACK, layout->index_size, &vec->index));
    bool good;
    if (layout->index_size != 4)
        good = list(&r, vec->index, 8, false);
    else
        good = sar_has_avx512() ? list_simd(&r, vec->index) : list_scalar(&r, vec->index);
    bool inside = good && (vec->nnz == 0 ||
                           sar_index_get(vec->index, layout->index_size, vec->nnz - 1) < layout->slots);
    return inside ? SAR_OK : SAR_CORRUPT;
}

const struct sar_wire sar_wire_bitmap = {
    .name = "bitmap",
    .summary = "the values, and a bitmap without its empty words",
    .min_bytes = min_bytes,
    .exact_bytes = bytes_of,
    .expected_bytes = expected,
    .nnz_cost = 0.7,
    .slot_cost = 0.0005,
    .pull_nnz_cost = 0.11,
    .pull_slot_cost = 0.0005,
    .encode = encode,
    .decode = decode,
};
