/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of cuda/dense.cu on CPU threads (twin/cuda/parallel.cuh) against the host's: the same elements
 * must be marked, compacted in the same order, split into the same parts, scattered to the same places, and
 * put into parcels, bit for bit. */

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cuda/dense.h"
#include "cuda/reduce.h"
#include "hash/murmur3.h"
#include "managed.hpp"

extern "C" {
#include "tensor/dense.h"
#include "tensor/parcel.h"
#include "tensor/partition.h"
#include "tensor/stretch.h"
}

namespace
{

using bytes = managed<unsigned char>;

/* One byte of an element in `every` is set, not always its first; with 0, none. */
bytes make_vector(const sar_shape &shape, unsigned every, size_t offset)
{
    bytes v(offset + shape.count * shape.element_size + 8);
    for (size_t i = 0; every != 0 && i < shape.count; i++) {
        uint64_t hash = sar_mix64(i + every);
        if (hash % every == 0)
            v[offset + i * shape.element_size + hash / every % shape.element_size] =
                (unsigned char)(hash >> 56 | 1);
    }
    return v;
}

bool same_run(const sar_shape &shape, const sar_run &a, const sar_run &b)
{
    return a.nnz == b.nnz && (a.nnz == 0 || (std::memcmp(a.index, b.index, a.nnz * shape.index_size) == 0 &&
                                             std::memcmp(a.value, b.value, a.nnz * shape.element_size) == 0));
}

/* A run's memory. */
struct room {
    bytes index, value;
    sar_run run;

