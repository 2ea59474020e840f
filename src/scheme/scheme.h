/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_SCHEME_SCHEME_H
#define SAR_SCHEME_SCHEME_H

#include "base/trace.h"
#include "device/device.h"
#include "device/pipe.h"
#include "device/splitter.h"
#include "net/dense.h"
#include "net/exchange.h"
#include "scheme/agreed.h"
#include "scheme/sink.h"

struct sar_request;

/** One stage of a scheme. `compute` works on what has arrived and prepares what is to be sent; it may
 * fail, and is skipped once the call has failed. `post` sends and expects messages; it is never skipped, so
 * that every rank gets the messages it waits for, be it the news of a failure. Those may be made on the way:
 * what then fails is said to the exchange, which sends that in their place.
 * `meanwhile` is like compute and runs while they are under way, once; `arrived` thereafter whenever some of
 * them have come but not all. Any may be NULL. A stage is over when its messages are; it runs again while
 * post set request->again. */
struct sar_stage {
    enum sar_status (*compute)(struct sar_request *request);
    void (*post)(struct sar_request *request);
    enum sar_status (*meanwhile)(struct sar_request *request);
    enum sar_status (*arrived)(struct sar_request *request);
};

enum { SAR_SCRATCHES = 3 };

/** What a scheme remembers of a tensor from one call to the next; equal on all ranks. */
struct sar_keep {
    uint64_t *bounds; /**< where contiguous parts begin, and count; ranks + 1 of them */
    uint64_t age;     /**< calls that used them */
};

/** A way to carry out the allreduce. One constant in each file of this room. */
struct sar_scheme {
    const char *name;
    const char *summary;
    /** NULL when the scheme can carry out the call, else why it cannot. */
    const char *(*obstacle)(const struct sar_agreed *agreed);
    /** Why only whoever asks for the scheme gets it, as when another does the same; NULL where it is not so.
     * May be NULL itself. */
    const char *(*redundant)(const struct sar_agreed *agreed);
    /** Predicted time. */
    double (*seconds)(const struct sar_agreed *agreed);
    /** Time by the paper's equation in units of 1 / bandwidth, i.e. bytes; NULL where the paper has none. */
    double (*paper_bytes)(const struct sar_agreed *agreed);
    unsigned partitions;   /**< maps that may be asked for, bit 1 << enum sar_partition of each */
    bool on_dense_buffers; /**< takes the caller's dense buffers as they are */
    bool splits;           /**< takes request->splitter and ->worker, if there are, for the input */
    /** Makes request->input of the caller's dense buffer, in memory that the scheme has for it. Its first
     * stage does the same where request->raw. NULL where any memory will do. */
    enum sar_status (*compact)(struct sar_request *request);
    size_t state_size;              /**< bytes of request->state, zero at the start */
    const struct sar_stage *stages; /**< run in order; ended by one without functions */
};

/** What the report tells beyond the traffic. Zeros and NULLs where a scheme has no such thing. */
struct sar_notes {
    const char *push_wire, *pull_wire; /**< "mixed" where messages differ */
    const char *partition;
    int grain;
    double push_imbalance, pull_imbalance;
};

/** One call on its way through a scheme. */
struct sar_request {
    const struct sar_scheme *scheme;
    const struct sar_stage *stage;
    const struct sar_agreed *agreed;
    const struct sar_device *device;
    const struct sar_net *net;
    struct sar_arena *arena;   /**< for as long as the call takes */
    struct sar_arena *scratch; /**< SAR_SCRATCHES of them for schemes of many steps, used in turn */
    unsigned turn;             /**< whose turn it is */
    struct sar_arena *passing; /**< for messages and what is decoded: arena, unless a scheme sets it */
    const struct sar_wire
        *own_wire[2]; /**< the scheme's formats of push and pull, unless others are asked for */
    struct sar_keep *keep;
    uint64_t recompute; /**< calls for which boundaries are kept */
    struct sar_exchange exchange;
    struct sar_dense dense; /**< an MPI_Allreduce under way; used by `dense` */
    struct sar_dense_call
        buffers;           /**< the caller's dense buffers, with MPI's names of the basic type and op */
    bool blocking;         /**< all ranks may sleep in MPI */
    bool votes;            /**< a rank may have failed that all others give dense buffers to MPI with */
    size_t piece;          /**< bytes of dense buffers that all ranks give MPI at a time; 0 for all */
    struct sar_pipe *pipe; /**< that this rank's pass through; NULL for `buffers` */
    int stages_run;
    int place;                                                 /**< in the scheme, of the stage that runs */
    bool again;                                                /**< set by post: the stage runs once more */
    enum sar_status (*meanwhile)(struct sar_request *request); /**< of the stage, still to run; or NULL */
    enum sar_status (*arrived)(struct sar_request *request);   /**< of the stage */
    struct sar_span waiting;                                   /**< for the messages of the stage */
    uint32_t epoch, fingerprint;
    struct sar_run input;               /**< this rank's elements */
    struct sar_arena_mark before_input; /**< of the arena; zero bytes where what was taken since is needed */
    bool input_moved;                   /**< out of what was taken then, which is given back */
    struct sar_splitter *splitter;      /**< of what is not in it; or NULL */
    struct sar_worker *worker;    /**< who works on runs, which are in a device's memory then; or NULL */
    bool raw;                     /**< input is still to be made of the caller's dense buffer */
    struct sar_run output;        /**< the outcome, in the sink's memory; set by the last stage */
    const struct sar_run *pieces; /**< where the outcome lies if not in output, which has its nnz then; or */
    size_t pieces_n;              /**< NULL */
    bool folds, may_fold;         /**< pieces overlap, and are folded in the end; this call can do that */
    bool minus_zero;              /**< a rank heard of so far has a floating-point -0.0 */
    bool gives_way;               /**< another scheme runs where all ranks hear that one cannot share memory;
                                        until then `dense` buffers stay, and coordinates, unless moved */
    bool streams;                 /**< the sink is written while the call may still fail */
    bool output_covers;           /**< the outcome has all elements of the input */
    bool output_in_place;         /**< the outcome stands in the caller's dense buffer already */
    struct sar_sink *sink;
    struct sar_notes notes;
    void *state; /**< the scheme's own */
};

