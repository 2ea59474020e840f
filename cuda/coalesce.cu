/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorting on a device, with CUB's radix sort.
 *
 * Coalescing sorts unordered elements and reduces those of equal index. The sort is stable, over pairs of
 * index and position. The first element of each index is marked and listed, then one thread per value of
 * the result reduces the values of its index in input order. The result's bits depend on that order, so one
 * thread does all the work of an index that occurs often.
 *
 * Partitioning sorts a sorted vector by segment and part, with only as many key bits as segments and parts
 * need, or by hierarchical hashing (hierarchical.cu). Then one thread per element writes its slot, and one
 * thread per word copies the values. */

#include "cuda/launch.h"

#include "cuda/dense.cuh"
#include "cuda/parallel.cuh"
#include "cuda/reduce.cuh"

/* Writes the cell of element i. Host twin: vector/partition_split.c. */
template <class Index> struct sar_locate_functor {
    sar_partition_cells cells;
    const Index *index;
    uint32_t *cell, *position;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        cell[i] = cells.locate(index[i]).part;
        position[i] = (uint32_t)i;
    }
};

/* Writes the slot of the i-th element in the order of cells. If element i begins a cell, writes where that
 * cell and the empty cells before it begin; the last element also ends the empty cells behind it. Host
 * twin: vector/partition_split.c. */
template <class Index> struct sar_sorted_slots_functor {
    sar_partition_cells cells;
    size_t n, cells_n;
    const Index *index;
    const uint32_t *cell, *position; /* sorted */
    uint32_t *slot;
    unsigned long long *first;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        slot[i] = (uint32_t)cells.locate(index[position[i]]).slot;
        for (size_t c = i == 0 ? 0 : (size_t)cell[i - 1] + 1; c <= cell[i]; c++)
            first[c] = i;
        for (size_t c = (size_t)cell[i] + 1; i + 1 == n && c < cells_n; c++)
            first[c] = n;
    }
};

/* Writes the slot of the i-th element in the order of cells. Host twin:
 * vector/partition_hierarchical.c. */
template <class Index> struct sar_hashed_slots_functor {
    sar_partition_cells cells;
    const Index *index;
    const uint32_t *position;
    uint32_t *slot;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        slot[i] = (uint32_t)cells.locate(index[position[i]]).slot;
    }
};

/* List the position of the first key of each value among n sorted keys. Waits for the stream to set
 * *found. */
template <class Key>
static enum sar_status list_first_keys(const Key *key, size_t n, uint32_t *first_key, size_t *found,
                                       cudaStream_t stream)
{
    unsigned long long first_keys = 0;
    size_t words = sar_bits_words(n);
    sar_scoped_alloc bits(stream), total(stream);
    SAR_TRY(bits.alloc(words * sizeof(uint32_t)));
    SAR_TRY(total.alloc(sizeof first_keys));
    SAR_TRY(pack_bits(words, sar_first_keys_functor<Key>{ key, n }, bits.as<uint32_t>(), stream));
    sar_list_bits_functor<uint32_t> functor = { bits.as<uint32_t>(),           words, first_key, n, NULL,
                                                total.as<unsigned long long>() };
    SAR_TRY(rank_words(bits.as<uint32_t>(), words, functor, stream));
    SAR_TRY(sar_fetch_value(&first_keys, total.memory, stream));
    *found = (size_t)first_keys;
    return SAR_OK;
}

template <class Key>
static enum sar_status coalesce(const struct sar_vec_desc *desc, const struct sar_spvec *from,
                                uint64_t max_index, struct sar_spvec *out, cudaStream_t stream)
{
    size_t n = from->nnz, row_len = desc->row_len;
    sar_scoped_alloc key(stream), unsorted_position(stream), position(stream), first_key(stream);
    SAR_TRY(key.alloc(n * sizeof(Key)));
    SAR_TRY(unsorted_position.alloc(n * sizeof(uint32_t)));
    SAR_TRY(position.alloc(n * sizeof(uint32_t)));
    SAR_TRY(first_key.alloc(n * sizeof(uint32_t)));
    SAR_TRY(for_each(n, sar_iota_functor{ unsorted_position.as<uint32_t>() }, stream));
    sar_sort_pairs<Key> pairs = { { (Key *)from->index, key.as<Key>() },
                                  { unsorted_position.as<uint32_t>(), position.as<uint32_t>() },
                                  n };
    SAR_TRY(sort(pairs, max_index, stream));
    SAR_TRY(list_first_keys(key.as<Key>(), n, first_key.as<uint32_t>(), &out->nnz, stream));
    sar_value_ops ops = { desc->dtype, desc->op, (unsigned)desc->kernels->size };
    sar_reduce_duplicates_functor<Key> functor = { ops,
                                                   row_len,
                                                   n,
                                                   key.as<Key>(),
                                                   position.as<uint32_t>(),
                                                   first_key.as<uint32_t>(),
                                                   from->value,
                                                   (Key *)out->index,
                                                   out->value };
    return for_each(out->nnz * row_len, functor, stream);
}

