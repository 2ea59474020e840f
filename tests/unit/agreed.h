/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_TESTS_UNIT_AGREED_H
#define SAR_TESTS_UNIT_AGREED_H

#include "base/config.h"
#include "scheme/agreed.h"
#include "scheme/scheme.h"

/** What is agreed on where each rank has `nnz` elements of its own choice, and nothing is asked for but
 * segments of 256 KiB. Every rank is a node, as far as anybody asks. */
static inline struct sar_agreed agreed_plain(struct sar_shape shape, struct sar_machine machine, double nnz)
{
    return (struct sar_agreed){ .shape = shape,
                                .machine = machine,
                                .node_ranks = 1,
                                .nnz_mean = nnz,
                                .nnz_max = nnz,
                                .gamma = sar_gamma_independent(nnz / (double)shape.count, machine.ranks),
                                .native = true,
                                .imbalance = 1.1,
                                .skewness = 1,
                                .segment = 1 << 18,
                                .partition = -1,
                                .grain = SAR_AUTO };
}

/** The place of a scheme in sar_schemes. */
static inline int scheme_place(const struct sar_scheme *scheme)
{
    int i = 0;
    while (sar_schemes[i] != scheme)
        i++;
    return i;
}

#endif
