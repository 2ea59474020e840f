/* SPDX-License-Identifier: BSD-3-Clause */
/* Does a call's work on runs in a device's memory, instead of the host: there they are split, coded and
 * reduced, and only messages' payloads come to the host and go from there. What is made stays until the call
 * is over: the input, what came of it, and the outcome.
 *
 * Work is queued. What it reads and writes of the host's must stay until the worker was waited for. */

#ifndef SAR_DEVICE_WORKER_H
#define SAR_DEVICE_WORKER_H

#include "base/arena.h"
#include "device/offload.h"

/** Memory of the device's that a worker has borrowed. */
struct sar_loan;

struct sar_worker {
    const struct sar_memory *memory;
    struct sar_arena *arena; /**< the call's */
    struct sar_loan *loans;
    struct sar_run *pieces;        /**< of the outcome, as far as it is known */
    struct sar_findings *findings; /**< the device's; NULL before the first work */
    struct sar_findings found;     /**< those as of the last wait; here, since a copy may outlive its wait */
    bool queued;                   /**< something that was not waited for */
};

/** A worker that has not begun; nothing of it is to be given back. */
struct sar_worker sar_worker_make(const struct sar_memory *memory, struct sar_arena *arena);

/** Give back all that was made, behind what is queued. */
void sar_worker_end(struct sar_worker *worker);

/** Wait for what is queued. SAR_CORRUPT if a payload was none. */
enum sar_status sar_worker_wait(struct sar_worker *worker);

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

/** Write a run as a payload in the host's memory, that all ranks read alike. */
enum sar_status sar_worker_encode(struct sar_worker *worker, const struct sar_shape *shape,
                                  const struct sar_run *run, const struct sar_payload *payload);

/** Read one. Bytes that are none are told of by sar_worker_wait; the run is harmless then. */
enum sar_status sar_worker_decode(struct sar_worker *worker, const struct sar_shape *shape,
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
