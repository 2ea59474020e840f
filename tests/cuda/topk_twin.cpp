/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the kernels of cuda/topk.cu on CPU threads against the host's code: equal samples, equal values and
 * velocities after steps, and the same elements selected and zeroed, bit for bit. */

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cuda/launch.h"
#include "hash/murmur3.h"
#include "managed.hpp"

extern "C" {
#include "vector/dense.h"
#include "vector/half.h"
#include "vector/magnitude.h"
#include "vector/topk.h"
}

namespace
{

using bytes = managed<unsigned char>;

/* Many equal values; some 0, some tiny, a few infinite. */
double number_of(uint64_t hash)
{
    if (hash % 499 == 0)
        return HUGE_VAL;
    if (hash % 5 == 0)
        return (double)(int)(hash >> 8 & 3) - 1;
    double number = (double)(int64_t)hash / 9.3e18;
    return hash % 7 == 0 ? number * 1e-7 : number;
}

void make_value(sar_dtype dtype, uint64_t hash, unsigned char *to)
{
    double number = number_of(hash);
    float narrow = (float)number;
    uint32_t bits = sar_float_bits(narrow);
    uint16_t half = dtype == SAR_BF16 ? sar_to_bf16(bits) : sar_to_fp16(bits);
    if (dtype == SAR_DOUBLE)
        std::memcpy(to, &number, sizeof number);
    else if (dtype == SAR_FLOAT)
        std::memcpy(to, &narrow, sizeof narrow);
    else
        std::memcpy(to, &half, sizeof half);
}

bytes make_vector(const sar_vec_desc &desc, uint64_t seed)
{
    bytes v(desc.count * desc.element_size + 1);
    for (size_t i = 0; i < desc.count; i++)
        make_value(desc.dtype, sar_mix64(i + seed * 1000003), v.data() + i * desc.element_size);
    return v;
}

/* The state of one side, host or device. */
struct side {
    bytes value, velocity;
    sar_dgc dgc;

    side(const sar_vec_desc &desc, const bytes &gradient, bool advances)
        : value(make_vector(desc, 1)), velocity(make_vector(desc, 2)), dgc()
    {
        dgc.dtype = desc.dtype;
        dgc.count = desc.count;
        dgc.values = value.data();
        dgc.velocity = velocity.data();
        dgc.gradient = advances ? gradient.data() : nullptr;
        dgc.momentum = 0.9;
        dgc.scale = 0.37;
    }

    side(const side &) = delete;
};

bool samples_alike(const sar_vec_desc &desc, const side &host, const side &device)
{
    sar_device_vec vector = { &desc, device.dgc.values, 0, nullptr };
    size_t count = (size_t)desc.count;
    for (size_t n : { count, count / 3, (size_t)0 }) {
        managed<uint64_t> a(n + 1), b(n + 1);
        sar_dgc_sample(&host.dgc, n, 5, a.data());
        if (sar_cuda_sample(&vector, &device.dgc, n, 5, b.data()) != SAR_OK || a != b)
            return false;
    }
    return true;
}

bool same_vec(const sar_vec_desc &desc, const sar_spvec &a, const sar_spvec &b)
{
    return a.nnz == b.nnz && (a.nnz == 0 || (std::memcmp(a.index, b.index, a.nnz * desc.index_size) == 0 &&
                                             std::memcmp(a.value, b.value, a.nnz * desc.element_size) == 0));
}

/* Select on the device, and clear the selected elements. */
bool choose(const sar_device_vec &vector, const side &device, const sar_topk_limit &limit, sar_spvec *vec)
{
    sar_nonzero_mask mask;
    if (sar_cuda_select(&vector, &device.dgc, &limit, &mask) != SAR_OK || mask.nnz > limit.capacity)
        return false;
    vec->nnz = mask.nnz;
    bool good =
        sar_cuda_compact(&vector, &mask, vec) == SAR_OK &&
        sar_cuda_clear_selected(&vector, &device.dgc, sar_dgc_mask_threshold(&device.dgc), &mask) == SAR_OK &&
        cudaStreamSynchronize(nullptr) == cudaSuccess;
    sar_cuda_free_mask(&vector, &mask);
    return good;
}

bool selects_alike(const sar_vec_desc &desc, side &host, side &device, const sar_topk_limit &limit)
{
    sar_arena arena = {};
    sar_topk topk;
    sar_device_vec vector = { &desc, device.dgc.values, 0, nullptr };
    bytes index(limit.capacity * desc.index_size + 1), value(limit.capacity * desc.element_size + 1);
    sar_spvec vec = { index.data(), value.data(), 0 };
    if (sar_topk_open(&desc, limit.capacity, &arena, &topk) != SAR_OK)
        return false;
    sar_topk_select(&topk, &host.dgc, limit.min_magnitude);
    bool good = choose(vector, device, limit, &vec) && same_vec(desc, topk.vec, vec);
    sar_dgc_clear(&host.dgc, &desc, &topk.vec);
    sar_arena_free(&arena);
    return good && host.value == device.value && host.velocity == device.velocity;
}

bool agree(const sar_vec_desc &desc, bool advances, const sar_topk_limit &limit)
{
    bytes gradient = make_vector(desc, 3);
    side host(desc, gradient, advances), device(desc, gradient, advances);
    for (int step = 0; step < 2; step++)
        if (!samples_alike(desc, host, device) || !selects_alike(desc, host, device, limit))
            return false;
    return true;
}

} // namespace

int main()
{
    int runs = 0, failures = 0;
    for (sar_dtype dtype : { SAR_FLOAT, SAR_DOUBLE, SAR_BF16, SAR_FP16 })
        for (uint64_t count : { 0u, 1u, 33u, 5000u })
            for (unsigned index_size : { 4u, 8u })
                for (double min : { 0.0, 0.5, 1.0, 9.0 })
                    for (size_t capacity : { (size_t)0, (size_t)7, (size_t)300, (size_t)count })
                        for (bool advances : { false, true }) {
                            sar_vec_desc desc = {};
                            desc.count = count;
                            desc.dtype = dtype;
                            desc.row_len = 1;
                            desc.element_size = dtype == SAR_DOUBLE ? 8 : dtype == SAR_FLOAT ? 4 : 2;
                            desc.index_size = index_size;
                            size_t fit = capacity < count ? capacity : (size_t)count;
                            runs++;
                            if (agree(desc, advances, { sar_magnitude_ceil(dtype, min), fit }))
                                continue;
                            std::printf(
                                "differs: type %d, %llu elements, indices of %u B, from %g, %zu of them\n",
                                (int)dtype, (unsigned long long)count, index_size, min, fit);
                            failures++;
                        }
    std::printf("%d runs, %d failures\n", runs, failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
