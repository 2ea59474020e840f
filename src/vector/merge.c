/* SPDX-License-Identifier: BSD-3-Clause */
/* Each step takes the least of the vecs' next keys and gives it the next position. The step writes the
 * position for every vec and advances only the vecs with this key, without a branch that mispredicts; the
 * others are overwritten by a later step.
 *
 *     time = 2 to 3 ns for an element of the result
 *
 * Keys are indices less a base, in 4 bytes. They share memory with the positions: a key is read before its
 * position is written. */

#include "vector/merge.h"

enum { SLACK = 2 /* keys after the last: KEY_END, and one that is read and not used */ };

#define KEY_END UINT32_MAX

/* OPAQUE hides from the compiler that two selections depend on each other; else it emits branches. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(SAR_NO_CLONES)
#define USE_CMOV
#define OPAQUE(value) __asm__("" : "+r"(value))
#else
#define OPAQUE(value) ((void)(value))
#endif

/* A vec that is merged. */
struct reader {
    size_t at;    /* first key that has no position yet */
    uint32_t key; /* that key */
};

/* Write the position of the least key for a vec, and advance if the vec has this key. */
SAR_INLINE void advance(struct reader *r, uint32_t *keys, uint32_t min_key, uint32_t position)
{
#if defined(USE_CMOV)
    __asm__("cmpl %[key], %[min_key]\n\t"
            "cmovael %[after], %[key]\n\t"
            "movl %[position], %[here]\n\t"
            "sbbq $-1, %[at]"
            : [key] "+&r"(r->key), [at] "+r"(r->at), [here] "=m"(keys[r->at])
            : [after] "m"(keys[r->at + 1]), [min_key] "r"(min_key), [position] "r"(position)
            : "cc");
#else
    bool has = r->key == min_key;
    r->key = has ? keys[r->at + 1] : r->key;
    keys[r->at] = position;
    r->at += has;
#endif
}

SAR_INLINE uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

SAR_INLINE struct reader reader_of(bool exists, const uint32_t *keys, size_t first)
{
    return exists ? (struct reader){ first, keys[first] } : (struct reader){ 0, KEY_END };
}

/* Merge the keys of n vecs, which begin at first[r]; list the distinct keys and return their number. */
SAR_INLINE size_t merge_keys(unsigned n, uint32_t *keys, const size_t first[], uint32_t *restrict list)
{
    struct reader a = reader_of(true, keys, first[0]), b = reader_of(true, keys, first[1]);
    struct reader c = reader_of(n > 2, keys, first[2]), d = reader_of(n > 3, keys, first[3]);
    uint32_t last = 0, position = UINT32_MAX;
    for (;;) {
        uint32_t min_key = lesser(a.key, b.key), other = lesser(c.key, d.key);
        if (n > 3) {
            OPAQUE(min_key);
            OPAQUE(other);
        }
        min_key = lesser(min_key, other);
        if (min_key == KEY_END)
            return (uint32_t)(position + 1);
        position += last < min_key;
        last = min_key;
        list[position] = min_key;
        advance(&a, keys, min_key, position);
        advance(&b, keys, min_key, position);
        if (n > 2)
            advance(&c, keys, min_key, position);
        if (n > 3)
            advance(&d, keys, min_key, position);
    }
}

/* Tiles are faster if a word of their bitmap has several bits. More vecs mean more comparisons in a merge. */
bool sar_merge_is_faster(size_t n, uint64_t nnz, uint64_t span)
{
    static const unsigned sparsity_min[SAR_MERGE_MAX + 1] = { [2] = 0, [3] = 12, [4] = 16 };
    return n >= 2 && n <= SAR_MERGE_MAX && span < KEY_END - 1 && nnz < KEY_END &&
           span >= nnz * sparsity_min[n];
}

SAR_INLINE void subtract_base(const void *index, unsigned size, size_t n, uint64_t base,
                              uint32_t *restrict keys)
{
    for (size_t i = 0; i < n; i++)
        keys[i] = (uint32_t)(sar_index_get(index, size, i) - base);
}

SAR_CLONES static void load_keys(const void *index, unsigned size, size_t n, uint64_t base, uint32_t *keys)
{
    SAR_FOR_INDEX_SIZE(size, subtract_base(index, INDEX_SIZE, n, base, keys));
    keys[n] = KEY_END;
}

/* Returns one less than the least index, so that no key is zero. */
static uint64_t base_of(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n)
{
    uint64_t min_index = UINT64_MAX;
    for (size_t r = 0; r < n; r++) {
        uint64_t first = vecs[r].nnz == 0 ? UINT64_MAX : sar_index_get(vecs[r].index, desc->index_size, 0);
        min_index = first < min_index ? first : min_index;
    }
    return min_index - 1;
}

enum sar_status sar_merge(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                          struct sar_arena *arena, struct sar_merge *merge)
{
    size_t first[SAR_MERGE_MAX] = { 0 }, keys = 0;
    uint64_t base = base_of(desc, vecs, n);
    void *positions, *list;
    for (size_t r = 0; r < n; r++) {
        first[r] = keys;
        keys += vecs[r].nnz + SLACK;
    }
    SAR_TRY(sar_arena_alloc(arena, keys, sizeof(uint32_t), &positions));
    SAR_TRY(sar_arena_alloc(arena, keys, sizeof(uint32_t), &list));
    *merge = (struct sar_merge){ .vecs = vecs, .indices = list, .base = base };
    for (size_t r = 0; r < n; r++) {
        merge->positions[r] = (uint32_t *)positions + first[r];
        load_keys(vecs[r].index, desc->index_size, vecs[r].nnz, base, merge->positions[r]);
    }
    merge->nnz = n == 2   ? merge_keys(2, positions, first, list)
                 : n == 3 ? merge_keys(3, positions, first, list)
                          : merge_keys(4, positions, first, list);
    return SAR_OK;
}

SAR_INLINE void add_base(const uint32_t *restrict list, uint64_t base, size_t n, void *out, unsigned out_size,
                         size_t at)
{
    for (size_t i = 0; i < n; i++)
        sar_index_set(out, out_size, at + i, list[i] + base);
}

SAR_CLONES void sar_merge_write_indices(const struct sar_merge *merge, size_t at, size_t n, void *out,
                                        unsigned out_size)
{
    SAR_FOR_INDEX_SIZE(out_size, add_base(merge->indices + at, merge->base, n, out, INDEX_SIZE, at));
}
