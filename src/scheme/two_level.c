/* SPDX-License-Identifier: BSD-3-Clause */
/* Two levels: the sums of a node cross the network once. A partition map gives each of the p ranks a part
 * of the vector, as in Balanced Parallelism (Zen).
 *
 *  1. Node. Each rank puts its elements, by part, in a shared buffer. For every part that a rank of another
 *     node owns, one rank of this node reduces the elements of the node. Each rank serves an equal number
 *     of parts.
 *  2. Push, between nodes. The rank sends these sums to the owner, which adds the sums of all nodes.
 *  3. Pull, between nodes. The owner sends the result to the ranks that it has received from.
 *  4. Node. Each rank now has its share of the result; `shared` combines the shares, in memory that the
 *     ranks of the node share.
 *
 * Push and pull work in segments (scheme/engine/owner.h): while one segment is in flight, ranks reduce the
 * node's elements of the next one, and write earlier ones to the output.
 *
 * A rank that cannot share memory, now or in the call before, says so at the first barrier of its node, and
 * the node's pushes tell the other nodes: then all ranks retry without shared memory. A later failure fails
 * the call.
 *
 * If nodes have equally many ranks, each rank exchanges messages only with the ranks of its position on
 * other nodes. Rows (elements of several values) may then be sliced (scheme/engine/columns.h): a rank
 * exchanges one share of every row, and the nodes divide this share by row groups and further slices. Slices
 * are staged one by one, so that a rank reads its share alone. At the end all ranks of a node know all rows
 * of the result, and `shared` joins their shares.
 *
 * A reduce_scatter has the first two steps, with the caller's map, and a last barrier of the node.
 *
 * Elements are added in the order of ranks on each node, and the nodes' sums in the order of nodes, which is
 * that of their lowest ranks: equal on all ranks, and in every run.
 *
 *     time = t + (s+4) z mu + P(k-1 peers, m(U/p), m(Z/p), 2 z + U/q + Z/q) + shared's for q ranks with Z/q
 *            elements each
 *
 * k nodes of q ranks; z elements of a rank, U of a node and Z of the result; t a barrier, s bytes of an
 * element, mu seconds for a byte in memory, m the bytes of a message of this many elements, P the time of
 * sar_owner_seconds. A rank sends one part in q of its node's elements, where `balanced` sends all its
 * own; with sliced rows one part in q of the values, and all indices. */

#include <stddef.h>
#include <string.h>

#include "comm/shm/group.h"
#include "scheme/engine/owner.h"
#include "scheme/scheme.h"
#include "scheme/shared.h"
#include "vector/spvec.h"

enum {
    BUFFER_PARTS = SAR_SHM_BUFFERS - 1, /* the shared buffer for staged parts */
    SLOT_BYTES = 4                      /* of a slot in a staged part */
};

static const double BARRIER_SECONDS = 0.5; /* of the latency within the node */

/* A rank's elements in its shared buffer, in cells: one for each part of each segment. The values of a cell
 * of sliced rows are slice by slice. */
struct staged_parts {
    uint64_t *begin;      /* first element of each cell, then the number of elements */
    struct sar_spvec vec; /* all elements, with slots as indices */
};

struct state {
    struct sar_owner owner;                /* first; between nodes */
    struct sar_shm_coll_msg node_msg;      /* at the first barrier of the node */
    bool calls_differ;                     /* ranks of the node make different calls, which end there */
    struct staged_parts *all_staged_parts; /* of each rank of this node */
    struct sar_spvec *node_vecs;           /* scratch for a reduction: one for each rank of this node */
    struct sar_shared_output share_output; /* receives this rank's share of the result */
    struct sar_output_dest *caller_output;
    struct sar_comm node;     /* the ranks of this node */
    struct sar_agreed agreed; /* of the inner task */
    struct sar_task inner;    /* runs `shared` on the shares of this node */
    _Alignas(max_align_t) unsigned char inner_state[SAR_SHARED_STATE_BYTES];
};

static bool scatters(const struct sar_agreed *a)
{
    return a->call.collective == SAR_REDUCE_SCATTER;
}

static struct sar_partition_map map_of(const struct sar_agreed *a)
{
    return scatters(a) ? sar_agreed_block_map(a) : sar_agreed_partition_map(a);
}

static const char *unsupported_reason(const struct sar_agreed *a)
{
    const char *reason = sar_agreed_sparse_unsupported(a);
    if (reason != NULL)
        return reason;
    if (!a->topo.shared_memory)
        return a->topo.nodes == a->machine.ranks ? "every rank is a node" : "ranks do not share memory";
    return map_of(a).slots_max > UINT32_MAX ? "parts of more than 2^32 slots" : NULL;
}

