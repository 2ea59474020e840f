/* SPDX-License-Identifier: BSD-3-Clause */
/* The broadcast of a vector in pieces: agreement, the plan of pieces, and the loop that encodes, sends,
 * receives and decodes them. bcast_delta.c and bcast_coo.c say what the elements of a piece are. */

#ifndef SAR_CORE_BCAST_ENGINE_H
#define SAR_CORE_BCAST_ENGINE_H

#include <stdatomic.h>

#include "base/trace.h"
#include "comm/pipeline.h"
#include "core/bcast.h"

struct sar_bcast;

/** Numbers that travel with a piece. */
struct sar_bcast_hashes {
    uint64_t old_values;
    uint32_t content;
};

/** Elements of the pieces. Functions are called for several pieces at once by the threads of a loop, unless
 * in_order is set. */
struct sar_bcast_source {
    /** On the root: makes the vec of the slots [from, from + slots), with 4-byte indices from `from`
     * on. Sets the hashes, if it has any. */
    enum sar_status (*find)(const struct sar_bcast *b, uint64_t from, size_t slots,
                            struct sar_bcast_hashes *hashes, struct sar_spvec *vec);
    /** On other ranks: takes the elements of such a vec, which may be damaged. */
    enum sar_status (*take)(struct sar_bcast *b, uint64_t from, size_t slots,
                            const struct sar_bcast_hashes *hashes, const struct sar_spvec *vec);
    bool in_order; /**< pieces are taken one after another */
};

/** Elements of the root, as its agreement tells all ranks; zeros on other ranks. */
struct sar_bcast_count {
    uint64_t nnz;     /**< about so many */
    uint64_t nnz_max; /**< no more */
};

/** A broadcast. The caller sets the members up to user; bcast_engine.c sets the others. */
struct sar_bcast {
    struct sar_comm_state *comm_state;
    struct sar_call_args *args;
    const struct sar_bcast_source *source;
    int root;
    uint64_t slots;      /**< of the vector */
    size_t element_size; /**< bytes of an element */
    void *user;          /**< of the source */

    uint64_t nnz, nnz_max;      /**< of the root's sar_bcast_count */
    uint64_t piece_slots;       /**< slots of a piece but the last */
    int trees, window;          /**< trees that the pieces go over in turn; pieces of each under way */
    struct sar_msg_key key;     /**< of all pieces, but for their slots */
    struct sar_pipeline pieces; /**< the messages */
    enum sar_status status;     /**< first failure of this rank */
    double predicted;           /**< seconds of the messages */
    _Atomic uint64_t moved;     /**< elements of the pieces that this rank has written or read */
    _Atomic uint32_t wires;     /**< their formats: bit i is that of sar_wires[i] */
    double start;               /**< of the call; set by bcast_report.c, as is the span */
    struct sar_span span;
};

/** Opens the messages, agrees on the call, and plans the pieces. Returns false after an error, which is in
 * args->result.error. Collective. */
bool sar_bcast_begin(struct sar_bcast *b, struct sar_bcast_count count);

/** Ends a trace span of the call. */
static inline void sar_bcast_span_end(const struct sar_bcast *b, struct sar_span *span)
{
    sar_span_end(span, &(struct sar_span_context){ b->comm_state->comm.id, b->comm_state->epoch, -1, -1,
                                                   b->pieces.bytes_sent, b->pieces.bytes_received });
}

/** Returns the number of pieces. */
static inline uint64_t sar_bcast_pieces(const struct sar_bcast *b)
{
    return b->slots / b->piece_slots + (b->slots % b->piece_slots != 0);
}

/** Moves all pieces. Returns the first failure of this rank. Collective. */
enum sar_status sar_bcast_run(struct sar_bcast *b);

/** Returns the arena for the memory of a piece, valid until all pieces of a loop are done. */
struct sar_arena *sar_bcast_scratch(const struct sar_bcast *b);

/** Makes the vec of the slots [from, from + slots) of sorted elements, as sar_bcast_source.find does. */
enum sar_status sar_bcast_slice(const struct sar_bcast *b, const struct sar_vec_desc *desc,
                                const struct sar_spvec *all, uint64_t from, size_t slots,
                                struct sar_spvec *vec);

#endif
