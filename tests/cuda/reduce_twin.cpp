/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of cuda/reduce.cu and cuda/coalesce.cu on CPU threads against the host's: of every type and op,
 * sums that are not exact included, the same elements with the same bits. */

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

#include "cuda/reduce.h"
#include "hash/murmur3.h"
#include "managed.hpp"

extern "C" {
#include "tensor/arithmetic.h"
#include "tensor/reduce.h"
#include "tensor/sort.h"
}

namespace
{

using bytes = managed<unsigned char>;

sar_shape make_shape(sar_base base, sar_op op, size_t row, unsigned index_size, uint64_t count)
{
    sar_shape shape = {};
    shape.count = count;
    shape.row = row;
    shape.index_size = index_size;
    shape.base = base;
    shape.op = op;
    shape.kernels = sar_kernels_of(base, op);
    shape.element_size = row * shape.kernels->size;
    return shape;
}

/* Numbers of all magnitudes around 1, some of them -0; of integers, any bits. */
void make_value(sar_base base, uint64_t hash, void *to)
{
    double number = hash % 17 == 0 ? -0.0 : ((double)(hash >> 11) / 4503599627370496.0 - 1) * (1 << hash % 9);
    float narrow = (float)number;
    uint16_t half =
        base == SAR_BF16 ? sar_to_bf16(sar_float_bits(narrow)) : sar_to_fp16(sar_float_bits(narrow));
    switch (base) {
    case SAR_FLOAT: std::memcpy(to, &narrow, sizeof narrow); break;
    case SAR_DOUBLE: std::memcpy(to, &number, sizeof number); break;
    case SAR_BF16:
    case SAR_FP16: std::memcpy(to, &half, sizeof half); break;
    default: std::memcpy(to, &hash, sar_kernels_of(base, SAR_SUM)->size); break;
    }
}

/* Elements at given indices, and the memory they are in. */
struct elements {
    bytes index, value;
    sar_run run;

