/* SPDX-License-Identifier: BSD-3-Clause */
/* Top-k sparsification of vectors in device memory:
 *
 *     sample    reads magnitudes, one thread per sample
 *     select    applies the gradient and marks values in one pass, one bit each. If too many are marked,
 *               counts their magnitudes digit by digit to find the smallest magnitude that stays; of the
 *               values equal to it the first ones stay
 *     clear     zeroes the marked values, one thread per word of marks */

#include "cuda/launch.h"

#include "cuda/parallel.cuh"
#include "vector/momentum.h"

/* A type of values: its storage type, the type to compute with, and an integer for its bits. */
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

/* Values of such a type, with the state of Deep Gradient Compression (struct sar_dgc). */
template <class Traits> struct sar_topk_vector {
    using type = typename Traits::type;
    using bits = typename Traits::bits;
    type *value, *velocity;
    const type *gradient; /* or NULL */
    typename Traits::wide momentum, scale;
    size_t count;

    /* The velocity of value i after the step. */
    SAR_HOST_DEVICE type next_velocity(size_t i) const
    {
        return Traits::velocity(velocity[i], gradient[i], momentum, scale);
    }

    /* Apply the gradient to value i and its velocity. */
    SAR_HOST_DEVICE void advance(size_t i) const
    {
        if (gradient == NULL)
            return;
        velocity[i] = next_velocity(i);
        value[i] = Traits::value(value[i], velocity[i]);
    }

    /* The bits of |value|, which order as magnitudes do. */
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

    /* The magnitude of value i after the step. */
    SAR_HOST_DEVICE uint64_t next_magnitude(size_t i) const
    {
        return gradient == NULL ? magnitude(i) : magnitude_of(Traits::value(value[i], next_velocity(i)));
    }
};

/* Writes sample i. Host twin: sar_dgc_sample. */
template <class Traits> struct sar_sample_functor {
    sar_topk_vector<Traits> vector;
    sar_strata strata;
    uint64_t *magnitudes;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        magnitudes[i] = vector.next_magnitude(sar_strata_sample(&strata, i));
    }
};

/* Advances values 4 q … 4 q + 3. Four bits: bit j is set if value 4 q + j reaches the minimum magnitude
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

/* Add 1 atomically. */
SAR_HOST_DEVICE static inline void sar_atomic_increment(unsigned long long *n)
{
#ifdef __CUDA_ARCH__
    atomicAdd(n, 1ull);
#else
    __atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
#endif
}

/* Counts the marked values of word w by one digit of their magnitudes, among values whose higher digits
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

/* Clears the marks in word w of magnitudes up to a bound; magnitudes equal to it are marked in `equal`. */
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

/* Restores the first `capacity` marks of `equal`. */
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

