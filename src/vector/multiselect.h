/* SPDX-License-Identifier: BSD-3-Clause */
/* Cut of several sorted vecs at one index, so that ranks can reduce equal shares. */

#ifndef SAR_VECTOR_MULTISELECT_H
#define SAR_VECTOR_MULTISELECT_H

#include "vector/spvec.h"

/** Number of elements below the cut: at most `target`, and the most possible or up to `slack` fewer. */
struct sar_multiselect_target {
    size_t target, slack;
};

/** Cuts n vecs at one index, so that about aim.target elements of all vecs are below it. The indices of a vec
 * are distinct. Equal arguments give equal cuts on all ranks. Local.
 * @param cut      for each vec, its first element that is not below the index
 * @param scratch  memory for 2 n numbers */
void sar_multiselect(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                     struct sar_multiselect_target aim, size_t cut[], size_t scratch[]);

#endif
