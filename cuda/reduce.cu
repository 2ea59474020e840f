/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction of sorted runs on a device, by the host's idea (tensor/reduce.c) with one tile for all:
 *
 *     mark      one thread an element sets its bit in a bitmap of the union;
 *     number    CUB's scan counts the bits before each word and lists the outcome's indices;
 *     fold      one run after the other, one thread a value: within a run no two meet, and the order of the
 *               runs is the order of additions. Sums and products of 16 bits are folded into floats, in
 *               memory of their own, which are rounded once.
 *
 *     bytes = 3/8 of the index space + 6 times the runs' */

#include "cuda/reduce.h"

#include "cuda/parallel.cuh"
#include "cuda/reduce.cuh"

/* What a reduction works in. */
template <class Index> struct reduction {
    const struct sar_shape *shape;
    const struct sar_run *runs;
    size_t n, words;
    cudaStream_t stream;
    sar_arithmetic arithmetic;
    sar_piece bits, before, hits, floats;

    reduction(const struct sar_shape *of, const struct sar_run *in, size_t some, cudaStream_t where)
        : shape(of), runs(in), n(some), words(sar_words(of->count)),
          stream(where), arithmetic{ of->base, of->op, (unsigned)of->kernels->size }, bits(where),
          before(where), hits(where), floats(where)
    {
    }

    enum sar_status mark() const
    {
        SAR_TRY(sar_cuda(cudaMemsetAsync(bits.memory, 0, words * sizeof(uint32_t), stream)));
        for (size_t r = 0; r < n; r++) {
            sar_set_body<Index> body = { (const Index *)runs[r].index, bits.as<uint32_t>() };
            SAR_TRY(each(runs[r].nnz, body, stream));
        }
        return SAR_OK;
    }

    enum sar_status list(struct sar_run *out, size_t room) const
    {
        unsigned long long found = 0;
        sar_piece total(stream);
        SAR_TRY(total.take(sizeof found));
        sar_list_body<Index> body = {
            bits.as<uint32_t>(),           words, (Index *)out->index, room, before.as<unsigned long long>(),
            total.as<unsigned long long>()
        };
        SAR_TRY(number(bits.as<uint32_t>(), words, body, stream));
        SAR_TRY(sar_fetch(&found, total.memory, stream));
        out->nnz = (size_t)found;
        return SAR_OK;
    }

    enum sar_status fold(const struct sar_run *run, void *sums) const
    {
        sar_fold_body<Index> body = { arithmetic, shape->row,          (const Index *)run->index,
                                      run->value, bits.as<uint32_t>(), before.as<unsigned long long>(),
                                      sums,       hits.as<uint32_t>() };
        return each(run->nnz * shape->row, body, stream);
    }

    /* Into sums made by kernels and, on the device, by an arithmetic. */
    enum sar_status fold_into(void *sums, const struct sar_kernels *kernels, sar_arithmetic of, size_t nnz)
    {
        uint64_t identity = 0;
        size_t values = nnz * shape->row;
        kernels->fill_identity(&identity, 1);
        if (shape->absent_is_zero) {
            SAR_TRY(hits.take(nnz * sizeof(uint32_t)));
            SAR_TRY(sar_cuda(cudaMemsetAsync(hits.memory, 0, nnz * sizeof(uint32_t), stream)));
        }
        SAR_TRY(each(values, sar_identity_body{ of, identity, sums }, stream));
        for (size_t r = 0; r < n; r++)
            SAR_TRY(fold(&runs[r], sums));
        if (!shape->absent_is_zero)
            return SAR_OK;
        return each(values, sar_absent_body{ of, shape->row, n, hits.as<uint32_t>(), sums }, stream);
    }

    enum sar_status fold_all(const struct sar_run *out)
    {
        const struct sar_kernels *wide = shape->kernels->wide;
        size_t values = out->nnz * shape->row;
        if (wide == NULL)
            return fold_into(out->value, shape->kernels, arithmetic, out->nnz);
        SAR_TRY(floats.take(values * sizeof(float)));
        SAR_TRY(fold_into(floats.memory, wide, { SAR_FLOAT, shape->op, sizeof(float) }, out->nnz));
        return each(values, sar_round_body{ arithmetic, floats.as<float>(), out->value }, stream);
    }

    enum sar_status reduce(struct sar_run *out)
    {
        uint64_t bound = 0;
        for (size_t r = 0; r < n; r++)
            bound += runs[r].nnz;
        out->nnz = 0;
        if (bound == 0)
            return SAR_OK;
        SAR_TRY(bits.take(words * sizeof(uint32_t)));
        SAR_TRY(before.take(words * sizeof(unsigned long long)));
        SAR_TRY(mark());
        SAR_TRY(list(out, (size_t)(bound < shape->count ? bound : shape->count)));
        return fold_all(out);
    }
};

enum sar_status sar_cuda_reduce(const struct sar_shape *shape, const struct sar_run runs[], size_t n,
                                struct sar_run *out, cudaStream_t stream)
{
    if (shape->index_size == 4)
        return reduction<uint32_t>(shape, runs, n, stream).reduce(out);
    return reduction<uint64_t>(shape, runs, n, stream).reduce(out);
}