static const char *redundant_reason(const struct sar_agreed *a)
{
    if (a->topo.nodes > 1)
        return NULL;
    return scatters(a) ? "one node: nothing crosses the network" : "one node: shared does it in one step";
}

/* Returns the agreed numbers for `shared` on one node, whose ranks each have an equal share of the result. */
static struct sar_agreed inner_agreed(const struct sar_agreed *a, int ranks)
{
    struct sar_agreed inner = *a;
    double result = sar_agreed_union_nnz(a, a->machine.ranks);
    inner.machine.ranks = ranks;
    inner.machine.alpha = a->machine.intra_alpha;
    inner.machine.overhead = a->machine.intra_overhead;
    inner.machine.beta = a->machine.intra_beta;
    inner.topo.nodes = 1;
    inner.topo.node_ranks = ranks;
    inner.desc.absent_is_zero = false;
    inner.data.disjoint = true;
    inner.data.nnz_mean = inner.data.nnz_max = result / ranks;
    inner.data.densification = (struct sar_densification){ ranks > 1 ? 2 : 1, { 1, ranks }, { 1, ranks } };
    return inner;
}

static double seconds(const struct sar_agreed *a)
{
    struct sar_owner_cost_terms terms = scatters(a) ? sar_owner_scatter_terms(a, a->topo.node_ranks)
                                                    : sar_owner_columns_terms(a, a->topo.node_ranks);
    double staged_bytes = a->data.nnz_mean * (double)(a->desc.element_size + SLOT_BYTES);
    struct sar_agreed inner = inner_agreed(a, a->topo.node_ranks);
    double last = scatters(a) ? BARRIER_SECONDS * a->machine.intra_alpha : sar_scheme_shared.seconds(&inner);
    return BARRIER_SECONDS * a->machine.intra_alpha + staged_bytes * a->machine.memory +
           sar_owner_seconds(a, &terms) + last;
}

static int node_of(const struct sar_task *task)
{
    return task->comm->nodes.node[task->comm->rank];
}

static int node_size(const struct sar_task *task)
{
    return sar_nodes_size(&task->comm->nodes, node_of(task));
}

/* This rank sends to itself, and to owners on other nodes that it serves. */
static bool sends_to(const struct sar_task *task, int owner)
{
    const struct sar_nodes *nodes = &task->comm->nodes;
    int node = node_of(task);
    if (nodes->node[owner] == node)
        return owner == task->comm->rank;
    return sar_nodes_partner(nodes, node, owner) == task->comm->rank;
}

/* One rank of each node, in the order of nodes. */
static int source(const struct sar_task *task, int i)
{
    const struct sar_nodes *nodes = &task->comm->nodes;
    if (i >= nodes->n)
        return -1;
    return i == node_of(task) ? task->comm->rank : sar_nodes_partner(nodes, i, task->comm->rank);
}

/* Sliced rows: owners of a group have the numbers of its first share, one for each of its nodes, then those
 * of the second share, and so on. */
static int nodes_of_group(const struct sar_task *task)
{
    const struct state *state = task->state;
    return task->comm->nodes.n / state->owner.parts.columns.groups;
}

static int number(const struct sar_task *task, int rank)
{
    const struct sar_nodes *nodes = &task->comm->nodes;
    int n = nodes_of_group(task), node = nodes->node[rank];
    return (node / n * nodes->max_ranks + nodes->local_rank[rank]) * n + node % n;
}

static int rank_of(const struct sar_task *task, int number)
{
    const struct sar_nodes *nodes = &task->comm->nodes;
    int n = nodes_of_group(task), share = number / n;
    int node = share / nodes->max_ranks * n + number % n;
    return nodes->ranks[nodes->first[node] + share % nodes->max_ranks];
}

static size_t cells_of(const struct sar_task *task, uint32_t segments)
{
    const struct state *state = task->state;
    return (size_t)segments * state->owner.parts.map.parts;
}

static size_t all_cells(const struct sar_task *task)
{
    const struct state *state = task->state;
    return cells_of(task, state->owner.parts.segments.n);
}

/* The memory holds the bounds of the cells, the slots and the values of nnz elements. */
static struct staged_parts staged_parts_at(void *memory, size_t cells, size_t nnz)
{
    unsigned char *slots = (unsigned char *)memory + sar_align_up((cells + 1) * sizeof(uint64_t));
    return (struct staged_parts){ memory, { slots, slots + sar_align_up(nnz * SLOT_BYTES), nnz } };
}

