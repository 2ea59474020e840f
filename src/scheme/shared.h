/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_SCHEME_SHARED_H
#define SAR_SCHEME_SHARED_H

/** Most bytes of the state of `shared`, for schemes that run its stages among the ranks of a node. */
enum { SAR_SHARED_STATE = 1024 };

#endif
