/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans and fusions. Opening a plan costs some collectives; a start of a fusion costs one copy of the
 * members' vectors in and one out. */

#include "core/persistent.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/policy.h"

enum { COPY_PASSES = 4 }; /* reads and writes of a member's vector: packing and unpacking */

/* Any open plan with equal settings gives the number, because ranks may have closed different ones. */
static uint64_t config_id_of(const struct sar_comm_state *comm_state, const struct sar_plan *made)
{
    size_t at;
    for (const struct sar_plan *plan = comm_state->plans.first; plan != NULL; plan = plan->next)
        if (sar_config_equal(&plan->policy.config, &made->policy.config, &at))
            return plan->config_id;
    return made->id;
}

static void list_plan(struct sar_comm_state *comm_state, struct sar_plan *plan)
{
    plan->comm_state = comm_state;
    plan->next = comm_state->plans.first;
    comm_state->plans.first = plan;
}

static enum sar_status alloc_bounds(const struct sar_comm_state *comm_state, struct sar_plan *plan)
{
    plan->tensor.oktopk.begin =
        malloc(((size_t)comm_state->comm.ranks + 1) * sizeof *plan->tensor.oktopk.begin);
    return plan->tensor.oktopk.begin == NULL ? SAR_NO_MEMORY : SAR_OK;
}

enum sar_status sar_plan_open(struct sar_comm_state *comm_state, const struct sar_config_layer *hints,
                              const struct sar_call_args *args, struct sar_plan *plan, char *error_text)
{
    struct sar_config config = comm_state->settings.policy.config;
    const struct sar_comm *comm = &comm_state->comm;
    *plan = (struct sar_plan){ .args = args };
    SAR_TRY(sar_policy_apply_hints(comm, hints, &config, error_text));
    SAR_TRY(sar_policy_check_late(&comm_state->settings.policy.config, &config, error_text));
    sar_policy_warn_threads(comm, &config);
    plan->policy = sar_policy_make(&config, comm_state->settings.policy.partition.seed);
    plan->policy.thread_ratio = comm_state->settings.policy.thread_ratio;
    if (config.threads != comm_state->settings.policy.config.threads)
        SAR_TRY(sar_policy_measure_threads(comm, &plan->policy));
    plan->id = comm_state->plans.made++;
    plan->config_id = config_id_of(comm_state, plan);
    enum sar_status status = sar_comm_max_status(comm, alloc_bounds(comm_state, plan));
    if (status == SAR_OK)
        list_plan(comm_state, plan);
    else
        sar_plan_close(plan);
    return status;
}

/* Open a plan with the settings and communicator of another. */
static enum sar_status derive(const struct sar_plan *from, struct sar_plan *plan)
{
    *plan = (struct sar_plan){ .policy = from->policy, .config_id = from->config_id };
    SAR_TRY(alloc_bounds(from->comm_state, plan));
    list_plan(from->comm_state, plan);
    return SAR_OK;
}

void sar_plan_close(struct sar_plan *plan)
{
    struct sar_comm_state *comm_state = plan->comm_state;
    sar_fusion_close(plan);
    free(plan->tensor.oktopk.begin);
    plan->tensor.oktopk.begin = NULL;
    if (comm_state == NULL)
        return;
    if (comm_state->feedback.tensor == &plan->tensor)
        comm_state->feedback.tensor = NULL;
    struct sar_plan **at = &comm_state->plans.first;
    while (*at != plan)
        at = &(*at)->next;
    *at = plan->next;
}

static size_t bytes_of(const struct sar_call_args *args)
{
    return (size_t)args->sig.desc.count * args->sig.desc.element_size;
}

/* Recursive doubling has the fewest messages in sequence of all schemes. */
static double latency(const struct sar_machine *machine)
{
    return ceil(log2(machine->ranks)) * machine->alpha;
}

bool sar_fusion_accepts(const struct sar_plan *plan)
{
    const struct sar_machine *machine = &plan->comm_state->settings.machine;
    uint64_t bytes_max = plan->policy.config.fuse, bytes = bytes_of(plan->args);
    bool fits =
        plan->args->sig.native && plan->args->sig.dense_face && plan->args->sig.collective == SAR_ALLREDUCE;
    if (!fits || machine->ranks == 1)
        return false;
    if (bytes_max != SAR_U64_AUTO)
        return bytes_max != 0 && bytes <= bytes_max;
    return COPY_PASSES * (double)bytes * machine->memory <= latency(machine);
}

