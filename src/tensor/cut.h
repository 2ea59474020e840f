/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_TENSOR_CUT_H
#define SAR_TENSOR_CUT_H

#include "tensor/shape.h"

/** Cut runs at one index, so that about `target` elements of all of them together are below it: never more,
 * and as many as can be, or up to `slack` fewer. Equal arguments give equal cuts. Indices of a run differ.
 * @param cut    for each run, its first element that is not below
 * @param spare  room for 2 n numbers */
void sar_runs_cut(const struct sar_shape *shape, const struct sar_run runs[], size_t n, size_t target,
                  size_t slack, size_t cut[], size_t spare[]);

#endif
