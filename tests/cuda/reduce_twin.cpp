/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the kernels of cuda/reduce.cu and cuda/coalesce.cu on CPU threads against the host's code. For every
 * type and op, the results must have the same elements and bits, even if sums are inexact. */

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

#include "cuda/launch.h"
#include "hash/murmur3.h"
#include "managed.hpp"

extern "C" {
#include "vector/op_macros.h"
#include "vector/reduce.h"
#include "vector/sort.h"
}

namespace
{

using bytes = managed<unsigned char>;

sar_vec_desc make_desc(sar_dtype dtype, sar_op op, size_t row_len, unsigned index_size, uint64_t count)
{
    sar_vec_desc desc = {};
    desc.count = count;
    desc.row_len = row_len;
    desc.index_size = index_size;
    desc.dtype = dtype;
    desc.op = op;
    desc.kernels = sar_op_kernels_of(dtype, op);
    desc.element_size = row_len * desc.kernels->size;
    return desc;
}

/* Numbers of all magnitudes around 1, some of them -0; integers have any bits. */
void make_value(sar_dtype dtype, uint64_t hash, void *to)
{
    double number = hash % 17 == 0 ? -0.0 : ((double)(hash >> 11) / 4503599627370496.0 - 1) * (1 << hash % 9);
    float narrow = (float)number;
    uint16_t half =
        dtype == SAR_BF16 ? sar_to_bf16(sar_float_bits(narrow)) : sar_to_fp16(sar_float_bits(narrow));
    switch (dtype) {
    case SAR_FLOAT: std::memcpy(to, &narrow, sizeof narrow); break;
    case SAR_DOUBLE: std::memcpy(to, &number, sizeof number); break;
    case SAR_BF16:
    case SAR_FP16: std::memcpy(to, &half, sizeof half); break;
    default: std::memcpy(to, &hash, sar_op_kernels_of(dtype, SAR_SUM)->size); break;
    }
}

/* Elements at given indices, and their memory. */
struct elements {
    bytes index, value;
    sar_spvec vec;

