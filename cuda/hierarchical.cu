/* SPDX-License-Identifier: BSD-3-Clause */
/* Hierarchical hashing on a device; hash/hierarchical.h has the algorithm. Not in the plug-in.
 *
 *     fill      inserts the occurrences, one thread each; repeats with more memory while a part overflows
 *     extract   selects the cells that are not empty, in order (CUB); copies their occurrences, one thread
 *               per word; writes where each part begins */

#include "cuda/launch.h"

#include <vector>

#include "cuda/parallel.cuh"

/* Inserts occurrence i. */
struct sar_hash_insert_functor {
    struct sar_hash_memory memory;
    struct sar_partition_map map;
    struct sar_hash_input input;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        sar_hash_insert(&memory, &map, &input, i);
    }
};

/* Counts occurrence i in its part. */
struct sar_hash_count_functor {
    struct sar_partition_map map;
    struct sar_hash_input input;
    unsigned long long *counts;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        sar_hash_count(&map, &input, i, counts);
    }
};

/* True if a cell holds an occurrence. */
struct sar_hash_cell_used {
    template <class Mark> SAR_HOST_DEVICE bool operator()(Mark mark) const
    {
        return mark != 0;
    }
};

/* Copies word i of the output. */
template <class Mark, class Word> struct sar_hash_gather_functor {
    const Mark *mark;
    const Word *from;
    Word *to;
    size_t words; /* of an element */

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        size_t element = words == 1 ? i : sar_divide(i, words);
        to[i] = from[(size_t)(mark[element] - 1) * words + (i - element * words)];
    }
};

/* Writes position i of the output. */
template <class Mark> struct sar_hash_position_functor {
    const Mark *mark;
    size_t *position;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        position[i] = (size_t)(mark[i] - 1);
    }
};

/* Writes first[p] of the parts p whose lists begin at occurrence i, for i = 0 … nnz. The lists are
 * contiguous. */
struct sar_hash_first_functor {
    struct sar_partition_map map;
    struct sar_hash_input lists; /* the gathered indices */
    size_t *first;

    SAR_HOST_DEVICE uint32_t part(size_t i) const
    {
        return sar_partition_map_locate(&map, sar_hash_index(&lists, i)).part;
    }

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        uint32_t begin = i == 0 ? 0 : part(i - 1) + 1;
        uint32_t end = i == lists.nnz ? map.parts : part(i);
        for (uint32_t p = begin; p <= end; p++)
            first[p] = i;
    }
};

/* One call. The host computes the layout, a few numbers per part. */
struct hash_call {
    const struct sar_hierarchical_params *params;
    const struct sar_partition_map *map;
    const struct sar_hash_input *input;
    cudaStream_t stream;
    std::vector<size_t> first, first_serial;
    std::vector<unsigned long long>
        counts; /* of each part: occurrences in serial memory, or all occurrences */

    bool key_is_64bit() const
    {
        return params->paper ? map->count > UINT32_MAX : params->cell_size == 8;
    }
};

template <class Mark>
static enum sar_status gather(const Mark *mark, const void *from, size_t size, size_t n, void *to,
                              cudaStream_t stream)
{
    return sar_with_widest_word(size | (uintptr_t)from | (uintptr_t)to, [=](auto word) {
        using Word = decltype(word);
        sar_hash_gather_functor<Mark, Word> functor = { mark, (const Word *)from, (Word *)to,
                                                        size / sizeof word };
        return for_each(n * functor.words, functor, stream);
    });
}

template <class Mark>
static enum sar_status extract(const struct hash_call *call, const Mark *cells,
                               const struct sar_hash_output *out)
{
    const struct sar_hash_input *input = call->input;
    sar_scoped_alloc marks(call->stream), marks_n(call->stream);
    SAR_TRY(marks.alloc(input->nnz * sizeof(Mark)));
    SAR_TRY(marks_n.alloc(sizeof(unsigned long long)));
    Mark *mark = marks.as<Mark>();
    SAR_TRY(select_if(cells, mark, marks_n.as<unsigned long long>(), call->first.back(), sar_hash_cell_used(),
                      call->stream));
    SAR_TRY(gather(mark, input->index, input->index_size, input->nnz, out->index, call->stream));
    if (out->value != NULL)
        SAR_TRY(gather(mark, input->value, input->value_size, input->nnz, out->value, call->stream));
    if (out->position != NULL)
        SAR_TRY(for_each(input->nnz, sar_hash_position_functor<Mark>{ mark, out->position }, call->stream));
    struct sar_hash_first_functor functor = { *call->map, *input, out->first };
    functor.lists.index = out->index;
    return for_each(input->nnz + 1, functor, call->stream);
}

