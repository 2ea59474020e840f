/* SPDX-License-Identifier: BSD-3-Clause */
/* The vtable of a scheme, and the list of all schemes. */

#ifndef SAR_SCHEME_SCHEME_H
#define SAR_SCHEME_SCHEME_H

#include "base/status.h"
#include "scheme/engine/agreed.h"

struct sar_task;

/** One stage of a scheme; scheme/engine/task.c runs it. A NULL function does nothing. */
struct sar_stage {
    /** Runs before the messages of the stage; skipped once the call has failed. */
    enum sar_status (*compute)(struct sar_task *task);
    /** Sends and expects messages; never skipped, so that no peer waits forever. */
    void (*post)(struct sar_task *task);
    /** Runs once, while messages are in flight; skipped once the call has failed. */
    enum sar_status (*overlap)(struct sar_task *task);
    /** Runs each time some, but not all, messages have arrived; skipped once the call has failed. */
    enum sar_status (*on_arrival)(struct sar_task *task);
};

/** Most stages_to_push of a scheme: the first phase of a call that starts its scheme again. */
enum { SAR_PUSH_STAGES_MAX = 3 };

/** Vtable of an algorithm. */
struct sar_scheme {
    const char *name;
    const char *summary; /**< one line for users */
    unsigned
        collectives; /**< that it serves: bit 1 << enum sar_collective_kind of each; 0: allreduce alone */
    /** Returns why the scheme cannot run a call of a collective that it serves, or NULL if it can; see
     * sar_scheme_unsupported_reason. Equal on all ranks. */
    const char *(*unsupported_reason)(const struct sar_agreed *agreed);
    /** Returns why others replace this scheme unless it is forced, or NULL. The pointer is NULL: never. */
    const char *(*redundant_reason)(const struct sar_agreed *agreed);
    /** Returns the predicted time of the call in seconds. Equal on all ranks. */
    double (*seconds)(const struct sar_agreed *agreed);
    /** Returns the bytes that a rank receives by the Zen paper's equation; or NULL. */
    double (*paper_bytes)(const struct sar_agreed *agreed);
    unsigned partition_mask; /**< partition maps a user may force: bit 1 << enum sar_partition_kind of each */
    bool on_dense_buffers;   /**< works on the caller's dense buffers without conversion */
    /** Returns true if the call accepts input through task->device.partition and task->device.exec. NULL:
     * never. */
    bool (*on_device)(const struct sar_agreed *agreed);
    /** Converts the caller's dense buffer to task->input.vec; NULL: core converts it. */
    enum sar_status (*load_dense)(struct sar_task *task);
    /** Stages, at most SAR_PUSH_STAGES_MAX, after which a rank has sent one message to each other rank, in
     * class 0 of the last one's phase, and has needed none; not in an allgather. 0: other schemes. */
    int stages_to_push;
    bool pushes_whole;              /**< this message has all elements of the rank, else a part of them */
    size_t state_size;              /**< bytes of task->state, zeroed at the start */
    const struct sar_stage *stages; /**< run in order; ended by an empty one */
};

/** All schemes, ended by NULL. The order breaks ties; `dense` comes first because it serves every call. */
extern const struct sar_scheme *const sar_schemes[];

/** Most schemes of the registry: the size of arrays with one entry a scheme. */
enum { SAR_SCHEMES_MAX = 16 };

extern const struct sar_scheme sar_scheme_dense;
extern const struct sar_scheme sar_scheme_allgather;
extern const struct sar_scheme sar_scheme_recursive_doubling;
extern const struct sar_scheme sar_scheme_recursive_halving;
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

/** Returns true if a scheme serves a collective. */
bool sar_scheme_serves(const struct sar_scheme *scheme, enum sar_collective_kind collective);

/** Returns why a scheme cannot run the call, or NULL if it can. Equal on all ranks. */
const char *sar_scheme_unsupported_reason(const struct sar_scheme *scheme, const struct sar_agreed *agreed);

/** True if a call whose agreed->call.speculates is set is small enough to send the scheme's first messages
 * beside the agreement. Equal on all ranks. */
bool sar_scheme_speculates(const struct sar_scheme *scheme, const struct sar_agreed *agreed);

/** Returns the scheme with this name, or NULL. */
const struct sar_scheme *sar_scheme_find(const char *name);

#endif
