/* SPDX-License-Identifier: BSD-3-Clause */
/* Contiguous parts: their bounds, their predicted shares, and how vectors are split at them. */

#include "scheme/engine/range_parts.h"

#include <math.h>

#include "scheme/engine/spread.h"
#include "vector/spvec.h"

struct sar_partition_map sar_range_parts_map(const struct sar_agreed *a)
{
    return sar_partition_map_make(SAR_PARTITION_RANGE, a->desc.count, (uint32_t)a->machine.ranks, 1, 0);
}

/* At least the variation by chance, also for a tensor without a profile. */
double sar_range_parts_max_share(const struct sar_agreed *a)
{
    return fmin(fmax(a->data.skewness, sar_agreed_max_push_load(a, a->machine.ranks)) / a->machine.ranks, 1);
}

/* Where quantiles are unknown: an exponent of 1 if no two ranks have an index in common. It was chosen to fit
 * the shares of tensors that are as skewed as those of the paper's models. */
static double guessed_imbalance(const struct sar_agreed *a, double ratio, double k)
{
    return fmax(pow(a->data.skewness, sqrt(ratio / k)), sar_agreed_max_load(a, a->machine.ranks, k, 1));
}

/* At least the variation by chance. Where quantiles are unknown, also at least the elements of one rank. */
double sar_range_parts_max_union_share(const struct sar_agreed *a, double k)
{
    double ratio = fmax(sar_densification_at(&a->data.densification, k), 1), ranks = a->machine.ranks;
    if (sar_spread_is_known(a)) {
        double even = 1 / ranks, chance = sar_agreed_max_load(a, ranks, k, 1) * even;
        if (sar_spread_is_even(a))
            return fmin(chance, 1);
        struct sar_spread spread = sar_spread_make(a, k);
        return fmin(fmax(sar_spread_max_share(&spread, a->machine.ranks, 1), chance), 1);
    }
    double share = guessed_imbalance(a, ratio, k) / ranks;
    return fmin(fmax(share, sar_range_parts_max_share(a) / ratio), 1);
}

double sar_range_parts_even_share(const struct sar_partition_map *map)
{
    return map->slots_max < map->count ? (double)map->slots_max / (double)map->count : 1;
}

enum sar_status sar_range_parts_bounds(struct sar_task *task, const struct sar_partition_map *map,
                                       const uint64_t **bounds)
{
    uint64_t *made;
    SAR_TRY(sar_task_alloc(task, (size_t)map->parts + 1, sizeof *made, &made));
    for (uint32_t r = 0; r < map->parts; r++)
        made[r + 1] = made[r] + sar_partition_map_slots(map, r);
    *bounds = made;
    return SAR_OK;
}

struct sar_wire_layout sar_range_parts_layout(const struct sar_task *task, const uint64_t *bounds, int rank)
{
    uint64_t slots = bounds[rank + 1] - bounds[rank];
    return sar_agreed_layout(task->agreed, slots, sar_index_size(slots));
}

enum sar_status sar_range_parts_split(struct sar_task *task, const uint64_t *bounds, struct sar_spvec parts[])
{
    const struct sar_vec_desc *desc = &task->agreed->desc;
    struct sar_span span = sar_task_span(task, "partition");
    size_t from = 0;
    for (int r = 0; r < task->comm->ranks; r++) {
        size_t to = sar_spvec_lower_bound(desc, &task->input.vec, from, bounds[r + 1]);
        unsigned index_size = sar_range_parts_layout(task, bounds, r).index_size;
        parts[r] = sar_spvec_slice(desc, &task->input.vec, from, to);
        SAR_TRY(sar_spvec_rebase(desc, bounds[r], index_size, task->memory.step_arena, &parts[r]));
        from = to;
    }
    span.work = sar_span_work_make("rebase", task->input.vec.nnz, desc->element_size, 0);
    sar_task_span_end(task, &span);
    return SAR_OK;
}

enum sar_status sar_range_parts_write_output(struct sar_task *task, const uint64_t *bounds,
                                             const struct sar_spvec parts[])
{
    struct sar_spvec *out = &task->result.vec;
    struct sar_span span = sar_task_span(task, "deliver");
    size_t nnz = 0;
    for (int r = 0; r < task->comm->ranks; r++)
        nnz += parts[r].nnz;
    SAR_TRY(sar_task_reserve(task, nnz, out));
    for (int r = 0; r < task->comm->ranks; r++)
        sar_spvec_append(&task->agreed->desc, &parts[r], sar_range_parts_layout(task, bounds, r).index_size,
                         bounds[r], out);
    span.work = sar_span_work_make("append", nnz, task->agreed->desc.element_size, 0);
    sar_task_span_end(task, &span);
    return SAR_OK;
}
