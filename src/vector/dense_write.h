/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes of whole dense buffers from sorted sparse vectors. */

#ifndef SAR_VECTOR_DENSE_WRITE_H
#define SAR_VECTOR_DENSE_WRITE_H

#include "vector/spvec.h"

enum {
    SAR_NT_STORE_MIN = 4 << 20,   /**< bytes of a buffer from which on writes bypass the caches */
    SAR_DENSE_ACCUMULATE_MAX = 16 /**< most vecs for sar_dense_accumulate */
};

/** Write all elements of a dense buffer: those of n vecs, and zeros elsewhere. Each vec's indices are below
 * those of the next vec. */
void sar_dense_expand(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n, void *buf);

/** As sar_dense_expand, for a buffer that is zero already wherever no vec has an element. */
void sar_dense_update(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n, void *buf);

/** True if sar_dense_accumulate supports n vecs of this description.
 * @param buf  the dense buffer, or NULL for any buffer with the alignment of its elements */
bool sar_dense_can_accumulate(const struct sar_vec_desc *desc, const void *buf, size_t n);

/** Write all elements of a dense buffer: the reduction of n vecs, in their order, and zeros elsewhere.
 * @param before  the vec whose elements are the only non-zeros of the buffer so far, one of vecs; or NULL */
void sar_dense_accumulate(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                          const struct sar_spvec *before, void *buf);

#endif
