/* SPDX-License-Identifier: BSD-3-Clause */
/* Bitmap of two levels: the values, then a bit for each stretch of 64 slots, and 64 bits for each stretch
 * that holds anything. Where elements stand close together, as rows and clusters do, empty stretches cost
 * one bit in place of the 64 of a hash bitmap.
 *
 *     bytes = nnz s + ceil(w / 8) + 8 u,   w = ceil(span / 64) stretches, u of them in use */

#include <math.h>

#include "tensor/bits.h"
#include "wire/indices.h"

enum { STRETCH_SHIFT = 6, STRETCH = 1 << STRETCH_SHIFT };

static uint64_t stretches(const struct sar_layout *layout)
{
    return layout->span / STRETCH + (layout->span % STRETCH != 0);
}

static uint64_t bytes_with(const struct sar_layout *layout, uint64_t nnz, uint64_t used)
{
    uint64_t values = sar_times(nnz, layout->element_size), first = sar_bitmap_bytes(stretches(layout));
    return sar_plus(values, sar_plus(first, sar_times(used, 8)));
}

static uint64_t least(const struct sar_layout *layout, uint64_t nnz)
{
    return bytes_with(layout, nnz, nnz / STRETCH + (nnz % STRETCH != 0));
}

static uint64_t bytes_of(const struct sar_layout *layout, const struct sar_run *run)
{
    return bytes_with(layout, run->nnz, sar_indices_stretches(layout, run, STRETCH_SHIFT));
}

static double expected(const struct sar_layout *layout, double nnz)
{
    double all = (double)stretches(layout), density = layout->span == 0 ? 0 : nnz / (double)layout->span;
    double used = all * -expm1(STRETCH * log1p(-fmin(density, 1)));
    return nnz * (double)layout->element_size + ceil(all / 8) + 8 * used;
}

SAR_INLINE void write_bits(const void *index, unsigned size, size_t n, unsigned char *first,
                           unsigned char *second)
{
    uint64_t at = sar_index_get(index, size, 0) / STRETCH, bits = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t slot = sar_index_get(index, size, i);
        if (slot / STRETCH != at) {
            sar_store_word(second, bits);
            second += 8;
            first[at / 8] |= (unsigned char)(1u << (at % 8));
            at = slot / STRETCH;
            bits = 0;
        }
        bits |= (uint64_t)1 << (slot % STRETCH);
    }
    sar_store_word(second, bits);
    first[at / 8] |= (unsigned char)(1u << (at % 8));
}

static void encode(const struct sar_layout *layout, const struct sar_run *run, void *payload)
{
    size_t values = run->nnz * layout->element_size, level = (size_t)((stretches(layout) + 7) / 8);
    unsigned char *first = (unsigned char *)payload + values;
    memset(first, 0, level);
    if (run->nnz == 0)
        return;
    memcpy(payload, run->value, values);
    SAR_FOR_INDEX_SIZE(layout->index_size,
                       write_bits(run->index, INDEX_SIZE, run->nnz, first, first + level));
}

struct reader {
    const unsigned char *first, *second, *end;
    uint64_t level; /* bytes of first */
    size_t nnz;
};

/* List the slots of one stretch from place k on. 0 when there are too many or none. */
SAR_INLINE size_t list_stretch(struct reader *r, uint64_t stretch, size_t k, void *index, unsigned size,
                               bool wide)
{
    uint64_t bits = r->second == r->end ? 0 : sar_load_word(r->second);
    size_t n = (size_t)__builtin_popcountll(bits);
    if (n > r->nnz - k)
        return 0;
    r->second += r->second == r->end ? 0 : 8;
    if (wide)
        return sar_bits_list_wide(bits, (uint32_t)stretch * STRETCH, (uint32_t *)index + k);
    return sar_bits_list(bits, stretch * STRETCH, index, size, k);
}

/* Whether the bits tell of just nnz elements. */
SAR_INLINE bool list(struct reader *r, void *index, unsigned size, bool wide)
{
    size_t k = 0;
    for (uint64_t word = 0; word * 8 < r->level; word++) {
        uint64_t used = sar_bitmap_word(r->first, r->level, word);
        for (; used != 0; used &= used - 1) {
            size_t n = list_stretch(r, word * 64 + (unsigned)__builtin_ctzll(used), k, index, size, wide);
            if (n == 0)
                return false;
            k += n;
        }
    }
    return k == r->nnz && r->second == r->end;
}

SAR_CLONES static bool list_narrow(struct reader *r, uint32_t *index)
{
    return list(r, index, 4, false);
}

#if defined(SAR_WIDE)
SAR_WIDE static bool list_wide(struct reader *r, uint32_t *index)
{
    return list(r, index, 4, true);
}
#else
#define list_wide list_narrow
#endif

static bool list_any(struct reader *r, void *index, unsigned size)
{
    if (size != 4)
        return list(r, index, 8, false);
    return sar_is_wide() ? list_wide(r, index) : list_narrow(r, index);
}

static enum sar_status decode(const struct sar_layout *layout, void *payload, uint64_t bytes,
                              struct sar_arena *arena, struct sar_run *run)
{
    uint64_t none = bytes_with(layout, run->nnz, 0);
    if (run->nnz > layout->span || bytes < none || (bytes - none) % 8 != 0 || (bytes - none) / 8 > run->nnz)
        return SAR_CORRUPT;
    const unsigned char *in = payload;
    uint64_t values = run->nnz * layout->element_size;
    struct reader r = { in + values, in + none, in + bytes, none - values, run->nnz };
    run->value = payload;
    SAR_TRY(sar_arena_take(arena, run->nnz + SAR_BITS_SLACK, layout->index_size, &run->index));
    bool good = list_any(&r, run->index, layout->index_size);
    bool inside =
        good && (run->nnz == 0 || sar_index_get(run->index, layout->index_size, run->nnz - 1) < layout->span);
    return inside ? SAR_OK : SAR_CORRUPT;
}

static double work(const struct sar_layout *layout, double nnz)
{
    return 0.7 * nnz + 0.0005 * (double)layout->span;
}

const struct sar_wire sar_wire_bitmap = {
    .name = "bitmap",
    .summary = "the values, and a bitmap without its empty words",
    .least = least,
    .bytes = bytes_of,
    .expected = expected,
    .work = work,
    .encode = encode,
    .decode = decode,
};
