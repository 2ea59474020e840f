/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_TENSOR_INGEST_H
#define SAR_TENSOR_INGEST_H

#include "base/arena.h"
#include "tensor/shape.h"

/** The index types of the interface. */
enum sar_index_type { SAR_INDEX_INT32, SAR_INDEX_UINT32, SAR_INDEX_INT64, SAR_INDEX_UINT64, SAR_INDEX_TYPES };

/** Bytes of an index of a type, and the largest count it can number. */
unsigned sar_index_type_size(enum sar_index_type type);
uint64_t sar_index_type_limit(enum sar_index_type type);

/** A caller's coordinate buffers. */
struct sar_coo {
    const void *indices, *values;
    size_t nnz;
    enum sar_index_type type;
};

/** Make a run of a caller's elements: check the range, and sort and reduce equal indices where needed. Where
 * nothing is needed the run points into the caller's arrays.
 * @param bad the first index out of range, as the caller's type shows it, on SAR_BAD_INDEX or, where that
 *   type is uint64, SAR_BAD_UNSIGNED_INDEX */
enum sar_status sar_ingest(const struct sar_shape *shape, const struct sar_coo *coo, struct sar_arena *arena,
                           struct sar_run *run, long long *bad);

#endif