/* in_place may differ, since the fusion is always reduced in place. */
bool sar_fusion_compatible(const struct sar_plan *a, const struct sar_plan *b)
{
    const struct sar_vec_desc *a_desc = &a->args->sig.desc, *b_desc = &b->args->sig.desc;
    return a->comm_state == b->comm_state && a->config_id == b->config_id && a_desc->dtype == b_desc->dtype &&
           a_desc->op == b_desc->op && a_desc->row_len == b_desc->row_len;
}

static size_t count_members(const struct sar_plan *leader)
{
    size_t members = 0;
    for (const struct sar_plan *plan = leader; plan != NULL; plan = plan->next_fused)
        members++;
    return members;
}

static bool is_fusion_of(const struct sar_fusion *fusion, const struct sar_plan *leader)
{
    size_t i = 0;
    const struct sar_plan *plan = leader;
    for (; fusion != NULL && plan != NULL && i < fusion->members; plan = plan->next_fused)
        if (plan->id != fusion->ids[i++])
            return false;
    return fusion != NULL && plan == NULL && i == fusion->members;
}

static void free_fusion(struct sar_fusion *fusion)
{
    sar_plan_close(&fusion->plan);
    free(fusion->buffer);
    free(fusion);
}

static struct sar_fusion *make_fusion(const struct sar_plan *leader, uint64_t bytes)
{
    size_t members = count_members(leader), i = 0;
    struct sar_fusion *fusion = calloc(1, sizeof *fusion + members * sizeof fusion->ids[0]);
    if (fusion == NULL)
        return NULL;
    fusion->members = members;
    for (const struct sar_plan *plan = leader; plan != NULL; plan = plan->next_fused)
        fusion->ids[i++] = plan->id;
    fusion->buffer = bytes < SIZE_MAX ? malloc((size_t)bytes + 1) : NULL;
    if (fusion->buffer != NULL && derive(leader, &fusion->plan) == SAR_OK)
        return fusion;
    free_fusion(fusion);
    return NULL;
}

static void describe_args(const struct sar_plan *leader, struct sar_call_args *args)
{
    uint64_t count = 0;
    uint32_t digest = 0;
    bool on_device = false;
    for (const struct sar_plan *plan = leader; plan != NULL; plan = plan->next_fused) {
        count = sar_add_saturate(count, plan->args->sig.desc.count);
        digest = sar_murmur3_u64(plan->id, digest);
        on_device |= plan->args->device.memory.accelerator != NULL;
    }
    *args = *leader->args;
    args->sig.in_place = true;
    args->device.fused = on_device;
    args->device.memory.accelerator = NULL;
    args->sig.desc.count = count;
    args->sig.desc.index_size = sar_index_size(count);
    args->sig.field[SAR_AGREE_FUSION] = (int64_t)count_members(leader) << SAR_FUSION_SHIFT | digest;
    args->sig.field[SAR_AGREE_COUNT] = (int64_t)count;
    args->sig.field[SAR_AGREE_IN_PLACE] = true;
    args->data.buffers.sendbuf = MPI_IN_PLACE;
    args->data.buffers.count = sar_mul_saturate(count, args->sig.desc.row_len);
}

void sar_fusion_prepare(struct sar_plan *leader, struct sar_call_args *args)
{
    describe_args(leader, args);
    if (!is_fusion_of(leader->fusion, leader)) {
        sar_fusion_close(leader);
        leader->fusion =
            make_fusion(leader, sar_mul_saturate(args->sig.desc.count, args->sig.desc.element_size));
    }
    if (leader->fusion == NULL)
        args->result.error.status = SAR_NO_MEMORY;
    else
        args->data.buffers.recvbuf = leader->fusion->buffer;
}

void sar_fusion_pack(const struct sar_plan *leader)
{
    unsigned char *at = leader->fusion->buffer;
    for (const struct sar_plan *plan = leader; plan != NULL; plan = plan->next_fused) {
        const struct sar_dense_args *buffers = &plan->args->data.buffers;
        size_t bytes = bytes_of(plan->args);
        if (bytes != 0)
            memcpy(at, plan->args->sig.in_place ? buffers->recvbuf : buffers->sendbuf, bytes);
        at += bytes;
    }
}

void sar_fusion_unpack(const struct sar_plan *leader)
{
    const unsigned char *at = leader->fusion->buffer;
    for (const struct sar_plan *plan = leader; plan != NULL; plan = plan->next_fused) {
        size_t bytes = bytes_of(plan->args);
        if (bytes != 0)
            memcpy(plan->args->data.buffers.recvbuf, at, bytes);
        at += bytes;
    }
}

void sar_fusion_close(struct sar_plan *leader)
{
    if (leader->fusion != NULL)
        free_fusion(leader->fusion);
    leader->fusion = NULL;
}