/* The device memory of one attempt. */
struct hash_cells {
    sar_scoped_alloc first, first_serial, counts, memory;
    struct sar_hash_memory view;

    explicit hash_cells(cudaStream_t stream)
        : first(stream), first_serial(stream), counts(stream), memory(stream)
    {
    }

    enum sar_status alloc(const struct hash_call *call)
    {
        size_t parts = call->map->parts, bytes = call->first.back() * call->params->cell_size;
        SAR_TRY(first.alloc((parts + 1) * sizeof(size_t)));
        SAR_TRY(first_serial.alloc(parts * sizeof(size_t)));
        SAR_TRY(counts.alloc(parts * sizeof(unsigned long long)));
        SAR_TRY(memory.alloc(bytes));
        SAR_TRY(sar_copy_async(first.memory, call->first.data(), (parts + 1) * sizeof(size_t), call->stream));
        SAR_TRY(sar_copy_async(first_serial.memory, call->first_serial.data(), parts * sizeof(size_t),
                               call->stream));
        SAR_TRY(sar_cuda_status(cudaMemsetAsync(memory.memory, 0, bytes, call->stream)));
        view = { *call->params,
                 call->key_is_64bit(),
                 first.as<size_t>(),
                 first_serial.as<size_t>(),
                 counts.as<unsigned long long>(),
                 memory.memory,
                 false };
        return SAR_OK;
    }

    /* Run a functor that counts occurrences per part, and copy the counts to the host. Waits for the
     * stream. */
    template <class Functor> enum sar_status count(struct hash_call *call, const Functor &functor)
    {
        size_t bytes = call->map->parts * sizeof(unsigned long long);
        SAR_TRY(sar_cuda_status(cudaMemsetAsync(counts.memory, 0, bytes, call->stream)));
        SAR_TRY(for_each(call->input->nnz, functor, call->stream));
        SAR_TRY(sar_copy_async(call->counts.data(), counts.memory, bytes, call->stream));
        return sar_cuda_status(cudaStreamSynchronize(call->stream));
    }
};

/* True if the attempt overflowed, from the host's copies of the counts. */
static bool overflowed(struct hash_call *call)
{
    struct sar_hash_memory memory = {};
    memory.first = call->first.data();
    memory.first_serial = call->first_serial.data();
    memory.serial_count = call->counts.data();
    return sar_hash_overflowed(&memory, call->map->parts);
}

static enum sar_status finish(const struct hash_call *call, const struct hash_cells *cells, unsigned attempt,
                              struct sar_hash_output *out)
{
    out->reruns = attempt;
    out->serial_count = 0;
    for (unsigned long long serial_count : call->counts)
        out->serial_count += (size_t)serial_count;
    if (call->params->cell_size == 4)
        return extract(call, cells->memory.as<uint32_t>(), out);
    return extract(call, cells->memory.as<uint64_t>(), out);
}

static enum sar_status run_all(struct hash_call *call, struct sar_hash_output *out)
{
    for (unsigned attempt = 0;; attempt++) {
        struct hash_cells cells(call->stream);
        SAR_TRY(sar_hash_layout(call->params, call->map->parts, attempt, call->counts.data(),
                                call->first.data(), call->first_serial.data()));
        SAR_TRY(cells.alloc(call));
        SAR_TRY(cells.count(call, sar_hash_insert_functor{ cells.view, *call->map, *call->input }));
        if (!overflowed(call))
            return finish(call, &cells, attempt, out);
        SAR_TRY(
            cells.count(call, sar_hash_count_functor{ *call->map, *call->input, cells.view.serial_count }));
    }
}

enum sar_status sar_cuda_hierarchical_hash(const struct sar_hierarchical_params *params,
                                           const struct sar_partition_map *map,
                                           const struct sar_hash_input *input, struct sar_hash_output *out,
                                           cudaStream_t stream)
{
    std::vector<size_t> first(map->parts + 1), first_serial(map->parts);
    std::vector<unsigned long long> counts(map->parts);
    struct hash_call call = { params, map, input, stream, first, first_serial, counts };
    return run_all(&call, out);
}
