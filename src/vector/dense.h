/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversion between dense buffers and sorted sparse vectors. A non-zero is an element with a bit set: no
 * function here compares values. */

#ifndef SAR_VECTOR_DENSE_H
#define SAR_VECTOR_DENSE_H

#include "vector/quantiles.h"
#include "vector/spvec.h"

/** Returns the number of non-zeros of buf[0, n). Runs at memory bandwidth. */
size_t sar_dense_count_nonzero(const struct sar_vec_desc *desc, const void *buf, size_t n);

/** True if a bit of a row is set. */
bool sar_row_is_nonzero(const unsigned char *row, size_t bytes);

/** Estimates the non-zeros of buf from about `sample` elements, in groups at hashed positions, and their
 * quantiles. If the sample contains all elements or is smaller than a group, the number is exact, and the
 * quantiles are unknown. */
size_t sar_dense_estimate_nonzero(const struct sar_vec_desc *desc, const void *buf, size_t sample,
                                  struct sar_quantiles *quantiles);

/** True if one of n basic values is a floating-point -0.0. */
bool sar_dense_has_negative_zero(enum sar_dtype dtype, const void *values, size_t n);

/* dense_scan.c: vecs of whole buffers. */

/** Memory of a vec that grows. */
struct sar_growable {
    /** Provide arrays for nnz elements, set growable->capacity, and keep the elements of the vec. */
    enum sar_status (*grow)(struct sar_growable *growable, size_t nnz, struct sar_spvec *vec);
    size_t capacity; /**< elements that the arrays can hold; 0 at first */
    struct sar_arena
        *scratch; /**< memory of several threads: a quarter of the buffer, at most 128 KB a piece */
};

/** Makes a vec of the non-zeros of buf.
 * @param expected  guess of their number; the memory grows as needed */
enum sar_status sar_dense_compact_into(const struct sar_vec_desc *desc, const void *buf, size_t expected,
                                       struct sar_growable *growable, struct sar_spvec *vec);

/** As sar_dense_compact_into, in memory from the arena. */
enum sar_status sar_dense_compact(const struct sar_vec_desc *desc, const void *buf, size_t expected,
                                  struct sar_arena *arena, struct sar_spvec *vec);

/* dense.c: single elements. */

/** Removes elements without a bit set from a vec. If there are any, the vec moves to arrays from the
 * arena. */
enum sar_status sar_spvec_drop_zeros(const struct sar_vec_desc *desc, struct sar_arena *arena,
                                     struct sar_spvec *vec);

/** Writes the elements of a vec to buf at their indices; the rest of buf stays. */
void sar_dense_scatter(const struct sar_vec_desc *desc, const struct sar_spvec *vec, void *buf);

/** Zero the elements of buf at the indices of a vec. */
void sar_dense_clear(const struct sar_vec_desc *desc, const struct sar_spvec *vec, void *buf);

/* dense_write.c: writes of whole buffers. */

enum {
    SAR_NT_STORE_MIN = 4 << 20,   /**< bytes of a buffer from which on writes bypass the caches */
    SAR_DENSE_ACCUMULATE_MAX = 16 /**< most vecs for sar_dense_accumulate */
};

/** Writes all elements of a dense buffer: those of n vecs, and zeros elsewhere. Each vec's indices are below
 * those of the next vec. */
void sar_dense_expand(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n, void *buf);

/** As sar_dense_expand, for a buffer that is zero already wherever no vec has an element. */
void sar_dense_update(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n, void *buf);

/** True if sar_dense_accumulate supports n vecs of this description.
 * @param buf  the dense buffer, or NULL for any buffer with the alignment of its elements */
bool sar_dense_can_accumulate(const struct sar_vec_desc *desc, const void *buf, size_t n);

/** Writes all elements of a dense buffer: the reduction of n vecs, in their order, and zeros elsewhere.
 * @param before  the vec whose elements are the only non-zeros of the buffer so far, one of vecs; or NULL */
void sar_dense_accumulate(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                          const struct sar_spvec *before, void *buf);

#endif
