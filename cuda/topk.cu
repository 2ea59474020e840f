/* SPDX-License-Identifier: BSD-3-Clause */
/* Top-k sparsification of vectors in device memory:
 *
 *     sample    one thread a sample;
 *     select    values advance and are marked in one pass, a bit each. Where too many are, the magnitude of
 *               the last that may stay is found digit by digit among them, by counting; of those equal to it
 *               the first stay;
 *     clear     one thread a word of marks. */

#include "cuda/topk.h"

#include "cuda/dense.h"
#include "cuda/parallel.cuh"
#include "cuda/topk.cuh"

/* What is done with a vector of a type. */
template <class Floats> struct selection {
    const struct sar_vector *vector;
    cudaStream_t stream;
    sar_tensor<Floats> tensor;
    size_t words; /* of marks */

    selection(const struct sar_vector *in, const struct sar_dgc *of)
        : vector(in), stream((cudaStream_t)in->stream), words(sar_words(of->count))
    {
        using type = typename Floats::type;
        using wide = typename Floats::wide;
        tensor = { (type *)of->values, (type *)of->velocity, (const type *)of->gradient,
                   (wide)of->momentum, (wide)of->scale,      (size_t)of->count };
    }

    enum sar_status sample(size_t n, uint32_t seed, uint64_t *magnitudes) const
    {
        sar_piece found(stream);
        if (n == 0)
            return SAR_OK;
        SAR_TRY(found.take(n * sizeof *magnitudes));
        sar_sample_body<Floats> body = { tensor, sar_stretches_of(tensor.count, n, seed),
                                         found.as<uint64_t>() };
        SAR_TRY(each(n, body, stream));
        SAR_TRY(sar_copy(magnitudes, found.memory, n * sizeof *magnitudes, stream));
        return sar_cuda(cudaStreamSynchronize(stream));
    }

    enum sar_status mark(const struct sar_cutoff *cutoff, struct sar_marks *marks) const
    {
        uint32_t *bits = (uint32_t *)marks->bits;
        uint64_t least = cutoff->capacity == 0 ? UINT64_MAX : cutoff->least > 1 ? cutoff->least : 1;
        SAR_TRY(ballot(words, sar_advance_quad<Floats>{ tensor, least }, bits, stream));
        SAR_TRY(sar_cuda_count(bits, words, &marks->nnz, stream));
        if (marks->nnz <= cutoff->capacity)
            return SAR_OK;
        marks->nnz = cutoff->capacity;
        return narrow_down(bits, cutoff->capacity);
    }

    enum sar_status clear(uint64_t masked, const struct sar_marks *marks) const
    {
        return each(words, sar_clear_body<Floats>{ tensor, (const uint32_t *)marks->bits, masked }, stream);
    }

    /* Of marked values, the magnitude of the k-th largest; k becomes which of those equal to it that is. */
    enum sar_status find_bound(const uint32_t *bits, size_t *k, uint64_t *bound) const
    {
        unsigned long long counts[SAR_DIGITS];
        sar_piece counted(stream);
        uint64_t known = 0;
        SAR_TRY(counted.take(sizeof counts));
        for (int shift = 8 * (int)sizeof(typename Floats::bits) - SAR_DIGIT_BITS; shift >= 0;
             shift -= SAR_DIGIT_BITS) {
            unsigned digit = SAR_DIGITS - 1;
            sar_digit_body<Floats> body = { tensor, bits, known, (unsigned)shift,
                                            counted.as<unsigned long long>() };
            SAR_TRY(sar_cuda(cudaMemsetAsync(counted.memory, 0, sizeof counts, stream)));
            SAR_TRY(each(words, body, stream));
            SAR_TRY(sar_fetch(&counts, counted.memory, stream));
            for (; counts[digit] < *k; digit--)
                *k -= (size_t)counts[digit];
            known = known << SAR_DIGIT_BITS | digit;
        }
        *bound = known;
        return SAR_OK;
    }

    enum sar_status narrow_down(uint32_t *bits, size_t capacity) const
    {
        sar_piece equal(stream);
        uint64_t bound;
        SAR_TRY(equal.take(words * sizeof *bits));
        SAR_TRY(find_bound(bits, &capacity, &bound));
        SAR_TRY(each(words, sar_sift_body<Floats>{ tensor, bound, bits, equal.as<uint32_t>() }, stream));
        return number(equal.as<uint32_t>(), words, sar_fill_body{ equal.as<uint32_t>(), bits, capacity },
                      stream);
    }
};

template <class Action>
static enum sar_status with_floats(const struct sar_vector *vector, const struct sar_dgc *of,
                                   const Action &action)
{
    switch (of->base) {
    case SAR_FLOAT: return action(selection<sar_floats_float>(vector, of));
    case SAR_DOUBLE: return action(selection<sar_floats_double>(vector, of));
    case SAR_BF16: return action(selection<sar_floats_bf16>(vector, of));
    default: return action(selection<sar_floats_fp16>(vector, of));
    }
}

enum sar_status sar_cuda_sample(const struct sar_vector *vector, const struct sar_dgc *of, size_t n,
                                uint32_t seed, uint64_t *magnitudes)
{
    return with_floats(vector, of, [=](auto on) { return on.sample(n, seed, magnitudes); });
}

enum sar_status sar_cuda_select(const struct sar_vector *vector, const struct sar_dgc *of,
                                const struct sar_cutoff *cutoff, struct sar_marks *marks)
{
    struct sar_marks made = { NULL, 0 }, *room = &made;
    size_t bytes = sar_words(of->count) * sizeof(uint32_t);
    SAR_TRY(sar_cuda_take(bytes + 1, (cudaStream_t)vector->stream, &made.bits));
    enum sar_status status = with_floats(vector, of, [=](auto on) { return on.mark(cutoff, room); });
    if (status == SAR_OK)
        *marks = made;
    else
        sar_cuda_unmark(vector, &made);
    return status;
}

enum sar_status sar_cuda_clear(const struct sar_vector *vector, const struct sar_dgc *of, uint64_t masked,
                               const struct sar_marks *marks)
{
    return with_floats(vector, of, [=](auto on) { return on.clear(masked, marks); });
}
