/* SPDX-License-Identifier: BSD-3-Clause */
/* Ownership of rows in two dimensions. The ranks form row groups of consecutive ranks. The partition map
 * gives each row to one group; the ranks of the group own consecutive column slices of it:
 *
 *     ranks 8, columns 4        columns  0..3  4..7  8..11 12..15
 *     rows of group 0                    rank 0     1     2     3
 *     rows of group 1                    rank 4     5     6     7
 *
 * With one group, no hash is needed: slices of a row differ by one unit at most, and so do the parts,
 * whatever the indices are. With as many groups as ranks, each rank owns whole rows. If the columns do not
 * divide the ranks, the groups differ by one rank. */

#ifndef SAR_SCHEME_ENGINE_COLUMNS_H
#define SAR_SCHEME_ENGINE_COLUMNS_H

#include "wire/wire.h"

/** Owners of rows and slices. Equal on all ranks. */
struct sar_columns {
    int ranks, groups;
    size_t row_len;     /**< basic values of a row */
    size_t unit_values; /**< basic values of a unit: slices consist of whole units, but for the row's end */
    size_t units;       /**< units of a row */
};

/** Values of a row that one rank owns. */
struct sar_slice {
    size_t begin, len; /**< in basic values */
};

/** Returns the ownership with at most `columns` slices of a row. A slice has at least 16 bytes, or one
 * value; whole cache lines if all slices then have the same length. */
struct sar_columns sar_columns_make(const struct sar_vec_desc *desc, int ranks, uint64_t columns);

/** Returns true if a row has several owners. */
static inline bool sar_columns_sliced(const struct sar_columns *columns)
{
    return columns->groups < columns->ranks;
}

/** Returns the first rank of a group; for `groups` the number of ranks. */
static inline int sar_columns_first_rank(const struct sar_columns *columns, int group)
{
    return (int)((int64_t)columns->ranks * group / columns->groups);
}

/** Returns the group of an owner, a rank. */
static inline int sar_columns_group(const struct sar_columns *columns, int owner)
{
    return (int)((((int64_t)owner + 1) * columns->groups - 1) / columns->ranks);
}

/** Returns the most slices of a row. */
static inline int sar_columns_max_slices(const struct sar_columns *columns)
{
    return (columns->ranks + columns->groups - 1) / columns->groups;
}

/** Returns the slice of an owner, a rank. */
struct sar_slice sar_columns_slice(const struct sar_columns *columns, int owner);

/** Returns the values of the longest slice. */
size_t sar_columns_max_slice_len(const struct sar_columns *columns);

/** Returns the rank of a group that sends its index list to `receiver`, a rank of another group. Receivers
 * take turns, so that the ranks of a group send equally many lists. */
static inline int sar_columns_list_sender(const struct sar_columns *columns, int group, int receiver)
{
    int first = sar_columns_first_rank(columns, group);
    return first + receiver % (sar_columns_first_rank(columns, group + 1) - first);
}

/** Returns the vec_desc of a slice of the rows that desc describes. */
struct sar_vec_desc sar_columns_slice_desc(const struct sar_vec_desc *desc, struct sar_slice slice);

/** Changes the layout of rows to that of slices of `len` values. All lists of a row's indices are equal: no
 * slice drops its zeros. */
void sar_columns_slice_layout(const struct sar_columns *columns, size_t len, struct sar_wire_layout *layout);

/** Copies a slice of rows to new memory of the arena. The slice shares the row's indices.
 * @param desc  of the rows */
enum sar_status sar_columns_gather(const struct sar_vec_desc *desc, struct sar_slice slice,
                                   const struct sar_spvec *rows, struct sar_arena *arena,
                                   struct sar_spvec *out);

/** Copies values of slices into the rows of an array, which has room for vec->nnz rows. */
void sar_columns_scatter(const struct sar_vec_desc *desc, struct sar_slice slice, const struct sar_spvec *vec,
                         void *rows);

#endif
