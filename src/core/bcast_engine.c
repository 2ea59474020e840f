/* SPDX-License-Identifier: BSD-3-Clause */
/* All pieces but the last have equally many slots, so that every rank knows the slots of each piece. Their
 * number follows from the agreed elements of the root:
 *
 *     time of s bytes a piece = bytes beta + (bytes / s) (overhead + header beta) + 2 depth s beta
 *
 * is least where s is the root of bytes (overhead + header beta) / (2 depth beta). Each piece goes in the
 * format that takes the fewest bytes, unless a setting names one. */

#include "core/bcast_engine.h"

#include <math.h>

#include "comm/shm/group.h"
#include "core/prepare.h"
#include "core/progress.h"
#include "hash/murmur3.h"

enum {
    DENSE_MAX = 1 << 20,        /* bytes of a piece whose slots are all present, if it has more than one */
    SLOT_UNIT = 64,             /* pieces begin at multiples of so many slots */
    PRESENCE_SLACK = 64,        /* bytes */
    ELEMENT_BYTES_MAX = 1 << 30 /* so that a piece fits the int of MPI */
};

/* Bounds of a piece's bytes: below, headers are a large part of messages; above, receivers wait for long. */
static const double PIECE_BYTES_MIN = 2048, PIECE_BYTES_MAX = 512 << 10;

static uint64_t slots_max(const struct sar_bcast *b)
{
    uint64_t slots = DENSE_MAX / b->element_size;
    slots = slots < 1 ? 1 : slots;
    return slots < b->slots ? slots : b->slots > 0 ? b->slots : 1;
}

/* The values and a bitmap of presence are no format's most, but some format has no more. */
static uint64_t capacity_of(const struct sar_bcast *b)
{
    uint64_t slots = slots_max(b);
    return SAR_MSG_HEADER_BYTES + slots * b->element_size + slots / 8 + PRESENCE_SLACK;
}

static void agree(struct sar_bcast *b, uint64_t nnz)
{
    struct sar_comm_state *state = b->comm_state;
    struct sar_call_args *args = b->args;
    struct sar_agreement agreement = { .local = sar_agree_msg_make(&state->comm, args->sig.field) };
    bool failed = sar_shm_group_failed(state->comm.shm_group);
    state->epoch++;
    agreement.local.status = (int64_t)args->result.error.status;
    agreement.local.status_value = args->result.error.value;
    agreement.local.nnz_sum = agreement.local.nnz_max = (int64_t)nnz;
    agreement.local.may_block = failed ? SAR_MAY_NOT_BLOCK_SHM_FAILED : SAR_MAY_BLOCK;
    enum sar_status status = sar_agree_start(&state->comm, &agreement);
    if (status == SAR_OK)
        status = sar_progress_wait_agreement(&state->comm, &agreement);
    args->result.error = status == SAR_OK ? sar_error_resolve(&agreement.global, &args->sig)
                                          : (struct sar_error){ .status = status };
    if (args->result.error.status == SAR_MISMATCHED_OP) /* the root is in the place of the op */
        args->result.error.status = SAR_MISMATCHED_ROOT;
    if (status == SAR_OK)
        b->nnz = (uint64_t)agreement.global.nnz_sum;
}

/* Returns about the bytes of an index of random slots, at most a bit for each slot. All ranks get the same
 * piece length: no function of the math library is called whose last bits may differ between machines. */
static double index_bytes(double slots_per_element)
{
    double bits = 2;
    for (double rest = slots_per_element; rest >= 2; rest /= 2)
        bits++;
    return fmin(bits, slots_per_element) / 8;
}

static void plan_pieces(struct sar_bcast *b)
{
    const struct sar_machine *m = &b->comm_state->settings.machine;
    const struct sar_comm *comm = &b->comm_state->comm;
    double slots = (double)b->slots, density = fmin((double)b->nnz / fmax(slots, 1), 1);
    double depth = fmax(sar_bcast_tree_depth(comm->nodes.n), 1);
    b->piece_slots = slots_max(b);
    if (b->nnz > 0 && m->beta > 0) {
        double bytes = (double)b->nnz * ((double)b->element_size + index_bytes(1 / density));
        double best = sqrt(bytes * (m->overhead + SAR_MSG_HEADER_BYTES * m->beta) / (2 * depth * m->beta));
        best = fmax(best, m->alpha / m->beta / SAR_PIPELINE_WINDOW); /* a window fills the link */
        best = fmin(fmax(best, PIECE_BYTES_MIN), PIECE_BYTES_MAX);
        double wanted = fmax(best / bytes * slots, 1);
        if (wanted < (double)b->piece_slots)
            b->piece_slots = (uint64_t)wanted;
    }
    if (b->piece_slots > SLOT_UNIT)
        b->piece_slots -= b->piece_slots % SLOT_UNIT;
}

bool sar_bcast_begin(struct sar_bcast *b, uint64_t nnz)
{
    struct sar_comm_state *state = b->comm_state;
    struct sar_call_args *args = b->args;
    uint32_t hash = 0;
    if (b->element_size > ELEMENT_BYTES_MAX)
        sar_error_set(&args->result.error, SAR_BAD_DATATYPE, args->sig.field[SAR_AGREE_DATATYPE]);
    if (args->result.error.status == SAR_OK)
        args->result.error.status =
            sar_pipeline_open(&state->comm, capacity_of(b), &state->memory.arena, &b->pieces);
    agree(b, nnz);
    if (args->result.error.status != SAR_OK)
        return false;
    plan_pieces(b);
    for (int i = 0; i < SAR_AGREE_FIELDS; i++)
        hash = sar_murmur3_u64((uint64_t)args->sig.field[i], hash);
    b->key = (struct sar_msg_key){ .layout = { .element_size = b->element_size,
                                               .row_len = args->sig.desc.row_len,
                                               .index_size = sizeof(uint32_t) },
                                   .fingerprint = hash,
                                   .epoch = state->epoch };
    b->status = SAR_OK;
    return true;
}

