/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_TESTS_SUPPORT_AGREED_H
#define SAR_TESTS_SUPPORT_AGREED_H

#include "base/config.h"
#include "scheme/engine/agreed.h"
#include "scheme/scheme.h"

/** The agreed facts of a call in which each rank has `nnz` elements. Segments are 256 KiB long; no other
 * setting differs from its default. Each rank is a node of its own. */
static inline struct sar_agreed agreed_plain(struct sar_vec_desc shape, struct sar_machine machine,
                                             double nnz)
{
    return (struct sar_agreed){ .desc = shape,
                                .machine = machine,
                                .topo.node_ranks = 1,
                                .data.nnz_mean = nnz,
                                .data.nnz_max = nnz,
                                .data.densification =
                                    sar_densification_independent(nnz / (double)shape.count, machine.ranks),
                                .call.native = true,
                                .partition.max_imbalance = 1.1,
                                .data.skewness = 1,
                                .wire.segment_bytes = 1 << 18,
                                .partition.kind = -1,
                                .partition.grain = SAR_AUTO,
                                .partition.columns = SAR_U64_AUTO };
}

/** Index of a scheme in sar_schemes. */
static inline int scheme_index(const struct sar_scheme *scheme)
{
    int i = 0;
    while (sar_schemes[i] != scheme)
        i++;
    return i;
}

#endif
