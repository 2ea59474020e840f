/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions in ranges of indices that have about equally many elements. The bounds of the ranges are found
 * in parallel, then their results are counted, then written to their places. Vecs that share no index need
 * no count. Small reductions are one range. */

#include "base/parallel.h"
#include "vector/reduce.h"
#include "vector/reduce_range.h"

enum { NEAR_SHARE = 16 /* of a range's elements, by which it may differ */ };

struct sar_reduce_ranges {
    const struct sar_vec_desc *desc;
    const struct sar_spvec *vecs;
    size_t n, pieces, elements;
    unsigned index_size; /* of the result */
    struct sar_arena *arena;
    size_t *begin;           /* of piece i in vec r: begin[i * n + r]; pieces + 1 rows */
    struct sar_spvec *slice; /* in the same order */
    struct sar_range_reduction *reduction;
    struct sar_spvec out;
};

/* Indices [low, high), and the elements of all vecs below each, about. */
struct interval {
    uint64_t low, high;
    size_t below_low, below_high;
};

/* Returns an index of the interval that `wanted` elements may be below, as if they were spread evenly. */
static uint64_t interpolate(const struct interval *v, size_t wanted)
{
    if (wanted <= v->below_low || wanted >= v->below_high)
        return v->low + (v->high - v->low) / 2;
    double share = (double)(wanted - v->below_low) / (double)(v->below_high - v->below_low);
    uint64_t offset = (uint64_t)(share * (double)(v->high - v->low));
    return offset < v->high - v->low ? v->low + offset : v->high - 1;
}

/* Sets the first element at or after an index in each vec, and returns how many elements are below it. */
static size_t find_below(const struct sar_reduce_ranges *s, uint64_t index, size_t *begin)
{
    size_t below = 0;
    for (size_t r = 0; r < s->n; r++) {
        begin[r] = sar_index_lower_bound(s->vecs[r].index, s->desc->index_size, 0, s->vecs[r].nnz, index);
        below += begin[r];
    }
    return below;
}

/* Finds an index that about `wanted` elements are below, or the least one that more are below. So bounds
 * ascend, although each search tries other indices. Every other step halves the interval, in case the
 * elements are not spread evenly. */
static void search_bound(const struct sar_reduce_ranges *s, size_t wanted, size_t *begin)
{
    struct interval v = { 0, s->desc->count, 0, s->elements };
    size_t near = s->elements / s->pieces / NEAR_SHARE;
    for (unsigned step = 0; v.low < v.high; step++) {
        uint64_t index = step % 2 == 0 ? interpolate(&v, wanted) : v.low + (v.high - v.low) / 2;
        size_t below = find_below(s, index, begin);
        if (below + near >= wanted && below <= wanted + near)
            return;
        if (below < wanted)
            v = (struct interval){ index + 1, v.high, below, v.below_high };
        else
            v = (struct interval){ v.low, index, v.below_low, below };
    }
    (void)find_below(s, v.low, begin);
}

/* Finds the first elements of piece i. */
static enum sar_status find_bound(void *arg, size_t i)
{
    const struct sar_reduce_ranges *s = arg;
    size_t *begin = s->begin + i * s->n;
    if (i > 0 && i < s->pieces)
        search_bound(s, sar_parallel_bound(s->elements, 1, s->pieces, i), begin);
    for (size_t r = 0; r < s->n && (i == 0 || i == s->pieces); r++)
        begin[r] = i == 0 ? 0 : s->vecs[r].nnz;
    return SAR_OK;
}

/* The elements of piece i. */
static struct sar_spvec *slices_of(const struct sar_reduce_ranges *s, size_t i)
{
    struct sar_spvec *slice = s->slice + i * s->n;
    for (size_t r = 0; r < s->n; r++)
        slice[r] =
            sar_spvec_slice(s->desc, &s->vecs[r], s->begin[i * s->n + r], s->begin[(i + 1) * s->n + r]);
    return slice;
}

static enum sar_status count_range(void *arg, size_t i)
{
    const struct sar_reduce_ranges *s = arg;
    return sar_reduce_count_range(s->desc, slices_of(s, i), s->n, s->index_size, s->arena, &s->reduction[i]);
}

static enum sar_status write_range(void *arg, size_t i)
{
    const struct sar_reduce_ranges *s = arg;
    size_t before = 0;
    for (size_t j = 0; j < i; j++)
        before += s->reduction[j].nnz;
    struct sar_spvec out = { (unsigned char *)s->out.index + before * s->index_size,
                             (unsigned char *)s->out.value + before * s->desc->element_size, 0 };
    sar_reduce_write_range(&s->reduction[i], &out);
    return SAR_OK;
}

