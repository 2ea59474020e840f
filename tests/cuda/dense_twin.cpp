/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of cuda/dense.cu on CPU threads (twin/cuda/parallel.cuh) against the host's: the same
 * elements must be counted, compacted in the same order, and scattered to the same places, bit for bit. */

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cuda/dense.h"
#include "hash/murmur3.h"

extern "C" {
#include "tensor/dense.h"
}

namespace
{

using bytes = std::vector<unsigned char>;

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

bool agree(const sar_shape &shape, unsigned every, size_t offset)
{
    bytes v = make_vector(shape, every, offset), back(v.size(), 0xa5);
    sar_vector vector = { &shape, v.data() + offset, 0, nullptr };
    sar_arena arena = {};
    sar_run host;
    size_t nnz = 0;
    if (sar_dense_compact(&shape, vector.buf, 0, &arena, &host) != SAR_OK ||
        sar_cuda_count(&vector, &nnz) != SAR_OK || nnz != host.nnz)
        return false;
    bytes index(nnz * shape.index_size + 1), value(nnz * shape.element_size + 1);
    sar_run device = { index.data(), value.data(), nnz };
    if (sar_cuda_compact(&vector, &device) != SAR_OK || cudaStreamSynchronize(nullptr) != cudaSuccess)
        return false;
    sar_vector copy = { &shape, back.data() + offset, 0, nullptr };
    bool good = same_run(shape, host, device) && sar_cuda_scatter(&copy, &device, 1, true) == SAR_OK &&
                cudaStreamSynchronize(nullptr) == cudaSuccess &&
                std::memcmp(copy.buf, vector.buf, shape.count * shape.element_size) == 0;
    sar_arena_free(&arena);
    return good;
}

} // namespace

int main()
{
    int runs = 0, failures = 0;
    for (uint64_t count : { 0u, 1u, 31u, 1000u, 70001u })
        for (size_t size : { 2u, 4u, 6u, 8u, 12u, 16u, 40u })
            for (unsigned index_size : { 4u, 8u })
                for (unsigned every : { 0u, 1u, 2u, 97u })
                    for (size_t offset : { 0u, 2u, 4u }) {
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