/* Returns the memory of the elements from a cell on. */
static struct sar_spvec cell_at(const struct staged_parts *staged_parts, const struct sar_vec_desc *desc,
                                size_t cell)
{
    size_t begin = (size_t)staged_parts->begin[cell];
    struct sar_vec_desc staged = *desc;
    staged.index_size = SLOT_BYTES;
    return sar_spvec_slice(&staged, &staged_parts->vec, begin, begin);
}

/* Returns the slice of the elements of a cell. */
static struct sar_spvec slice_at(const struct staged_parts *staged_parts, const struct sar_vec_desc *desc,
                                 size_t cell, struct sar_slice slice)
{
    struct sar_spvec vec = cell_at(staged_parts, desc, cell);
    vec.nnz = (size_t)(staged_parts->begin[cell + 1] - staged_parts->begin[cell]);
    vec.value = (unsigned char *)vec.value + vec.nnz * slice.begin * (desc->element_size / desc->row_len);
    return vec;
}

static enum sar_status reserve_staged_parts(struct sar_task *task, struct staged_parts *staged_parts)
{
    struct state *state = task->state;
    struct sar_shm_buffer *buffer = &task->comm->shm_group->buffers[BUFFER_PARTS];
    size_t cells = all_cells(task), nnz = task->input.vec.nnz;
    uint64_t bytes = sar_add_saturate(sar_mul_saturate(nnz, task->agreed->desc.element_size + SLOT_BYTES),
                                      sar_mul_saturate(cells + 1, sizeof(uint64_t)) + 3 * SAR_ALIGNMENT);
    SAR_TRY(sar_shm_buffer_reserve(buffer, bytes));
    sar_shm_buffer_announce(task->comm->shm_group, buffer);
    state->node_msg.buffer = buffer->handle;
    *staged_parts = staged_parts_at(buffer->own.memory, cells, nnz);
    staged_parts->begin[0] = 0;
    return SAR_OK;
}

/* Copies the elements of a segment, whole: one part after the other. */
static enum sar_status stage_whole(struct sar_task *task, uint32_t segment,
                                   const struct staged_parts *staged_parts, struct sar_spvec *parts)
{
    struct sar_spvec memory = cell_at(staged_parts, &task->agreed->desc, cells_of(task, segment));
    return sar_owner_split(task, segment, &memory, parts);
}

/* Copies the rows of a segment, each row group slice by slice. Its slices share the indices. */
static enum sar_status stage_slices(struct sar_task *task, uint32_t segment,
                                    const struct staged_parts *staged_parts, struct sar_spvec *rows)
{
    const struct state *state = task->state;
    const struct sar_columns *columns = &state->owner.parts.columns;
    const struct sar_vec_desc *desc = &task->agreed->desc;
    size_t value_size = desc->element_size / desc->row_len;
    struct sar_spvec to = cell_at(staged_parts, desc, cells_of(task, segment));
    SAR_TRY(sar_owner_split_rows(task, segment, rows));
    for (int g = 0; g < columns->groups; g++) {
        if (rows[g].nnz != 0)
            memcpy(to.index, rows[g].index, rows[g].nnz * SLOT_BYTES);
        for (int i = sar_columns_first_owner(columns, g); i < sar_columns_first_owner(columns, g + 1); i++) {
            struct sar_slice slice = sar_columns_slice(columns, i);
            sar_columns_gather(desc, slice, &rows[g],
                               (unsigned char *)to.value + rows[g].nnz * slice.begin * value_size);
        }
        to.index = (unsigned char *)to.index + rows[g].nnz * SLOT_BYTES;
        to.value = (unsigned char *)to.value + rows[g].nnz * desc->element_size;
    }
    return SAR_OK;
}

static enum sar_status stage_parts(struct sar_task *task)
{
    const struct state *state = task->state;
    struct sar_spvec *parts;
    struct staged_parts staged_parts;
    size_t n = state->owner.parts.map.parts;
    bool sliced = sar_columns_sliced(&state->owner.parts.columns);
    SAR_TRY(sar_task_alloc(task, n, sizeof *parts, &parts));
    SAR_TRY(reserve_staged_parts(task, &staged_parts));
    for (uint32_t segment = 0; segment < state->owner.parts.segments.n; segment++) {
        uint64_t *begin = staged_parts.begin + cells_of(task, segment);
        sar_task_next_step_arena(task);
        SAR_TRY(sliced ? stage_slices(task, segment, &staged_parts, parts)
                       : stage_whole(task, segment, &staged_parts, parts));
        for (size_t p = 0; p < n; p++)
            begin[p + 1] = begin[p] + parts[p].nnz;
    }
    return SAR_OK;
}

