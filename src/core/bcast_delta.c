/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcast of what changed between two versions of a vector. The root scans a piece while earlier ones
 * travel; other ranks write a piece into their vector while later ones arrive. A message has a hash of the
 * old values of its elements, by which a rank finds that its old version is another one, and a hash of the
 * new values, which tells damage.
 *
 * A sample tells about how many units changed. If they are few, the root lists them before the agreement.
 * Their exact number allows few pieces; otherwise each piece needs memory for as many changes as units.
 *
 *     time = the larger of bytes beta + log2(nodes) alpha, and 2 count unit / memory bandwidth on the root;
 *            the sum if changes are few */

#include "core/bcast_report.h"

#include "vector/delta.h"

enum {
    SAMPLE_UNITS = 1 << 16, /* of the estimate of changes: an error of 4 % at 1 % */
    LISTED_MAX = 1 << 16,   /* changes that are listed: they travel for less than a millisecond */
    LISTED_SHARE = 64,      /* at most one unit in so many is listed */
    SCAN_UNITS = 1 << 18,   /* that a thread scans for the list at a time */
    BATCH_MAX = 64          /* threads that scan at a time */
};

/* The changes of a vector. */
struct changes {
    const struct sar_bcast_versions *versions;
    bool listed;              /* on the root: all changes are in the list */
    struct sar_vec_desc desc; /* of the list */
    struct sar_spvec list;
};

/* Scans the units [from, from + slots) into a vec of the scratch arena. */
static enum sar_status scan(const struct sar_bcast *b, uint64_t from, size_t slots, struct sar_spvec *vec)
{
    const struct sar_bcast_versions *v = ((const struct changes *)b->user)->versions;
    struct sar_delta delta = { v->before, v->after, v->unit };
    SAR_TRY(sar_arena_alloc(sar_bcast_scratch(b), slots, sizeof(uint32_t), &vec->index));
    SAR_TRY(sar_arena_alloc(sar_bcast_scratch(b), slots, v->unit, &vec->value));
    sar_delta_scan(&delta, from, slots, vec);
    return SAR_OK;
}

static enum sar_status find_changes(const struct sar_bcast *b, uint64_t from, size_t slots,
                                    struct sar_bcast_hashes *hashes, struct sar_spvec *vec)
{
    const struct changes *c = b->user;
    const struct sar_bcast_versions *v = c->versions;
    if (c->listed)
        SAR_TRY(sar_bcast_slice(b, &c->desc, &c->list, from, slots, vec));
    else
        SAR_TRY(scan(b, from, slots, vec));
    hashes->content = (uint32_t)sar_delta_hash(vec, v->unit);
    hashes->old_values = sar_delta_hash_at(vec, v->unit, (const unsigned char *)v->before + from * v->unit);
    return SAR_OK;
}

static enum sar_status take_changes(struct sar_bcast *b, uint64_t from, size_t slots,
                                    const struct sar_bcast_hashes *hashes, const struct sar_spvec *vec)
{
    const struct sar_bcast_versions *v = ((const struct changes *)b->user)->versions;
    unsigned char *to = (unsigned char *)v->after + from * v->unit;
    if ((uint32_t)sar_delta_hash(vec, v->unit) != hashes->content)
        return SAR_CORRUPT;
    if (v->before != NULL)
        sar_parallel_copy(to, (const unsigned char *)v->before + from * v->unit, slots * v->unit);
    if (sar_delta_hash_at(vec, v->unit, to) != hashes->old_values)
        return SAR_STALE_VERSION;
    sar_delta_apply(vec, v->unit, to);
    return SAR_OK;
}

static const struct sar_bcast_source changes = { .find = find_changes, .take = take_changes };

/* Adjacent ranges of units, and their changes. */
struct batch {
    const struct sar_bcast *b;
    uint64_t from;
    struct sar_spvec found[BATCH_MAX];
};

static uint64_t units_of_range(const struct batch *batch, size_t i)
{
    uint64_t from = batch->from + i * SCAN_UNITS;
    uint64_t left = batch->b->slots > from ? batch->b->slots - from : 0;
    return left < SCAN_UNITS ? left : SCAN_UNITS;
}

static enum sar_status scan_range(void *arg, size_t i)
{
    struct batch *batch = arg;
    batch->found[i].nnz = 0;
    return scan(batch->b, batch->from + i * SCAN_UNITS, (size_t)units_of_range(batch, i), &batch->found[i]);
}

/* Lists the changes of all units, unless they are more than `most`. */
static enum sar_status list_changes(struct sar_bcast *b, struct changes *c, size_t most)
{
    struct batch batch = { .b = b };
    size_t threads = (size_t)sar_parallel_threads();
    threads = threads < BATCH_MAX ? threads : BATCH_MAX;
    SAR_TRY(sar_spvec_alloc(&c->desc, most, &b->comm_state->memory.arena, &c->list));
    c->list.nnz = 0;
    for (; batch.from < b->slots; batch.from += threads * SCAN_UNITS) {
        sar_arena_recycle(sar_bcast_scratch(b));
        SAR_TRY(sar_parallel_for(threads, scan_range, &batch));
        for (size_t i = 0; i < threads; i++) {
            if (batch.found[i].nnz > most - c->list.nnz)
                return SAR_OK;
            sar_spvec_append(&c->desc, &batch.found[i], sizeof(uint32_t), batch.from + i * SCAN_UNITS,
                             &c->list);
        }
    }
    c->listed = true;
    return SAR_OK;
}

/* Returns the number of changes on the root, which are listed if they are few. */
static struct sar_bcast_count count_changes(struct sar_bcast *b, struct changes *c)
{
    const struct sar_bcast_versions *v = c->versions;
    struct sar_delta delta = { v->before, v->after, v->unit };
    uint64_t estimate = sar_delta_estimate(&delta, v->n, SAMPLE_UNITS);
    uint64_t most = v->n / LISTED_SHARE < LISTED_MAX ? v->n / LISTED_SHARE : LISTED_MAX;
    if (estimate <= most) {
        struct sar_parallel former = sar_comm_state_begin_work(b->comm_state);
        b->args->result.error.status = list_changes(b, c, (size_t)most);
        sar_parallel_end(former);
    }
    return c->listed ? (struct sar_bcast_count){ c->list.nnz, c->list.nnz }
                     : (struct sar_bcast_count){ estimate, v->n };
}

void sar_bcast_delta(struct sar_comm_state *comm_state, struct sar_call_args *args, int root,
                     const struct sar_bcast_versions *versions)
{
    struct changes c = { .versions = versions,
                         .desc = { .count = versions->n,
                                   .row_len = 1,
                                   .element_size = versions->unit,
                                   .index_size = sar_index_size(versions->n),
                                   .dtype = args->sig.desc.dtype,
                                   .kernels = args->sig.desc.kernels } };
    struct sar_bcast b = { .comm_state = comm_state,
                           .args = args,
                           .source = &changes,
                           .root = root,
                           .slots = versions->n,
                           .element_size = versions->unit,
                           .user = &c };
    struct sar_bcast_count count = { 0, 0 };
    sar_bcast_open(&b);
    if (comm_state->comm.rank == root && args->result.error.status == SAR_OK)
        count = count_changes(&b, &c);
    if (sar_bcast_begin(&b, count))
        args->result.error = (struct sar_error){ .status = sar_bcast_run(&b) };
    sar_bcast_close(&b);
}
