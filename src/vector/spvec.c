/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on one sorted sparse vector; each costs a pass over its elements or less. */

#include "vector/spvec.h"

#include <string.h>

#include "vector/nt_store.h"
#include "vector/pieces.h"

enum {
    STEP = 16, /* elements of the first gallop */
    UNIT = 64  /* elements: pieces of an array that is written share no cache line if it is aligned */
};

enum sar_status sar_spvec_alloc(const struct sar_vec_desc *desc, size_t nnz, struct sar_arena *arena,
                                struct sar_spvec *vec)
{
    struct sar_spvec fresh = { .nnz = nnz };
    SAR_TRY(sar_arena_alloc(arena, nnz, desc->index_size, &fresh.index));
    SAR_TRY(sar_arena_alloc(arena, nnz, desc->element_size, &fresh.value));
    *vec = fresh;
    return SAR_OK;
}

/* Elements to copy. */
struct copied {
    const struct sar_vec_desc *desc;
    const struct sar_spvec *from, *to;
    bool non_temporal;
};

static void copy_range(void *copied, size_t from, size_t to)
{
    const struct copied *c = copied;
    struct sar_spvec source = sar_spvec_slice(c->desc, c->from, from, to),
                     target = sar_spvec_slice(c->desc, c->to, from, to);
    size_t indices = source.nnz * c->desc->index_size, values = source.nnz * c->desc->element_size;
    if (!c->non_temporal) {
        memcpy(target.index, source.index, indices);
        memcpy(target.value, source.value, values);
        return;
    }
    sar_nt_copy_unaligned(target.index, source.index, indices);
    sar_nt_copy_unaligned(target.value, source.value, values);
    sar_nt_fence();
}

/* Returns the pieces of a loop that reads and writes n elements. */
static size_t pieces_of(const struct sar_vec_desc *desc, size_t n)
{
    return sar_pieces(2 * n * (desc->index_size + desc->element_size));
}

static void copy(const struct sar_vec_desc *desc, const struct sar_spvec *from, const struct sar_spvec *to,
                 bool non_temporal)
{
    struct copied copied = { desc, from, to, non_temporal };
    if (from->nnz != 0)
        sar_ranges_run(
            (struct sar_ranges){ from->nnz, UNIT, pieces_of(desc, from->nnz), copy_range, &copied });
}

void sar_spvec_copy(const struct sar_vec_desc *desc, const struct sar_spvec *from, struct sar_spvec *to)
{
    copy(desc, from, to, false);
}

void sar_spvec_copy_nt(const struct sar_vec_desc *desc, const struct sar_spvec *from, struct sar_spvec *to)
{
    copy(desc, from, to, true);
}

/* Gallop, then bisect: callers search in ascending order, so the limit is usually near `from`. */
size_t sar_spvec_lower_bound(const struct sar_vec_desc *desc, const struct sar_spvec *vec, size_t from,
                             uint64_t limit)
{
    size_t step = STEP, low = from;
    while (low + step < vec->nnz && sar_index_get(vec->index, desc->index_size, low + step) < limit) {
        low += step;
        step *= 2;
    }
    size_t high = low + step < vec->nnz ? low + step : vec->nnz;
    return sar_index_lower_bound(vec->index, desc->index_size, low, high, limit);
}

struct sar_spvec sar_spvec_slice(const struct sar_vec_desc *desc, const struct sar_spvec *vec, size_t from,
                                 size_t to)
{
    return (struct sar_spvec){ (unsigned char *)vec->index + from * desc->index_size,
                               (unsigned char *)vec->value + from * desc->element_size, to - from };
}

/* Indices of `size` bytes to add base to, and to store in out_size bytes; and values to copy, or NULL. */
struct shifted {
    const void *index;
    unsigned size, out_size;
    uint64_t base;
    void *out;
    const unsigned char *value;
    unsigned char *out_value;
    size_t bytes; /* of a value */
};

/* Indices are unsigned: base may be the two's complement of a number to subtract. */
SAR_INLINE void shift_indices(const struct shifted *s, unsigned size, unsigned out_size, size_t from,
                              size_t to)
{
    const void *index = s->index;
    void *out = s->out;
    uint64_t base = s->base;
    for (size_t i = from; i < to; i++)
        sar_index_set(out, out_size, i, sar_index_get(index, size, i) + base);
}

static void shift_range(void *shifted, size_t from, size_t to)
{
    const struct shifted *s = shifted;
    if (s->size == 4)
        SAR_FOR_INDEX_SIZE(s->out_size, shift_indices(s, 4, INDEX_SIZE, from, to));
    else
        SAR_FOR_INDEX_SIZE(s->out_size, shift_indices(s, 8, INDEX_SIZE, from, to));
    if (s->value != NULL)
        memcpy(s->out_value + from * s->bytes, s->value + from * s->bytes, (to - from) * s->bytes);
}

enum sar_status sar_spvec_rebase(const struct sar_vec_desc *desc, uint64_t base, unsigned index_size,
                                 struct sar_arena *arena, struct sar_spvec *vec)
{
    struct shifted shifted = { vec->index, desc->index_size, index_size, -base, NULL, NULL, NULL, 0 };
    SAR_TRY(sar_arena_alloc(arena, vec->nnz, index_size, &shifted.out));
    sar_ranges_run((struct sar_ranges){
        vec->nnz, UNIT, sar_pieces(vec->nnz * (desc->index_size + index_size)), shift_range, &shifted });
    vec->index = shifted.out;
    return SAR_OK;
}

enum sar_status sar_spvec_split(const struct sar_vec_desc *desc, const struct sar_spvec *vec, uint64_t index,
                                struct sar_arena *arena, struct sar_spvec halves[2])
{
    size_t cut = sar_spvec_lower_bound(desc, vec, 0, index);
    halves[0] = sar_spvec_slice(desc, vec, 0, cut);
    halves[1] = sar_spvec_slice(desc, vec, cut, vec->nnz);
    return sar_spvec_rebase(desc, index, desc->index_size, arena, &halves[1]);
}

void sar_spvec_append(const struct sar_vec_desc *desc, const struct sar_spvec *vec, unsigned index_size,
                      uint64_t base, struct sar_spvec *out)
{
    if (vec->nnz == 0)
        return;
    struct sar_spvec end = sar_spvec_slice(desc, out, out->nnz, out->nnz);
    struct shifted shifted = { vec->index, index_size, desc->index_size, base,
                               end.index,  vec->value, end.value,        desc->element_size };
    sar_ranges_run((struct sar_ranges){ vec->nnz, UNIT, pieces_of(desc, vec->nnz), shift_range, &shifted });
    out->nnz += vec->nnz;
}
