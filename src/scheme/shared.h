/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_SCHEME_SHARED_H
#define SAR_SCHEME_SHARED_H

#include "scheme/cards.h"

/** Most bytes of the state of `shared`, for schemes that run its stages among the ranks of a node. */
enum { SAR_SHARED_STATE = 1024 };

/** A sink whose elements lie where `shared` would bring them: for its input. */
struct sar_shared_sink {
    struct sar_sink sink; /**< first */
    struct sar_card card; /**< zero bytes at first */
};

struct sar_shared_sink sar_shared_sink(void);

/** Let a request, the stages of `shared` being its next, take what lies there for its input. */
void sar_shared_take(struct sar_request *request, const struct sar_shared_sink *from);

#endif
