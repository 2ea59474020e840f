/* SPDX-License-Identifier: BSD-3-Clause */
/* Balanced Parallelism (Zen): a hash assigns every element to a rank, so that all ranks own about equally
 * many elements of any input and of any result. Push to the owner, reduce there, pull from it.
 *
 * In the push no rank receives more than its share. With p ranks, and messages that take longer than their
 * latency,
 *
 *     time = 2 alpha + (p-1) (m(z/p) + m(z gamma^p / p)) beta + (2 z + z gamma^p) gamma
 *
 * z elements of the rank with most, m(z) bytes of a message of z elements, gamma^p the densification over
 * all ranks. With m(z) = 2 z s and without alpha and gamma this is the paper's Equation 1.
 *
 * It also serves the two halves of an allreduce: a reduce_scatter is a push to the owners that the caller
 * chooses, an allgather is a pull of the elements of all ranks. */

#include "scheme/engine/owner.h"
#include "scheme/scheme.h"

static const char *unsupported_reason(const struct sar_agreed *agreed)
{
    if (agreed->call.collective == SAR_ALLREDUCE)
        return sar_owner_unsupported_reason(agreed, sar_agreed_partition_map(agreed));
    return sar_owner_half_unsupported_reason(agreed);
}

static double seconds(const struct sar_agreed *a)
{
    struct sar_owner_cost_terms terms = sar_owner_collective_terms(a);
    return sar_owner_seconds(a, &terms);
}

/* Equation 1: (n-1)/n (gamma^n + 1) 2 M d, where M d are the bytes of one rank's values. */
static double paper_bytes(const struct sar_agreed *a)
{
    double ranks = a->machine.ranks, values = a->data.nnz_mean * (double)a->desc.element_size;
    return (ranks - 1) / ranks * (sar_densification_at(&a->data.densification, ranks) + 1) * 2 * values;
}

static void open(struct sar_task *task)
{
    struct sar_owner_cost_terms terms = sar_owner_collective_terms(task->agreed);
    if (terms.map.kind == SAR_PARTITION_RANGE && task->agreed->call.collective == SAR_ALLREDUCE)
        sar_owner_open(task, terms.map, NULL);
    else
        sar_owner_open_terms(task, &terms, NULL);
}

static bool on_device(const struct sar_agreed *agreed)
{
    return agreed->call.collective == SAR_ALLREDUCE &&
           sar_owner_columns_terms(agreed, 1).map.kind != SAR_PARTITION_RANGE;
}

static const struct sar_stage stages[] = { { .post = open }, SAR_OWNER_STAGES };

const struct sar_scheme sar_scheme_balanced = {
    .name = "balanced",
    .summary = "a hash gives each rank an equal share to reduce; push to the owner, pull from it",
    .collectives = 1u << SAR_ALLREDUCE | 1u << SAR_REDUCE_SCATTER | 1u << SAR_ALLGATHER,
    .unsupported_reason = unsupported_reason,
    .seconds = seconds,
    .paper_bytes = paper_bytes,
    .on_device = on_device,
    .partition_mask = (1u << SAR_PARTITIONS) - 1,
    .stages_to_push = 3,
    .state_size = sizeof(struct sar_owner),
    .stages = stages,
};
