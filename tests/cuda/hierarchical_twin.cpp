/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the kernels of cuda/hierarchical.cu on CPU threads that race for cells (twin/cuda/parallel.cuh),
 * against the host's driver: both must sort the same occurrences into each part. */

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <tuple>
#include <vector>

#include "cuda/launch.h"
#include "managed.hpp"

namespace
{

using occurrence = std::tuple<uint32_t, uint64_t, double>; /* part, index, value */

std::vector<occurrence> sorted(uint32_t parts, const size_t *first, const uint64_t *index,
                               const double *value)
{
    std::vector<occurrence> all;
    for (uint32_t p = 0; p < parts; p++)
        for (size_t i = first[p]; i < first[p + 1]; i++)
            all.emplace_back(p, index[i], value[i]);
    std::sort(all.begin(), all.end());
    return all;
}

bool agree(const sar_hierarchical_params &params, const sar_partition_map &map, const sar_hash_input &input)
{
    sar_arena arena = {};
    sar_hash_output host;
    if (sar_hierarchical_hash(&params, &map, &input, &arena, &host) != SAR_OK)
        return false;
    managed<size_t> first(map.parts + 1), position(input.nnz);
    managed<uint64_t> index(input.nnz);
    managed<double> value(input.nnz);
    sar_hash_output device = { first.data(), position.data(), index.data(), value.data(), 0, 0 };
    if (sar_cuda_hierarchical_hash(&params, &map, &input, &device, nullptr) != SAR_OK ||
        cudaStreamSynchronize(nullptr) != cudaSuccess)
        return false;
    auto expected =
        sorted(map.parts, host.first, static_cast<uint64_t *>(host.index), static_cast<double *>(host.value));
    auto found = sorted(map.parts, first.data(), index.data(), value.data());
    bool same = found == expected && found.size() == input.nnz;
    sar_arena_free(&arena);
    return same;
}

/* Random indices, few distinct ones, or all equal, by the number of distinct indices. */
managed<uint64_t> make_indices(size_t nnz, uint64_t count, uint64_t different)
{
    managed<uint64_t> index(nnz);
    for (size_t i = 0; i < nnz; i++)
        index[i] = sar_mix64(i + 1) % different * (count / different);
    return index;
}

struct input_case {
    const char *name;
    size_t nnz;
    uint64_t count, different;
};

const input_case cases[] = {
    { "nothing", 0, 1000, 1000 },
    { "element 0", 1, 1000, 1 },
    { "one cell", 2, 1, 1 },
    { "sparse", 20000, 1 << 20, 1 << 20 },
    { "full", 5000, 5000, 5000 },
    { "huge vector", 20000, (uint64_t)1 << 40, (uint64_t)1 << 40 },
    { "duplicates", 20000, 1 << 20, 100 },
    { "all equal", 5000, 1 << 20, 1 },
};

/* Parameters: the defaults, too little memory, the paper's variant, wide cells. */
sar_hierarchical_params variant(unsigned number, size_t nnz, uint32_t parts)
{
    sar_hierarchical_params params = sar_hierarchical_params_make(nnz, parts, number);
    if (number == 1)
        params.parallel_cells = 1, params.serial_cells = 0;
    if (number == 2)
        params.paper = true;
    if (number == 3)
        params.cell_size = 8, params.hashes = SAR_HASHES_MAX;
    return params;
}

} // namespace

int main()
{
    int failures = 0, runs = 0;
    for (const input_case &given : cases) {
        managed<uint64_t> index = make_indices(given.nnz, given.count, given.different);
        managed<double> value(given.nnz);
        for (size_t i = 0; i < given.nnz; i++)
            value[i] = (double)i;
        sar_hash_input input = { index.data(), value.data(), 8, sizeof(double), given.nnz };
        for (uint32_t parts : { 1u, 3u, 16u, 1000u })
            for (unsigned number = 0; number < 4; number++)
                for (int repeat = 0; repeat < 5; repeat++, runs++) {
                    sar_partition_map map =
                        sar_partition_map_make(SAR_PARTITION_HASH, given.count, parts, 1, 7);
                    if (agree(variant(number, given.nnz, parts), map, input))
                        continue;
                    std::printf("%s: differs for %u parts, variant %u\n", given.name, parts, number);
                    failures++;
                }
    }
    std::printf("%d runs, %d failures\n", runs, failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
