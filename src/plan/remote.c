/* SPDX-License-Identifier: BSD-3-Clause */
/* Vectors in device memory. The device counts and compacts, and scatters the outcome, so that only
 * elements travel; a scheme that works on vectors has them fetched, and written back by whoever made the
 * mirrors. */

#include "plan/steps.h"

static struct sar_mirror *input_of(struct sar_call *call)
{
    return &call->mirror[call->in_place ? 1 : 0];
}

enum sar_status sar_remote_count(struct sar_pending *op)
{
    struct sar_call *call = op->call;
    return sar_offload_count(&call->memory, &call->shape, input_of(call)->device, &op->counted);
}

/* Elements that could not be counted have no room. */
enum sar_status sar_remote_compact(struct sar_pending *op)
{
    struct sar_call *call = op->call;
    struct sar_run *run = &op->request.input;
    if (call->verdict.status != SAR_OK)
        return SAR_OK;
    run->nnz = op->counted;
    return sar_offload_compact(&call->memory, &call->shape, input_of(call)->device, op->room, run);
}

enum sar_status sar_remote_fetch(struct sar_pending *op)
{
    return sar_mirrors_read(&op->call->memory, op->call->mirror, 2);
}

enum sar_status sar_remote_write(struct sar_pending *op, const struct sar_delivery *outcome)
{
    struct sar_call *call = op->call;
    struct sar_mirror *mirror = &call->mirror[1];
    mirror->out = false;
    return sar_offload_write(&call->memory, &call->shape, mirror->device, outcome);
}

void sar_remote_end(struct sar_pending *op)
{
    sar_mirror_release(&op->room[0]);
    sar_mirror_release(&op->room[1]);
}
