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

/** Whether n runs that may have elements in common can be folded straight into a dense buffer.
 * @param buf  or NULL for any that is aligned as its elements are */
bool sar_dense_folds(const struct sar_shape *shape, const void *buf, size_t n);

/** Write all elements of a dense buffer: what runs have, folded in their order, and zeros.
 * @param before  one of the runs, whose elements alone differ from zero before; or NULL */
void sar_dense_fold(const struct sar_shape *shape, const struct sar_run runs[], size_t n,
                    const struct sar_run *before, void *buf);

#endif
