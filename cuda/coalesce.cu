/* SPDX-License-Identifier: BSD-3-Clause */
/* What is sorted by CUB's radix sort.
 *
 * Elements of any order become a run: their indices are sorted with their positions, which keeps the
 * order of equal ones, the first of each index is marked and listed, and one thread a value folds
 * those of one index in the order in which they stood. That order is what the outcome's bits depend on, so
 * that many of one index keep one thread busy.
 *
 * A run becomes the parts of a map: its elements are sorted by segment and part, which needs as many bits as
 * there are of these; then one thread an element tells its slot, and one a word picks the values. */

#include "cuda/parallel.cuh"
#include "cuda/partition.cuh"
#include "cuda/reduce.cuh"
#include "cuda/reduce.h"

static unsigned length_of(uint64_t most)
{
    unsigned length = 1;
    while (most >>= 1)
        length++;
    return length;
}

template <class Key>
static enum sar_status list_heads(const Key *key, size_t n, uint32_t *head, size_t *found,
                                  cudaStream_t stream)
{
    unsigned long long heads = 0;
    size_t words = sar_words(n);
    sar_piece bits(stream), total(stream);
    SAR_TRY(bits.take(words * sizeof(uint32_t)));
    SAR_TRY(total.take(sizeof heads));
    SAR_TRY(ballot(words, sar_head_quad<Key>{ key, n }, bits.as<uint32_t>(), stream));
    sar_list_body<uint32_t> body = {
        bits.as<uint32_t>(), words, head, n, NULL, total.as<unsigned long long>()
    };
    SAR_TRY(number(bits.as<uint32_t>(), words, body, stream));
    SAR_TRY(sar_fetch(&heads, total.memory, stream));
    *found = (size_t)heads;
    return SAR_OK;
}

template <class Key>
static enum sar_status coalesce(const struct sar_shape *shape, const struct sar_run *from, uint64_t most,
                                struct sar_run *out, cudaStream_t stream)
{
    size_t n = from->nnz, row = shape->row;
    sar_piece key(stream), unsorted(stream), position(stream), head(stream);
    SAR_TRY(key.take(n * sizeof(Key)));
    SAR_TRY(unsorted.take(n * sizeof(uint32_t)));
    SAR_TRY(position.take(n * sizeof(uint32_t)));
    SAR_TRY(head.take(n * sizeof(uint32_t)));
    SAR_TRY(each(n, sar_count_up_body{ unsorted.as<uint32_t>() }, stream));
    sar_sortable<Key> all = { { (Key *)from->index, key.as<Key>() },
                              { unsorted.as<uint32_t>(), position.as<uint32_t>() },
                              n };
    SAR_TRY(sort(all, length_of(most), stream));
    SAR_TRY(list_heads(key.as<Key>(), n, head.as<uint32_t>(), &out->nnz, stream));
    sar_arithmetic arithmetic = { shape->base, shape->op, (unsigned)shape->kernels->size };
    sar_pile_body<Key> body = { arithmetic,
                                row,
                                n,
                                key.as<Key>(),
                                position.as<uint32_t>(),
                                head.as<uint32_t>(),
                                from->value,
                                (Key *)out->index,
                                out->value };
    return each(out->nnz * row, body, stream);
}

enum sar_status sar_cuda_coalesce(const struct sar_shape *shape, const struct sar_run *from, uint64_t most,
                                  struct sar_run *out, cudaStream_t stream)
{
    out->nnz = 0;
    if (from->nnz == 0)
        return SAR_OK;
    if (from->nnz > UINT32_MAX)
        return SAR_UNSUPPORTED;
    if (shape->index_size == 4)
        return coalesce<uint32_t>(shape, from, most, out, stream);
    return coalesce<uint64_t>(shape, from, most, out, stream);
}

/* As they are. */
static enum sar_status copy_out(const struct sar_run *from, size_t index_size, size_t element_size,
                                const struct sar_run *to, cudaStream_t stream)
{
    SAR_TRY(sar_copy(to->index, from->index, from->nnz * index_size, stream));
    SAR_TRY(sar_copy(to->value, from->value, from->nnz * element_size, stream));
    return sar_cuda(cudaStreamSynchronize(stream));
}

static enum sar_status look(const struct sar_shape *shape, const struct sar_run *from, sar_looks *found,
                            cudaStream_t stream)
{
    sar_piece looks(stream);
    SAR_TRY(looks.take(sizeof *found));
    SAR_TRY(sar_cuda(cudaMemsetAsync(looks.memory, 0, sizeof *found, stream)));
    sar_looks *there = looks.as<sar_looks>();
    if (shape->index_size == 4)
        SAR_TRY(each(from->nnz, sar_look_body<uint32_t>{ (const uint32_t *)from->index, shape->count, there },
                     stream));
    else
        SAR_TRY(each(from->nnz, sar_look_body<uint64_t>{ (const uint64_t *)from->index, shape->count, there },
                     stream));
    return sar_fetch(found, looks.memory, stream);
}

