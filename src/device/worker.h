/* SPDX-License-Identifier: BSD-3-Clause */
/* Does a call's work on runs in a device's memory, instead of the host: there they are split, coded and
 * reduced, and only messages' payloads come to the host and go from there. What is made stays until the call
 * is over: the input, what came of it, and the outcome.
 *
 * Work is queued. What it reads and writes of the host's must stay until the worker was waited for. Payloads
 * travel in streams of their own, one for each direction, while kernels work on others: those that leave once
 * they are encoded, and those that come before they are decoded. So that copies need not wait for each other
 * the host has messages in pinned memory. Where MPI takes the device's memory payloads are not copied. */

#ifndef SAR_DEVICE_WORKER_H
#define SAR_DEVICE_WORKER_H

#include "base/arena.h"
#include "device/berth.h"
#include "device/offload.h"
#include "device/pinned.h"

/** Memory of the device's that a worker has borrowed. */
struct sar_loan;

/** Arenas for messages, which are used in turn; payloads that leave at the same time. */
enum { SAR_WORKER_TURNS = 3, SAR_WORKER_LEAVING = 2 };

struct sar_worker {
    const struct sar_memory *memory;
    struct sar_arena *arena; /**< the call's */
    struct sar_loan *loans;
    struct sar_run *pieces;        /**< of the outcome, as far as it is known */
    struct sar_findings *findings; /**< the device's; NULL before the first work */
    struct sar_findings found;     /**< those as of the last wait; here, since a copy may outlive its wait */
    bool queued;                   /**< something that was not waited for */
    struct sar_berths berths;      /**< for payloads that MPI has where they are */
    bool direct;                   /**< set by who knows that it does: messages are to leave in that way */
    struct sar_pinned pinned;      /**< where arenas for messages have their memory */
    struct sar_arena *turns;       /**< these arenas */
    struct sar_arena *messages;    /**< the present one of them */
    struct sar_staging *lanes;     /**< for payloads; NULL before the first one */
    size_t left, came;             /**< payloads so far, each way */
    const void *leaving[SAR_WORKER_LEAVING]; /**< the last that left, on the host */
};

/** Let a worker begin, and stay where it is. To be ended.
 * @param turns  SAR_WORKER_TURNS arenas, without memory
 * @param most   bytes that may be pinned for arenas of all workers */
void sar_worker_open(struct sar_worker *worker, const struct sar_memory *memory, struct sar_arena *arena,
                     struct sar_arena *turns, size_t most);

/** Give back all that was made, behind what is queued, the arenas' memory too. Nothing where the worker has
 * not begun. */
void sar_worker_end(struct sar_worker *worker);

/** Let messages have the memory of SAR_WORKER_TURNS turns ago. */
void sar_worker_turn(struct sar_worker *worker, unsigned turn);

/** Wait for what is queued. SAR_CORRUPT if a payload was none. */
enum sar_status sar_worker_wait(struct sar_worker *worker);

/** Wait until a payload that was encoded is where it is to be, and no longer than for what was encoded
 * before. */
enum sar_status sar_worker_await(struct sar_worker *worker, const void *payload);

/** Split marked elements, as sar_offload_split does; on return it is done.
 * @param minus_zero  whether a value is -0.0 */
enum sar_status sar_worker_split(struct sar_worker *worker, const struct sar_load *load,
                                 const struct sar_division *split, struct sar_run *run,
                                 unsigned long long first[], bool *minus_zero);

/** The same of a run in the device's memory, whose indices are the vector's and have shape->index_size bytes,
 * and which has fewer than 2^32 elements. */
enum sar_status sar_worker_partition(struct sar_worker *worker, const struct sar_shape *shape,
                                     const struct sar_division *how, const struct sar_run *from,
                                     struct sar_run *run, unsigned long long first[]);

/** Write a run as a payload in the host's memory, that all ranks read alike. Until it was waited for others
 * may be encoded. */
enum sar_status sar_worker_encode(struct sar_worker *worker, const struct sar_shape *shape,
                                  const struct sar_run *run, const struct sar_payload *payload);

/** Read one. Bytes that are none are told of by sar_worker_wait; the run is harmless then. */
enum sar_status sar_worker_decode(struct sar_worker *worker, const struct sar_shape *shape,
                                  const struct sar_payload *payload, struct sar_run *run);

/** The same of payloads in the device's memory, of worker->berths. Those that came must be there. */
enum sar_status sar_worker_encode_there(struct sar_worker *worker, const struct sar_shape *shape,
                                        const struct sar_run *run, const struct sar_payload *payload);
enum sar_status sar_worker_decode_there(struct sar_worker *worker, const struct sar_shape *shape,
                                        const struct sar_payload *payload, struct sar_run *run);

/** Bring a run of the host's to the device. */
enum sar_status sar_worker_send(struct sar_worker *worker, const struct sar_shape *shape,
                                struct sar_run *run);

/** What sar_reduce does, to the same bits but for those of NaNs. Waits, but for no findings. */
enum sar_status sar_worker_reduce(struct sar_worker *worker, const struct sar_shape *shape,
                                  const struct sar_run runs[], size_t n, struct sar_run *out);

/** The same into arrays of the device's that have room. */
enum sar_status sar_worker_reduce_into(struct sar_worker *worker, const struct sar_shape *shape,
                                       const struct sar_run runs[], size_t n, struct sar_run *out);

/** What sar_unpartition does. */
enum sar_status sar_worker_unsplit(struct sar_worker *worker, const struct sar_shape *shape,
                                   const struct sar_part *part, struct sar_run *run);

#endif
