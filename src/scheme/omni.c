/* SPDX-License-Identifier: BSD-3-Clause */
/* OmniReduce: blocks of 256 values. Blocks with a nonzero element are sent whole to their aggregator, which
 * sends the sums to all ranks. Ranks aggregate blocks in turn or, with partition=range, contiguous ranges.
 *
 * A block has the largest power of two of elements that together have at most 256 values; from 16 values on
 * a row is a block (wire/block.c). A row of coordinates of more than 256 is divided into the fewest equal
 * pieces of at most 256 values, if these have 128 or more: a row of 512 is two blocks. Other long rows, and
 * those of dense buffers, are one block each.
 *
 * This is fast for clustered elements: a block costs as much for one element as for all of its n, so at a
 * density d without clusters 1 - (1-d)^n of all bytes are sent: 92 % at d = 1 % and n = 256, and d at n = 1.
 *
 *     time = 2 alpha + (p-1) (m(z s) + m(Z S)) beta + (z + z s p + v) gamma
 *
 * p ranks, z elements of the rank with most, Z of the result, m(z) bytes of the blocks that z elements are
 * in; s and S are 1 / p, or the shares of the largest contiguous range; sar_owner_seconds has the rest. */

#include "scheme/engine/owner.h"
#include "scheme/scheme.h"

enum { BLOCK_VALUES = 256, LEAST_BLOCK_VALUES = 128 };

/* The task sees pieces of rows as elements, from its first stage to its last. */
struct omni {
    struct sar_owner owner; /* first: the engine's state */
    const struct sar_agreed *rows_agreed;
    struct sar_agreed agreed; /* of pieces */
    struct sar_spvec rows, pieces;
};

/* Returns the pieces of a row. */
static size_t pieces_of(const struct sar_agreed *a)
{
    size_t n = (a->desc.row_len + BLOCK_VALUES - 1) / BLOCK_VALUES;
    while (n > 1 && a->desc.row_len % n != 0)
        n++;
    bool fit = a->desc.count <= UINT64_MAX / n && sar_index_size(a->desc.count * n) == a->desc.index_size;
    return !a->call.dense_face && fit && a->desc.row_len / n >= LEAST_BLOCK_VALUES ? n : 1;
}

static struct sar_agreed agreed_of_pieces(const struct sar_agreed *a)
{
    struct sar_agreed pieces = *a;
    size_t n = pieces_of(a);
    pieces.desc.count *= n;
    pieces.desc.row_len /= n;
    pieces.desc.element_size /= n;
    pieces.data.nnz_mean *= (double)n;
    pieces.data.nnz_max *= (double)n;
    pieces.machine.gamma /= (double)n;
    return pieces;
}

static struct sar_partition_map map_of(const struct sar_agreed *pieces)
{
    unsigned grain = 1u << sar_wire_block_shift(pieces->desc.row_len);
    bool range = pieces->partition.kind == SAR_PARTITION_RANGE;
    return sar_partition_map_make(range ? SAR_PARTITION_RANGE : SAR_PARTITION_CYCLIC, pieces->desc.count,
                                  (uint32_t)pieces->machine.ranks, grain, 0);
}

static const char *unsupported_reason(const struct sar_agreed *a)
{
    struct sar_agreed pieces = agreed_of_pieces(a);
    return sar_owner_unsupported_reason(&pieces, map_of(&pieces));
}

static double seconds(const struct sar_agreed *a)
{
    struct sar_agreed pieces = agreed_of_pieces(a);
    struct sar_owner_cost_terms terms = sar_owner_cost_terms(&pieces, map_of(&pieces));
    terms.push_policy.preferred = terms.pull_policy.preferred = &sar_wire_block;
    return sar_owner_seconds(&pieces, &terms);
}

/* The values of pieces are where those of their row are. */
static enum sar_status divide_rows(struct sar_task *task)
{
    struct omni *o = task->state;
    size_t n = pieces_of(task->agreed), size = task->agreed->desc.index_size, nnz = task->input.vec.nnz;
    o->pieces = task->input.vec;
    if (n == 1)
        return SAR_OK;
    SAR_TRY(sar_arena_alloc(task->memory.call_arena, nnz * n, size, &o->pieces.index));
    for (size_t i = 0; i < nnz; i++)
        for (size_t j = 0; j < n; j++)
            sar_index_set(o->pieces.index, (unsigned)size, i * n + j,
                          sar_index_get(task->input.vec.index, (unsigned)size, i) * n + j);
    o->pieces.nnz = nnz * n;
    return SAR_OK;
}

/* All ranks have the parts of pieces, those that have failed too. */
static void open(struct sar_task *task)
{
    struct omni *o = task->state;
    o->rows_agreed = task->agreed;
    o->rows = task->input.vec;
    o->agreed = agreed_of_pieces(task->agreed);
    task->agreed = &o->agreed;
    if (task->exchange.status == SAR_OK)
        task->input.vec = o->pieces;
    task->wire_policy[0].preferred = task->wire_policy[1].preferred = &sar_wire_block;
    sar_owner_open(task, map_of(task->agreed), NULL);
}

/* A row of the result has all of its pieces, one after the other. */
static void join_pieces(struct sar_task *task)
{
    struct omni *o = task->state;
    size_t n = pieces_of(o->rows_agreed);
    unsigned size = o->agreed.desc.index_size;
    task->agreed = o->rows_agreed;
    task->input.vec = o->rows;
    if (n == 1 || task->exchange.status != SAR_OK)
        return;
    struct sar_spvec *vec = &task->result.vec;
    vec->nnz /= n;
    for (size_t i = 0; i < vec->nnz; i++)
        sar_index_set(vec->index, size, i, sar_index_get(vec->index, size, i * n) / n);
}

static const struct sar_stage stages[] = {
    { .compute = divide_rows, .post = open }, { .compute = sar_owner_begin }, SAR_OWNER_STEPS,
    { .compute = sar_owner_finish },          { .post = join_pieces },        { .compute = NULL },
};

const struct sar_scheme sar_scheme_omni = {
    .name = "omni",
    .summary =
        "blocks of 256 values, or rows of 16 and more, go whole to their aggregator and back (OmniReduce)",
    .unsupported_reason = unsupported_reason,
    .seconds = seconds,
    .partition_mask = 1u << SAR_PARTITION_CYCLIC | 1u << SAR_PARTITION_RANGE,
    .state_size = sizeof(struct omni),
    .stages = stages,
};
