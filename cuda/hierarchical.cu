/* SPDX-License-Identifier: BSD-3-Clause */
/* Hierarchical hashing on a device; hash/hierarchical.h has the algorithm. Lists belong to the parts of a
 * map, or to the parts of each segment: the cells of a layout. Each has parallel and serial memory.
 *
 *     fill      inserts the occurrences, one thread each; repeats with more memory while a list overflows
 *     extract   selects the memory that is not empty, in order (CUB); copies its occurrences, one thread
 *               per word; writes where each list begins
 *     sort      for partitions: sorts each list by position (CUB), as formats need ascending slots */

#include "cuda/launch.h"

#include <vector>

#include "cuda/dense.cuh"
#include "cuda/parallel.cuh"

/* Inserts occurrence i. */
struct sar_hash_insert_functor {
    struct sar_hash_memory memory;
    sar_partition_cells cells;
    struct sar_hash_input input;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        uint64_t index = sar_hash_index(&input, i);
        sar_hash_insert_into(&memory, cells.locate(index).part, index, i);
    }
};

/* Counts occurrence i in its list. */
struct sar_hash_count_functor {
    sar_partition_cells cells;
    struct sar_hash_input input;
    unsigned long long *counts;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        sar_hash_fetch_increment(&counts[cells.locate(sar_hash_index(&input, i)).part]);
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

/* Writes first[l] of the lists l that begin at occurrence i of the output, for i = 0 … nnz. */
template <class Mark, class First> struct sar_hash_first_functor {
    sar_partition_cells cells;
    struct sar_hash_input input;
    const Mark *mark;
    uint32_t lists;
    First *first;

    SAR_HOST_DEVICE uint32_t list(size_t i) const
    {
        return cells.locate(sar_hash_index(&input, (size_t)(mark[i] - 1))).part;
    }

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        uint32_t begin = i == 0 ? 0 : list(i - 1) + 1;
        uint32_t end = i == input.nnz ? lists : list(i);
        for (uint32_t l = begin; l <= end; l++)
            first[l] = i;
    }
};

/* Writes position i from a sorted mark. */
struct sar_hash_unmark_functor {
    const uint32_t *mark;
    uint32_t *position;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        position[i] = mark[i] - 1;
    }
};

/* One call. The host computes the layout, a few numbers per list. */
struct hash_call {
    const struct sar_hierarchical_params *params;
    sar_partition_cells cells;
    uint32_t lists;
    const struct sar_hash_input *input;
    cudaStream_t stream;
    std::vector<size_t> first, first_serial;
    std::vector<unsigned long long>
        counts; /* of each list: occurrences in serial memory, or all occurrences */

    hash_call(const struct sar_hierarchical_params *params, const sar_partition_cells &cells, uint32_t lists,
              const struct sar_hash_input *input, cudaStream_t stream)
        : params(params), cells(cells), lists(lists), input(input), stream(stream), first(lists + 1),
          first_serial(lists), counts(lists)
    {
    }

