/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_TENSOR_CUT_H
#define SAR_TENSOR_CUT_H

#include "tensor/shape.h"

/** Elements that are to be below a cut: never more than `target`, and as many as can be, or up to `slack`
 * fewer. */
struct sar_cut_aim {
    size_t target, slack;
};

/** Cut n runs at one index, so that about as many elements of all of them together as aimed at are below it.
 * Equal arguments give equal cuts. Indices of a run differ.
 * @param cut    for each run, its first element that is not below
 * @param spare  room for 2 n numbers */
void sar_runs_cut(const struct sar_shape *shape, const struct sar_run runs[], size_t n,
                  struct sar_cut_aim aim, size_t cut[], size_t spare[]);

#endif
