/* SPDX-License-Identifier: BSD-3-Clause */
/* A task is one call that a scheme carries out. task.c runs the stages of the scheme; task_ops.c has the
 * operations on vectors that stages are made of, and records each as a span for traces. */

#ifndef SAR_SCHEME_ENGINE_TASK_H
#define SAR_SCHEME_ENGINE_TASK_H

#include "base/trace.h"
#include "device/ops.h"
#include "comm/dense_allreduce.h"
#include "comm/exchange.h"
#include "comm/shm/result.h"
#include "scheme/engine/agreed.h"
#include "vector/partition_hierarchical.h"
#include "vector/spvec.h"

struct sar_part_bitmap;
struct sar_scheme;
struct sar_stage;
struct sar_task;

/** The memory that a scheme asks an output for. */
struct sar_output_need {
    const struct sar_vec_desc *desc; /**< agreed vec_desc: sizes of an index and of an element */
    size_t nnz;                      /**< elements */
    bool early_write;                /**< the memory is written while the call may still fail */
};

/** Vtable of an output, at the beginning of the struct that implements it. */
struct sar_output_dest {
    /** Makes room for need->nnz elements. *vec is zeroed in the first call; later it is as the call before
     * left it, and its vec->nnz elements are kept. */
    enum sar_status (*reserve)(struct sar_output_dest *output, const struct sar_output_need *need,
                               struct sar_spvec *vec);
    /** Takes a reference to a result that the ranks of a node share and are about to write; it may be
     * `returned`. NULL: the output has no use for shared results. */
    void (*use_shared)(struct sar_output_dest *output, struct sar_shm_result *result,
                       const struct sar_spvec *vec);
    /** Allocates arrays for nnz elements in device memory, with indices of index_size bytes; they are
     * written at once and become the result. NULL for dense buffers. */
    enum sar_status (*alloc_device)(struct sar_output_dest *output, const struct sar_device_ctx *ctx,
                                    const struct sar_vec_desc *desc, size_t nnz, struct sar_spvec *vec);
    struct sar_shm_result
        *returned;       /**< shared result of an earlier call, which this call may reuse; or NULL */
    unsigned index_size; /**< bytes of an index in a shared result, and in the caller's arrays */
};

enum { SAR_STEP_ARENAS = 3 }; /**< a rank's own part of a step is read in the step after the next */

/** Bounds of contiguous parts that `oktopk` keeps in a tensor's state. Equal on all ranks. Only oktopk
 * writes. */
struct sar_oktopk_bounds {
    uint64_t *begin; /**< ranks + 1 indices: part r is [begin[r], begin[r + 1]) */
    uint64_t calls;  /**< calls since the tensor was first seen */
};

/** Arguments from the caller and the policy. Core (prepare.c) writes them before the first stage; afterwards
 * they are constant. Exceptions: core points `buffers` at host memory when the vector is on a device;
 * two_level clears can_retry in the copy that it makes for its inner task. */
struct sar_task_args {
    struct sar_dense_args buffers; /**< the caller's dense buffers, with MPI's basic type and op */
    uint32_t epoch;                /**< number of the call on its communicator */
    uint32_t fingerprint;          /**< hash of the arguments; in every message header */
    int first_phase;               /**< of the exchange; not 0 if messages of earlier phases were discarded */
    bool may_block;                /**< all ranks may block in MPI */
    bool can_retry;      /**< if a rank cannot share memory, core runs another scheme; the input must stay */
    bool may_accumulate; /**< `shared` may reduce directly into the caller's dense buffer */
    bool vote_first;     /**< dense: agree on local failures before MPI_Allreduce */
    size_t chunk_bytes;  /**< dense: bytes given to MPI at a time, 0 for all */
    struct sar_oktopk_bounds *oktopk; /**< of the tensor's state */
    uint64_t oktopk_interval;         /**< calls between recomputations */
};

