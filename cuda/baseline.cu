/* SPDX-License-Identifier: BSD-3-Clause */
/* What there is to beat: CUB selects the indices of elements that are present, sorts them by part, and one
 * thread an element writes slot and value. */

#include "cuda/baseline.h"

#include "cuda/dense.cuh"
#include "cuda/parallel.cuh"

struct sar_is_present {
    const uint32_t *buf;

    SAR_HOST_DEVICE bool operator()(uint32_t i) const
    {
        return buf[i] != 0;
    }
};

struct sar_part_body {
    struct sar_map map;
    const uint32_t *index;
    uint32_t *part;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        part[i] = sar_map_place(&map, index[i]).part;
    }
};

struct sar_place_body {
    struct sar_map map;
    const uint32_t *buf, *index;
    uint32_t *slot, *value;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        slot[i] = (uint32_t)sar_map_place(&map, index[i]).slot;
        value[i] = buf[index[i]];
    }
};

static unsigned bits_of(uint32_t parts)
{
    unsigned bits = 1;
    while (parts >>= 1)
        bits++;
    return bits;
}

enum sar_status sar_cuda_select_and_sort(const struct sar_vector *vector, const struct sar_map *map,
                                         struct sar_run *run)
{
    cudaStream_t stream = (cudaStream_t)vector->stream;
    const uint32_t *buf = (const uint32_t *)vector->buf;
    size_t room = run->nnz * sizeof(uint32_t);
    unsigned long long found = 0;
    sar_piece index(stream), part(stream), sorted(stream), sorted_part(stream), picked(stream);
    SAR_TRY(index.take(room));
    SAR_TRY(part.take(room));
    SAR_TRY(sorted.take(room));
    SAR_TRY(sorted_part.take(room));
    SAR_TRY(picked.take(sizeof found));
    thrust::counting_iterator<uint32_t> all(0);
    SAR_TRY(pick(all, index.as<uint32_t>(), picked.as<unsigned long long>(), (size_t)vector->shape->count,
                 sar_is_present{ buf }, stream));
    SAR_TRY(sar_fetch(&found, picked.memory, stream));
    run->nnz = (size_t)found;
    SAR_TRY(each(run->nnz, sar_part_body{ *map, index.as<uint32_t>(), part.as<uint32_t>() }, stream));
    sar_sortable<uint32_t> pairs = { { part.as<uint32_t>(), sorted_part.as<uint32_t>() },
                                     { index.as<uint32_t>(), sorted.as<uint32_t>() },
                                     run->nnz };
    SAR_TRY(sort(pairs, bits_of(map->parts), stream));
    return each(run->nnz,
                sar_place_body{ *map, buf, sorted.as<uint32_t>(), (uint32_t *)run->index,
                                (uint32_t *)run->value },
                stream);
}