    bool key_is_64bit() const
    {
        return params->paper ? cells.map.count > UINT32_MAX : params->cell_size == 8;
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

/* Lists the marks of all occurrences, list by list, and where each list begins. */
template <class Mark, class First>
static enum sar_status list_marks(const struct hash_call *call, const Mark *cells, Mark *mark, First *first)
{
    sar_scoped_alloc marks_n(call->stream);
    SAR_TRY(marks_n.alloc(sizeof(unsigned long long)));
    SAR_TRY(select_if(cells, mark, marks_n.as<unsigned long long>(), call->first.back(), sar_hash_cell_used(),
                      call->stream));
    sar_hash_first_functor<Mark, First> functor = { call->cells, *call->input, mark, call->lists, first };
    return for_each(call->input->nnz + 1, functor, call->stream);
}

template <class Mark>
static enum sar_status extract(const struct hash_call *call, const Mark *cells,
                               const struct sar_hash_output *out)
{
    const struct sar_hash_input *input = call->input;
    sar_scoped_alloc marks(call->stream);
    SAR_TRY(marks.alloc(input->nnz * sizeof(Mark)));
    Mark *mark = marks.as<Mark>();
    SAR_TRY(list_marks(call, cells, mark, out->first));
    SAR_TRY(gather(mark, input->index, input->index_size, input->nnz, out->index, call->stream));
    if (out->value != NULL)
        SAR_TRY(gather(mark, input->value, input->value_size, input->nnz, out->value, call->stream));
    if (out->position != NULL)
        SAR_TRY(for_each(input->nnz, sar_hash_position_functor<Mark>{ mark, out->position }, call->stream));
    return SAR_OK;
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
        size_t lists = call->lists, bytes = call->first.back() * call->params->cell_size;
        SAR_TRY(first.alloc((lists + 1) * sizeof(size_t)));
        SAR_TRY(first_serial.alloc(lists * sizeof(size_t)));
        SAR_TRY(counts.alloc(lists * sizeof(unsigned long long)));
        SAR_TRY(memory.alloc(bytes));
        SAR_TRY(sar_copy_async(first.memory, call->first.data(), (lists + 1) * sizeof(size_t), call->stream));
        SAR_TRY(sar_copy_async(first_serial.memory, call->first_serial.data(), lists * sizeof(size_t),
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

    /* Run a functor that counts occurrences per list, and copy the counts to the host. Waits for the
     * stream. */
    template <class Functor> enum sar_status count(struct hash_call *call, const Functor &functor)
    {
        size_t bytes = call->lists * sizeof(unsigned long long);
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
    return sar_hash_overflowed(&memory, call->lists);
}

static size_t serial_count_of(const struct hash_call *call)
{
    size_t sum = 0;
    for (unsigned long long serial_count : call->counts)
        sum += (size_t)serial_count;
    return sum;
}

/* Fills cells until none overflow, and calls finish(cells, attempts that overflowed). */
template <class Finish> static enum sar_status run_all(struct hash_call *call, const Finish &finish)
{
    for (unsigned attempt = 0;; attempt++) {
        struct hash_cells cells(call->stream);
        SAR_TRY(sar_hash_layout(call->params, call->lists, attempt, call->counts.data(), call->first.data(),
                                call->first_serial.data()));
        SAR_TRY(cells.alloc(call));
        SAR_TRY(cells.count(call, sar_hash_insert_functor{ cells.view, call->cells, *call->input }));
        if (!overflowed(call))
            return finish(&cells, attempt);
        SAR_TRY(
            cells.count(call, sar_hash_count_functor{ call->cells, *call->input, cells.view.serial_count }));
    }
}

enum sar_status sar_cuda_hierarchical_hash(const struct sar_hierarchical_params *params,
                                           const struct sar_partition_map *map,
                                           const struct sar_hash_input *input, struct sar_hash_output *out,
                                           cudaStream_t stream)
{
    struct hash_call call(params, { *map, 0 }, map->parts, input, stream);
    return run_all(&call, [&](const struct hash_cells *cells, unsigned attempt) {
        out->reruns = attempt;
        out->serial_count = serial_count_of(&call);
        if (params->cell_size == 4)
            return extract(&call, cells->memory.as<uint32_t>(), out);
        return extract(&call, cells->memory.as<uint64_t>(), out);
    });
}

enum sar_status sar_cuda_hash_positions(const struct sar_partition_layout *layout,
                                        const struct sar_hash_input *input, uint32_t *position,
                                        unsigned long long *first, cudaStream_t stream)
{
    uint32_t lists = layout->segments * layout->map.parts;
    struct sar_hierarchical_params params = sar_hierarchical_params_make(input->nnz, lists, layout->map.seed);
    struct hash_call call(&params, { layout->map, layout->part_slots }, lists, input, stream);
    return run_all(&call, [&](const struct hash_cells *cells, unsigned attempt) {
        sar_scoped_alloc marks(stream), sorted(stream);
        size_t bytes = input->nnz * sizeof(uint32_t);
        if (layout->hash != NULL)
            sar_hash_stats_add(layout->hash, input->nnz, serial_count_of(&call), attempt);
        SAR_TRY(marks.alloc(bytes));
        SAR_TRY(sorted.alloc(bytes));
        uint32_t *mark = marks.as<uint32_t>(), *in_order = sorted.as<uint32_t>();
        SAR_TRY(list_marks(&call, cells->memory.as<uint32_t>(), mark, first));
        SAR_TRY(sort_lists(mark, in_order, input->nnz, first, lists, stream));
        return for_each(input->nnz, sar_hash_unmark_functor{ in_order, position }, stream);
    });
}