/** All schemes, ended by NULL. The order breaks ties; `dense` comes first because it serves every call. */
extern const struct sar_scheme *const sar_schemes[];

extern const struct sar_scheme sar_scheme_dense;
extern const struct sar_scheme sar_scheme_allgather;
extern const struct sar_scheme sar_scheme_recursive_doubling;
extern const struct sar_scheme sar_scheme_split_allgather;
extern const struct sar_scheme sar_scheme_ring;
extern const struct sar_scheme sar_scheme_split_dense;
extern const struct sar_scheme sar_scheme_hybrid;
extern const struct sar_scheme sar_scheme_balanced;
extern const struct sar_scheme sar_scheme_omni;
extern const struct sar_scheme sar_scheme_sparse_ps;
extern const struct sar_scheme sar_scheme_oktopk;
extern const struct sar_scheme sar_scheme_shared;
extern const struct sar_scheme sar_scheme_two_level;

/** The scheme with this name, or NULL. */
const struct sar_scheme *sar_scheme_find(const char *name);

/** For `obstacle`: types, ops and index spaces that no sparse scheme takes. */
const char *sar_sparse_obstacle(const struct sar_agreed *agreed);

/** A span of the stage that runs, such as that of its encoding, and its end. */
struct sar_span sar_request_span(const struct sar_request *request, const char *name);
void sar_request_span_end(const struct sar_request *request, struct sar_span *span);

/** The agreed shape; with a float sum of dense buffers that hold a -0.0 somewhere, absent elements must be
 * added as zeros, since -0.0 + 0.0 is +0.0. */
struct sar_shape sar_request_shape(const struct sar_request *request);

/** Envelope of messages about a stretch of the index space. */
struct sar_envelope sar_request_envelope(const struct sar_request *request, struct sar_layout layout);

/** Encode a run in the format for it. Where values are rounded on the way the run becomes what its receiver
 * will read, in memory of request->passing: whoever keeps what it sends must keep that, so that all ranks
 * have the same bits. Without a message the receiver is this rank itself; what it keeps is rounded all the
 * same, so that bits do not depend on whose part it is. */
enum sar_status sar_request_encode(struct sar_request *request, bool pull, struct sar_layout layout,
                                   struct sar_run *run, struct sar_message *message);

/** Decode the message that came from a port in the stage before. */
enum sar_status sar_request_decode(struct sar_request *request, struct sar_layout layout, int port,
                                   struct sar_run *run);

/** Decode a message that arrived at some time. */
enum sar_status sar_request_read(struct sar_request *request, struct sar_layout layout,
                                 const struct sar_message *message, struct sar_run *run);

/** Reduce runs into memory of their own. */
enum sar_status sar_request_reduce(struct sar_request *request, const struct sar_shape *shape,
                                   const struct sar_run runs[], size_t n, struct sar_run *out);

/** Reduce runs into the sink and make that the request's output. */
enum sar_status sar_request_deliver(struct sar_request *request, const struct sar_shape *shape,
                                    const struct sar_run runs[], size_t n);

/** Work on all elements of some runs. */
struct sar_work sar_work_on_runs(const char *kind, const struct sar_shape *shape, const struct sar_run runs[],
                                 size_t n);

/** sar_run_copy, or sar_run_stream past the caches, and sar_run_append, to the shape agreed on, as spans. */
void sar_request_copy(const struct sar_request *request, const struct sar_shape *shape,
                      const struct sar_run *from, struct sar_run *to, bool past_caches);
void sar_request_append(const struct sar_request *request, const struct sar_run *run, unsigned index_size,
                        uint64_t base, struct sar_run *out);

/** Let messages and what is decoded from them use the memory of three steps ago again. */
void sar_request_next_scratch(struct sar_request *request);

/** In long work between messages: let those that are under way move, and others start. Whether all of this
 * stage are over. */
bool sar_request_glance(struct sar_request *request);

/** Round what was delivered as if it had been sent: where some ranks get the outcome in a message. */
void sar_request_settle(struct sar_request *request);

/** Take n zeroed pieces of `size` bytes for the state. */
enum sar_status sar_request_take(struct sar_request *request, size_t n, size_t size, void *memory);

#endif