/* Finds the elements of all pieces. */
static enum sar_status find_ranges(struct sar_reduce_ranges *s)
{
    void *begin, *slice;
    SAR_TRY(sar_arena_alloc_zeroed(s->arena, (s->pieces + 1) * s->n, sizeof *s->begin, &begin));
    SAR_TRY(sar_arena_alloc(s->arena, s->pieces * s->n, sizeof *s->slice, &slice));
    s->begin = begin;
    s->slice = slice;
    return sar_parallel_for(s->pieces + 1, find_bound, s);
}

static enum sar_status count_ranges(struct sar_reduce_ranges *s)
{
    SAR_TRY(find_ranges(s));
    return sar_parallel_for(s->pieces, count_range, s);
}

/* Writes the result of piece i, whose place is known since the vecs share no index. */
static enum sar_status reduce_piece(void *arg, size_t i)
{
    const struct sar_reduce_ranges *s = arg;
    const struct sar_spvec *slice = slices_of(s, i);
    size_t before = 0, elements = 0;
    for (size_t r = 0; r < s->n; r++) {
        before += s->begin[i * s->n + r];
        elements += slice[r].nnz;
    }
    struct sar_spvec out = sar_spvec_slice(s->desc, &s->out, before, before);
    SAR_TRY(sar_reduce_range(s->desc, slice, s->n, s->arena, &out));
    return out.nnz == elements ? SAR_OK : SAR_CORRUPT;
}

static size_t pieces_of(const struct sar_vec_desc *desc, size_t elements)
{
    return sar_parallel_pieces(elements * (desc->element_size + desc->index_size));
}

static size_t elements_of(const struct sar_spvec vecs[], size_t n)
{
    size_t elements = 0;
    for (size_t r = 0; r < n; r++)
        elements += vecs[r].nnz;
    return elements;
}

enum sar_status sar_reduce_count(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                                 unsigned index_size, struct sar_arena *arena,
                                 struct sar_reduction *reduction)
{
    void *ranges, *parts;
    SAR_TRY(sar_arena_alloc(arena, 1, sizeof(struct sar_reduce_ranges), &ranges));
    struct sar_reduce_ranges *s = ranges;
    *s = (struct sar_reduce_ranges){
        .desc = desc, .vecs = vecs, .n = n, .index_size = index_size, .arena = arena
    };
    s->elements = elements_of(vecs, n);
    s->pieces = pieces_of(desc, s->elements);
    SAR_TRY(sar_arena_alloc_zeroed(arena, s->pieces, sizeof *s->reduction, &parts));
    s->reduction = parts;
    SAR_TRY(s->pieces > 1 ? count_ranges(s)
                          : sar_reduce_count_range(desc, vecs, n, index_size, arena, s->reduction));
    *reduction = (struct sar_reduction){ .ranges = s, .computed = s->reduction[0].computed };
    for (size_t i = 0; i < s->pieces; i++)
        reduction->nnz += s->reduction[i].nnz;
    return SAR_OK;
}

void sar_reduce_write(const struct sar_reduction *reduction, const struct sar_spvec *out)
{
    struct sar_reduce_ranges *s = reduction->ranges;
    s->out = *out;
    (void)sar_parallel_for(s->pieces, write_range, s);
}

enum sar_status sar_reduce(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                           struct sar_arena *arena, struct sar_spvec *out)
{
    struct sar_reduction reduction;
    if (pieces_of(desc, elements_of(vecs, n)) == 1)
        return sar_reduce_range(desc, vecs, n, arena, out);
    SAR_TRY(sar_reduce_count(desc, vecs, n, desc->index_size, arena, &reduction));
    sar_reduce_write(&reduction, out);
    out->nnz = reduction.nnz;
    return SAR_OK;
}

enum sar_status sar_reduce_disjoint(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                                    struct sar_arena *arena, struct sar_spvec *out)
{
    struct sar_reduce_ranges s = {
        .desc = desc, .vecs = vecs, .n = n, .index_size = desc->index_size, .arena = arena, .out = *out
    };
    s.elements = elements_of(vecs, n);
    s.pieces = pieces_of(desc, s.elements);
    if (s.pieces == 1) {
        SAR_TRY(sar_reduce_range(desc, vecs, n, arena, out));
        return out->nnz == s.elements ? SAR_OK : SAR_CORRUPT;
    }
    SAR_TRY(find_ranges(&s));
    SAR_TRY(sar_parallel_for(s.pieces, reduce_piece, &s));
    out->nnz = s.elements;
    return SAR_OK;
}

enum sar_status sar_reduce_alloc(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                                 struct sar_arena *arena, struct sar_spvec *out)
{
    SAR_TRY(sar_spvec_alloc(desc, sar_reduce_max_nnz(desc, vecs, n), arena, out));
    return sar_reduce(desc, vecs, n, arena, out);
}