    elements(const sar_shape &shape, const std::vector<uint64_t> &at, uint64_t seed)
        : index(at.size() * shape.index_size + 8),
          value(at.size() * shape.element_size + 8), run{ index.data(), value.data(), at.size() }
    {
        for (size_t i = 0; i < at.size(); i++)
            sar_index_set(index.data(), shape.index_size, i, at[i]);
        for (size_t i = 0; i < at.size() * shape.row; i++)
            make_value(shape.base, sar_mix64(i + seed), value.data() + i * shape.kernels->size);
        for (size_t i = 0; sar_op_is_logical(shape.op) && i < at.size() * shape.row; i += 2)
            std::memset(value.data() + i * shape.kernels->size, 0, shape.kernels->size);
    }
};

std::vector<uint64_t> some(uint64_t count, size_t nnz, uint64_t seed)
{
    std::vector<uint64_t> at(nnz);
    for (size_t i = 0; i < nnz; i++)
        at[i] = sar_mix64(i + seed) % count;
    return at;
}

std::vector<uint64_t> sorted(const std::vector<uint64_t> &at)
{
    std::set<uint64_t> set(at.begin(), at.end());
    return std::vector<uint64_t>(set.begin(), set.end());
}

bool same_run(const sar_shape &shape, const sar_run &a, const sar_run &b)
{
    return a.nnz == b.nnz && (a.nnz == 0 || (std::memcmp(a.index, b.index, a.nnz * shape.index_size) == 0 &&
                                             std::memcmp(a.value, b.value, a.nnz * shape.element_size) == 0));
}

bool reduces(const sar_shape &shape, size_t nnz, size_t n)
{
    std::vector<elements> all;
    std::vector<sar_run> runs;
    sar_arena arena = {};
    for (size_t r = 0; r < n; r++)
        all.emplace_back(shape, sorted(some(shape.count, r == 1 ? 0 : nnz, 100 * r)), 1000 * r);
    for (const elements &e : all)
        runs.push_back({ (void *)e.index.data(), (void *)e.value.data(), e.run.nnz });
    elements out(shape, std::vector<uint64_t>(sar_reduce_bound(&shape, runs.data(), n)), 0);
    sar_run host;
    bool good = sar_reduce_taken(&shape, runs.data(), n, &arena, &host) == SAR_OK &&
                sar_cuda_reduce(&shape, runs.data(), n, &out.run, nullptr) == SAR_OK &&
                cudaStreamSynchronize(nullptr) == cudaSuccess && same_run(shape, host, out.run);
    sar_arena_free(&arena);
    return good;
}

bool coalesces(const sar_shape &shape, size_t nnz, uint64_t different)
{
    std::vector<uint64_t> at = some(different, nnz, 3);
    elements from(shape, at, 5), out(shape, std::vector<uint64_t>(nnz), 0);
    sar_arena arena = {};
    sar_run host = {};
    sar_unsorted unsorted = { from.run.index, from.run.value, nnz, shape.index_size, different - 1 };
    bool good = (nnz == 0 || sar_sort(&shape, &unsorted, &arena, &host) == SAR_OK) &&
                sar_cuda_coalesce(&shape, &from.run, different - 1, &out.run, nullptr) == SAR_OK &&
                cudaStreamSynchronize(nullptr) == cudaSuccess && same_run(shape, host, out.run);
    sar_arena_free(&arena);
    return good;
}

/* What the host makes of what the device has brought must be what it makes of all, also where an index is
 * beyond the count. */
bool ingests(const sar_shape &shape, size_t nnz, uint64_t different)
{
    elements from(shape, some(different, nnz, 7), 9), brought(shape, std::vector<uint64_t>(nnz), 0);
    sar_index_type type = shape.index_size == 4 ? SAR_INDEX_INT32 : SAR_INDEX_INT64;
    sar_coo coo = { from.run.index, from.run.value, nnz, type };
    sar_vector vector = { &shape, nullptr, 0, nullptr };
    sar_arena arena = {};
    sar_run host, device;
    long long bad = -1, bad_there = -1;
    bool ascends = false;
    sar_status status = sar_cuda_ingest(&vector, &coo, &brought.run, &ascends);
    sar_coo left = { brought.run.index, brought.run.value, brought.run.nnz, type };
    sar_status expected = sar_ingest(&shape, &coo, &arena, &host, &bad);
    bool good = status == SAR_OK && sar_ingest(&shape, &left, &arena, &device, &bad_there) == expected &&
                bad == bad_there && ascends == (expected == SAR_OK) &&
                (expected != SAR_OK || same_run(shape, host, device)) &&
                (expected != SAR_OK || left.nnz == host.nnz);
    sar_arena_free(&arena);
    return good;
}

/* Of one type and op, by number. */
int failures_of(const sar_shape &given)
{
    int failures = 0;
    sar_shape shape = given;
    for (size_t nnz : { 0u, 1u, 40u, 3000u }) {
        for (bool absent : { false, true }) {
            shape.absent_is_zero = absent;
            failures += !reduces(shape, nnz, 1) + !reduces(shape, nnz, 5);
        }
        shape.absent_is_zero = false;
        for (uint64_t different : { (uint64_t)1, (uint64_t)50, given.count })
            failures += !coalesces(shape, nnz, different) + !ingests(shape, nnz, different);
        failures += !ingests(shape, nnz, 2 * given.count);
    }
    return failures;
}

} // namespace

int main()
{
    int shapes = 0, failures = 0;
    for (int base = 0; base < SAR_BASES; base++)
        for (int op = 0; op < SAR_OPS; op++)
            for (size_t row : { 1u, 3u })
                for (unsigned index_size : { 4u, 8u })
                    for (uint64_t count : { 33u, 20000u }) {
                        if (sar_kernels_of((sar_base)base, (sar_op)op) == nullptr)
                            continue;
                        int wrong =
                            failures_of(make_shape((sar_base)base, (sar_op)op, row, index_size, count));
                        if (wrong != 0)
                            std::printf("differs %d times: type %d, op %d, rows of %zu, indices of %u B\n",
                                        wrong, base, op, row, index_size);
                        failures += wrong;
                        shapes++;
                    }
    std::printf("%d shapes, %d failures\n", shapes, failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