static enum sar_status copy_in(struct sar_task *task)
{
    struct state *state = task->state;
    size_t n = (size_t)node_size(task);
    state->node_msg.minus_zero = task->minus_zero;
    if (sar_shm_group_failed(task->comm->shm_group))
        return SAR_SHM_RETRY;
    SAR_TRY(sar_task_alloc(task, n, sizeof *state->all_staged_parts, &state->all_staged_parts));
    SAR_TRY(sar_task_alloc(task, n, sizeof *state->node_vecs, &state->node_vecs));
    enum sar_status status = n > 1 ? stage_parts(task) : SAR_OK;
    if (sar_shm_region_is_unavailable(status))
        sar_shm_group_set_error(task->comm->shm_group, status);
    return sar_shm_region_is_unavailable(status) ? SAR_SHM_RETRY : status;
}

static void barrier_input(struct sar_task *task)
{
    struct state *state = task->state;
    state->node_msg.status = (int64_t)task->exchange.status;
    if (node_size(task) > 1)
        sar_shm_coll_post(task, "first step of scheme two_level", &state->node_msg);
}

static enum sar_status map_staged_parts(struct sar_task *task)
{
    struct state *state = task->state;
    struct sar_shm_group *group = task->comm->shm_group;
    size_t cells = all_cells(task);
    void *memory;
    if (node_size(task) > 1 && sar_shm_coll_calls_differ(task))
        return SAR_CORRUPT;
    for (int i = 0; i < node_size(task) && node_size(task) > 1; i++) {
        const struct sar_shm_coll_msg *node_msg = sar_shm_coll_msg_of(task, i);
        if (node_msg->status != SAR_OK)
            return SAR_PEER_FAILED;
        SAR_TRY(sar_shm_buffer_attach(&group->buffers[BUFFER_PARTS], i, &node_msg->buffer, &memory));
        state->all_staged_parts[i] =
            staged_parts_at(memory, cells, (size_t)((const uint64_t *)memory)[cells]);
        task->minus_zero |= node_msg->minus_zero != 0;
    }
    return SAR_OK;
}

/* With several ranks on the node, stage_parts has partitioned all segments already. */
static enum sar_status split(struct sar_task *task, uint32_t segment, struct sar_spvec *parts)
{
    return node_size(task) > 1 ? SAR_OK : sar_owner_split(task, segment, NULL, parts);
}

/* Reduces the node's elements of a part. */
static enum sar_status combine(struct sar_task *task, uint32_t segment, int owner, struct sar_spvec *part)
{
    struct state *state = task->state;
    struct sar_vec_desc desc = sar_owner_part_desc(task, owner, segment);
    size_t cell = cells_of(task, segment) + (size_t)sar_owner_group(task, owner);
    int n = node_size(task);
    if (n == 1)
        return SAR_OK;
    for (int i = 0; i < n; i++)
        state->node_vecs[i] =
            slice_at(&state->all_staged_parts[i], &task->agreed->desc, cell, sar_owner_slice(task, owner));
    return sar_task_reduce(task, &desc, state->node_vecs, (size_t)n, part);
}

/* Uses the messages of the barrier alone, which are equal on all ranks of the node. */
static void resolve_failure(struct sar_task *task)
{
    struct state *state = task->state;
    int64_t worst = state->node_msg.status;
    state->calls_differ = node_size(task) > 1 && sar_shm_coll_calls_differ(task);
    if (state->calls_differ) {
        sar_shm_group_reset_buffer(task->comm->shm_group);
        worst = SAR_CORRUPT;
    }
    for (int i = 0; i < node_size(task) && node_size(task) > 1 && !state->calls_differ; i++) {
        const struct sar_shm_coll_msg *node_msg = sar_shm_coll_msg_of(task, i);
        worst = node_msg->status > worst ? node_msg->status : worst;
    }
    if (worst != SAR_OK)
        sar_owner_propagate_failure(task, worst == SAR_SHM_RETRY ? SAR_OWNER_SHM_RETRY : SAR_OWNER_FAILURE);
}

static enum sar_status begin(struct sar_task *task)
{
    SAR_TRY(map_staged_parts(task));
    return sar_owner_begin(task);
}

