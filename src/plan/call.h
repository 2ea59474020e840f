/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_PLAN_CALL_H
#define SAR_PLAN_CALL_H

#include <stdatomic.h>
#include <string.h>

#include "device/offload.h"
#include "device/worker.h"
#include "plan/plan.h"
#include "scheme/scheme.h"

/** What went wrong, the same on all ranks where `agreed`. */
struct sar_verdict {
    enum sar_status status;
    bool agreed;
    int64_t value;     /**< the value at fault */
    int64_t rank;      /**< the rank it is on */
    int64_t low, high; /**< for arguments that differ: the least and the largest, and who has them */
    int64_t low_rank, high_rank;
};

/** Blame something, unless something else was at fault before: the first counts. */
static inline void sar_blame(struct sar_verdict *verdict, enum sar_status status, int64_t value)
{
    if (verdict->status == SAR_OK)
        *verdict = (struct sar_verdict){ .status = status, .value = value };
}

/** A real number as a verdict's value, and back. */
static inline int64_t sar_real_bits(double real)
{
    int64_t bits;
    memcpy(&bits, &real, sizeof bits);
    return bits;
}

static inline double sar_real_of(int64_t bits)
{
    double real;
    memcpy(&real, &bits, sizeof real);
    return real;
}

/** One call of the allreduce, from arguments that the MPI face has looked at. */
struct sar_call {
    int64_t field[SAR_FIELDS]; /**< what must be equal on all ranks */
    struct sar_shape shape;    /**< meaningful when native */
    bool native;               /**< type and op are the library's own */
    bool narrow;               /**< integers of 2 bytes that may stand for floats: sar_call_interpret */
    bool dense_face, in_place;
    struct sar_coo coo;            /**< coordinates in */
    struct sar_dense_call buffers; /**< or dense buffers in and out */
    struct sar_sink *sink;         /**< where coordinates go; NULL for dense buffers */
    struct sar_memory memory;      /**< that the caller's arrays are in */
    bool remote;                   /**< the arrays stay there: mirrors have no memory of the host */
    bool aware;                    /**< and MPI takes that memory */
    bool direct;                   /**< and gets the arrays as they are, if it has them */
    bool gathered;                 /**< the vector is a group's, of arrays of which some are a device's */
    size_t room;                   /**< bytes of a block of pinned memory, by which they pass */
    struct sar_parcel *parcel[2];  /**< in mirrors, of what comes and goes in a stream; or NULL */
    struct sar_mirror mirror[2];   /**< of vectors where that is not the host's: buffers name these then */
    struct sar_verdict verdict;    /**< in: what is wrong on this rank; out: what is wrong at all */
    size_t nnz_out;                /**< elements in the sink, of coordinates */
};

/** How far a call has come. */
enum sar_phase {
    SAR_QUEUED,    /**< calls before it on this communicator are not done */
    SAR_AGREEING,  /**< all ranks learn what they must know of each other */
    SAR_PROFILING, /**< its tensor is looked at */
    SAR_RUNNING,   /**< a scheme is at work */
    SAR_PARTED,    /**< it gave way, and another is to be */
    SAR_DONE
};

/** A call under way. */
struct sar_pending {
    struct sar_context *context;
    struct sar_call *call;
    struct sar_plan *plan;           /**< or NULL */
    const struct sar_policy *policy; /**< the plan's or the communicator's */
    enum sar_phase phase;
    /** Told when it is done; the last time that it is touched. Or NULL. */
    void (*finished)(struct sar_pending *pending);
    struct sar_pending *next; /**< on this communicator */
    struct sar_agreement agreement;
    struct sar_record *record;
    struct sar_profiling profiling;
    struct sar_agreed agreed;
    struct sar_selection selection;
    struct sar_request request;
    struct sar_sink_in_buffers scratch; /**< for the outcome of dense buffers, which is written from there */
    struct sar_marks marks;             /**< of the elements of a vector in device memory */
    struct sar_arrival arrival;         /**< of these on the host */
    struct sar_splitter splitter;       /**< of their parts */
    struct sar_worker worker;           /**< on these, and on the outcome, where it is worth it */
    struct sar_pipe pipe;               /**< for the whole vector instead */
    void *spare;                        /**< for the indices of elements that came in a parcel */
    enum sar_status status;             /**< of what is under way */
    struct sar_span whole, step;        /**< all of the call, and the present phase */
    bool profile_due, opened;
    double start;
    double apart; /**< seconds since then in which nobody let it move, or it was profiled */
    double entry; /**< seconds until the ranks agreed, without those */
    double mark;  /**< the same when the profile began */
};

/** Take from the knobs what a call's elements are, since integers of 2 bytes may stand for floats, and the
 * size of blocks. To be called before a call is started or forwarded. */
void sar_call_interpret(struct sar_call *call, const struct sar_policy *policy);

/** Let a vector that came in a parcel be whole in the call's buffers, for MPI to have it. No call may be in
 * flight on the communicator. */
enum sar_status sar_call_make_whole(struct sar_context *context, struct sar_call *call);

/** Put a call behind those on its communicator; pending->plan is set. Local. Collective in that all ranks
 * do so in the same order. */
void sar_call_start(struct sar_context *context, struct sar_call *call, struct sar_pending *pending);

/** Let the calls on a communicator make progress. Those that are done leave, their outcome in
 * call->verdict. With `block` the first one is done on return. */
void sar_call_advance(struct sar_context *context, bool block);

/** Agree on the arguments of calls to come, and do no more. Collective; the outcome is in call->verdict.
 * Calls on the communicator must be done. */
void sar_call_check(struct sar_context *context, struct sar_call *call);

/** Agree, and profile the dense buffer call->buffers.sendbuf. Collective; the outcome is in call->verdict.
 * Calls on the communicator must be done. */
void sar_call_profile(struct sar_context *context, struct sar_call *call, uint32_t slots,
                      struct sar_profile *profile);

#endif