enum sar_status sar_cuda_coalesce(const struct sar_vec_desc *desc, const struct sar_spvec *from,
                                  uint64_t max_index, struct sar_spvec *out, cudaStream_t stream)
{
    out->nnz = 0;
    if (from->nnz == 0)
        return SAR_OK;
    if (from->nnz > UINT32_MAX)
        return SAR_UNSUPPORTED;
    if (desc->index_size == 4)
        return coalesce<uint32_t>(desc, from, max_index, out, stream);
    return coalesce<uint64_t>(desc, from, max_index, out, stream);
}

/* Copy elements unchanged. Waits for the stream. */
static enum sar_status copy_out(const struct sar_spvec *from, size_t index_size, size_t element_size,
                                const struct sar_spvec *to, cudaStream_t stream)
{
    SAR_TRY(sar_copy_async(to->index, from->index, from->nnz * index_size, stream));
    SAR_TRY(sar_copy_async(to->value, from->value, from->nnz * element_size, stream));
    return sar_cuda_status(cudaStreamSynchronize(stream));
}

static enum sar_status check_indices(const struct sar_vec_desc *desc, const struct sar_spvec *from,
                                     sar_index_checks *found, cudaStream_t stream)
{
    sar_scoped_alloc checks(stream);
    SAR_TRY(checks.alloc(sizeof *found));
    SAR_TRY(sar_cuda_status(cudaMemsetAsync(checks.memory, 0, sizeof *found, stream)));
    sar_index_checks *device_checks = checks.as<sar_index_checks>();
    if (desc->index_size == 4)
        SAR_TRY(for_each(from->nnz,
                         sar_check_indices_functor<uint32_t>{ (const uint32_t *)from->index, desc->count,
                                                              device_checks },
                         stream));
    else
        SAR_TRY(for_each(from->nnz,
                         sar_check_indices_functor<uint64_t>{ (const uint64_t *)from->index, desc->count,
                                                              device_checks },
                         stream));
    return sar_fetch_value(found, checks.memory, stream);
}

/* If the op is logical, make the values 0 or 1, in new memory: the caller's values must not change. */
static enum sar_status normalize_logical(const struct sar_vec_desc *desc, sar_scoped_alloc *logical,
                                         struct sar_spvec *vec, cudaStream_t stream)
{
    sar_normalize_logical_functor functor = {
        { desc->dtype, desc->op, (unsigned)desc->kernels->size }, 0, vec->value, NULL
    };
    if (!sar_op_is_logical(desc->op))
        return SAR_OK;
    SAR_TRY(logical->alloc(vec->nnz * desc->element_size));
    vec->value = functor.out = logical->memory;
    desc->kernels->fill_identity(&functor.identity, 1);
    return for_each(vec->nnz * desc->row_len, functor, stream);
}

enum sar_status sar_cuda_canonicalize(const struct sar_device_vec *vector, const struct sar_coo_args *coo,
                                      struct sar_spvec *vec, bool *is_sorted)
{
    cudaStream_t stream = (cudaStream_t)vector->stream;
    struct sar_vec_desc desc = *vector->desc;
    struct sar_spvec from = { (void *)coo->indices, (void *)coo->values, coo->nnz }, result = from;
    sar_index_checks found = { 0, 0 };
    sar_scoped_alloc index(stream), value(stream), logical(stream);
    desc.index_size = coo->type == SAR_INDEX_INT32 || coo->type == SAR_INDEX_UINT32 ? 4 : 8;
    vec->nnz = from.nnz;
    *is_sorted = true;
    if (from.nnz == 0)
        return SAR_OK;
    SAR_TRY(check_indices(&desc, &from, &found, stream));
    *is_sorted = found.out_of_range == 0 && (found.unsorted == 0 || from.nnz <= UINT32_MAX);
    if (!*is_sorted)
        return copy_out(&from, desc.index_size, desc.element_size, vec, stream);
    if (found.unsorted != 0) {
        SAR_TRY(index.alloc(from.nnz * desc.index_size));
        SAR_TRY(value.alloc(from.nnz * desc.element_size));
        result = { index.memory, value.memory, 0 };
        SAR_TRY(sar_cuda_coalesce(&desc, &from, desc.count - 1, &result, stream));
    }
    SAR_TRY(normalize_logical(&desc, &logical, &result, stream));
    vec->nnz = result.nnz;
    return copy_out(&result, desc.index_size, desc.element_size, vec, stream);
}

