/* SPDX-License-Identifier: BSD-3-Clause */
/* What each thread of the kernels in topk.cu does. Host twins: tensor/dgc.c and tensor/topk.c. */

#ifndef SAR_CUDA_TOPK_CUH
#define SAR_CUDA_TOPK_CUH

#include "cuda/bits.cuh"
#include "tensor/dgc.h"
#include "tensor/momentum.h"

/** A type with magnitudes: what memory holds, what is computed with, and its bits as a number. */
#define SAR_DEFINE_FLOATS(name, held, computed, number)                                               \
    struct sar_floats_##name {                                                                        \
        using type = held;                                                                            \
        using wide = computed;                                                                        \
        using bits = number;                                                                          \
        SAR_HOST_DEVICE static type velocity(type velocity, type gradient, wide momentum, wide scale) \
        {                                                                                             \
            return sar_velocity_##name(velocity, gradient, momentum, scale);                          \
        }                                                                                             \
        SAR_HOST_DEVICE static type value(type value, type velocity)                                  \
        {                                                                                             \
            return sar_value_##name(value, velocity);                                                 \
        }                                                                                             \
    };

SAR_DEFINE_FLOATS(float, float, float, uint32_t)
SAR_DEFINE_FLOATS(double, double, double, uint64_t)
SAR_DEFINE_FLOATS(bf16, uint16_t, float, uint16_t)
SAR_DEFINE_FLOATS(fp16, uint16_t, float, uint16_t)

/** Values of such a type. */
template <class Floats> struct sar_tensor {
    using type = typename Floats::type;
    using bits = typename Floats::bits;
    type *value, *velocity;
    const type *gradient; /* or NULL */
    typename Floats::wide momentum, scale;
    size_t count;

    /** The velocity that value i is about to have. */
    SAR_HOST_DEVICE type next_velocity(size_t i) const
    {
        return Floats::velocity(velocity[i], gradient[i], momentum, scale);
    }

    SAR_HOST_DEVICE void advance(size_t i) const
    {
        if (gradient == NULL)
            return;
        velocity[i] = next_velocity(i);
        value[i] = Floats::value(value[i], velocity[i]);
    }

    SAR_HOST_DEVICE static uint64_t magnitude_of(type value)
    {
        bits same;
        memcpy(&same, &value, sizeof same);
        return same & ((bits)-1 >> 1);
    }

    SAR_HOST_DEVICE uint64_t magnitude(size_t i) const
    {
        return magnitude_of(value[i]);
    }

    /** That of value i as it is about to be. */
    SAR_HOST_DEVICE uint64_t next_magnitude(size_t i) const
    {
        return gradient == NULL ? magnitude(i) : magnitude_of(Floats::value(value[i], next_velocity(i)));
    }
};

/** Sample i. Host twin: sar_dgc_sample. */
template <class Floats> struct sar_sample_body {
    sar_tensor<Floats> tensor;
    sar_stretches stretches;
    uint64_t *magnitudes;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        magnitudes[i] = tensor.next_magnitude(sar_place_in(&stretches, i));
    }
};

/** Advance values 4 q … 4 q + 3, and say which then reach a magnitude. Host twins: sar_dgc_advance, scan. */
template <class Floats> struct sar_advance_quad {
    sar_tensor<Floats> tensor;
    uint64_t least;

    SAR_HOST_DEVICE unsigned operator()(size_t q) const
    {
        unsigned found = 0;
        for (unsigned j = 0; j < 4 && 4 * q + j < tensor.count; j++) {
            tensor.advance(4 * q + j);
            found |= (unsigned)(tensor.magnitude(4 * q + j) >= least) << j;
        }
        return found;
    }
};

enum { SAR_DIGIT_BITS = 8, SAR_DIGITS = 1 << SAR_DIGIT_BITS };

/** Add 1 to a number that many threads count in. */
SAR_HOST_DEVICE static inline void sar_count_up(unsigned long long *n)
{
#ifdef __CUDA_ARCH__
    atomicAdd(n, 1ull);
#else
    __atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
#endif
}

/** Count marked values by a digit of their magnitudes, of those whose higher digits are known. Host twin:
 * sar_magnitude_select. */
template <class Floats> struct sar_digit_body {
    sar_tensor<Floats> tensor;
    const uint32_t *marks;
    uint64_t known;
    unsigned shift;
    unsigned long long *counts;

    SAR_HOST_DEVICE void operator()(size_t w) const
    {
        for (uint32_t rest = marks[w]; rest != 0; rest &= rest - 1) {
            uint64_t magnitude = tensor.magnitude(w * SAR_WORD + sar_lowest(rest)) >> shift;
            if (magnitude >> SAR_DIGIT_BITS == known)
                sar_count_up(&counts[magnitude % SAR_DIGITS]);
        }
    }
};

/** Take from marks, a word each, those below a bound; equal ones become marks of their own. */
template <class Floats> struct sar_sift_body {
    sar_tensor<Floats> tensor;
    uint64_t bound;
    uint32_t *marks, *equal;

    SAR_HOST_DEVICE void operator()(size_t w) const
    {
        uint32_t above = 0, same = 0;
        for (uint32_t rest = marks[w]; rest != 0; rest &= rest - 1) {
            uint64_t magnitude = tensor.magnitude(w * SAR_WORD + sar_lowest(rest));
            above |= magnitude > bound ? rest & -rest : 0;
            same |= magnitude == bound ? rest & -rest : 0;
        }
        marks[w] = above;
        equal[w] = same;
    }
};

/** Put the first so many of the equal ones back. Host twin of the two: narrow_down. */
struct sar_fill_body {
    const uint32_t *equal;
    uint32_t *marks;
    unsigned long long room;

    SAR_HOST_DEVICE void operator()(size_t w, unsigned long long place) const
    {
        for (uint32_t rest = equal[w]; rest != 0 && place < room; rest &= rest - 1, place++)
            marks[w] |= rest & -rest;
    }
};

/** Zero marked values, a word of marks each, and velocities of those that reach a magnitude. Host twin:
 * sar_dgc_clear. */
template <class Floats> struct sar_clear_body {
    sar_tensor<Floats> tensor;
    const uint32_t *marks;
    uint64_t masked;

    SAR_HOST_DEVICE void operator()(size_t w) const
    {
        for (uint32_t rest = marks[w]; rest != 0; rest &= rest - 1) {
            size_t i = w * SAR_WORD + sar_lowest(rest);
            if (tensor.magnitude(i) >= masked)
                tensor.velocity[i] = 0;
            tensor.value[i] = 0;
        }
    }
};

#endif