    room(const sar_shape &shape, size_t nnz)
        : index(nnz * shape.index_size + 1),
          value(nnz * shape.element_size + 1), run{ index.data(), value.data(), nnz }
    {
    }
};

bool compacts(const sar_vector &vector, const sar_marks &marks, const sar_run &host)
{
    const sar_shape &shape = *vector.shape;
    room device(shape, marks.nnz);
    bytes back(shape.count * shape.element_size + 8, 0xa5);
    sar_vector copy = vector;
    copy.buf = back.data() + (uintptr_t)vector.buf % 8;
    return marks.nnz == host.nnz && sar_cuda_compact(&vector, &marks, &device.run) == SAR_OK &&
           cudaStreamSynchronize(nullptr) == cudaSuccess && same_run(shape, host, device.run) &&
           sar_cuda_scatter(&copy, &device.run, 1, true) == SAR_OK &&
           cudaStreamSynchronize(nullptr) == cudaSuccess &&
           std::memcmp(copy.buf, vector.buf, shape.count * shape.element_size) == 0;
}

/* Each segment's parts against the host's partition of the same stretch. */
bool same_parts(const sar_shape &shape, const sar_division &split, const sar_run &host, const sar_run &device,
                const unsigned long long *first)
{
    sar_shape slots = shape;
    size_t from = 0;
    slots.index_size = 4;
    for (uint32_t s = 0; s < split.segments; s++, first += split.map.parts) {
        std::vector<sar_run> parts(split.map.parts);
        sar_arena arena = {};
        sar_map map = split.map;
        map.base = s * split.width;
        size_t to = sar_run_find(&shape, &host, from, (s + 1) * split.width * map.parts);
        sar_run stretch = sar_run_slice(&shape, &host, from, to);
        bool good = sar_partition(&map, &shape, &stretch, &arena, parts.data()) == SAR_OK;
        for (uint32_t p = 0; p < map.parts && good; p++)
            good = same_run(slots, parts[p], sar_run_slice(&slots, &device, first[p], first[p + 1]));
        sar_arena_free(&arena);
        if (!good)
            return false;
        from = to;
    }
    return from == host.nnz;
}

/* The same of a run. */
bool partitions(const sar_vector &vector, const sar_division &split, const sar_run &host)
{
    const sar_shape &shape = *vector.shape;
    sar_shape slots = shape;
    slots.index_size = 4;
    room from(shape, host.nnz), to(slots, host.nnz);
    std::vector<unsigned long long> first(split.segments * split.map.parts + 1);
    first.back() = host.nnz;
    if (host.nnz != 0) {
        std::memcpy(from.run.index, host.index, host.nnz * shape.index_size);
        std::memcpy(from.run.value, host.value, host.nnz * shape.element_size);
    }
    return sar_cuda_partition(&vector, &split, &from.run, &to.run, first.data()) == SAR_OK &&
           cudaStreamSynchronize(nullptr) == cudaSuccess &&
           same_parts(shape, split, host, to.run, first.data());
}

bool splits(const sar_vector &vector, const sar_marks &marks, const sar_run &host)
{
    sar_shape slots = *vector.shape;
    slots.index_size = 4;
    for (uint32_t parts : { 1u, 3u, 8u })
        for (unsigned grain : { 1u, 2u, 4u, 16u, 32u, 256u })
            for (uint64_t width : { 256u, 1024u }) {
                sar_division split = { sar_map_make(SAR_PARTITION_HASH, slots.count, parts, grain, 7), width,
                                       1 };
                split.segments = (uint32_t)(split.map.span / width + 1);
                room device(slots, marks.nnz);
                std::vector<unsigned long long> first(split.segments * parts + 1, marks.nnz);
                if (sar_cuda_split(&vector, &marks, &split, &device.run, first.data()) != SAR_OK ||
                    cudaStreamSynchronize(nullptr) != cudaSuccess ||
                    !same_parts(*vector.shape, split, host, device.run, first.data()) ||
                    !partitions(vector, split, host))
                    return false;
            }
    return true;
}

/* With room for all elements, for exactly those or one less, and for none: what does not fit is whole. */
bool packs(const sar_vector &vector, const sar_run &host)
{
    const sar_shape &shape = *vector.shape;
    size_t size = shape.count * shape.element_size;
    managed<uint64_t> nnz(1);
    bytes memory(size + 8), back(size + 8);
    sar_parcel parcel = sar_parcel_make(&shape, memory.data(), nnz.data());
    size_t rooms[] = { parcel.room, host.nnz, host.nnz - 1, 0 };
    sar_vector copy = vector;
    copy.buf = back.data() + (uintptr_t)vector.buf % 8;
    for (size_t room : rooms) {
        parcel.room = room < parcel.room ? room : parcel.room;
        std::fill(back.begin(), back.end(), (unsigned char)0xa5);
        if (sar_cuda_pack(&vector, &parcel) != SAR_OK || cudaStreamSynchronize(nullptr) != cudaSuccess ||
            nnz[0] != host.nnz)
            return false;
        bool sparse = host.nnz <= parcel.room;
        if (sparse != sar_parcel_is_sparse(&parcel) ||
            (sparse ? !same_run(shape, host, sar_parcel_run(&parcel))
                    : std::memcmp(parcel.value, vector.buf, size) != 0))
            return false;
        if (sar_cuda_unpack(&copy, &parcel) != SAR_OK || cudaStreamSynchronize(nullptr) != cudaSuccess ||
            std::memcmp(copy.buf, vector.buf, size) != 0)
            return false;
    }
    return true;
}

bool agree(const sar_shape &shape, unsigned every, size_t offset)
{
    bytes v = make_vector(shape, every, offset);
    sar_vector vector = { &shape, v.data() + offset, 0, nullptr };
    sar_arena arena = {};
    sar_run host;
    sar_marks marks;
    if (sar_dense_compact(&shape, vector.buf, 0, &arena, &host) != SAR_OK ||
        sar_cuda_mark(&vector, &marks) != SAR_OK)
        return false;
    bool good = compacts(vector, marks, host) && (shape.count == 0 || packs(vector, host)) &&
                (offset != 0 || splits(vector, marks, host));
    sar_cuda_unmark(&vector, &marks);
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
                        sar_shape shape = {};
                        shape.count = count;
                        shape.element_size = size;
                        shape.index_size = index_size;
                        runs++;
                        if (agree(shape, every, offset))
                            continue;
                        std::printf(
                            "differs: %llu elements of %zu B, indices of %u B, one in %u, offset %zu\n",
                            (unsigned long long)count, size, index_size, every, offset);
                        failures++;
                    }
    std::printf("%d runs, %d failures\n", runs, failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
