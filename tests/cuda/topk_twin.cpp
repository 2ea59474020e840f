/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of cuda/topk.cu on CPU threads against the host's: the same samples, the same values and
 * velocities after steps, and the same elements selected and zeroed, bit for bit. */

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cuda/dense.h"
#include "cuda/topk.h"
#include "hash/murmur3.h"
#include "managed.hpp"

extern "C" {
#include "tensor/dense.h"
#include "tensor/half.h"
#include "tensor/magnitude.h"
#include "tensor/topk.h"
}

namespace
{

using bytes = managed<unsigned char>;

/* Many are equal, some 0, some tiny, a few infinite. */
double number_of(uint64_t hash)
{
    if (hash % 499 == 0)
        return HUGE_VAL;
    if (hash % 5 == 0)
        return (double)(int)(hash >> 8 & 3) - 1;
    double number = (double)(int64_t)hash / 9.3e18;
    return hash % 7 == 0 ? number * 1e-7 : number;
}

void make_value(sar_base base, uint64_t hash, unsigned char *to)
{
    double number = number_of(hash);
    float narrow = (float)number;
    uint32_t bits = sar_float_bits(narrow);
    uint16_t half = base == SAR_BF16 ? sar_to_bf16(bits) : sar_to_fp16(bits);
    if (base == SAR_DOUBLE)
        std::memcpy(to, &number, sizeof number);
    else if (base == SAR_FLOAT)
        std::memcpy(to, &narrow, sizeof narrow);
    else
        std::memcpy(to, &half, sizeof half);
}

bytes make_vector(const sar_shape &shape, uint64_t seed)
{
    bytes v(shape.count * shape.element_size + 1);
    for (size_t i = 0; i < shape.count; i++)
        make_value(shape.base, sar_mix64(i + seed * 1000003), v.data() + i * shape.element_size);
    return v;
}

/* One side's state, and what it selects. */
struct side {
    bytes value, velocity;
    sar_dgc of;

    side(const sar_shape &shape, const bytes &gradient, bool advances)
        : value(make_vector(shape, 1)), velocity(make_vector(shape, 2)), of()
    {
        of.base = shape.base;
        of.count = shape.count;
        of.values = value.data();
        of.velocity = velocity.data();
        of.gradient = advances ? gradient.data() : nullptr;
        of.momentum = 0.9;
        of.scale = 0.37;
    }

    side(const side &) = delete;
};

bool samples_alike(const sar_shape &shape, const side &host, const side &device)
{
    sar_vector vector = { &shape, device.of.values, 0, nullptr };
    size_t count = (size_t)shape.count;
    for (size_t n : { count, count / 3, (size_t)0 }) {
        managed<uint64_t> a(n + 1), b(n + 1);
        sar_dgc_sample(&host.of, n, 5, a.data());
        if (sar_cuda_sample(&vector, &device.of, n, 5, b.data()) != SAR_OK || a != b)
            return false;
    }
    return true;
}

bool same_run(const sar_shape &shape, const sar_run &a, const sar_run &b)
{
    return a.nnz == b.nnz && (a.nnz == 0 || (std::memcmp(a.index, b.index, a.nnz * shape.index_size) == 0 &&
                                             std::memcmp(a.value, b.value, a.nnz * shape.element_size) == 0));
}

/* The device's choice, zeroed where it was. */
bool choose(const sar_vector &vector, const side &device, const sar_cutoff &cutoff, sar_run *run)
{
    sar_marks marks;
    if (sar_cuda_select(&vector, &device.of, &cutoff, &marks) != SAR_OK || marks.nnz > cutoff.capacity)
        return false;
    run->nnz = marks.nnz;
    bool good = sar_cuda_compact(&vector, &marks, run) == SAR_OK &&
                sar_cuda_clear(&vector, &device.of, sar_dgc_masked(&device.of), &marks) == SAR_OK &&
                cudaStreamSynchronize(nullptr) == cudaSuccess;
    sar_cuda_unmark(&vector, &marks);
    return good;
}

bool selects_alike(const sar_shape &shape, side &host, side &device, const sar_cutoff &cutoff)
{
    sar_arena arena = {};
    sar_topk topk;
    sar_vector vector = { &shape, device.of.values, 0, nullptr };
    bytes index(cutoff.capacity * shape.index_size + 1), value(cutoff.capacity * shape.element_size + 1);
    sar_run run = { index.data(), value.data(), 0 };
    if (sar_topk_open(&shape, cutoff.capacity, &arena, &topk) != SAR_OK)
        return false;
    sar_topk_run(&topk, &host.of, cutoff.least);
    bool good = choose(vector, device, cutoff, &run) && same_run(shape, topk.run, run);
    sar_dgc_clear(&host.of, &shape, &topk.run);
    sar_arena_free(&arena);
    return good && host.value == device.value && host.velocity == device.velocity;
}

bool agree(const sar_shape &shape, bool advances, const sar_cutoff &cutoff)
{
    bytes gradient = make_vector(shape, 3);
    side host(shape, gradient, advances), device(shape, gradient, advances);
    for (int step = 0; step < 2; step++)
        if (!samples_alike(shape, host, device) || !selects_alike(shape, host, device, cutoff))
            return false;
    return true;
}

} // namespace

int main()
{
    int runs = 0, failures = 0;
    for (sar_base base : { SAR_FLOAT, SAR_DOUBLE, SAR_BF16, SAR_FP16 })
        for (uint64_t count : { 0u, 1u, 33u, 5000u })
            for (unsigned index_size : { 4u, 8u })
                for (double least : { 0.0, 0.5, 1.0, 9.0 })
                    for (size_t capacity : { (size_t)0, (size_t)7, (size_t)300, (size_t)count })
                        for (bool advances : { false, true }) {
                            sar_shape shape = {};
                            shape.count = count;
                            shape.base = base;
                            shape.row = 1;
                            shape.element_size = base == SAR_DOUBLE ? 8 : base == SAR_FLOAT ? 4 : 2;
                            shape.index_size = index_size;
                            size_t room = capacity < count ? capacity : (size_t)count;
                            runs++;
                            if (agree(shape, advances, { sar_magnitude_from(base, least), room }))
                                continue;
                            std::printf(
                                "differs: type %d, %llu elements, indices of %u B, from %g, %zu of them\n",
                                (int)base, (unsigned long long)count, index_size, least, room);
                            failures++;
                        }
    std::printf("%d runs, %d failures\n", runs, failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
