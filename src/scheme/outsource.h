/* SPDX-License-Identifier: BSD-3-Clause */
/* What scheme/common.c does, for requests whose runs are in a device's memory: request->worker is set. */

#ifndef SAR_SCHEME_OUTSOURCE_H
#define SAR_SCHEME_OUTSOURCE_H

#include "device/worker.h"
#include "scheme/scheme.h"

/** Encode a run. Queued, so that others may be encoded before it is to leave: see below, though all of a
 * stage's are waited for before it posts messages.
 * @param wire  the format it is in */
enum sar_status sar_outsource_encode(struct sar_request *request, bool pull, struct sar_layout layout,
                                     const struct sar_run *run, struct sar_message *message,
                                     const struct sar_wire **wire);

/** Wait until a message that was encoded may leave. */
enum sar_status sar_outsource_await(struct sar_request *request, const struct sar_message *message);

/** Decode a message in any format. Whether it was one is known once the worker was waited for; only its
 * header has been looked at. The message must stay until then. */
enum sar_status sar_outsource_read(struct sar_request *request, struct sar_envelope *envelope,
                                   const struct sar_message *message, struct sar_run *run);

/** The shape of the outcome's pieces, whose indices of coordinates are the caller's. */
struct sar_shape sar_outsource_shape(const struct sar_request *request);

/** Turn the slots of a map's parts back into indices of the vector, and let these runs be the outcome's next
 * pieces, as they are: whoever writes them to a dense vector needs no order, and coordinates are put in order
 * when all are there.
 * @param times  how often this is called in all */
enum sar_status sar_outsource_deliver(struct sar_request *request, size_t times, const struct sar_map *map,
                                      const struct sar_run parts[]);

#endif
