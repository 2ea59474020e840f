/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction of sorted vectors on a device: the algorithm of vector/reduce.c with one tile for the whole
 * index space.
 *
 *     mark         sets the bit of each element in a bitmap of the union, one thread per element
 *     list         counts the bits before each word and lists the result's indices (CUB's scan)
 *     reduce_vec   adds one vector after the other, one thread per value: a vector has no index twice, so
 *                  threads do not conflict, and the order of the vectors is the order of the additions. Sums
 *                  and products of 16-bit types are accumulated as floats and rounded once
 *
 *     bytes = 3/8 of the index space + 6 times the bytes of the vectors */

#include "cuda/launch.h"

#include "cuda/parallel.cuh"
#include "cuda/reduce.cuh"

/* One reduction, with its temporary memory. */
template <class Index> struct reduction_kernels {
    const struct sar_vec_desc *desc;
    const struct sar_spvec *vecs;
    size_t n;     /* vectors */
    size_t words; /* of the union's bitmap */
    cudaStream_t stream;
    sar_value_ops ops;
    sar_scoped_alloc bits, rank_prefix, contributors, floats;

    reduction_kernels(const struct sar_vec_desc *desc, const struct sar_spvec *vecs, size_t n,
                      cudaStream_t stream)
        : desc(desc), vecs(vecs), n(n), words(sar_bits_words(desc->count)),
          stream(stream), ops{ desc->dtype, desc->op, (unsigned)desc->kernels->size }, bits(stream),
          rank_prefix(stream), contributors(stream), floats(stream)
    {
    }

    enum sar_status mark() const
    {
        SAR_TRY(sar_cuda_status(cudaMemsetAsync(bits.memory, 0, words * sizeof(uint32_t), stream)));
        for (size_t r = 0; r < n; r++) {
            sar_set_bits_functor<Index> functor = { (const Index *)vecs[r].index, bits.as<uint32_t>() };
            SAR_TRY(for_each(vecs[r].nnz, functor, stream));
        }
        return SAR_OK;
    }

    enum sar_status list(struct sar_spvec *out, size_t capacity) const
    {
        unsigned long long found = 0;
        sar_scoped_alloc total(stream);
        SAR_TRY(total.alloc(sizeof found));
        sar_list_bits_functor<Index> functor = { bits.as<uint32_t>(),
                                                 words,
                                                 (Index *)out->index,
                                                 capacity,
                                                 rank_prefix.as<unsigned long long>(),
                                                 total.as<unsigned long long>() };
        SAR_TRY(rank_words(bits.as<uint32_t>(), words, functor, stream));
        SAR_TRY(sar_fetch_value(&found, total.memory, stream));
        out->nnz = (size_t)found;
        return SAR_OK;
    }

    enum sar_status reduce_vec(const struct sar_spvec *vec, void *accumulators) const
    {
        sar_reduce_values_functor<Index> functor = { ops,
                                                     desc->row_len,
                                                     (const Index *)vec->index,
                                                     vec->value,
                                                     bits.as<uint32_t>(),
                                                     rank_prefix.as<unsigned long long>(),
                                                     accumulators,
                                                     contributors.as<uint32_t>() };
        return for_each(vec->nnz * desc->row_len, functor, stream);
    }

    /* Reduce all vectors into nnz accumulators, whose type has the given host kernels and device ops. */
    enum sar_status reduce_into(void *accumulators, const struct sar_op_kernels *kernels,
                                sar_value_ops accumulator_ops, size_t nnz)
    {
        uint64_t identity = 0;
        size_t values = nnz * desc->row_len;
        kernels->fill_identity(&identity, 1);
        if (desc->absent_is_zero) {
            SAR_TRY(contributors.alloc(nnz * sizeof(uint32_t)));
            SAR_TRY(sar_cuda_status(cudaMemsetAsync(contributors.memory, 0, nnz * sizeof(uint32_t), stream)));
        }
        SAR_TRY(for_each(values, sar_identity_functor{ accumulator_ops, identity, accumulators }, stream));
        for (size_t r = 0; r < n; r++)
            SAR_TRY(reduce_vec(&vecs[r], accumulators));
        if (!desc->absent_is_zero)
            return SAR_OK;
        return for_each(values,
                        sar_apply_zero_functor{ accumulator_ops, 0, desc->row_len, n,
                                                contributors.as<uint32_t>(), accumulators },
                        stream);
    }

    enum sar_status reduce_all(const struct sar_spvec *out)
    {
        const struct sar_op_kernels *wide = desc->kernels->wide;
        size_t values = out->nnz * desc->row_len;
        if (wide == NULL)
            return reduce_into(out->value, desc->kernels, ops, out->nnz);
        SAR_TRY(floats.alloc(values * sizeof(float)));
        SAR_TRY(reduce_into(floats.memory, wide, { SAR_FLOAT, desc->op, sizeof(float) }, out->nnz));
        return for_each(values, sar_round16_functor{ ops, floats.as<float>(), out->value }, stream);
    }

    enum sar_status reduce(struct sar_spvec *out)
    {
        uint64_t bound = 0;
        for (size_t r = 0; r < n; r++)
            bound += vecs[r].nnz;
        out->nnz = 0;
        if (bound == 0)
            return SAR_OK;
        SAR_TRY(bits.alloc(words * sizeof(uint32_t)));
        SAR_TRY(rank_prefix.alloc(words * sizeof(unsigned long long)));
        SAR_TRY(mark());
        SAR_TRY(list(out, (size_t)(bound < desc->count ? bound : desc->count)));
        return reduce_all(out);
    }
};

enum sar_status sar_cuda_reduce(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                                struct sar_spvec *out, cudaStream_t stream)
{
    if (desc->index_size == 4)
        return reduction_kernels<uint32_t>(desc, vecs, n, stream).reduce(out);
    return reduction_kernels<uint64_t>(desc, vecs, n, stream).reduce(out);
}
