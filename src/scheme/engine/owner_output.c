/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of the result of owner-based schemes. */

#include <math.h>

#include "scheme/engine/owner_internal.h"

static const double RESERVE_FACTOR = 1.05; /* over the predicted elements of the result */

/* The first call reserves memory for the predicted whole result. */
enum sar_status sar_owner_reserve(struct sar_task *task, size_t n)
{
    struct sar_spvec *out = &task->result.vec;
    size_t wanted = out->nnz + n;
    const struct sar_owner *o = task->state;
    if (o->parts.segments.n > 1 && out->index == NULL) {
        bool sliced = sar_columns_sliced(&o->parts.columns);
        double share = sliced           ? 1
                       : o->parts.pulls ? (double)o->parts.n_targets / task->comm->ranks
                                        : 1. / task->comm->ranks;
        double expected = sar_agreed_union_nnz(task->agreed, task->comm->ranks) * share * RESERVE_FACTOR;
        expected = fmin(expected, (double)task->agreed->desc.count);
        wanted = expected > (double)wanted ? (size_t)expected : wanted;
    }
    return sar_task_reserve(task, wanted, out);
}

struct sar_spvec sar_owner_free_output(const struct sar_task *task, const struct sar_vec_desc *desc)
{
    const struct sar_spvec *out = &task->result.vec;
    return (struct sar_spvec){ (unsigned char *)out->index + out->nnz * desc->index_size,
                               (unsigned char *)out->value + out->nnz * desc->element_size, 0 };
}
