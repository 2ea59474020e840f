/* SPDX-License-Identifier: BSD-3-Clause */
/* All pieces but the last have equally many slots, so that every rank knows the slots of each piece. Their
 * number, and the number k of trees, follow from the agreed elements of the root:
 *
 *     time of s bytes a piece = bytes beta + (bytes / s) (overhead + PIECE_COST beta)
 *                             + log_k(nodes) (alpha + k (overhead + s beta))
 *
 * is least where s is the root of bytes (overhead + PIECE_COST beta) / (log_k(nodes) k beta). Each piece goes
 * in the format that takes the fewest bytes, unless a setting names one. */

#include "core/bcast_engine.h"

#include <math.h>

#include "comm/shm/group.h"
#include "core/prepare.h"
#include "core/progress.h"
#include "hash/murmur3.h"
#include "wire/piece.h"

enum {
    MEMORY_MAX = 32 << 20, /* bytes of all pieces that a rank holds, if a piece of one slot allows */
    SLOTS_MIN = 8 * SAR_BCAST_TREES_MAX, /* pieces that they have room for */
    SLOT_UNIT = 64,                      /* pieces begin at multiples of so many slots */
    PIECE_COST = 64,                     /* bytes of a piece on a link without its payload: its header, and
                                          * as much for MPI's own */
    WINDOW_DEFAULT = 4,                  /* where the time of a byte is unknown */
    PRESENCE_SLACK = 64,                 /* bytes */
    ELEMENT_BYTES_MAX = 1 << 30          /* so that a piece fits the int of MPI */
};

static const double WINDOW_SLACK = 2; /* messages in flight over those that fill a link */

/* Slots of a piece, at most: those that sar_delta_scan takes. */
static const uint64_t PIECE_SLOTS_MAX = (uint64_t)1 << 31;

/* Bounds of a piece's bytes: below, headers are a large part of messages; above, receivers wait for long. */
static const double PIECE_BYTES_MIN = 2048, PIECE_BYTES_MAX = 512 << 10;

/* The values and a bitmap of presence are no format's most, but some format has no more; nor has another more
 * than coordinates. */
static uint64_t piece_capacity(const struct sar_bcast *b, uint64_t slots)
{
    uint64_t elements = b->nnz_max < slots ? b->nnz_max : slots;
    uint64_t bytes = slots * b->element_size + slots / 8, listed;
    if (!__builtin_mul_overflow(elements, b->element_size + sizeof(uint32_t), &listed) && listed < bytes)
        bytes = listed;
    return sar_align_up(SAR_PIECE_HEADER_BYTES + bytes + PRESENCE_SLACK);
}

/* Memory for the pieces of a vector all of whose slots are present, but no more than MEMORY_MAX; none for a
 * vector of no slots. */
static uint64_t memory_of(const struct sar_bcast *b)
{
    uint64_t whole = b->slots / SLOT_UNIT + SLOTS_MIN < MEMORY_MAX / b->element_size
                         ? piece_capacity(b, b->slots) + SLOTS_MIN * piece_capacity(b, SLOT_UNIT)
                         : MEMORY_MAX;
    uint64_t least = SLOTS_MIN * piece_capacity(b, 1);
    whole = whole < MEMORY_MAX ? whole : MEMORY_MAX;
    if (b->slots == 0)
        return 0;
    return whole > least ? whole : least;
}

/* The most slots of a piece for which the memory has room SLOTS_MIN times: all slots, if elements are few. */
static uint64_t slots_max(const struct sar_bcast *b)
{
    uint64_t most = b->slots < PIECE_SLOTS_MAX ? b->slots : PIECE_SLOTS_MAX;
    uint64_t bytes = b->pieces.memory_bytes / SLOTS_MIN, fixed = piece_capacity(b, 0);
    if (piece_capacity(b, most) <= bytes || b->comm_state->comm.ranks == 1)
        return most > 0 ? most : 1;
    uint64_t slots = bytes > fixed ? (bytes - fixed) * 8 / (8 * (uint64_t)b->element_size + 1) : 1;
    while (slots > 1 && piece_capacity(b, slots) > bytes)
        slots--;
    slots = slots < 1 ? 1 : slots;
    return slots < most ? slots : most > 0 ? most : 1;
}