/* Values as 0 or 1 where the op is logical: in memory of their own, for the caller's stay as they are. */
static enum sar_status settle_truth(const struct sar_shape *shape, sar_piece *truth, struct sar_run *run,
                                    cudaStream_t stream)
{
    sar_truth_body body = { { shape->base, shape->op, (unsigned)shape->kernels->size }, 0, run->value, NULL };
    if (!sar_op_is_logical(shape->op))
        return SAR_OK;
    SAR_TRY(truth->take(run->nnz * shape->element_size));
    run->value = body.out = truth->memory;
    shape->kernels->fill_identity(&body.identity, 1);
    return each(run->nnz * shape->row, body, stream);
}

enum sar_status sar_cuda_ingest(const struct sar_vector *vector, const struct sar_coo *coo,
                                struct sar_run *run, bool *ascends)
{
    cudaStream_t stream = (cudaStream_t)vector->stream;
    struct sar_shape shape = *vector->shape;
    struct sar_run from = { (void *)coo->indices, (void *)coo->values, coo->nnz }, sorted = from;
    sar_looks found = { 0, 0 };
    sar_piece index(stream), value(stream), truth(stream);
    shape.index_size = coo->type == SAR_INDEX_INT32 || coo->type == SAR_INDEX_UINT32 ? 4 : 8;
    run->nnz = from.nnz;
    *ascends = true;
    if (from.nnz == 0)
        return SAR_OK;
    SAR_TRY(look(&shape, &from, &found, stream));
    *ascends = found.outside == 0 && (found.descends == 0 || from.nnz <= UINT32_MAX);
    if (!*ascends)
        return copy_out(&from, shape.index_size, shape.element_size, run, stream);
    if (found.descends != 0) {
        SAR_TRY(index.take(from.nnz * shape.index_size));
        SAR_TRY(value.take(from.nnz * shape.element_size));
        sorted = { index.memory, value.memory, 0 };
        SAR_TRY(sar_cuda_coalesce(&shape, &from, shape.count - 1, &sorted, stream));
    }
    SAR_TRY(settle_truth(&shape, &truth, &sorted, stream));
    run->nnz = sorted.nnz;
    return copy_out(&sorted, shape.index_size, shape.element_size, run, stream);
}

template <class Word>
static enum sar_status pick_words(const uint32_t *position, const struct sar_run *from,
                                  const struct sar_run *to, size_t words, cudaStream_t stream)
{
    sar_pick_body<Word, uint32_t> body = { position, (const Word *)from->value, (Word *)to->value, words };
    return each(to->nnz * words, body, stream);
}

static enum sar_status pick_values(const uint32_t *position, const struct sar_run *from,
                                   const struct sar_run *to, size_t size, cudaStream_t stream)
{
    uintptr_t multiples = size | (uintptr_t)from->value | (uintptr_t)to->value;
    if (multiples % 8 == 0)
        return pick_words<uint64_t>(position, from, to, size / 8, stream);
    if (multiples % 4 == 0)
        return pick_words<uint32_t>(position, from, to, size / 4, stream);
    if (multiples % 2 == 0)
        return pick_words<uint16_t>(position, from, to, size / 2, stream);
    return pick_words<uint8_t>(position, from, to, size, stream);
}

template <class Index>
static enum sar_status partition(const struct sar_vector *vector, const struct sar_division *how,
                                 const struct sar_run *from, const struct sar_run *to,
                                 unsigned long long first[])
{
    cudaStream_t stream = (cudaStream_t)vector->stream;
    size_t n = from->nnz, cells = (size_t)how->segments * how->map.parts;
    sar_piece unsorted(stream), cell(stream), count(stream), position(stream), begin(stream);
    SAR_TRY(unsorted.take(n * sizeof(uint32_t)));
    SAR_TRY(cell.take(n * sizeof(uint32_t)));
    SAR_TRY(count.take(n * sizeof(uint32_t)));
    SAR_TRY(position.take(n * sizeof(uint32_t)));
    SAR_TRY(begin.take(cells * sizeof *first));
    sar_locate_body<Index> locate = {
        { how->map, how->width }, (const Index *)from->index, unsorted.as<uint32_t>(), count.as<uint32_t>()
    };
    SAR_TRY(each(n, locate, stream));
    sar_sortable<uint32_t> all = { { unsorted.as<uint32_t>(), cell.as<uint32_t>() },
                                   { count.as<uint32_t>(), position.as<uint32_t>() },
                                   n };
    SAR_TRY(sort(all, length_of(cells - 1), stream));
    sar_slots_of_body<Index> slots = { locate.cells,
                                       n,
                                       cells,
                                       locate.index,
                                       cell.as<uint32_t>(),
                                       position.as<uint32_t>(),
                                       (uint32_t *)to->index,
                                       begin.as<unsigned long long>() };
    SAR_TRY(each(n, slots, stream));
    SAR_TRY(sar_copy(first, begin.memory, cells * sizeof *first, stream));
    return pick_values(position.as<uint32_t>(), from, to, vector->shape->element_size, stream);
}

enum sar_status sar_cuda_partition(const struct sar_vector *vector, const struct sar_division *how,
                                   const struct sar_run *from, const struct sar_run *to,
                                   unsigned long long first[])
{
    if (from->nnz == 0 || from->nnz > UINT32_MAX)
        return from->nnz == 0 ? SAR_OK : SAR_UNSUPPORTED;
    if (vector->shape->index_size == 4)
        return partition<uint32_t>(vector, how, from, to, first);
    return partition<uint64_t>(vector, how, from, to, first);
}
