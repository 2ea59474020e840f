/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/group.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COPIES = 4 }; /* a tensor is read and written on its way in, and again on its way out */

static size_t bytes_of(const struct sar_call *call)
{
    return (size_t)call->shape.count * call->shape.element_size;
}

/* No scheme has fewer messages, one after the other, than recursive doubling. */
static double latency(const struct sar_machine *machine)
{
    return ceil(log2(machine->ranks)) * machine->alpha;
}

bool sar_plan_is_small(const struct sar_plan *plan)
{
    const struct sar_machine *machine = &plan->context->machine;
    uint64_t most = plan->policy.config.fuse, bytes = bytes_of(plan->call);
    if (!plan->call->native || !plan->call->dense_face || machine->ranks == 1)
        return false;
    if (most != SAR_WHOLE_AUTO)
        return most != 0 && bytes <= most;
    return COPIES * (double)bytes * machine->memory <= latency(machine);
}

/* The tensor of the group is reduced in place, whatever its members ask for. */
bool sar_plans_are_alike(const struct sar_plan *a, const struct sar_plan *b)
{
    const struct sar_shape *left = &a->call->shape, *right = &b->call->shape;
    return a->context == b->context && a->family == b->family && left->base == right->base &&
           left->op == right->op && left->row == right->row;
}

static size_t members_of(const struct sar_plan *leader)
{
    size_t members = 0;
    for (const struct sar_plan *plan = leader; plan != NULL; plan = plan->companion)
        members++;
    return members;
}

static bool is_group_of(const struct sar_group *group, const struct sar_plan *leader)
{
    size_t i = 0;
    const struct sar_plan *plan = leader;
    for (; group != NULL && plan != NULL && i < group->members; plan = plan->companion)
        if (plan->number != group->numbers[i++])
            return false;
    return group != NULL && plan == NULL && i == group->members;
}

static void free_group(struct sar_group *group)
{
    sar_plan_close(&group->plan);
    free(group->tensor);
    free(group);
}

static struct sar_group *make(const struct sar_plan *leader, uint64_t bytes)
{
    size_t members = members_of(leader), i = 0;
    struct sar_group *group = calloc(1, sizeof *group + members * sizeof group->numbers[0]);
    if (group == NULL)
        return NULL;
    group->members = members;
    for (const struct sar_plan *plan = leader; plan != NULL; plan = plan->companion)
        group->numbers[i++] = plan->number;
    group->tensor = bytes < SIZE_MAX ? malloc((size_t)bytes + 1) : NULL;
    if (group->tensor != NULL && sar_plan_derive(leader, &group->plan) == SAR_OK)
        return group;
    free_group(group);
    return NULL;
}

static int64_t number_of(const struct sar_plan *leader)
{
    uint32_t digest = 0;
    for (const struct sar_plan *plan = leader; plan != NULL; plan = plan->companion)
        digest = sar_murmur3_wide(plan->number, digest);
    return (int64_t)members_of(leader) << SAR_GROUP_SHIFT | digest;
}

static uint64_t count_of(const struct sar_plan *leader)
{
    uint64_t count = 0;
    for (const struct sar_plan *plan = leader; plan != NULL; plan = plan->companion)
        count = sar_plus(count, plan->call->shape.count);
    return count;
}

static bool has_device_memory(const struct sar_plan *leader)
{
    const struct sar_plan *plan = leader;
    while (plan != NULL && plan->call->memory.accelerator == NULL)
        plan = plan->companion;
    return plan != NULL;
}

static void describe(const struct sar_plan *leader, struct sar_call *call)
{
    *call = *leader->call;
    call->in_place = true;
    call->gathered = has_device_memory(leader);
    call->memory.accelerator = NULL;
    call->shape.count = count_of(leader);
    call->shape.index_size = sar_index_size(call->shape.count);
    call->field[SAR_FIELD_PLANS] = number_of(leader);
    call->field[SAR_FIELD_COUNT] = (int64_t)call->shape.count;
    call->field[SAR_FIELD_IN_PLACE] = true;
    call->buffers.sendbuf = MPI_IN_PLACE;
    call->buffers.count = sar_times(call->shape.count, call->shape.row);
}

void sar_group_prepare(struct sar_plan *leader, struct sar_call *call)
{
    describe(leader, call);
    if (!is_group_of(leader->group, leader)) {
        sar_group_close(leader);
        leader->group = make(leader, sar_times(call->shape.count, call->shape.element_size));
    }
    if (leader->group == NULL)
        call->verdict.status = SAR_NO_MEMORY;
    else
        call->buffers.recvbuf = leader->group->tensor;
}

void sar_group_gather(const struct sar_plan *leader)
{
    unsigned char *at = leader->group->tensor;
    for (const struct sar_plan *plan = leader; plan != NULL; plan = plan->companion) {
        const struct sar_dense_call *buffers = &plan->call->buffers;
        size_t bytes = bytes_of(plan->call);
        if (bytes != 0)
            memcpy(at, plan->call->in_place ? buffers->recvbuf : buffers->sendbuf, bytes);
        at += bytes;
    }
}

void sar_group_scatter(const struct sar_plan *leader)
{
    const unsigned char *at = leader->group->tensor;
    for (const struct sar_plan *plan = leader; plan != NULL; plan = plan->companion) {
        size_t bytes = bytes_of(plan->call);
        if (bytes != 0)
            memcpy(plan->call->buffers.recvbuf, at, bytes);
        at += bytes;
    }
}

void sar_group_close(struct sar_plan *leader)
{
    if (leader->group != NULL)
        free_group(leader->group);
    leader->group = NULL;
}