/** Arenas. Core opens them; sar_task_next_step_arena switches step_arena. */
struct sar_task_memory {
    struct sar_arena *call_arena;  /**< freed when the call ends */
    struct sar_arena *step_arenas; /**< SAR_STEP_ARENAS of them, recycled in turn */
    unsigned arena_index;          /**< step arenas taken so far */
    struct sar_arena *step_arena;  /**< the current one, for messages and decoded vectors; first call_arena */
};

/** Helpers for a vector in device memory. Core (device_input) writes them; NULL where not used. */
struct sar_task_device {
    struct sar_device_partition *partition; /**< source of the input's parts */
    struct sar_device_exec *exec;           /**< encodes, decodes and reduces on the device */
    struct sar_host_pipeline *pipeline;     /**< dense: copies the vector through pinned memory in chunks */
};

/** This rank's elements. Written by core or by scheme->load_dense; `shared` may move vec to shared memory. */
struct sar_task_input {
    struct sar_spvec vec;
    bool load_deferred;               /**< the first stage still has to convert the caller's dense buffer */
    bool moved;                       /**< `shared` moved vec and rewound call_arena to arena_mark */
    struct sar_arena_mark arena_mark; /**< of call_arena before vec was made; zero: do not rewind */
};

/** State of the stage loop. Written by the engine, and by the inner loop of two_level. */
struct sar_task_engine {
    const struct sar_stage *stage;                        /**< next to run */
    int stages_run;                                       /**< stages run so far, repetitions included */
    int stage_index;                                      /**< of the current stage, for traces */
    enum sar_status (*overlap)(struct sar_task *task);    /**< of the current stage, not yet run; or NULL */
    enum sar_status (*on_arrival)(struct sar_task *task); /**< of the current stage */
    struct sar_span wait_span;
};

/** The reduced vector. Written by the scheme's last stages; core reads it after success. */
struct sar_task_result {
    struct sar_spvec vec;          /**< in the output's memory; only nnz is valid if parts != NULL */
    const struct sar_spvec *parts; /**< its pieces, which core writes to the dense buffer; or NULL */
    size_t n_parts;
    bool parts_overlap; /**< indices repeat between parts: core accumulates them */
    bool covers_input;  /**< vec has every index of the input */
    bool in_place;      /**< already in the caller's dense buffer */
    bool early_write;   /**< the output is written while the call may still fail */
};

/** Entries of the report; zero or NULL: none. The engine writes the wires, the scheme the others. */
struct sar_scheme_report {
    const char *push_wire, *pull_wire;     /**< names of formats; "mixed" where messages differ */
    const char *partition;                 /**< name of the partition map */
    int grain;                             /**< elements of a block of the map */
    int columns;                           /**< most slices of a row; 1: ranks own whole elements */
    int map_parts;                         /**< parts of a partition map with stripes; 0: none */
    int64_t messages_relayed;              /**< messages of other owners that this rank has sent on */
    struct sar_hash_stats hash;            /**< of hierarchical hashing of the input */
    double push_imbalance, pull_imbalance; /**< largest part over the mean part */
};

/** One call that a scheme carries out. */
struct sar_task {
    /* Set once, by core. */
    const struct sar_scheme *scheme;
    const struct sar_agreed *agreed;
    const struct sar_comm *comm;
    struct sar_task_args args;
    struct sar_task_device device;
    struct sar_output_dest
        *output; /**< destination of the result; two_level replaces it for its first stages */

    /* Written by the engine. */
    struct sar_task_engine engine;
    struct sar_task_memory memory;
    struct sar_exchange exchange;         /**< messages; its status is the status of the task */
    struct sar_dense_allreduce allreduce; /**< in flight; dense and oktopk start it, the engine advances it */

    /* Data: core makes the input, the scheme the result. */
    struct sar_task_input input;
    struct sar_task_result result;
    bool minus_zero; /**< the input of this rank, or of a rank it received from, has a -0.0 */

    /* Written by the scheme. */
    struct sar_wire_policy wire_policy[2]; /**< push, pull; set in its first post */
    bool repeat_stage; /**< set by post: run this stage again; the engine clears it before each post */
    struct sar_scheme_report report;
    void *state; /**< scheme->state_size bytes */
};