static enum sar_status pick_values(const uint32_t *position, const struct sar_spvec *from,
                                   const struct sar_spvec *to, size_t size, cudaStream_t stream)
{
    return sar_with_widest_word(size | (uintptr_t)from->value | (uintptr_t)to->value, [=](auto word) {
        using Word = decltype(word);
        sar_pick_values_functor<Word, uint32_t> functor = { position, (const Word *)from->value,
                                                            (Word *)to->value, size / sizeof word };
        return for_each(to->nnz * functor.words, functor, stream);
    });
}

template <class Index>
static enum sar_status partition(const struct sar_device_vec *vector,
                                 const struct sar_partition_layout *layout, const struct sar_spvec *from,
                                 const struct sar_spvec *to, unsigned long long first[])
{
    cudaStream_t stream = (cudaStream_t)vector->stream;
    size_t n = from->nnz, cells = (size_t)layout->segments * layout->map.parts;
    sar_scoped_alloc unsorted_cell(stream), cell(stream), unsorted_position(stream), position(stream);
    sar_scoped_alloc begin(stream);
    SAR_TRY(unsorted_cell.alloc(n * sizeof(uint32_t)));
    SAR_TRY(cell.alloc(n * sizeof(uint32_t)));
    SAR_TRY(unsorted_position.alloc(n * sizeof(uint32_t)));
    SAR_TRY(position.alloc(n * sizeof(uint32_t)));
    SAR_TRY(begin.alloc(cells * sizeof *first));
    sar_locate_functor<Index> locate = { { layout->map, layout->part_slots },
                                         (const Index *)from->index,
                                         unsorted_cell.as<uint32_t>(),
                                         unsorted_position.as<uint32_t>() };
    SAR_TRY(for_each(n, locate, stream));
    sar_sort_pairs<uint32_t> pairs = { { unsorted_cell.as<uint32_t>(), cell.as<uint32_t>() },
                                       { unsorted_position.as<uint32_t>(), position.as<uint32_t>() },
                                       n };
    SAR_TRY(sort(pairs, cells - 1, stream));
    sar_sorted_slots_functor<Index> slots = { locate.cells,
                                              n,
                                              cells,
                                              locate.index,
                                              cell.as<uint32_t>(),
                                              position.as<uint32_t>(),
                                              (uint32_t *)to->index,
                                              begin.as<unsigned long long>() };
    SAR_TRY(for_each(n, slots, stream));
    SAR_TRY(sar_copy_async(first, begin.memory, cells * sizeof *first, stream));
    return pick_values(position.as<uint32_t>(), from, to, vector->desc->element_size, stream);
}

/* Splits a sorted vector as partition(), by hierarchical hashing. */
template <class Index>
static enum sar_status partition_by_hash(const struct sar_device_vec *vector,
                                         const struct sar_partition_layout *layout,
                                         const struct sar_spvec *from, const struct sar_spvec *to,
                                         unsigned long long first[])
{
    cudaStream_t stream = (cudaStream_t)vector->stream;
    size_t n = from->nnz, cells = (size_t)layout->segments * layout->map.parts;
    struct sar_hash_input input = { from->index, NULL, sizeof(Index), 0, n };
    sar_scoped_alloc position(stream), begin(stream);
    SAR_TRY(position.alloc(n * sizeof(uint32_t)));
    SAR_TRY(begin.alloc((cells + 1) * sizeof *first));
    SAR_TRY(sar_cuda_hash_positions(layout, &input, position.as<uint32_t>(), begin.as<unsigned long long>(),
                                    stream));
    sar_hashed_slots_functor<Index> slots = { { layout->map, layout->part_slots },
                                              (const Index *)from->index,
                                              position.as<uint32_t>(),
                                              (uint32_t *)to->index };
    SAR_TRY(for_each(n, slots, stream));
    SAR_TRY(sar_copy_async(first, begin.memory, cells * sizeof *first, stream));
    return pick_values(position.as<uint32_t>(), from, to, vector->desc->element_size, stream);
}

template <class Index>
static enum sar_status partition_by_map(const struct sar_device_vec *vector,
                                        const struct sar_partition_layout *layout,
                                        const struct sar_spvec *from, const struct sar_spvec *to,
                                        unsigned long long first[])
{
    return layout->map.hierarchical ? partition_by_hash<Index>(vector, layout, from, to, first)
                                    : partition<Index>(vector, layout, from, to, first);
}

enum sar_status sar_cuda_partition(const struct sar_device_vec *vector,
                                   const struct sar_partition_layout *layout, const struct sar_spvec *from,
                                   const struct sar_spvec *to, unsigned long long first[])
{
    if (from->nnz == 0 || from->nnz >= UINT32_MAX)
        return from->nnz == 0 ? SAR_OK : SAR_UNSUPPORTED;
    if (vector->desc->index_size == 4)
        return partition_by_map<uint32_t>(vector, layout, from, to, first);
    return partition_by_map<uint64_t>(vector, layout, from, to, first);
}
