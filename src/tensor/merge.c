/* SPDX-License-Identifier: BSD-3-Clause */
/* The least of the runs' next keys is the outcome's next one, and each run that has it is told the place.
 * Which those are cannot be foreseen, so nothing branches on it: every run is told, and one that does not
 * have the key will be told again.
 *
 *     time = 2 to 3 ns for an element of the outcome
 *
 * Keys are indices, made narrow, and stand where their places will: a key is read before its place is
 * written. */

#include "tensor/merge.h"

#include "tensor/stretch.h"

enum { SLACK = 2 /* keys behind the last: one that ends the run, and one that is read and not used */ };

#define END UINT32_MAX

/* A compiler that knows how two choices depend on each other makes branches of them. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(SAR_NO_CLONES)
#define BY_HAND
#define APART(value) __asm__("" : "+r"(value))
#else
#define APART(value) ((void)(value))
#endif

/* A run that is merged. */
struct reader {
    size_t at;    /* its first key not yet done */
    uint32_t key; /* which was there */
};

/* Tell a run the place of the least key, and if it has that, go on to its next. */
SAR_INLINE void tell(struct reader *r, uint32_t *keys, uint32_t least, uint32_t place)
{
#if defined(BY_HAND)
    __asm__("cmpl %[key], %[least]\n\t"
            "cmovael %[after], %[key]\n\t"
            "movl %[place], %[here]\n\t"
            "sbbq $-1, %[at]"
            : [key] "+&r"(r->key), [at] "+r"(r->at), [here] "=m"(keys[r->at])
            : [after] "m"(keys[r->at + 1]), [least] "r"(least), [place] "r"(place)
            : "cc");
#else
    bool has = r->key == least;
    r->key = has ? keys[r->at + 1] : r->key;
    keys[r->at] = place;
    r->at += has;
#endif
}

SAR_INLINE uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

SAR_INLINE struct reader reader_of(bool exists, const uint32_t *keys, size_t first)
{
    return exists ? (struct reader){ first, keys[first] } : (struct reader){ 0, END };
}

/* Merge keys, of each run from first[r] on; returns how many different ones there are. They are listed, for
 * to write each from all runs that have it costs more. */
SAR_INLINE size_t merge(unsigned n, uint32_t *keys, const size_t first[], uint32_t *restrict list)
{
    struct reader a = reader_of(true, keys, first[0]), b = reader_of(true, keys, first[1]);
    struct reader c = reader_of(n > 2, keys, first[2]), d = reader_of(n > 3, keys, first[3]);
    uint32_t last = 0, place = UINT32_MAX;
    for (;;) {
        uint32_t least = lesser(a.key, b.key), other = lesser(c.key, d.key);
        if (n > 3) {
            APART(least);
            APART(other);
        }
        least = lesser(least, other);
        if (least == END)
            return (uint32_t)(place + 1);
        place += last < least;
        last = least;
        list[place] = least;
        tell(&a, keys, least, place);
        tell(&b, keys, least, place);
        if (n > 2)
            tell(&c, keys, least, place);
        if (n > 3)
            tell(&d, keys, least, place);
    }
}

static size_t merge_keys(size_t n, uint32_t *keys, const size_t first[], uint32_t *list)
{
    if (n == 2)
        return merge(2, keys, first, list);
    return n == 3 ? merge(3, keys, first, list) : merge(4, keys, first, list);
}

/* Where elements lie close, a word has several bits; and with more runs a merge compares more. */
bool sar_merge_pays(size_t n, uint64_t nnz, uint64_t span)
{
    static const unsigned apart[SAR_MERGED + 1] = { [2] = 0, [3] = 12, [4] = 16 };
    return n >= 2 && n <= SAR_MERGED && span < END - 1 && nnz < END && span >= nnz * apart[n];
}

SAR_INLINE void subtract(const void *index, unsigned size, size_t n, uint64_t base, uint32_t *restrict keys)
{
    for (size_t i = 0; i < n; i++)
        keys[i] = (uint32_t)(sar_index_get(index, size, i) - base);
}

SAR_CLONES static void lay_out(const void *index, unsigned size, size_t n, uint64_t base, uint32_t *keys)
{
    SAR_FOR_INDEX_SIZE(size, subtract(index, INDEX_SIZE, n, base, keys));
    keys[n] = END;
}

/* One less than the least index: no key is zero. */
static uint64_t base_of(const struct sar_shape *shape, const struct sar_run runs[], size_t n)
{
    uint64_t least = UINT64_MAX;
    for (size_t r = 0; r < n; r++) {
        uint64_t first = runs[r].nnz == 0 ? UINT64_MAX : sar_index_get(runs[r].index, shape->index_size, 0);
        least = first < least ? first : least;
    }
    return least - 1;
}

enum sar_status sar_merge(const struct sar_shape *shape, const struct sar_run runs[], size_t n,
                          struct sar_arena *arena, struct sar_merge *merge)
{
    size_t first[SAR_MERGED] = { 0 }, keys = 0;
    uint64_t base = base_of(shape, runs, n);
    void *places, *list;
    for (size_t r = 0; r < n; r++) {
        first[r] = keys;
        keys += runs[r].nnz + SLACK;
    }
    SAR_TRY(sar_arena_take(arena, keys, sizeof(uint32_t), &places));
    SAR_TRY(sar_arena_take(arena, keys, sizeof(uint32_t), &list));
    *merge = (struct sar_merge){ .runs = runs, .list = list, .base = base };
    for (size_t r = 0; r < n; r++) {
        merge->places[r] = (uint32_t *)places + first[r];
        lay_out(runs[r].index, shape->index_size, runs[r].nnz, base, merge->places[r]);
    }
    merge->nnz = merge_keys(n, places, first, list);
    return SAR_OK;
}

SAR_INLINE void add(const uint32_t *restrict list, uint64_t base, size_t n, void *out, unsigned out_size,
                    size_t at)
{
    for (size_t i = 0; i < n; i++)
        sar_index_set(out, out_size, at + i, list[i] + base);
}

SAR_CLONES void sar_merge_list(const struct sar_merge *merge, size_t at, size_t n, void *out,
                               unsigned out_size)
{
    SAR_FOR_INDEX_SIZE(out_size, add(merge->list + at, merge->base, n, out, INDEX_SIZE, at));
}
