/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcast of a rank's coordinates. The root sorts its elements; of equal indices the last one counts. Its
 * elements reach the result of every rank in ascending order.
 *
 *     time = bytes beta + log2(nodes) alpha, and that of sar_canonicalize on the root */

#include "core/bcast_report.h"

struct coordinates {
    struct sar_spvec vec; /* on the root: its elements */
    struct sar_spvec out; /* the elements of the result so far */
    size_t capacity;      /* of out */
};

static enum sar_status find_elements(const struct sar_bcast *b, uint64_t from, size_t slots,
                                     struct sar_bcast_hashes *hashes, struct sar_spvec *vec)
{
    const struct coordinates *c = b->user;
    (void)hashes;
    return sar_bcast_slice(b, &b->args->sig.desc, &c->vec, from, slots, vec);
}

static enum sar_status take_elements(struct sar_bcast *b, uint64_t from, size_t slots,
                                     const struct sar_bcast_hashes *hashes, const struct sar_spvec *vec)
{
    struct coordinates *c = b->user;
    (void)slots, (void)hashes;
    if (vec->nnz > c->capacity - c->out.nnz)
        return SAR_CORRUPT;
    sar_spvec_append(&b->args->sig.desc, vec, sizeof(uint32_t), from, &c->out);
    return SAR_OK;
}

static const struct sar_bcast_source elements = { .find = find_elements,
                                                  .take = take_elements,
                                                  .in_order = true };

static enum sar_status reserve(struct sar_bcast *b, struct coordinates *c)
{
    struct sar_output_dest *output = b->args->data.output;
    struct sar_output_need need = { &b->args->sig.desc, (size_t)b->nnz, true };
    c->out = (struct sar_spvec){ NULL, NULL, 0 };
    SAR_TRY(output->reserve(output, &need, &c->out));
    c->capacity = (size_t)b->nnz;
    return SAR_OK;
}

static void canonicalize(struct sar_bcast *b, struct coordinates *c)
{
    struct sar_error *error = &b->args->result.error;
    long long bad = 0;
    struct sar_parallel former = sar_comm_state_begin_work(b->comm_state);
    error->status =
        sar_canonicalize(&b->args->sig.desc, &b->args->data.coo, &b->comm_state->memory.arena, &c->vec, &bad);
    error->value = bad;
    sar_parallel_end(former);
}

/* A rank without memory for its result hands the pieces on. */
static enum sar_status run(struct sar_bcast *b, struct coordinates *c)
{
    bool root = b->comm_state->comm.rank == b->root;
    b->status = reserve(b, c);
    if (root && b->status == SAR_OK) {
        sar_spvec_copy(&b->args->sig.desc, &c->vec, &c->out);
        c->out.nnz = c->vec.nnz;
    }
    SAR_TRY(sar_bcast_run(b));
    b->args->result.nnz = c->out.nnz;
    return c->out.nnz == b->nnz ? SAR_OK : SAR_CORRUPT;
}

void sar_bcast_coo(struct sar_comm_state *comm_state, struct sar_call_args *args, int root)
{
    struct coordinates c = { .capacity = 0 };
    struct sar_bcast b = { .comm_state = comm_state,
                           .args = args,
                           .source = &elements,
                           .root = root,
                           .slots = args->sig.desc.count,
                           .element_size = args->sig.desc.element_size,
                           .user = &c };
    sar_bcast_open(&b);
    if (comm_state->comm.rank == root && args->result.error.status == SAR_OK)
        canonicalize(&b, &c);
    if (sar_bcast_begin(&b, (struct sar_bcast_count){ c.vec.nnz, c.vec.nnz }))
        args->result.error = (struct sar_error){ .status = run(&b, &c) };
    sar_bcast_close(&b);
}
