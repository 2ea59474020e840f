/* SPDX-License-Identifier: BSD-3-Clause */
/* The baseline of the kernel benchmark, without bitmaps: CUB selects the indices of non-zero elements and
 * sorts them by part, then one thread per element writes slot and value. Not in the plug-in. */

#include "cuda/launch.h"

#include "cuda/dense.cuh"
#include "cuda/parallel.cuh"

/* True if element i is not 0. */
struct sar_is_nonzero {
    const uint32_t *buf;

    SAR_HOST_DEVICE bool operator()(uint32_t i) const
    {
        return buf[i] != 0;
    }
};

/* Writes the part of element i. */
struct sar_baseline_part_functor {
    struct sar_partition_map map;
    const uint32_t *index;
    uint32_t *part;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        part[i] = sar_partition_map_locate(&map, index[i]).part;
    }
};

/* Writes slot and value i of the output. */
struct sar_baseline_scatter_functor {
    struct sar_partition_map map;
    const uint32_t *buf, *index;
    uint32_t *slot, *value;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        slot[i] = (uint32_t)sar_partition_map_locate(&map, index[i]).slot;
        value[i] = buf[index[i]];
    }
};

enum sar_status sar_cuda_baseline_partition(const struct sar_device_vec *vector,
                                            const struct sar_partition_map *map, struct sar_spvec *vec)
{
    cudaStream_t stream = (cudaStream_t)vector->stream;
    const uint32_t *buf = (const uint32_t *)vector->buf;
    size_t bytes = vec->nnz * sizeof(uint32_t);
    unsigned long long found = 0;
    sar_scoped_alloc index(stream), part(stream), sorted(stream), sorted_part(stream), found_n(stream);
    SAR_TRY(index.alloc(bytes));
    SAR_TRY(part.alloc(bytes));
    SAR_TRY(sorted.alloc(bytes));
    SAR_TRY(sorted_part.alloc(bytes));
    SAR_TRY(found_n.alloc(sizeof found));
    thrust::counting_iterator<uint32_t> all(0);
    SAR_TRY(select_if(all, index.as<uint32_t>(), found_n.as<unsigned long long>(),
                      (size_t)vector->desc->count, sar_is_nonzero{ buf }, stream));
    SAR_TRY(sar_fetch_value(&found, found_n.memory, stream));
    vec->nnz = (size_t)found;
    SAR_TRY(for_each(vec->nnz, sar_baseline_part_functor{ *map, index.as<uint32_t>(), part.as<uint32_t>() },
                     stream));
    sar_sort_pairs<uint32_t> pairs = { { part.as<uint32_t>(), sorted_part.as<uint32_t>() },
                                       { index.as<uint32_t>(), sorted.as<uint32_t>() },
                                       vec->nnz };
    SAR_TRY(sort(pairs, map->parts, stream));
    return for_each(vec->nnz,
                    sar_baseline_scatter_functor{ *map, buf, sorted.as<uint32_t>(), (uint32_t *)vec->index,
                                                  (uint32_t *)vec->value },
                    stream);
}