    elements(const sar_vec_desc &desc, const std::vector<uint64_t> &at, uint64_t seed)
        : index(at.size() * desc.index_size + 8),
          value(at.size() * desc.element_size + 8), vec{ index.data(), value.data(), at.size() }
    {
        for (size_t i = 0; i < at.size(); i++)
            sar_index_set(index.data(), desc.index_size, i, at[i]);
        for (size_t i = 0; i < at.size() * desc.row_len; i++)
            make_value(desc.dtype, sar_mix64(i + seed), value.data() + i * desc.kernels->size);
        for (size_t i = 0; sar_op_is_logical(desc.op) && i < at.size() * desc.row_len; i += 2)
            std::memset(value.data() + i * desc.kernels->size, 0, desc.kernels->size);
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

/* A value as a double; not of types whose values are compared as bits. */
double number_of(sar_dtype dtype, const unsigned char *value)
{
    double number = 0;
    float narrow = 0;
    uint16_t half = 0;
    std::memcpy(&narrow, value, dtype == SAR_FLOAT ? sizeof narrow : 0);
    std::memcpy(&half, value, dtype == SAR_BF16 || dtype == SAR_FP16 ? sizeof half : 0);
    switch (dtype) {
    case SAR_FLOAT: return narrow;
    case SAR_DOUBLE: std::memcpy(&number, value, sizeof number); return number;
    case SAR_BF16: return SAR_HALF_TO_FLOAT(bf16, half);
    case SAR_FP16: return SAR_HALF_TO_FLOAT(fp16, half);
    default: return 0;
    }
}

/* The bits of a NaN that an addition or product makes depend on the processor. */
bool same_values(const sar_vec_desc &desc, const void *a, const void *b, size_t values)
{
    size_t size = desc.kernels->size;
    for (size_t i = 0; i < values; i++) {
        const unsigned char *x = (const unsigned char *)a + i * size,
                            *y = (const unsigned char *)b + i * size;
        bool both_nan = std::isnan(number_of(desc.dtype, x)) && std::isnan(number_of(desc.dtype, y));
        if (!both_nan && std::memcmp(x, y, size) != 0)
            return false;
    }
    return true;
}

bool same_vec(const sar_vec_desc &desc, const sar_spvec &a, const sar_spvec &b)
{
    return a.nnz == b.nnz && (a.nnz == 0 || (std::memcmp(a.index, b.index, a.nnz * desc.index_size) == 0 &&
                                             same_values(desc, a.value, b.value, a.nnz * desc.row_len)));
}

bool reduces(const sar_vec_desc &desc, size_t nnz, size_t n)
{
    std::vector<elements> all;
    std::vector<sar_spvec> vecs;
    sar_arena arena = {};
    for (size_t r = 0; r < n; r++)
        all.emplace_back(desc, sorted(some(desc.count, r == 1 ? 0 : nnz, 100 * r)), 1000 * r);
    for (const elements &e : all)
        vecs.push_back({ (void *)e.index.data(), (void *)e.value.data(), e.vec.nnz });
    elements out(desc, std::vector<uint64_t>(sar_reduce_max_nnz(&desc, vecs.data(), n)), 0);
    sar_spvec host;
    bool good = sar_reduce_alloc(&desc, vecs.data(), n, &arena, &host) == SAR_OK &&
                sar_cuda_reduce(&desc, vecs.data(), n, &out.vec, nullptr) == SAR_OK &&
                cudaStreamSynchronize(nullptr) == cudaSuccess && same_vec(desc, host, out.vec);
    sar_arena_free(&arena);
    return good;
}

bool coalesces(const sar_vec_desc &desc, size_t nnz, uint64_t different)
{
    std::vector<uint64_t> at = some(different, nnz, 3);
    elements from(desc, at, 5), out(desc, std::vector<uint64_t>(nnz), 0);
    sar_arena arena = {};
    sar_spvec host = {};
    sar_sort_input unsorted = { from.vec.index, from.vec.value, nnz, desc.index_size, different - 1 };
    bool good = (nnz == 0 || sar_sort(&desc, &unsorted, &arena, &host) == SAR_OK) &&
                sar_cuda_coalesce(&desc, &from.vec, different - 1, &out.vec, nullptr) == SAR_OK &&
                cudaStreamSynchronize(nullptr) == cudaSuccess && same_vec(desc, host, out.vec);
    sar_arena_free(&arena);
    return good;
}

/* The host must canonicalize the device's output to the same vector as the input, and reject both if an
 * index is out of range. */
bool canonicalizes(const sar_vec_desc &desc, size_t nnz, uint64_t different)
{
    elements from(desc, some(different, nnz, 7), 9), coalesced(desc, std::vector<uint64_t>(nnz), 0);
    sar_index_type type = desc.index_size == 4 ? SAR_INDEX_INT32 : SAR_INDEX_INT64;
    sar_coo_args coo = { from.vec.index, from.vec.value, nnz, type };
    sar_device_vec vector = { &desc, nullptr, 0, nullptr };
    sar_arena arena = {};
    sar_spvec host, device;
    long long bad = -1, bad_there = -1;
    bool is_sorted = false;
    sar_status status = sar_cuda_canonicalize(&vector, &coo, &coalesced.vec, &is_sorted);
    sar_coo_args left = { coalesced.vec.index, coalesced.vec.value, coalesced.vec.nnz, type };
    sar_status expected = sar_canonicalize(&desc, &coo, &arena, &host, &bad);
    bool good = status == SAR_OK && sar_canonicalize(&desc, &left, &arena, &device, &bad_there) == expected &&
                bad == bad_there && is_sorted == (expected == SAR_OK) &&
                (expected != SAR_OK || same_vec(desc, host, device)) &&
                (expected != SAR_OK || left.nnz == host.nnz);
    sar_arena_free(&arena);
    return good;
}

/* Number of failures for one type and op. */
int failures_of(const sar_vec_desc &given)
{
    int failures = 0;
    sar_vec_desc desc = given;
    for (size_t nnz : { 0u, 1u, 40u, 3000u }) {
        for (bool absent : { false, true }) {
            desc.absent_is_zero = absent;
            failures += !reduces(desc, nnz, 1) + !reduces(desc, nnz, 5);
        }
        desc.absent_is_zero = false;
        for (uint64_t different : { (uint64_t)1, (uint64_t)50, given.count })
            failures += !coalesces(desc, nnz, different) + !canonicalizes(desc, nnz, different);
        failures += !canonicalizes(desc, nnz, 2 * given.count);
    }
    return failures;
}

} // namespace

int main()
{
    int shapes = 0, failures = 0;
    for (int dtype = 0; dtype < SAR_DTYPES; dtype++)
        for (int op = 0; op < SAR_OPS; op++)
            for (size_t row : { 1u, 3u })
                for (unsigned index_size : { 4u, 8u })
                    for (uint64_t count : { 33u, 20000u }) {
                        if (sar_op_kernels_of((sar_dtype)dtype, (sar_op)op) == nullptr)
                            continue;
                        int wrong =
                            failures_of(make_desc((sar_dtype)dtype, (sar_op)op, row, index_size, count));
                        if (wrong != 0)
                            std::printf("differs %d times: type %d, op %d, rows of %zu, indices of %u B\n",
                                        wrong, dtype, op, row, index_size);
                        failures += wrong;
                        shapes++;
                    }
    std::printf("%d shapes, %d failures\n", shapes, failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
