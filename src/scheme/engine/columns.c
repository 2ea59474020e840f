/* SPDX-License-Identifier: BSD-3-Clause */
/* Slices of rows: who owns which, and copies between rows and slices. */

#include "scheme/engine/columns.h"

#include <string.h>

#include "base/compiler.h"
#include "base/parallel.h"

enum {
    CACHE_LINE_BYTES = 64,
    MIN_SLICE_BYTES = 16,
    TILE_BYTES = 8192,  /* of rows that are in the cache while slices are copied to them */
    SLICES_AT_ONCE = 64 /* copied to such rows */
};

/* Returns the fewest groups in which a row has at most `columns` slices. Groups that all have every share
 * consist of equally many nodes; if a row has fewer slices than shares, there are as many groups as ranks. */
static int count_groups(int ranks, int shares, uint64_t columns)
{
    int nodes = ranks / shares, groups = (int)(((uint64_t)ranks + columns - 1) / columns);
    if (shares == 1)
        return groups;
    while (groups < nodes && nodes % groups != 0)
        groups++;
    return groups > nodes ? ranks : groups;
}

/* Units of whole cache lines, else of the fewest bytes of a slice, if all slices then have equally many; else
 * single values, by one of which slices differ. */
static void set_unit(struct sar_columns *c, size_t value_size)
{
    size_t slices = (size_t)sar_columns_max_slices(c), row_bytes = c->row_len * value_size;
    bool equal = c->ranks % c->groups == 0;
    if (equal && row_bytes % (CACHE_LINE_BYTES * slices) == 0 && CACHE_LINE_BYTES % value_size == 0)
        c->unit_values = CACHE_LINE_BYTES / value_size;
    else if (!equal || row_bytes % (c->unit_values * value_size * slices) != 0)
        c->unit_values = 1;
    c->units = c->row_len / c->unit_values;
}

struct sar_columns sar_columns_make(const struct sar_vec_desc *desc, int ranks, int shares, uint64_t columns)
{
    size_t value_size = desc->element_size / desc->row_len;
    struct sar_columns c = { ranks, ranks, 1, desc->row_len, 1, desc->row_len };
    if (value_size == 0 || columns <= 1)
        return c;
    c.unit_values = value_size < MIN_SLICE_BYTES ? MIN_SLICE_BYTES / value_size : 1;
    uint64_t units = c.row_len / c.unit_values, most = units < (uint64_t)ranks ? units : (uint64_t)ranks;
    if (most <= 1)
        return sar_columns_make(desc, ranks, 1, 1);
    c.groups = count_groups(ranks, shares, columns < most ? columns : most);
    c.shares = c.groups < ranks ? shares : 1;
    set_unit(&c, value_size);
    return c;
}

struct sar_slice sar_columns_slice(const struct sar_columns *c, int owner)
{
    int group = sar_columns_group(c, owner), first = sar_columns_first_owner(c, group);
    size_t slices = (size_t)(sar_columns_first_owner(c, group + 1) - first), i = (size_t)(owner - first);
    size_t begin = c->units * i / slices * c->unit_values, end = c->units * (i + 1) / slices * c->unit_values;
    return (struct sar_slice){ begin, end - begin };
}

struct sar_slice sar_columns_share_slice(const struct sar_columns *c, int share)
{
    struct sar_owner_range owners = sar_columns_owners(c, 0, share);
    struct sar_slice first = sar_columns_slice(c, owners.first), last = sar_columns_slice(c, owners.end - 1);
    return (struct sar_slice){ first.begin, last.begin + last.len - first.begin };
}

size_t sar_columns_max_slice_len(const struct sar_columns *c)
{
    size_t fewest = (size_t)(c->ranks / c->groups);
    return (c->units + fewest - 1) / fewest * c->unit_values;
}

struct sar_vec_desc sar_columns_slice_desc(const struct sar_vec_desc *desc, struct sar_slice slice)
{
    struct sar_vec_desc out = *desc;
    out.element_size = desc->element_size / desc->row_len * slice.len;
    out.row_len = slice.len;
    return out;
}