/* Zeroes the marked values of word w, and the velocities of those that reach a magnitude. Host twin:
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

/* The operations on a vector of one type. */
template <class Traits> struct topk_kernels {
    const struct sar_device_vec *vector;
    cudaStream_t stream;
    sar_topk_vector<Traits> values;
    size_t words; /* of the bitmap of marks */

    topk_kernels(const struct sar_device_vec *vector, const struct sar_dgc *dgc)
        : vector(vector), stream((cudaStream_t)vector->stream), words(sar_bits_words(dgc->count))
    {
        using type = typename Traits::type;
        using wide = typename Traits::wide;
        values = { (type *)dgc->values, (type *)dgc->velocity, (const type *)dgc->gradient,
                   (wide)dgc->momentum, (wide)dgc->scale,      (size_t)dgc->count };
    }

    enum sar_status sample(size_t n, uint32_t seed, uint64_t *magnitudes) const
    {
        sar_scoped_alloc found(stream);
        if (n == 0)
            return SAR_OK;
        SAR_TRY(found.alloc(n * sizeof *magnitudes));
        sar_sample_functor<Traits> functor = { values, sar_strata_make(values.count, n, seed),
                                               found.as<uint64_t>() };
        SAR_TRY(for_each(n, functor, stream));
        SAR_TRY(sar_copy_async(magnitudes, found.memory, n * sizeof *magnitudes, stream));
        return sar_cuda_status(cudaStreamSynchronize(stream));
    }

    /* Mark at most limit->capacity values of at least limit->min_magnitude, and never zeros. */
    enum sar_status mark(const struct sar_topk_limit *limit, struct sar_nonzero_mask *mask) const
    {
        uint32_t *bits = (uint32_t *)mask->bits;
        uint64_t min_magnitude = limit->capacity == 0       ? UINT64_MAX
                                 : limit->min_magnitude > 1 ? limit->min_magnitude
                                                            : 1;
        SAR_TRY(pack_bits(words, sar_advance_functor<Traits>{ values, min_magnitude }, bits, stream));
        SAR_TRY(sar_cuda_count_bits(bits, words, &mask->nnz, stream));
        if (mask->nnz <= limit->capacity)
            return SAR_OK;
        mask->nnz = limit->capacity;
        return keep_first(bits, limit->capacity);
    }

    enum sar_status clear(uint64_t mask_threshold, const struct sar_nonzero_mask *mask) const
    {
        return for_each(words,
                        sar_clear_functor<Traits>{ values, (const uint32_t *)mask->bits, mask_threshold },
                        stream);
    }

    /* Find the magnitude of the k-th largest marked value. On return, k counts only among the values equal
     * to it. */
    enum sar_status find_bound(const uint32_t *bits, size_t *k, uint64_t *bound) const
    {
        unsigned long long counts[SAR_DIGITS];
        sar_scoped_alloc device_counts(stream);
        uint64_t known = 0;
        SAR_TRY(device_counts.alloc(sizeof counts));
        for (int shift = 8 * (int)sizeof(typename Traits::bits) - SAR_DIGIT_BITS; shift >= 0;
             shift -= SAR_DIGIT_BITS) {
            unsigned digit = SAR_DIGITS - 1;
            sar_count_digits_functor<Traits> functor = { values, bits, known, (unsigned)shift,
                                                         device_counts.as<unsigned long long>() };
            SAR_TRY(sar_cuda_status(cudaMemsetAsync(device_counts.memory, 0, sizeof counts, stream)));
            SAR_TRY(for_each(words, functor, stream));
            SAR_TRY(sar_fetch_value(&counts, device_counts.memory, stream));
            for (; counts[digit] < *k; digit--)
                *k -= (size_t)counts[digit];
            known = known << SAR_DIGIT_BITS | digit;
        }
        *bound = known;
        return SAR_OK;
    }

    /* Unmark all but the capacity largest values. */
    enum sar_status keep_first(uint32_t *bits, size_t capacity) const
    {
        sar_scoped_alloc equal(stream);
        uint64_t bound;
        SAR_TRY(equal.alloc(words * sizeof *bits));
        SAR_TRY(find_bound(bits, &capacity, &bound));
        SAR_TRY(for_each(words, sar_drop_smaller_functor<Traits>{ values, bound, bits, equal.as<uint32_t>() },
                         stream));
        return rank_words(equal.as<uint32_t>(), words,
                          sar_restore_equal_functor{ equal.as<uint32_t>(), bits, capacity }, stream);
    }
};

template <class Action>
static enum sar_status dispatch_floats(const struct sar_device_vec *vector, const struct sar_dgc *dgc,
                                       const Action &action)
{
    switch (dgc->dtype) {
    case SAR_FLOAT: return action(topk_kernels<sar_float_traits_float>(vector, dgc));
    case SAR_DOUBLE: return action(topk_kernels<sar_float_traits_double>(vector, dgc));
    case SAR_BF16: return action(topk_kernels<sar_float_traits_bf16>(vector, dgc));
    default: return action(topk_kernels<sar_float_traits_fp16>(vector, dgc));
    }
}

enum sar_status sar_cuda_sample(const struct sar_device_vec *vector, const struct sar_dgc *dgc, size_t n,
                                uint32_t seed, uint64_t *magnitudes)
{
    return dispatch_floats(vector, dgc, [=](auto kernels) { return kernels.sample(n, seed, magnitudes); });
}

enum sar_status sar_cuda_select(const struct sar_device_vec *vector, const struct sar_dgc *dgc,
                                const struct sar_topk_limit *limit, struct sar_nonzero_mask *mask)
{
    struct sar_nonzero_mask made = { NULL, 0 }, *made_mask = &made;
    size_t bytes = sar_bits_words(dgc->count) * sizeof(uint32_t);
    SAR_TRY(sar_cuda_pool_alloc(bytes + 1, (cudaStream_t)vector->stream, &made.bits));
    enum sar_status status =
        dispatch_floats(vector, dgc, [=](auto kernels) { return kernels.mark(limit, made_mask); });
    if (status == SAR_OK)
        *mask = made;
    else
        sar_cuda_free_mask(vector, &made);
    return status;
}

enum sar_status sar_cuda_clear_selected(const struct sar_device_vec *vector, const struct sar_dgc *dgc,
                                        uint64_t mask_threshold, const struct sar_nonzero_mask *mask)
{
    return dispatch_floats(vector, dgc, [=](auto kernels) { return kernels.clear(mask_threshold, mask); });
}
