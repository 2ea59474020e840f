/* SPDX-License-Identifier: BSD-3-Clause */
/* Bitmap of two levels: the values, then one bit for each group of 64 slots, then 64 bits for each group that
 * holds elements. For clustered elements, an empty group costs one bit, where a hash bitmap spends 64.
 *
 *     bytes = nnz s + ceil(w / 8) + 8 u,   w = ceil(slots / 64) groups, u of them in use */

#include <math.h>

#include "base/parallel.h"
#include "vector/bit_list.h"
#include "wire/index_util.h"

enum {
    GROUP_SHIFT = 6,
    GROUP = 1 << GROUP_SHIFT,
    SLOTS_OF_WORD = 64 * GROUP /* of the first level */
};

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

/* A message in pieces: words of the first level, with the elements and the groups in use below each one. */
struct pieces {
    const struct sar_wire_layout *layout;
    const struct sar_spvec *vec;
    unsigned char *first, *second;
    uint64_t level, bytes; /* bytes of first and of second */
    size_t n;
    size_t *nnz, *used; /* before piece i; n + 1 */
};

static uint64_t first_word(const struct pieces *p, size_t i)
{
    return sar_parallel_bound((size_t)((p->level + 7) / 8), 1, p->n, i);
}

/* Sums up the numbers of the pieces, of which each is behind its place. */
static void add_up(const struct pieces *p)
{
    for (size_t i = 0; i < p->n; i++) {
        p->nnz[i + 1] += p->nnz[i];
        p->used[i + 1] += p->used[i];
    }
}

static struct sar_spvec elements_of(const struct pieces *p, size_t i)
{
    return (struct sar_spvec){ (unsigned char *)p->vec->index + p->nnz[i] * p->layout->index_size, NULL,
                               p->nnz[i + 1] - p->nnz[i] };
}

static enum sar_status count_elements(void *arg, size_t i)
{
    const struct pieces *p = arg;
    const struct sar_spvec *vec = p->vec;
    unsigned size = p->layout->index_size;
    size_t from = sar_index_lower_bound(vec->index, size, 0, vec->nnz, first_word(p, i) * SLOTS_OF_WORD),
           to = i + 1 == p->n ? vec->nnz
                              : sar_index_lower_bound(vec->index, size, from, vec->nnz,
                                                      first_word(p, i + 1) * SLOTS_OF_WORD);
    struct sar_spvec piece = { (unsigned char *)vec->index + from * size, NULL, to - from };
    p->nnz[i + 1] = to - from;
    p->used[i + 1] = (size_t)sar_indices_count_blocks(p->layout, &piece, GROUP_SHIFT);
    return SAR_OK;
}

static enum sar_status write_piece(void *arg, size_t i)
{
    const struct pieces *p = arg;
    uint64_t begin = first_word(p, i) * 8, end = first_word(p, i + 1) * 8;
    struct sar_spvec piece = elements_of(p, i);
    memset(p->first + begin, 0, (end < p->level ? end : p->level) - begin);
    if (piece.nnz > 0)
        SAR_FOR_INDEX_SIZE(p->layout->index_size, write_bits(piece.index, INDEX_SIZE, piece.nnz, p->first,
                                                             p->second + p->used[i] * 8));
    return SAR_OK;
}

static void encode(const struct sar_wire_layout *layout, const struct sar_spvec *vec, void *payload)
{
    size_t values = vec->nnz * layout->element_size, level = (size_t)((groups(layout) + 7) / 8);
    unsigned char *first = (unsigned char *)payload + values;
    size_t nnz[SAR_PIECES_MAX + 1], used[SAR_PIECES_MAX + 1];
    struct pieces p = { layout,
                        vec,
                        first,
                        first + level,
                        level,
                        0,
                        sar_parallel_pieces(vec->nnz * layout->index_size + level),
                        nnz,
                        used };
    nnz[0] = used[0] = 0;
    sar_parallel_copy(payload, vec->value, values);
    if (p.n > 1) {
        (void)sar_parallel_for(p.n, count_elements, &p);
        add_up(&p);
    } else {
        nnz[1] = vec->nnz;
    }
    (void)sar_parallel_for(p.n, write_piece, &p);
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
    if (r->nnz - k < GROUP + SAR_BIT_LIST_SLACK) { /* another piece may follow */
        for (; bits != 0; bits &= bits - 1)
            sar_index_set(index, size, k++, group * GROUP + (unsigned)__builtin_ctzll(bits));
        return n;
    }
    if (wide)
        return sar_bit_list_avx512(bits, (uint32_t)group * GROUP, (uint32_t *)index + k);
    return sar_bit_list(bits, group * GROUP, index, size, k);
}

