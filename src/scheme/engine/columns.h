/* SPDX-License-Identifier: BSD-3-Clause */
/* Ownership of rows in two dimensions. Owners have consecutive numbers, and form row groups. The partition
 * map gives each row to one group; the owners of the group own consecutive column slices of it:
 *
 *     owners 8, columns 4       columns  0..3  4..7  8..11 12..15
 *     rows of group 0                   owner 0     1     2     3
 *     rows of group 1                   owner 4     5     6     7
 *
 * With one group, no hash is needed: slices of a row differ by one value at most, and so do the parts,
 * whatever the indices are. With as many groups as ranks, each rank owns whole rows. If the columns do not
 * divide the ranks, the groups differ by one rank.
 *
 * Where each rank exchanges messages with all others, the number of an owner is its rank. In two_level each
 * rank of a node exchanges one share of every row, of consecutive slices; on every node the ranks of one
 * position have the same share. A group then consists of whole nodes. */

#ifndef SAR_SCHEME_ENGINE_COLUMNS_H
#define SAR_SCHEME_ENGINE_COLUMNS_H

#include "wire/wire.h"

/** Owners of rows and slices. Equal on all ranks. */
struct sar_columns {
    int ranks, groups;
    int shares;         /**< shares of a row: a rank exchanges messages with the owners of one share alone */
    size_t row_len;     /**< basic values of a row */
    size_t unit_values; /**< basic values of a unit: slices consist of whole units */
    size_t units;       /**< units of a row */
};

/** Values of a row that one rank owns. */
struct sar_slice {
    size_t begin, len; /**< in basic values */
};

/** Returns the ownership with at most `columns` slices of a row. A slice has at least 16 bytes, or one value.
 * Slices differ by one value at most; they have whole cache lines if they are then equal.
 * @param shares  divides the ranks. If not 1, each share has one slice or more of a row, and groups have
 *                equally many ranks; rows that are too short for this are not sliced */
struct sar_columns sar_columns_make(const struct sar_vec_desc *desc, int ranks, int shares, uint64_t columns);

/** Returns true if a row has several owners. */
static inline bool sar_columns_sliced(const struct sar_columns *columns)
{
    return columns->groups < columns->ranks;
}

/** Returns the first owner of a group; for `groups` the number of owners. */
static inline int sar_columns_first_owner(const struct sar_columns *columns, int group)
{
    return (int)((int64_t)columns->ranks * group / columns->groups);
}

/** Returns the group of an owner. */
static inline int sar_columns_group(const struct sar_columns *columns, int owner)
{
    return (int)((((int64_t)owner + 1) * columns->groups - 1) / columns->ranks);
}

/** Returns the most slices of a row. */
static inline int sar_columns_max_slices(const struct sar_columns *columns)
{
    return (columns->ranks + columns->groups - 1) / columns->groups;
}

/** Consecutive owners. */
struct sar_owner_range {
    int first, end;
};

/** Returns the owners of a share of a group's rows. */
static inline struct sar_owner_range sar_columns_owners(const struct sar_columns *columns, int group,
                                                        int share)
{
    int first = sar_columns_first_owner(columns, group);
    int n = sar_columns_first_owner(columns, group + 1) - first;
    return (struct sar_owner_range){ first + n * share / columns->shares,
                                     first + n * (share + 1) / columns->shares };
}

/** Returns the share that the slice of an owner belongs to. */
static inline int sar_columns_share(const struct sar_columns *columns, int owner)
{
    int group = sar_columns_group(columns, owner), first = sar_columns_first_owner(columns, group);
    return (owner - first) * columns->shares / (sar_columns_first_owner(columns, group + 1) - first);
}

/** Returns the slice of an owner. */
struct sar_slice sar_columns_slice(const struct sar_columns *columns, int owner);

/** Returns the slices of a share together; equal for all groups. */
struct sar_slice sar_columns_share_slice(const struct sar_columns *columns, int share);

/** Returns the values of the longest slice. */
size_t sar_columns_max_slice_len(const struct sar_columns *columns);

/** Returns the owner of a group that sends its index list to `receiver`, an owner of another group with the
 * same share. Receivers take turns, so that owners send equally many lists. */
static inline int sar_columns_list_sender(const struct sar_columns *columns, int group, int receiver)
{
    struct sar_owner_range owners = sar_columns_owners(columns, group, sar_columns_share(columns, receiver));
    return owners.first + receiver % (owners.end - owners.first);
}

/** Returns the vec_desc of a slice of the rows that desc describes. */
struct sar_vec_desc sar_columns_slice_desc(const struct sar_vec_desc *desc, struct sar_slice slice);

/** Changes the layout of rows to that of slices of `len` values. All lists of a row's indices are equal: no
 * slice drops its zeros. */
void sar_columns_slice_layout(const struct sar_columns *columns, size_t len, struct sar_wire_layout *layout);

/** Copies the values of a slice of rows to an array, which has room for them.
 * @param desc  of the rows */
void sar_columns_gather(const struct sar_vec_desc *desc, struct sar_slice slice, const struct sar_spvec *rows,
                        void *values);

/** Copies values of slices into the rows of an array, which has room for vec->nnz rows. */
void sar_columns_scatter(const struct sar_vec_desc *desc, struct sar_slice slice, const struct sar_spvec *vec,
                         void *rows);

/** As sar_columns_scatter, for the slices of some owners. Slices count from value `begin` of a row on.
 * @param slices  one for each of the owners, of equally many rows */
void sar_columns_join(const struct sar_columns *columns, const struct sar_vec_desc *desc, size_t begin,
                      struct sar_owner_range owners, const struct sar_spvec slices[], void *rows);

#endif