/** Prepares a task for the first stage of its scheme. Local; allocates nothing. task->exchange is open, and
 * task->state is zeroed. */
void sar_task_begin(struct sar_task *task);

/** Runs the first n stages, and waits for no messages: those of the last one are in flight then. */
void sar_task_run_stages(struct sar_task *task, int n);

/** Completes what the last stage posted, then runs stages until one has to wait for messages or none is
 * left. Blocking, nonblocking and persistent calls all use this loop. Sets *done when the scheme has ended,
 * in success or failure: task->exchange.status tells. */
void sar_task_advance(struct sar_task *task, bool block, bool *done);

/** Begins a span, for traces. */
static inline struct sar_span sar_task_span(const struct sar_task *task, const char *name)
{
    const struct sar_traffic *traffic = &task->exchange.traffic;
    return sar_span_begin(name, traffic->bytes_sent, traffic->bytes_received);
}

/** Ends a span of the current stage. */
void sar_task_span_end(const struct sar_task *task, struct sar_span *span);

/** Returns the agreed vec_desc for a reduction. If a float sum of dense buffers has a -0.0 in some input,
 * absent elements must be added as zeros, because -0.0 + 0.0 is +0.0. */
struct sar_vec_desc sar_task_desc(const struct sar_task *task);

/** Allocates n zeroed items of `size` bytes in the call arena, and stores their address in *memory. */
enum sar_status sar_task_alloc(struct sar_task *task, size_t n, size_t size, void *memory);

/** Makes the next step arena current. Recycles the memory of SAR_STEP_ARENAS steps before. */
void sar_task_next_step_arena(struct sar_task *task);

/** Advances messages in flight during long work. Returns true if all messages of this stage are complete. */
bool sar_task_progress(struct sar_task *task);

/** Encodes vec in the format that is chosen for it. Where values are rounded on the wire, vec becomes the
 * vector that its receiver will decode, in the step arena: a rank that keeps a copy must keep this one, so
 * that all ranks have equal bits. message is NULL if this rank is the receiver; vec is rounded, too. */
enum sar_status sar_task_encode(struct sar_task *task, bool pull, struct sar_wire_layout layout,
                                struct sar_spvec *vec, struct sar_msg *message);

/** The sar_msg_index_hash of an index list. */
struct sar_list_hash {
    uint32_t value;
    uint32_t *on_device; /**< where a device writes it; NULL: value is set */
};

/** Hashes the indices of vec, of 4 bytes. */
enum sar_status sar_task_hash_list(struct sar_task *task, const struct sar_spvec *vec,
                                   struct sar_list_hash *hash);

/** Encodes the values of vec alone, for receivers that know its indices, of 4 bytes. Sets *index_hash, their
 * sar_msg_index_hash. Waits for a device. */
enum sar_status sar_task_encode_values(struct sar_task *task, struct sar_wire_layout layout,
                                       const struct sar_spvec *vec, uint32_t *index_hash,
                                       struct sar_msg *message);

/** Decodes a message of values alone. vec has the known index list, and hash is its. A device that computes
 * the hash also compares it: sar_device_exec_wait reports another list. */
enum sar_status sar_task_decode_values(struct sar_task *task, struct sar_wire_layout layout,
                                       const struct sar_list_hash *hash, const struct sar_msg *message,
                                       struct sar_spvec *vec);

/** Encodes a deferral of a message of this size; see sar_msg_encode_deferral. */
enum sar_status sar_task_encode_deferral(struct sar_task *task, struct sar_wire_layout layout,
                                         const struct sar_msg_size *size, struct sar_msg *message);

/** Reads the size of a message, or of one that is deferred. */
enum sar_status sar_task_read_size(const struct sar_task *task, struct sar_wire_layout layout,
                                   const struct sar_msg *message, struct sar_msg_size *size);