/* Lists the slots of words [word, words) of the first level. Returns true if the bitmap has exactly nnz bits
 * and ends at r->end. */
SAR_INLINE bool list(struct reader *r, uint64_t word, uint64_t words, void *index, unsigned size, bool wide)
{
    size_t k = 0;
    for (; word < words; word++) {
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

SAR_CLONES static bool list_scalar(struct reader *r, uint64_t word, uint64_t words, uint32_t *index)
{
    return list(r, word, words, index, 4, false);
}

#if defined(SAR_AVX512)
SAR_AVX512 static bool list_simd(struct reader *r, uint64_t word, uint64_t words, uint32_t *index)
{
    return list(r, word, words, index, 4, true);
}
#else
#define list_simd list_scalar
#endif

static enum sar_status list_piece(void *arg, size_t i)
{
    const struct pieces *p = arg;
    uint64_t word = first_word(p, i), words = first_word(p, i + 1);
    struct sar_spvec piece = elements_of(p, i);
    struct reader r = { p->first, p->second + p->used[i] * 8, p->second + p->used[i + 1] * 8, p->level,
                        piece.nnz };
    bool good;
    if (p->layout->index_size != 4)
        good = list(&r, word, words, piece.index, 8, false);
    else
        good = (sar_has_avx512() ? list_simd : list_scalar)(&r, word, words, piece.index);
    return good ? SAR_OK : SAR_CORRUPT;
}

static enum sar_status count_groups(void *arg, size_t i)
{
    const struct pieces *p = arg;
    p->used[i + 1] = sar_bitmap_count(p->first, p->level, first_word(p, i), first_word(p, i + 1));
    return SAR_OK;
}

static enum sar_status count_bits(void *arg, size_t i)
{
    const struct pieces *p = arg;
    p->nnz[i + 1] = sar_bitmap_count(p->second, p->bytes, p->used[i], p->used[i + 1]);
    return SAR_OK;
}

/* Finds the places of pieces. False if the levels do not belong to each other. */
static bool find_pieces(struct pieces *p)
{
    memset(p->nnz, 0, (p->n + 1) * sizeof *p->nnz);
    (void)sar_parallel_for(p->n, count_groups, p);
    add_up(p);
    if (p->used[p->n] * 8 != p->bytes)
        return false;
    (void)sar_parallel_for(p->n, count_bits, p);
    for (size_t i = 0; i < p->n; i++)
        p->nnz[i + 1] += p->nnz[i];
    return p->nnz[p->n] == p->vec->nnz;
}

static enum sar_status decode(const struct sar_wire_layout *layout, void *payload, uint64_t bytes,
                              struct sar_arena *arena, struct sar_spvec *vec)
{
    uint64_t none = bytes_with(layout, vec->nnz, 0), values = vec->nnz * layout->element_size;
    size_t nnz[SAR_PIECES_MAX + 1], used[SAR_PIECES_MAX + 1];
    if (vec->nnz > layout->slots || bytes < none || (bytes - none) % 8 != 0 || (bytes - none) / 8 > vec->nnz)
        return SAR_CORRUPT;
    vec->value = payload;
    SAR_TRY(sar_arena_alloc(arena, vec->nnz, layout->index_size, &vec->index));
    struct pieces p = { layout,
                        vec,
                        (unsigned char *)payload + values,
                        (unsigned char *)payload + none,
                        none - values,
                        bytes - none,
                        sar_parallel_pieces(vec->nnz * layout->index_size + (size_t)(bytes - values)),
                        nnz,
                        used };
    nnz[0] = used[0] = 0;
    nnz[1] = vec->nnz;
    used[1] = (size_t)(p.bytes / 8);
    if (p.n > 1 && !find_pieces(&p))
        return SAR_CORRUPT;
    SAR_TRY(sar_parallel_for(p.n, list_piece, &p));
    bool inside =
        vec->nnz == 0 || sar_index_get(vec->index, layout->index_size, vec->nnz - 1) < layout->slots;
    return inside ? SAR_OK : SAR_CORRUPT;
}

const struct sar_wire sar_wire_bitmap = {
    .name = "bitmap",
    .summary = "the values, and a bitmap without its empty words",
    .min_bytes = min_bytes,
    .exact_bytes = bytes_of,
    .expected_bytes = expected,
    .nnz_cost = 0.45,
    .slot_cost = 0.0045,
    .pull_nnz_cost = 0.1,
    .pull_slot_cost = 0.004,
    .encode = encode,
    .decode = decode,
};
