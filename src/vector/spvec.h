/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorted sparse vectors ("vecs"): memory, copies, slices and shifts of the index origin. */

#ifndef SAR_VECTOR_SPVEC_H
#define SAR_VECTOR_SPVEC_H

#include "base/arena.h"
#include "base/compiler.h"
#include "vector/vec_desc.h"

/** Present elements in ascending order of index. The caller owns both arrays. */
struct sar_spvec {
    void *index; /**< nnz indices of desc.index_size bytes */
    void *value; /**< nnz elements of desc.element_size bytes */
    size_t nnz;  /**< present elements */
};

/** Returns index[i]; an index has size bytes, 4 or 8. */
static inline uint64_t sar_index_get(const void *index, unsigned size, size_t i)
{
    return size == 4 ? ((const uint32_t *)index)[i] : ((const uint64_t *)index)[i];
}

/** Sets index[i]; an index has size bytes, 4 or 8. */
static inline void sar_index_set(void *index, unsigned size, size_t i, uint64_t value)
{
    if (size == 4)
        ((uint32_t *)index)[i] = (uint32_t)value;
    else
        ((uint64_t *)index)[i] = value;
}

/** Returns the first of the ascending index[low, high) that is at least limit, or high. */
SAR_INLINE size_t sar_index_lower_bound(const void *index, unsigned size, size_t low, size_t high,
                                        uint64_t limit)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sar_index_get(index, size, middle) < limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/** Compiles `call` twice, with INDEX_SIZE as the constant 4 and 8, so that inlined loops do not test the
 * index size. */
#define SAR_FOR_INDEX_SIZE(size, call) \
    do {                               \
        if ((size) == 4) {             \
            enum { INDEX_SIZE = 4 };   \
            call;                      \
        } else {                       \
            enum { INDEX_SIZE = 8 };   \
            call;                      \
        }                              \
    } while (0)

/** Allocates arrays for nnz elements from the arena and sets vec->nnz. */
enum sar_status sar_spvec_alloc(const struct sar_vec_desc *desc, size_t nnz, struct sar_arena *arena,
                                struct sar_spvec *vec);

/** Copies the elements of `from` to the beginning of the arrays of `to`; to->nnz stays. */
void sar_spvec_copy(const struct sar_vec_desc *desc, const struct sar_spvec *from, struct sar_spvec *to);

/** As sar_spvec_copy, with non-temporal stores: ranks on another socket read the copy. */
void sar_spvec_copy_nt(const struct sar_vec_desc *desc, const struct sar_spvec *from, struct sar_spvec *to);

/** Returns the first element of a vec at or after element `from` whose index is at least limit, or
 * vec->nnz. */
size_t sar_spvec_lower_bound(const struct sar_vec_desc *desc, const struct sar_spvec *vec, size_t from,
                             uint64_t limit);

/** Returns elements [from, to) of a vec; the slice shares the vec's arrays. */
struct sar_spvec sar_spvec_slice(const struct sar_vec_desc *desc, const struct sar_spvec *vec, size_t from,
                                 size_t to);

/** Replaces the indices of a vec, of desc->index_size bytes, by indices less `base` of index_size bytes from
 * the arena. The values stay in place. */
enum sar_status sar_spvec_rebase(const struct sar_vec_desc *desc, uint64_t base, unsigned index_size,
                                 struct sar_arena *arena, struct sar_spvec *vec);

/** Splits a vec in two, before and from an index on. The indices of the second, in memory of the arena, count
 * from there; otherwise both share the vec's arrays. */
enum sar_status sar_spvec_split(const struct sar_vec_desc *desc, const struct sar_spvec *vec, uint64_t index,
                                struct sar_arena *arena, struct sar_spvec halves[2]);

/** Appends a vec to `out`, which has capacity for the elements. The vec's indices have index_size bytes and
 * count from `base`. */
void sar_spvec_append(const struct sar_vec_desc *desc, const struct sar_spvec *vec, unsigned index_size,
                      uint64_t base, struct sar_spvec *out);

#endif