/** Decodes a message, such as one that arrived in the stage before. */
enum sar_status sar_task_decode(struct sar_task *task, struct sar_wire_layout layout,
                                const struct sar_msg *message, struct sar_spvec *vec);

/** A part and its message, to be encoded or decoded with others. */
struct sar_task_part {
    struct sar_wire_layout layout;
    struct sar_spvec *vec;
    struct sar_msg *message;     /**< encode: NULL as for sar_task_encode */
    const struct sar_wire *wire; /**< its format; scratch of these functions */
    bool minus_zero;             /**< scratch, too */
};

/** As sar_task_encode and sar_task_decode for n parts, in parallel if they are large. If one thread does all
 * work, messages in flight are advanced between parts that are decoded. */
enum sar_status sar_task_encode_parts(struct sar_task *task, bool pull, struct sar_task_part parts[],
                                      size_t n);
enum sar_status sar_task_decode_parts(struct sar_task *task, struct sar_task_part parts[], size_t n);

/** Returns how many parts of about this size, of n at most, to encode together: as many as there are threads,
 * or 1 if they are small, or a loop within each part is faster. */
size_t sar_task_parts_together(const struct sar_task *task, const struct sar_task_part *part, size_t n);

/** Describes a message in the format hash_bitmap without decoding it. Sets *other if it is in another format
 * or its values are rounded: then it is to be decoded. */
enum sar_status sar_task_open_bitmap(struct sar_task *task, struct sar_wire_layout layout,
                                     const struct sar_msg *message, struct sar_part_bitmap *part,
                                     bool *other);

/** Reduces vectors into the step arena. */
enum sar_status sar_task_reduce(struct sar_task *task, const struct sar_vec_desc *desc,
                                const struct sar_spvec vecs[], size_t n, struct sar_spvec *out);

/** Reduces vectors and encodes their result for a pull in one pass, in the format hash_bitmap, without
 * indices: out->index is NULL. If two passes are better, does nothing: message->buffer is NULL.
 * @param clustered  set if the bitmap has few words, which other formats suit; if set, nothing is done */
enum sar_status sar_task_reduce_encoded(struct sar_task *task, const struct sar_wire_layout *layout,
                                        const struct sar_vec_desc *desc, const struct sar_spvec vecs[],
                                        size_t n, bool *clustered, struct sar_spvec *out,
                                        struct sar_msg *message);

/** Makes room for nnz elements in the output. *vec keeps its vec->nnz elements; its arrays may move. */
enum sar_status sar_task_reserve(struct sar_task *task, size_t nnz, struct sar_spvec *vec);

/** Reduces vectors into the output; they become task->result.vec. */
enum sar_status sar_task_reduce_to_output(struct sar_task *task, const struct sar_vec_desc *desc,
                                          const struct sar_spvec vecs[], size_t n);

/** Returns the work of summing n vectors, for a span, and the format of such work. */
struct sar_span_work sar_task_work(const char *kind, const struct sar_vec_desc *desc,
                                   const struct sar_spvec vecs[], size_t n);
const char *sar_task_sum_format(size_t n);

/** Copies a vector, past the caches if non_temporal; or appends one to *out, with base added to indices. */
void sar_task_copy(const struct sar_task *task, const struct sar_vec_desc *desc, const struct sar_spvec *from,
                   struct sar_spvec *to, bool non_temporal);
void sar_task_append(const struct sar_task *task, const struct sar_spvec *vec, unsigned index_size,
                     uint64_t base, struct sar_spvec *out);

/** Returns the vec_desc of the result's parts in device memory: indices of coordinates are the caller's. */
struct sar_vec_desc sar_task_output_desc(const struct sar_task *task);

/** Turns slots of a map's parts in device memory back into indices, and appends the parts to
 * task->result.parts. The order of parts does not matter to a dense vector; core sorts coordinates when all
 * parts are there.
 * @param times  calls of this function in the task, in total */
enum sar_status sar_task_add_output_parts(struct sar_task *task, size_t times,
                                          const struct sar_partition_map *map,
                                          const struct sar_spvec parts[]);

#endif
