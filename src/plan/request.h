/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_PLAN_REQUEST_H
#define SAR_PLAN_REQUEST_H

#include "scheme/scheme.h"

/** Make a request ready for its scheme's first stage. Takes no memory: request->exchange is open and
 * request->state holds state_size zero bytes. */
void sar_request_begin(struct sar_request *request);

/** Run a request's scheme: finish what the last stage posted, then run stages until one waits for
 * messages or none is left. The one loop behind blocking, nonblocking and persistent calls. *done when
 * the scheme is over, well or not: request->exchange.status tells. */
void sar_request_advance(struct sar_request *request, bool block, bool *done);

#endif