struct sar_arena *sar_bcast_scratch(const struct sar_bcast *b)
{
    return &b->comm_state->memory.scratch[0];
}

/* Sets the slots of a piece in a key; returns the first one. */
static uint64_t set_slots(const struct sar_bcast *b, uint64_t piece, struct sar_msg_key *key)
{
    uint64_t from = piece * b->piece_slots, left = b->slots - from;
    *key = b->key;
    key->layout.slots = left < b->piece_slots ? left : b->piece_slots;
    return from;
}

/* The format of a setting, if the piece then fits its slot. */
static const struct sar_wire *choose_wire(const struct sar_bcast *b, const struct sar_msg_key *key,
                                          const struct sar_spvec *vec)
{
    const struct sar_wire *forced = b->comm_state->settings.policy.wire.pull;
    if (forced != NULL &&
        sar_wire_bytes(forced, &key->layout, vec) <= b->pieces.piece_bytes - SAR_MSG_HEADER_BYTES)
        return forced;
    return sar_wire_cheapest(&key->layout, vec, (struct sar_wire_price){ 1, 0, false });
}

/* Pieces [first, first + n) of a loop. */
struct batch {
    struct sar_bcast *b;
    uint64_t first;
};

static enum sar_status write_piece(void *arg, size_t i)
{
    const struct batch *batch = arg;
    struct sar_bcast *b = batch->b;
    uint64_t piece = batch->first + i;
    struct sar_pipeline_slot *slot = sar_pipeline_slot_of(&b->pieces, piece);
    struct sar_msg_key key;
    struct sar_msg message;
    struct sar_spvec vec;
    struct sar_bcast_hashes hashes = { 0, 0 };
    uint64_t from = set_slots(b, piece, &key);
    enum sar_status status = b->source->find(b, from, (size_t)key.layout.slots, &hashes, &vec);
    key.user_word = hashes.old_values;
    if (status == SAR_OK)
        status = sar_msg_encode_into(&key, choose_wire(b, &key, &vec), &vec, hashes.content, slot->memory,
                                     b->pieces.piece_bytes, &message);
    if (status != SAR_OK) {
        sar_msg_failure(&key, (struct sar_msg_header *)slot->memory);
        message.bytes = SAR_MSG_HEADER_BYTES;
    }
    slot->bytes = message.bytes;
    return status;
}

static enum sar_status read_piece(void *arg, size_t i)
{
    const struct batch *batch = arg;
    struct sar_bcast *b = batch->b;
    uint64_t piece = batch->first + i;
    const struct sar_pipeline_slot *slot = sar_pipeline_slot_of(&b->pieces, piece);
    struct sar_msg message = { .buffer = slot->memory, .bytes = slot->bytes };
    struct sar_msg_content content;
    struct sar_msg_key key;
    uint64_t from = set_slots(b, piece, &key);
    SAR_TRY(sar_msg_open(&key, &message, &content));
    struct sar_spvec vec = { NULL, NULL, (size_t)content.nnz };
    SAR_TRY(content.wire->decode(&key.layout, content.payload, content.bytes, sar_bcast_scratch(b), &vec));
    struct sar_bcast_hashes hashes = { content.user_word, content.index_hash };
    return b->source->take(b, from, (size_t)key.layout.slots, &hashes, &vec);
}

static void note(struct sar_bcast *b, enum sar_status status)
{
    if (b->status == SAR_OK)
        b->status = status;
}

/* Does the next pieces that can be done, one a thread. Returns their number. */
static size_t do_pieces(struct sar_bcast *b, uint64_t *next)
{
    bool root = b->comm_state->comm.rank == b->root;
    size_t threads = (size_t)sar_parallel_threads();
    size_t n = root ? sar_pipeline_writable(&b->pieces, *next) : sar_pipeline_readable(&b->pieces);
    struct batch batch = { b, *next };
    n = n < threads ? n : threads;
    n = n > 1 && !root && b->source->in_order ? 1 : n;
    if (n == 0)
        return 0;
    sar_arena_recycle(sar_bcast_scratch(b));
    if (root || b->status == SAR_OK) /* after a failure pieces are only handed on */
        note(b, sar_parallel_for(n, root ? write_piece : read_piece, &batch));
    for (size_t i = 0; i < n; i++, (*next)++)
        if (root)
            sar_pipeline_send(&b->pieces, *next);
        else
            sar_pipeline_release(&b->pieces);
    return n;
}

/* Every piece is sent and received, whatever fails. */
enum sar_status sar_bcast_run(struct sar_bcast *b)
{
    const struct sar_comm *comm = &b->comm_state->comm;
    uint64_t pieces = b->slots / b->piece_slots + (b->slots % b->piece_slots != 0), next = 0;
    int spins = 0;
    if (comm->ranks == 1)
        return b->status;
    struct sar_parallel former = sar_comm_state_begin_work(b->comm_state);
    sar_pipeline_begin(&b->pieces, b->root, b->comm_state->epoch, pieces);
    while (!sar_pipeline_is_done(&b->pieces)) {
        size_t n = do_pieces(b, &next);
        bool alone = !sar_comm_state_any_active();
        if (sar_pipeline_advance(&b->pieces, alone && n == 0) || n > 0)
            spins = 0;
        else if (sar_progress_poll(comm, &spins))
            sar_comm_backoff(comm, &spins);
    }
    sar_parallel_end(former);
    note(b, b->pieces.status);
    return b->status;
}