/* The output of the pull is this rank's share of the result: the input of `shared`. */
static void open(struct sar_task *task)
{
    static const struct sar_owner_peers peers = { sends_to, source, split, combine, number, rank_of };
    struct state *state = task->state;
    if (scatters(task->agreed)) {
        struct sar_owner_cost_terms scatter =
            sar_owner_scatter_terms(task->agreed, task->comm->nodes.max_ranks);
        sar_owner_open_terms(task, &scatter, &peers);
        return;
    }
    struct sar_owner_cost_terms terms = sar_owner_columns_terms(task->agreed, task->comm->nodes.max_ranks);
    if (sar_columns_sliced(&terms.columns))
        sar_owner_open_terms(task, &terms, &peers);
    else
        sar_owner_open(task, sar_agreed_partition_map(task->agreed), &peers);
    state->share_output = sar_shared_output(task, sar_owner_result_desc(task));
    state->caller_output = task->output;
    task->output = &state->share_output.output;
}

/* A reduce_scatter is complete, but other ranks of the node may still read this rank's staged parts. */
static void end_scatter(struct sar_task *task)
{
    struct state *state = task->state;
    if (state->owner.step == 1 && task->exchange.status != SAR_OK)
        sar_owner_collect_failures(task);
    if (node_size(task) > 1 && !state->calls_differ)
        sar_shm_coll_post(task, "last step of scheme two_level", &state->node_msg);
}

/* Allocates nothing, so that all ranks of a node pass the barriers of `shared`, whatever has failed. */
static void open_shared(struct sar_task *task)
{
    if (scatters(task->agreed)) {
        end_scatter(task);
        return;
    }
    struct state *state = task->state;
    state->node = *task->comm;
    state->node.rank = task->comm->nodes.local_rank[task->comm->rank];
    state->node.ranks = node_size(task);
    state->agreed = inner_agreed(task->agreed, state->node.ranks);
    task->output = state->caller_output;
    state->inner = *task;
    state->inner.engine.stage = sar_scheme_shared.stages;
    state->inner.comm = &state->node;
    state->inner.agreed = &state->agreed;
    state->inner.input.vec = task->result.vec;
    state->inner.input.arena_mark = (struct sar_arena_mark){ 0 };
    state->inner.result.vec = (struct sar_spvec){ NULL, NULL, 0 };
    state->inner.minus_zero = false;
    state->inner.args.can_retry = false; /* other nodes would not know */
    state->inner.state = state->inner_state;
    sar_shared_set_input(&state->inner, &state->share_output, &state->owner.parts.columns);
}

static enum sar_status compute_shared(struct sar_task *task)
{
    struct sar_task *inner = &((struct state *)task->state)->inner;
    return scatters(task->agreed) || inner->engine.stage->compute == NULL
               ? SAR_OK
               : inner->engine.stage->compute(inner);
}

static void post_shared(struct sar_task *task)
{
    struct state *state = task->state;
    struct sar_task *inner = &state->inner;
    if (scatters(task->agreed) || state->calls_differ)
        return;
    inner->exchange.status = task->exchange.status;
    if (inner->engine.stage->post != NULL)
        inner->engine.stage->post(inner);
    inner->engine.stage++;
    task->repeat_stage = inner->engine.stage->compute != NULL || inner->engine.stage->post != NULL;
}

static enum sar_status copy_result(struct sar_task *task)
{
    const struct sar_task *inner = &((struct state *)task->state)->inner;
    if (scatters(task->agreed))
        return SAR_OK;
    task->result.vec = inner->result.vec;
    task->result.parts = inner->result.parts;
    task->result.n_parts = inner->result.n_parts;
    return SAR_OK;
}

static const struct sar_stage stages[] = {
    { .post = open },
    { .compute = copy_in, .post = barrier_input },
    { .compute = begin, .post = resolve_failure },
    SAR_OWNER_STEPS,
    { .compute = sar_owner_finish, .post = open_shared },
    { .compute = compute_shared, .post = post_shared },
    { .compute = copy_result },
    { .compute = NULL },
};

const struct sar_scheme sar_scheme_two_level = {
    .name = "two_level",
    .summary = "ranks of a node reduce in shared memory, each exchanges a share between nodes",
    .collectives = 1u << SAR_ALLREDUCE | 1u << SAR_REDUCE_SCATTER,
    .unsupported_reason = unsupported_reason,
    .redundant_reason = redundant_reason,
    .seconds = seconds,
    .partition_mask = (1u << SAR_PARTITIONS) - 1,
    .state_size = sizeof(struct state),
    .stages = stages,
};
