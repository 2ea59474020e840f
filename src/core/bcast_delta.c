/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcast of what changed between two versions of a vector. The root scans a piece while earlier ones
 * travel; other ranks write a piece into their vector while later ones arrive. A message has a hash of the
 * old values of its elements, by which a rank finds that its old version is another one, and a hash of the
 * new values, which tells damage.
 *
 *     time = the larger of bytes beta + log2(nodes) alpha, and 2 count unit / memory bandwidth on the root */

#include "core/bcast_engine.h"

#include <string.h>

#include "vector/delta.h"

enum { SAMPLE_UNITS = 1 << 16 /* of the estimate of changes: an error of 4 % at 1 % */ };

static enum sar_status find_changes(const struct sar_bcast *b, uint64_t from, size_t slots,
                                    struct sar_bcast_hashes *hashes, struct sar_spvec *vec)
{
    const struct sar_bcast_versions *v = b->user;
    struct sar_delta delta = { v->before, v->after, v->unit };
    SAR_TRY(sar_arena_alloc(sar_bcast_scratch(b), slots, sizeof(uint32_t), &vec->index));
    SAR_TRY(sar_arena_alloc(sar_bcast_scratch(b), slots, v->unit, &vec->value));
    sar_delta_scan(&delta, from, slots, vec);
    hashes->content = (uint32_t)sar_delta_hash(vec, v->unit);
    hashes->old_values = sar_delta_hash_at(vec, v->unit, (const unsigned char *)v->before + from * v->unit);
    return SAR_OK;
}

static enum sar_status take_changes(struct sar_bcast *b, uint64_t from, size_t slots,
                                    const struct sar_bcast_hashes *hashes, const struct sar_spvec *vec)
{
    const struct sar_bcast_versions *v = b->user;
    unsigned char *to = (unsigned char *)v->after + from * v->unit;
    if ((uint32_t)sar_delta_hash(vec, v->unit) != hashes->content)
        return SAR_CORRUPT;
    if (v->before != NULL)
        memcpy(to, (const unsigned char *)v->before + from * v->unit, slots * v->unit);
    if (sar_delta_hash_at(vec, v->unit, to) != hashes->old_values)
        return SAR_STALE_VERSION;
    sar_delta_apply(vec, v->unit, to);
    return SAR_OK;
}

static const struct sar_bcast_source changes = { .find = find_changes, .take = take_changes };

static uint64_t estimate(const struct sar_bcast_versions *v)
{
    struct sar_delta delta = { v->before, v->after, v->unit };
    return sar_delta_estimate(&delta, v->n, SAMPLE_UNITS);
}

void sar_bcast_delta(struct sar_comm_state *comm_state, struct sar_call_args *args, int root,
                     const struct sar_bcast_versions *versions)
{
    struct sar_bcast b = { .comm_state = comm_state,
                           .args = args,
                           .source = &changes,
                           .root = root,
                           .slots = versions->n,
                           .element_size = versions->unit,
                           .user = (void *)(uintptr_t)versions };
    bool is_root = comm_state->comm.rank == root && args->result.error.status == SAR_OK;
    sar_comm_state_reset_memory(comm_state);
    if (sar_bcast_begin(&b, is_root ? estimate(versions) : 0))
        args->result.error = (struct sar_error){ .status = sar_bcast_run(&b) };
}
