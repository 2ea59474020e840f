/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the kernels of cuda/dense.cu on CPU threads (twin/cuda/parallel.cuh) against the host's code. Masks,
 * compacted vectors, parts, scattered vectors and packed vectors must have the same bits. */

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cuda/launch.h"
#include "hash/murmur3.h"
#include "managed.hpp"

extern "C" {
#include "vector/dense.h"
#include "vector/packed_vec.h"
#include "vector/partition.h"
#include "vector/spvec.h"
}

namespace
{

using bytes = managed<unsigned char>;

/* Set one byte, not always the first, of one element in `every`; none if 0. */
bytes make_vector(const sar_vec_desc &desc, unsigned every, size_t offset)
{
    bytes v(offset + desc.count * desc.element_size + 8);
    for (size_t i = 0; every != 0 && i < desc.count; i++) {
        uint64_t hash = sar_mix64(i + every);
        if (hash % every == 0)
            v[offset + i * desc.element_size + hash / every % desc.element_size] =
                (unsigned char)(hash >> 56 | 1);
    }
    return v;
}

bool same_vec(const sar_vec_desc &desc, const sar_spvec &a, const sar_spvec &b)
{
    return a.nnz == b.nnz && (a.nnz == 0 || (std::memcmp(a.index, b.index, a.nnz * desc.index_size) == 0 &&
                                             std::memcmp(a.value, b.value, a.nnz * desc.element_size) == 0));
}

/* A sparse vector and its memory. */
struct elements {
    bytes index, value;
    sar_spvec vec;

