/* SPDX-License-Identifier: BSD-3-Clause */
/* Functors of the kernels in topk.cu. Host twins: vector/dgc.c and vector/topk.c. */

#ifndef SAR_CUDA_TOPK_CUH
#define SAR_CUDA_TOPK_CUH

#include "cuda/bits.cuh"
#include "vector/dgc.h"
#include "vector/momentum.h"

/** A type of values: its storage type, the type to compute with, and an integer for its bits. */
#define SAR_DEFINE_FLOAT_TRAITS(name, storage, computed, number)                                      \
    struct sar_float_traits_##name {                                                                  \
        using type = storage;                                                                         \
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

SAR_DEFINE_FLOAT_TRAITS(float, float, float, uint32_t)
SAR_DEFINE_FLOAT_TRAITS(double, double, double, uint64_t)
SAR_DEFINE_FLOAT_TRAITS(bf16, uint16_t, float, uint16_t)
SAR_DEFINE_FLOAT_TRAITS(fp16, uint16_t, float, uint16_t)

/** Values of such a type, with the state of Deep Gradient Compression (struct sar_dgc). */
template <class Traits> struct sar_topk_vector {
    using type = typename Traits::type;
    using bits = typename Traits::bits;
    type *value, *velocity;
    const type *gradient; /* or NULL */
    typename Traits::wide momentum, scale;
    size_t count;

    /** The velocity of value i after the step. */
    SAR_HOST_DEVICE type next_velocity(size_t i) const
    {
        return Traits::velocity(velocity[i], gradient[i], momentum, scale);
    }

    /** Apply the gradient to value i and its velocity. */
    SAR_HOST_DEVICE void advance(size_t i) const
    {
        if (gradient == NULL)
            return;
        velocity[i] = next_velocity(i);
        value[i] = Traits::value(value[i], velocity[i]);
    }

    /** The bits of |value|, which order as magnitudes do. */
    SAR_HOST_DEVICE static uint64_t magnitude_of(type value)
    {
        bits copy;
        memcpy(&copy, &value, sizeof copy);
        return copy & ((bits)-1 >> 1);
    }

    SAR_HOST_DEVICE uint64_t magnitude(size_t i) const
    {
        return magnitude_of(value[i]);
    }

    /** The magnitude of value i after the step. */
    SAR_HOST_DEVICE uint64_t next_magnitude(size_t i) const
    {
        return gradient == NULL ? magnitude(i) : magnitude_of(Traits::value(value[i], next_velocity(i)));
    }
};

/** Writes sample i. Host twin: sar_dgc_sample. */
template <class Traits> struct sar_sample_functor {
    sar_topk_vector<Traits> vector;
    sar_strata strata;
    uint64_t *magnitudes;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        magnitudes[i] = vector.next_magnitude(sar_strata_sample(&strata, i));
    }
};

/** Advances values 4 q … 4 q + 3. Four bits: bit j is set if value 4 q + j reaches the minimum magnitude
 * then. Host twin: sar_dgc_update. */
template <class Traits> struct sar_advance_functor {
    sar_topk_vector<Traits> vector;
    uint64_t min_magnitude;

    SAR_HOST_DEVICE unsigned operator()(size_t q) const
    {
        unsigned found = 0;
        for (unsigned j = 0; j < 4 && 4 * q + j < vector.count; j++) {
            vector.advance(4 * q + j);
            found |= (unsigned)(vector.magnitude(4 * q + j) >= min_magnitude) << j;
        }
        return found;
    }
};

enum { SAR_DIGIT_BITS = 8, SAR_DIGITS = 1 << SAR_DIGIT_BITS };

/** Add 1 atomically. */
SAR_HOST_DEVICE static inline void sar_atomic_increment(unsigned long long *n)
{
#ifdef __CUDA_ARCH__
    atomicAdd(n, 1ull);
#else
    __atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
#endif
}

/** Counts the marked values of word w by one digit of their magnitudes, among values whose higher digits
 * equal `known`. Host twin: sar_magnitude_select. */
template <class Traits> struct sar_count_digits_functor {
    sar_topk_vector<Traits> vector;
    const uint32_t *marks;
    uint64_t known;
    unsigned shift;
    unsigned long long *counts;

    SAR_HOST_DEVICE void operator()(size_t w) const
    {
        for (uint32_t rest = marks[w]; rest != 0; rest &= rest - 1) {
            uint64_t magnitude = vector.magnitude(w * SAR_WORD_BITS + sar_bits_lowest(rest)) >> shift;
            if (magnitude >> SAR_DIGIT_BITS == known)
                sar_atomic_increment(&counts[magnitude % SAR_DIGITS]);
        }
    }
};

/** Clears the marks in word w of magnitudes up to a bound; magnitudes equal to it are marked in `equal`. */
template <class Traits> struct sar_drop_smaller_functor {
    sar_topk_vector<Traits> vector;
    uint64_t bound;
    uint32_t *marks, *equal;

    SAR_HOST_DEVICE void operator()(size_t w) const
    {
        uint32_t above = 0, same = 0;
        for (uint32_t rest = marks[w]; rest != 0; rest &= rest - 1) {
            uint64_t magnitude = vector.magnitude(w * SAR_WORD_BITS + sar_bits_lowest(rest));
            above |= magnitude > bound ? rest & -rest : 0;
            same |= magnitude == bound ? rest & -rest : 0;
        }
        marks[w] = above;
        equal[w] = same;
    }
};

/** Restores the first `capacity` marks of `equal`. */
struct sar_restore_equal_functor {
    const uint32_t *equal;
    uint32_t *marks;
    unsigned long long capacity;

    SAR_HOST_DEVICE void operator()(size_t w, unsigned long long rank) const
    {
        for (uint32_t rest = equal[w]; rest != 0 && rank < capacity; rest &= rest - 1, rank++)
            marks[w] |= rest & -rest;
    }
};

/** Zeroes the marked values of word w, and the velocities of those that reach a magnitude. Host twin:
 * sar_dgc_clear. */
template <class Traits> struct sar_clear_functor {
    sar_topk_vector<Traits> vector;
    const uint32_t *marks;
    uint64_t mask_threshold;

    SAR_HOST_DEVICE void operator()(size_t w) const
    {
        for (uint32_t rest = marks[w]; rest != 0; rest &= rest - 1) {
            size_t i = w * SAR_WORD_BITS + sar_bits_lowest(rest);
            if (vector.magnitude(i) >= mask_threshold)
                vector.velocity[i] = 0;
            vector.value[i] = 0;
        }
    }
};

#endif
