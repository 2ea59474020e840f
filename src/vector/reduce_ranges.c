/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions in ranges of indices that have about equally many elements. The bounds of the ranges are found
 * in parallel, then their results are counted, then written to their places. Small reductions are one
 * range. */

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

/* Finds the first elements of piece i: an index that about i / pieces of all elements are below. */
static enum sar_status find_bound(void *arg, size_t i)
{
    const struct sar_reduce_ranges *s = arg;
    uint64_t low = 0, high = s->desc->count;
    size_t wanted = sar_parallel_bound(s->elements, 1, s->pieces, i);
    size_t near = s->elements / s->pieces / NEAR_SHARE, *begin = s->begin + i * s->n;
    while (i > 0 && i < s->pieces && low < high) {
        uint64_t middle = low + (high - low) / 2;
        size_t below = 0;
        for (size_t r = 0; r < s->n; r++) {
            begin[r] = sar_spvec_lower_bound(s->desc, &s->vecs[r], 0, middle);
            below += begin[r];
        }
        if (below < wanted)
            low = middle + 1;
        else
            high = middle;
        if (below + near >= wanted && below <= wanted + near)
            break;
    }
    for (size_t r = 0; r < s->n && (i == 0 || i == s->pieces); r++)
        begin[r] = i == 0 ? 0 : s->vecs[r].nnz;
    return SAR_OK;
}

static enum sar_status count_range(void *arg, size_t i)
{
    const struct sar_reduce_ranges *s = arg;
    struct sar_spvec *slice = s->slice + i * s->n;
    for (size_t r = 0; r < s->n; r++)
        slice[r] =
            sar_spvec_slice(s->desc, &s->vecs[r], s->begin[i * s->n + r], s->begin[(i + 1) * s->n + r]);
    return sar_reduce_count_range(s->desc, slice, s->n, s->index_size, s->arena, &s->reduction[i]);
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

static enum sar_status count_ranges(struct sar_reduce_ranges *s)
{
    void *begin, *slice;
    SAR_TRY(sar_arena_alloc_zeroed(s->arena, (s->pieces + 1) * s->n, sizeof *s->begin, &begin));
    SAR_TRY(sar_arena_alloc(s->arena, s->pieces * s->n, sizeof *s->slice, &slice));
    s->begin = begin;
    s->slice = slice;
    SAR_TRY(sar_parallel_for(s->pieces + 1, find_bound, s));
    return sar_parallel_for(s->pieces, count_range, s);
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

enum sar_status sar_reduce_alloc(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                                 struct sar_arena *arena, struct sar_spvec *out)
{
    SAR_TRY(sar_spvec_alloc(desc, sar_reduce_max_nnz(desc, vecs, n), arena, out));
    return sar_reduce(desc, vecs, n, arena, out);
}