    elements(const sar_vec_desc &desc, size_t nnz)
        : index(nnz * desc.index_size + 1),
          value(nnz * desc.element_size + 1), vec{ index.data(), value.data(), nnz }
    {
    }
};

bool compacts(const sar_device_vec &vector, const sar_nonzero_mask &mask, const sar_spvec &host)
{
    const sar_vec_desc &desc = *vector.desc;
    elements device(desc, mask.nnz);
    bytes back(desc.count * desc.element_size + 8, 0xa5);
    sar_device_vec copy = vector;
    copy.buf = back.data() + (uintptr_t)vector.buf % 8;
    return mask.nnz == host.nnz && sar_cuda_compact(&vector, &mask, &device.vec) == SAR_OK &&
           cudaStreamSynchronize(nullptr) == cudaSuccess && same_vec(desc, host, device.vec) &&
           sar_cuda_scatter(&copy, &device.vec, 1, true) == SAR_OK &&
           cudaStreamSynchronize(nullptr) == cudaSuccess &&
           std::memcmp(copy.buf, vector.buf, desc.count * desc.element_size) == 0;
}

/* Compares each segment's parts with the host's partition of the segment. */
bool same_parts(const sar_vec_desc &desc, const sar_partition_layout &layout, const sar_spvec &host,
                const sar_spvec &device, const unsigned long long *first)
{
    sar_vec_desc slots = desc;
    size_t from = 0;
    slots.index_size = 4;
    for (uint32_t s = 0; s < layout.segments; s++, first += layout.map.parts) {
        std::vector<sar_spvec> parts(layout.map.parts);
        sar_arena arena = {};
        sar_partition_map map = layout.map;
        map.slot_base = s * layout.part_slots;
        size_t to = sar_spvec_lower_bound(&desc, &host, from, (s + 1) * layout.part_slots * map.parts);
        sar_spvec slice = sar_spvec_slice(&desc, &host, from, to);
        bool good = sar_partition_split(&map, &desc, &slice, &arena, parts.data()) == SAR_OK;
        for (uint32_t p = 0; p < map.parts && good; p++)
            good = same_vec(slots, parts[p], sar_spvec_slice(&slots, &device, first[p], first[p + 1]));
        sar_arena_free(&arena);
        if (!good)
            return false;
        from = to;
    }
    return from == host.nnz;
}

/* Compares the device's partition of a sparse vector with the host's. */
bool partitions(const sar_device_vec &vector, const sar_partition_layout &layout, const sar_spvec &host)
{
    const sar_vec_desc &desc = *vector.desc;
    sar_vec_desc slots = desc;
    slots.index_size = 4;
    elements from(desc, host.nnz), to(slots, host.nnz);
    std::vector<unsigned long long> first(layout.segments * layout.map.parts + 1);
    first.back() = host.nnz;
    if (host.nnz != 0) {
        std::memcpy(from.vec.index, host.index, host.nnz * desc.index_size);
        std::memcpy(from.vec.value, host.value, host.nnz * desc.element_size);
    }
    return sar_cuda_partition(&vector, &layout, &from.vec, &to.vec, first.data()) == SAR_OK &&
           cudaStreamSynchronize(nullptr) == cudaSuccess &&
           same_parts(desc, layout, host, to.vec, first.data());
}

/* Compares both ways to split with the host's. Hierarchical hashing counts every element twice. */
bool splits_by(const sar_device_vec &vector, const sar_nonzero_mask &mask, const sar_spvec &host,
               const sar_partition_layout &layout)
{
    sar_vec_desc slots = *vector.desc;
    slots.index_size = 4;
    elements device(slots, mask.nnz);
    std::vector<unsigned long long> first(layout.segments * layout.map.parts + 1, mask.nnz);
    return sar_cuda_compact_parts(&vector, &mask, &layout, &device.vec, first.data()) == SAR_OK &&
           cudaStreamSynchronize(nullptr) == cudaSuccess &&
           same_parts(*vector.desc, layout, host, device.vec, first.data()) &&
           partitions(vector, layout, host) &&
           (!layout.map.hierarchical || layout.hash->elements == 2 * host.nnz);
}

bool splits(const sar_device_vec &vector, const sar_nonzero_mask &mask, const sar_spvec &host)
{
    for (sar_partition_kind kind : { SAR_PARTITION_HASH, SAR_PARTITION_HIERARCHICAL })
        for (uint32_t parts : { 1u, 3u, 8u })
            for (unsigned grain : { 1u, 2u, 4u, 16u, 32u, 256u })
                for (uint64_t part_slots : { 256u, 1024u }) {
                    sar_hash_stats stats = {};
                    sar_partition_layout layout = { sar_partition_map_make(kind, vector.desc->count, parts,
                                                                           grain, 7),
                                                    part_slots, 1, &stats };
                    layout.segments = (uint32_t)(layout.map.slots_max / part_slots + 1);
                    if (!splits_by(vector, mask, host, layout))
                        return false;
                }
    return true;
}

/* With capacity for all elements, for exactly the non-zeros, for one less, and for none: a vector with more
 * elements than the capacity must be dense. */
bool packs(const sar_device_vec &vector, const sar_spvec &host)
{
    const sar_vec_desc &desc = *vector.desc;
    size_t size = desc.count * desc.element_size;
    managed<uint64_t> nnz(1);
    bytes memory(size + 8), back(size + 8);
    sar_packed_vec packed = sar_packed_vec_layout(&desc, memory.data(), nnz.data());
    size_t capacities[] = { packed.capacity, host.nnz, host.nnz - 1, 0 };
    sar_device_vec copy = vector;
    copy.buf = back.data() + (uintptr_t)vector.buf % 8;
    for (size_t capacity : capacities) {
        packed.capacity = capacity < packed.capacity ? capacity : packed.capacity;
        std::fill(back.begin(), back.end(), (unsigned char)0xa5);
        if (sar_cuda_pack(&vector, &packed) != SAR_OK || cudaStreamSynchronize(nullptr) != cudaSuccess ||
            nnz[0] != host.nnz)
            return false;
        bool sparse = host.nnz <= packed.capacity;
        if (sparse != sar_packed_vec_is_sparse(&packed) ||
            (sparse ? !same_vec(desc, host, sar_packed_vec_spvec(&packed))
                    : std::memcmp(packed.value, vector.buf, size) != 0))
            return false;
        if (sar_cuda_unpack(&copy, &packed) != SAR_OK || cudaStreamSynchronize(nullptr) != cudaSuccess ||
            std::memcmp(copy.buf, vector.buf, size) != 0)
            return false;
    }
    return true;
}

bool agree(const sar_vec_desc &desc, unsigned every, size_t offset)
{
    bytes v = make_vector(desc, every, offset);
    sar_device_vec vector = { &desc, v.data() + offset, 0, nullptr };
    sar_arena arena = {};
    sar_spvec host;
    sar_nonzero_mask mask;
    if (sar_dense_compact(&desc, vector.buf, 0, &arena, &host) != SAR_OK ||
        sar_cuda_find_nonzeros(&vector, &mask) != SAR_OK)
        return false;
    bool good = compacts(vector, mask, host) && (desc.count == 0 || packs(vector, host)) &&
                (offset != 0 || splits(vector, mask, host));
    sar_cuda_free_mask(&vector, &mask);
    sar_arena_free(&arena);
    return good;
}

} // namespace

int main()
{
    int runs = 0, failures = 0;
    for (uint64_t count : { 0u, 1u, 31u, 1000u, 7001u })
        for (size_t size : { 1u, 2u, 3u, 4u, 6u, 8u, 12u, 40u })
            for (unsigned index_size : { 4u, 8u })
                for (unsigned every : { 0u, 1u, 2u, 97u })
                    for (size_t offset : { 0u, 1u, 2u, 4u }) {
                        sar_vec_desc desc = {};
                        desc.count = count;
                        desc.element_size = size;
                        desc.index_size = index_size;
                        runs++;
                        if (agree(desc, every, offset))
                            continue;
                        std::printf(
                            "differs: %llu elements of %zu B, indices of %u B, one in %u, offset %zu\n",
                            (unsigned long long)count, size, index_size, every, offset);
                        failures++;
                    }
    std::printf("%d runs, %d failures\n", runs, failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
