/* SPDX-License-Identifier: BSD-3-Clause */
/* The work of a rank in owner-based schemes, for their price. */

#include <math.h>

#include "scheme/engine/owner_internal.h"
#include "vector/merge_bitmaps.h"
#include "vector/partition.h"

/* In elements of one value, as `mpix_sparse_perf --costs` measures them. */
static const double SLICE_COPY_WORK = 0.1, SLOT_WORK = 0.0025;

/* Returns the work on the longest slice of a row, in elements: gamma has a part for the first value, and one
 * for the bytes of the others. */
static double slice_work(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms)
{
    struct sar_slice slice = { 0, sar_columns_max_slice_len(&terms->columns) };
    if (!sar_columns_sliced(&terms->columns) || a->machine.gamma <= 0)
        return 1;
    struct sar_vec_desc desc = sar_columns_slice_desc(&a->desc, slice);
    struct sar_machine machine = a->machine;
    machine.gamma = sar_agreed_value_seconds(a);
    machine.memory *= sar_agreed_thread_ratio(a);
    return sar_agreed_element_seconds(&machine, &desc) / a->machine.gamma;
}

/* Returns the work that slices add, in elements. Rows of the input and of the result are copied slice by
 * slice, with several groups in addition to the copies of the partition and of the merge. An owner reduces
 * into the slots of a whole row group; work on slots is not in other prices, so that only the slots beyond
 * those of a rank's own part count. Within a node, a rank also reduces the parts of all peers and joins the
 * slices of its share of the rows. At the end it copies the rows of all shares. */
static double slicing_work(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms,
                           const struct sar_owner_estimate *estimate)
{
    double in_group = terms->group_ranks, sums = sar_agreed_union_nnz(a, a->machine.ranks);
    double slots = (double)terms->map.slots_max - (double)a->desc.count / a->machine.ranks;
    if (!sar_columns_sliced(&terms->columns) || a->machine.gamma <= 0)
        return 0;
    double reductions = in_group > 1 ? estimate->peers + 2 : 1, joined = in_group > 1 ? sums : 0;
    double row_pass = terms->columns.groups > 1
                          ? (double)a->desc.element_size * a->machine.memory * sar_agreed_thread_ratio(a)
                          : 0;
    double slices = sar_columns_max_slices(&terms->columns) * (a->data.nnz_max + sums / in_group) + joined,
           value = sar_agreed_value_seconds(a);
    double work = slices * SLICE_COPY_WORK + fmax(slots, 0) * SLOT_WORK * reductions;
    return (work * value + (a->data.nnz_max + sums / in_group) * row_pass) / a->machine.gamma;
}

static uint64_t stripes_of(const struct sar_partition_map *map)
{
    return map->slots_max >> map->grain_shift;
}

static bool merges_by_block(const struct sar_agreed *a, const struct sar_partition_map *map)
{
    double sums = sar_agreed_union_nnz(a, a->machine.ranks);
    return !sar_owner_is_contiguous(map) && !sar_owner_is_unowned(a, map) &&
           sar_partition_merges_by_block(map, stripes_of(map), (size_t)sums);
}

bool sar_owner_assembles(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms)
{
    return a->call.collective == SAR_ALLREDUCE && sar_merge_bitmaps_works(&terms->map) &&
           merges_by_block(a, &terms->map) && terms->group_ranks <= 1 && !sar_columns_sliced(&terms->columns);
}

/* Returns the work of putting the elements of the result in order: block by block, or, where the map has
 * many more blocks than elements, by a reduction. Of rows, formats count the work of a value themselves. */
static double merge_work_of(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms,
                            const struct sar_owner_estimate *estimate)
{
    const struct sar_partition_map *map = &terms->map;
    double sums = sar_agreed_union_nnz(a, a->machine.ranks), counted = 0;
    double blocks = (double)stripes_of(map) * map->parts;
    if (a->call.collective == SAR_REDUCE_SCATTER)
        return sums * terms->pull_share;
    if (!merges_by_block(a, map))
        return sums;
    double work = sar_wire_merge_work(sums, blocks);
    if (estimate->pull_policy.block > 0 && a->machine.gamma > 0)
        counted = work * sar_agreed_value_seconds(a) / a->machine.gamma;
    return fmax(fmin(work, sums) - counted, 0);
}

double sar_owner_reduce_work(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms)
{
    if (a->call.collective == SAR_ALLGATHER)
        return 0;
    return a->data.nnz_mean * a->machine.ranks * terms->push_share * slice_work(a, terms);
}

/* A rank partitions its own elements, reduces the part that it owns, and merges the parts of the result. In
 * a group it also reduces the elements of its node, and merges only its share of the result. The pull is
 * encoded once. */
double sar_owner_work(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms,
                      const struct sar_owner_estimate *estimate)
{
    double parts = estimate->peers + 1;
    double slice = slice_work(a, terms), merged = merge_work_of(a, terms, estimate);
    double readings = estimate->pull_policy.block > 0 ? parts : parts / 2;
    double coding = estimate->peers * estimate->push.work + readings * estimate->pull.work;
    double read = a->data.nnz_max + estimate->reduce_work;
    if (terms->group_ranks > 1)
        return read +
               parts * (sar_agreed_union_nnz(a, terms->group_ranks) + merged) * terms->push_share * slice +
               coding + slicing_work(a, terms, estimate);
    return read + merged + coding + slicing_work(a, terms, estimate);
}