static void agree(struct sar_bcast *b, struct sar_bcast_count count)
{
    struct sar_comm_state *state = b->comm_state;
    struct sar_call_args *args = b->args;
    struct sar_agreement agreement = { .local = sar_agree_msg_make(&state->comm, args->sig.field) };
    bool failed = sar_shm_group_failed(state->comm.shm_group);
    state->epoch++;
    agreement.local.status = (int64_t)args->result.error.status;
    agreement.local.status_value = args->result.error.value;
    agreement.local.nnz_sum = (int64_t)count.nnz;
    agreement.local.nnz_max = (int64_t)count.nnz_max;
    agreement.local.may_block = failed ? SAR_MAY_NOT_BLOCK_SHM_FAILED : SAR_MAY_BLOCK;
    sar_comm_state_set_call(state, args->sig.field[SAR_AGREE_FUNCTION]);
    struct sar_span span = sar_span_begin("agree", 0, 0);
    enum sar_status status = sar_agree_start(&state->comm, &agreement);
    if (status == SAR_OK)
        status = sar_progress_wait_agreement(&state->comm, &agreement);
    sar_bcast_span_end(b, &span);
    args->result.error = status == SAR_OK ? sar_error_resolve(&agreement.global, &args->sig)
                                          : (struct sar_error){ .status = status };
    if (args->result.error.status == SAR_MISMATCHED_OP) /* the root is in the place of the op */
        args->result.error.status = SAR_MISMATCHED_ROOT;
    if (status == SAR_OK) {
        b->nnz = (uint64_t)agreement.global.nnz_sum;
        b->nnz_max = (uint64_t)agreement.global.nnz_max;
    }
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

/* Pieces of so many bytes over so many trees, and the time that they take more than the bytes alone. */
struct candidate {
    int trees;
    double piece_bytes, seconds;
};

static struct candidate price(const struct sar_bcast *b, double bytes, int trees)
{
    const struct sar_machine *m = &b->comm_state->settings.machine;
    double each = m->overhead + PIECE_COST * m->beta;
    double depth = fmax(sar_bcast_tree_depth(b->comm_state->comm.nodes.n, trees), 1);
    double s = sqrt(bytes * each / (depth * trees * m->beta));
    s = fmax(s, m->alpha / m->beta / (SAR_PIPELINE_WINDOW / 2 - 1)); /* the largest window fills the link */
    s = fmin(fmax(s, PIECE_BYTES_MIN), PIECE_BYTES_MAX);
    double sent = fmin(s, bytes); /* of a piece */
    return (struct candidate){ trees, s,
                               bytes / s * each + depth * (m->alpha + trees * (each + sent * m->beta)) };
}

/* The messages of a rank that fill its link are those of a latency, and one more. There are twice as many,
 * since a message may wait for others on the link of its receiver. A child gets its share of them, and one
 * more. */
static int window_of(const struct sar_bcast *b, double piece_bytes)
{
    const struct sar_machine *m = &b->comm_state->settings.machine;
    double messages = WINDOW_SLACK * (m->alpha / (piece_bytes * m->beta) + 1);
    return 1 + (int)fmin(messages / b->trees, SAR_PIPELINE_WINDOW);
}

static void plan_pieces(struct sar_bcast *b)
{
    double slots = fmax((double)b->slots, 1), density = fmin((double)b->nnz / slots, 1);
    b->piece_slots = slots_max(b);
    b->trees = 2;
    b->window = WINDOW_DEFAULT;
    if (b->comm_state->settings.machine.beta > 0) {
        double bytes = b->nnz > 0 ? (double)b->nnz * ((double)b->element_size + index_bytes(1 / density)) : 0;
        struct candidate best = price(b, bytes, 2);
        for (int trees = 4; trees <= SAR_BCAST_TREES_MAX; trees *= 2) {
            struct candidate other = price(b, bytes, trees);
            best = other.seconds < best.seconds ? other : best;
        }
        if (best.piece_bytes * slots < (double)b->piece_slots * bytes)
            b->piece_slots = (uint64_t)fmax(best.piece_bytes / bytes * slots, 1);
        b->trees = best.trees;
        b->predicted = bytes * b->comm_state->settings.machine.beta + best.seconds;
        b->window = window_of(b, SAR_PIECE_HEADER_BYTES + bytes * (double)b->piece_slots / slots);
    }
    if (b->piece_slots > SLOT_UNIT && b->piece_slots < b->slots)
        b->piece_slots -= b->piece_slots % SLOT_UNIT;
}

bool sar_bcast_begin(struct sar_bcast *b, struct sar_bcast_count count)
{
    struct sar_comm_state *state = b->comm_state;
    struct sar_call_args *args = b->args;
    uint32_t hash = 0;
    b->nnz_max = b->slots;
    if (b->element_size > ELEMENT_BYTES_MAX)
        sar_error_set(&args->result.error, SAR_BAD_DATATYPE, args->sig.field[SAR_AGREE_DATATYPE]);
    if (args->result.error.status == SAR_OK)
        args->result.error.status =
            sar_pipeline_open(&state->comm, memory_of(b), &state->memory.arena, &b->pieces);
    agree(b, count);
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

enum sar_status sar_bcast_slice(const struct sar_bcast *b, const struct sar_vec_desc *desc,
                                const struct sar_spvec *all, uint64_t from, size_t slots,
                                struct sar_spvec *vec)
{
    size_t begin = sar_spvec_lower_bound(desc, all, 0, from);
    size_t end = sar_spvec_lower_bound(desc, all, begin, from + slots);
    *vec = sar_spvec_slice(desc, all, begin, end);
    return sar_spvec_rebase(desc, from, sizeof(uint32_t), sar_bcast_scratch(b), vec);
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
        sar_wire_bytes(forced, &key->layout, vec) <= b->pieces.plan.piece_bytes - SAR_PIECE_HEADER_BYTES)
        return forced;
    return sar_wire_cheapest(&key->layout, vec, (struct sar_wire_price){ 1, 0, 0 });
}

/* Counts a piece that was written or read, for the report. */
static void count_piece(struct sar_bcast *b, const struct sar_wire *wire, size_t nnz)
{
    atomic_fetch_or_explicit(&b->wires, 1u << sar_wire_number(wire), memory_order_relaxed);
    atomic_fetch_add_explicit(&b->moved, nnz, memory_order_relaxed);
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
    struct sar_spvec vec;
    struct sar_bcast_hashes hashes = { 0, 0 };
    uint64_t from = set_slots(b, piece, &key);
    enum sar_status status = b->source->find(b, from, (size_t)key.layout.slots, &hashes, &vec);
    slot->bytes = 0;
    if (status == SAR_OK) {
        const struct sar_wire *wire = choose_wire(b, &key, &vec);
        struct sar_piece content = { .wire = wire,
                                     .user_word = hashes.old_values,
                                     .content_hash = hashes.content };
        count_piece(b, wire, vec.nnz);
        slot->bytes = sar_piece_encode(&key, &content, &vec, slot->memory, b->pieces.plan.piece_bytes);
        status = slot->bytes != 0 ? SAR_OK : SAR_NO_MEMORY;
    }
    if (status != SAR_OK) {
        sar_piece_failure(&key, slot->memory);
        slot->bytes = SAR_PIECE_HEADER_BYTES;
    }
    return status;
}

static enum sar_status read_piece(void *arg, size_t i)
{
    const struct batch *batch = arg;
    struct sar_bcast *b = batch->b;
    uint64_t piece = batch->first + i;
    const struct sar_pipeline_slot *slot = sar_pipeline_slot_of(&b->pieces, piece);
    struct sar_piece content;
    struct sar_msg_key key;
    uint64_t from = set_slots(b, piece, &key);
    SAR_TRY(sar_piece_open(&key, slot->memory, slot->bytes, &content));
    struct sar_spvec vec = { NULL, NULL, content.nnz };
    SAR_TRY(content.wire->decode(&key.layout, content.payload, content.bytes, sar_bcast_scratch(b), &vec));
    struct sar_bcast_hashes hashes = { content.user_word, content.content_hash };
    count_piece(b, content.wire, vec.nnz);
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
    struct sar_pipeline_plan plan = { b->root, b->trees, b->window, piece_capacity(b, b->piece_slots),
                                      sar_bcast_pieces(b) };
    uint64_t next = 0;
    int spins = 0;
    if (comm->ranks == 1)
        return b->status;
    struct sar_span span = sar_span_begin("transfer", 0, 0);
    struct sar_parallel former = sar_comm_state_begin_work(b->comm_state);
    sar_pipeline_begin(&b->pieces, &plan, b->comm_state->epoch);
    while (!sar_pipeline_is_done(&b->pieces)) {
        size_t n = do_pieces(b, &next);
        bool alone = !sar_comm_state_any_active();
        if (sar_pipeline_advance(&b->pieces, alone && n == 0) || n > 0)
            spins = 0;
        else if (sar_progress_poll(comm, &spins))
            sar_comm_backoff(comm, &spins);
    }
    sar_parallel_end(former);
    sar_bcast_span_end(b, &span);
    note(b, b->pieces.status);
    return b->status;
}
