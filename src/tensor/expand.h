/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_TENSOR_EXPAND_H
#define SAR_TENSOR_EXPAND_H

#include "tensor/shape.h"

/** Least bytes of a buffer that does not stay in a cache. */
enum { SAR_STREAMED = 4 << 20 };

/** Write all elements of a dense buffer: those of runs, and zeros. The indices of a run are below those of
 * the next. */
void sar_dense_expand(const struct sar_shape *shape, const struct sar_run runs[], size_t n, void *buf);

/** The same where only elements that the runs have may differ from zero before. */
void sar_dense_update(const struct sar_shape *shape, const struct sar_run runs[], size_t n, void *buf);

#endif
