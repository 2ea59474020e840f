/* SPDX-License-Identifier: BSD-3-Clause */
/* Hierarchical hashing on a device: see hash/hierarchical.h for the algorithm.
 *
 *     fill      one thread an occurrence; again, with more memory, while some found no cell;
 *     extract   cells that are not empty, in order (CUB); then, one thread a word, what they point to; then
 *               where each part begins. */

#include "cuda/hierarchical.h"

#include <vector>

#include "cuda/hierarchical.cuh"
#include "cuda/parallel.cuh"

/* One call. The layout is made on the host, where there are few numbers to a part. */
struct hashing {
    const struct sar_hierarchical *how;
    const struct sar_map *map;
    const struct sar_hash_input *input;
    cudaStream_t stream;
    std::vector<size_t> first, serial;
    std::vector<unsigned long long> counts; /* a part's appends, then its occurrences */

    bool wide_key() const
    {
        return how->paper ? map->count > UINT32_MAX : how->cell_size == 8;
    }
};

template <class Word, class Mark>
static enum sar_status gather_words(const Mark *mark, const void *from, size_t size, size_t n, void *to,
                                    cudaStream_t stream)
{
    size_t words = size / sizeof(Word);
    return each(n * words, sar_gather_body<Mark, Word>{ mark, (const Word *)from, (Word *)to, words },
                stream);
}

/* In the widest words that elements are made of and both arrays are aligned to. */
template <class Mark>
static enum sar_status gather(const Mark *mark, const void *from, size_t size, size_t n, void *to,
                              cudaStream_t stream)
{
    uintptr_t multiples = size | (uintptr_t)from | (uintptr_t)to;
    if (multiples % 8 == 0)
        return gather_words<uint64_t>(mark, from, size, n, to, stream);
    if (multiples % 4 == 0)
        return gather_words<uint32_t>(mark, from, size, n, to, stream);
    return gather_words<uint16_t>(mark, from, size, n, to, stream);
}

template <class Mark>
static enum sar_status extract(const struct hashing *h, const Mark *cells, const struct sar_hash_output *out)
{
    const struct sar_hash_input *input = h->input;
    sar_piece marks(h->stream), picked(h->stream);
    SAR_TRY(marks.take(input->nnz * sizeof(Mark)));
    SAR_TRY(picked.take(sizeof(unsigned long long)));
    Mark *mark = marks.as<Mark>();
    SAR_TRY(pick(cells, mark, picked.as<unsigned long long>(), h->first.back(), sar_is_claimed(), h->stream));
    SAR_TRY(gather(mark, input->index, input->index_size, input->nnz, out->index, h->stream));
    if (out->value != NULL)
        SAR_TRY(gather(mark, input->value, input->value_size, input->nnz, out->value, h->stream));
    if (out->position != NULL)
        SAR_TRY(each(input->nnz, sar_position_body<Mark>{ mark, out->position }, h->stream));
    struct sar_first_body body = { *h->map, *input, out->first };
    body.lists.index = out->index;
    return each(input->nnz + 1, body, h->stream);
}

/* The device's memory of one run. */
struct cells {
    sar_piece first, serial, counts, memory;
    struct sar_hash_memory view;

    explicit cells(cudaStream_t stream) : first(stream), serial(stream), counts(stream), memory(stream)
    {
    }

    enum sar_status take(const struct hashing *h)
    {
        size_t parts = h->map->parts, bytes = h->first.back() * h->how->cell_size;
        SAR_TRY(first.take((parts + 1) * sizeof(size_t)));
        SAR_TRY(serial.take(parts * sizeof(size_t)));
        SAR_TRY(counts.take(parts * sizeof(unsigned long long)));
        SAR_TRY(memory.take(bytes));
        SAR_TRY(sar_copy(first.memory, h->first.data(), (parts + 1) * sizeof(size_t), h->stream));
        SAR_TRY(sar_copy(serial.memory, h->serial.data(), parts * sizeof(size_t), h->stream));
        SAR_TRY(sar_cuda(cudaMemsetAsync(memory.memory, 0, bytes, h->stream)));
        view = { *h->how,
                 h->wide_key(),
                 first.as<size_t>(),
                 serial.as<size_t>(),
                 counts.as<unsigned long long>(),
                 memory.memory };
        return SAR_OK;
    }

    /* Run a body that counts in parts, and look at the counts. */
    template <class Body> enum sar_status count(struct hashing *h, const Body &body)
    {
        size_t bytes = h->map->parts * sizeof(unsigned long long);
        SAR_TRY(sar_cuda(cudaMemsetAsync(counts.memory, 0, bytes, h->stream)));
        SAR_TRY(each(h->input->nnz, body, h->stream));
        SAR_TRY(sar_copy(h->counts.data(), counts.memory, bytes, h->stream));
        return sar_cuda(cudaStreamSynchronize(h->stream));
    }
};

/* Whether the run overflowed, from the host's copies. */
static bool overflowed(struct hashing *h)
{
    struct sar_hash_memory memory = {};
    memory.first = h->first.data();
    memory.serial = h->serial.data();
    memory.appends = h->counts.data();
    return sar_hash_overflowed(&memory, h->map->parts);
}

static enum sar_status finish(const struct hashing *h, const struct cells *memory, unsigned run,
                              struct sar_hash_output *out)
{
    out->reruns = run;
    out->serial = 0;
    for (unsigned long long appends : h->counts)
        out->serial += (size_t)appends;
    if (h->how->cell_size == 4)
        return extract(h, memory->memory.as<uint32_t>(), out);
    return extract(h, memory->memory.as<uint64_t>(), out);
}

static enum sar_status run_all(struct hashing *h, struct sar_hash_output *out)
{
    for (unsigned run = 0;; run++) {
        struct cells memory(h->stream);
        SAR_TRY(
            sar_hash_layout(h->how, h->map->parts, run, h->counts.data(), h->first.data(), h->serial.data()));
        SAR_TRY(memory.take(h));
        SAR_TRY(memory.count(h, sar_hash_body{ memory.view, *h->map, *h->input }));
        if (!overflowed(h))
            return finish(h, &memory, run, out);
        SAR_TRY(memory.count(h, sar_count_body{ *h->map, *h->input, memory.view.appends }));
    }
}

enum sar_status sar_cuda_hierarchical_hash(const struct sar_hierarchical *how, const struct sar_map *map,
                                           const struct sar_hash_input *input, struct sar_hash_output *out,
                                           cudaStream_t stream)
{
    std::vector<size_t> first(map->parts + 1), serial(map->parts);
    std::vector<unsigned long long> counts(map->parts);
    struct hashing h = { how, map, input, stream, first, serial, counts };
    return run_all(&h, out);
}