void sar_columns_slice_layout(const struct sar_columns *c, size_t len, struct sar_wire_layout *layout)
{
    layout->element_size = layout->element_size / c->row_len * len;
    layout->row_len = len;
    layout->zero_is_absent = false;
}

/* Copies of pieces at different strides: those of the slices of rows, one after the other. */
struct strided {
    unsigned char *to;
    const unsigned char *from;
    size_t to_stride, from_stride, size;
};

struct copies {
    const struct strided *slice;
    int n;
    size_t row_bytes;
};

/* Copies of a constant size need no call. */
SAR_INLINE void copy_sized(const struct strided *s, size_t from, size_t to, size_t size)
{
    unsigned char *out = s->to + from * s->to_stride;
    const unsigned char *in = s->from + from * s->from_stride;
    for (size_t i = from; i < to; i++, out += s->to_stride, in += s->from_stride)
        memcpy(out, in, size);
}

static void copy_slice(const struct strided *s, size_t from, size_t to)
{
    if (s->size == 16)
        copy_sized(s, from, to, 16);
    else if (s->size == 32)
        copy_sized(s, from, to, 32);
    else if (s->size == 64)
        copy_sized(s, from, to, 64);
    else if (s->size == 128)
        copy_sized(s, from, to, 128);
    else
        copy_sized(s, from, to, s->size);
}

/* All slices of some rows are copied before those of the next ones, so that these rows stay in the cache. */
static void copy_range(void *copies, size_t from, size_t to)
{
    const struct copies *c = copies;
    size_t rows = TILE_BYTES / c->row_bytes + 1;
    for (; from < to; from += rows)
        for (int i = 0; i < c->n; i++)
            copy_slice(&c->slice[i], from, from + rows < to ? from + rows : to);
}

static void copy_strided(struct copies copies, size_t n)
{
    size_t bytes = 0;
    for (int i = 0; i < copies.n; i++)
        bytes += copies.slice[i].size;
    sar_ranges_run((struct sar_ranges){ n, 1, sar_parallel_pieces(2 * n * bytes), copy_range, &copies });
}

void sar_columns_gather(const struct sar_vec_desc *desc, struct sar_slice slice, const struct sar_spvec *rows,
                        void *values)
{
    size_t value_size = desc->element_size / desc->row_len, size = slice.len * value_size;
    const unsigned char *from = (const unsigned char *)rows->value + slice.begin * value_size;
    struct strided copy = { values, from, size, desc->element_size, size };
    copy_strided((struct copies){ &copy, 1, desc->element_size }, rows->nnz);
}

static struct strided to_rows(const struct sar_vec_desc *desc, struct sar_slice slice,
                              const struct sar_spvec *vec, void *rows)
{
    size_t value_size = desc->element_size / desc->row_len, size = slice.len * value_size;
    return (struct strided){ (unsigned char *)rows + slice.begin * value_size, vec->value, desc->element_size,
                             size, size };
}

void sar_columns_scatter(const struct sar_vec_desc *desc, struct sar_slice slice, const struct sar_spvec *vec,
                         void *rows)
{
    struct strided copy = to_rows(desc, slice, vec, rows);
    copy_strided((struct copies){ &copy, 1, desc->element_size }, vec->nnz);
}

void sar_columns_join(const struct sar_columns *c, const struct sar_vec_desc *desc, size_t begin,
                      struct sar_owner_range owners, const struct sar_spvec slices[], void *rows)
{
    struct strided copy[SLICES_AT_ONCE];
    int n = 0;
    for (int i = owners.first; i < owners.end; i++) {
        struct sar_slice slice = sar_columns_slice(c, i);
        slice.begin -= begin;
        copy[n++] = to_rows(desc, slice, &slices[i - owners.first], rows);
        if (n == SLICES_AT_ONCE || i + 1 == owners.end) {
            copy_strided((struct copies){ copy, n, desc->element_size }, slices[0].nnz);
            n = 0;
        }
    }
}
