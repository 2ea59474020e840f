/* SPDX-License-Identifier: BSD-3-Clause */
/* The function objects of cuda/hierarchical.cuh, run by CCCL's OpenMP back end on CPU threads that race for
 * cells, against the host's own driver: both must sort the same occurrences into each part. What this
 * leaves untried is the kernels' launches and CUB. */

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <tuple>
#include <vector>

#include <thrust/copy.h>
#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>

#include "cuda/hierarchical.cuh"

namespace
{

using occurrence = std::tuple<uint32_t, uint64_t, double>; /* part, index, value */

struct lists {
    std::vector<size_t> first, position;
    std::vector<uint64_t> index;
    std::vector<double> value;
    unsigned reruns = 0;
};

template <class Body> void each(size_t n, const Body &body)
{
    thrust::counting_iterator<size_t> begin(0);
    thrust::for_each(thrust::omp::par, begin, begin + n, body);
}

/* As sar_cuda_hash_extract. */
template <class Mark> void extract(const sar_cuda_hash &job, lists &out)
{
    size_t nnz = job.input.nnz;
    std::vector<Mark> marks(nnz);
    const Mark *cells = static_cast<const Mark *>(job.memory.cells);
    Mark *end = thrust::copy_if(thrust::omp::par, cells, cells + job.cells, marks.data(), sar_is_claimed());
    if (end != marks.data() + nnz)
        std::printf("found %td of %zu occurrences\n", end - marks.data(), nnz), std::exit(1);
    const uint64_t *index = static_cast<const uint64_t *>(job.input.index);
    const double *value = static_cast<const double *>(job.input.value);
    each(nnz, sar_gather_body<Mark, uint64_t>{ marks.data(), index, out.index.data(), 1 });
    each(nnz, sar_gather_body<Mark, double>{ marks.data(), value, out.value.data(), 1 });
    each(nnz, sar_position_body<Mark>{ marks.data(), out.position.data() });
    sar_first_body body = { job.map, job.input, out.first.data() };
    body.lists.index = out.index.data();
    each(nnz + 1, body);
}

/* As a caller of the launchers does: run, look, lay out, run again. */
lists hash(const sar_hierarchical &how, const sar_map &map, const sar_hash_input &input)
{
    size_t parts = map.parts, nnz = input.nnz;
    std::vector<size_t> first(parts + 1), serial(parts);
    std::vector<unsigned long long> totals(parts);
    lists out{ std::vector<size_t>(parts + 1), std::vector<size_t>(nnz), std::vector<uint64_t>(nnz),
               std::vector<double>(nnz) };
    for (unsigned run = 0;; run++) {
        if (sar_hash_layout(&how, map.parts, run, totals.data(), first.data(), serial.data()) != SAR_OK)
            std::exit(1);
        std::vector<unsigned long long> appends(parts);
        std::vector<uint64_t> cells(first[parts]);
        sar_hash_memory memory = { how,           how.cell_size == 8, first.data(),
                                   serial.data(), appends.data(),     cells.data() };
        sar_cuda_hash job = { memory, map, input, first[parts] };
        each(nnz, sar_hash_body{ job });
        if (!sar_hash_overflowed(&memory, map.parts)) {
            how.cell_size == 4 ? extract<uint32_t>(job, out) : extract<uint64_t>(job, out);
            out.reruns = run;
            return out;
        }
        std::fill(totals.begin(), totals.end(), 0);
        each(nnz, sar_count_body{ job, totals.data() });
    }
}

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

bool agree(const sar_hierarchical &how, const sar_map &map, const sar_hash_input &input)
{
    sar_arena arena = {};
    sar_hash_output host;
    if (sar_hierarchical_hash(&how, &map, &input, &arena, &host) != SAR_OK)
        return false;
    lists device = hash(how, map, input);
    auto expected =
        sorted(map.parts, host.first, static_cast<uint64_t *>(host.index), static_cast<double *>(host.value));
    auto found = sorted(map.parts, device.first.data(), device.index.data(), device.value.data());
    bool same = found == expected && found.size() == input.nnz;
    sar_arena_free(&arena);
    return same;
}

/* Random, or with few different values, or all equal: by the number of different indices. */
std::vector<uint64_t> make_indices(size_t nnz, uint64_t count, uint64_t different)
{
    std::vector<uint64_t> index(nnz);
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

/* How the memory may be: the defaults, then too little, as printed in the paper, and with wide cells. */
sar_hierarchical variant(unsigned number, size_t nnz, uint32_t parts)
{
    sar_hierarchical how = sar_hierarchical_defaults(nnz, parts, number);
    if (number == 1)
        how.parallel = 1, how.serial = 0;
    if (number == 2)
        how.paper = true;
    if (number == 3)
        how.cell_size = 8, how.hashes = SAR_MOST_HASHES;
    return how;
}

} // namespace

int main()
{
    int failures = 0, runs = 0;
    for (const input_case &given : cases) {
        std::vector<uint64_t> index = make_indices(given.nnz, given.count, given.different);
        std::vector<double> value(given.nnz);
        for (size_t i = 0; i < given.nnz; i++)
            value[i] = (double)i;
        sar_hash_input input = { index.data(), value.data(), 8, sizeof(double), given.nnz };
        for (uint32_t parts : { 1u, 3u, 16u, 1000u })
            for (unsigned number = 0; number < 4; number++)
                for (int repeat = 0; repeat < 5; repeat++, runs++) {
                    sar_map map = sar_map_make(SAR_PARTITION_HASH, given.count, parts, 1, 7);
                    if (agree(variant(number, given.nnz, parts), map, input))
                        continue;
                    std::printf("%s: differs for %u parts, variant %u\n", given.name, parts, number);
                    failures++;
                }
    }
    std::printf("%d runs, %d failures\n", runs, failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
