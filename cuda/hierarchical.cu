/* SPDX-License-Identifier: BSD-3-Clause */
/* Hierarchical hashing on a device: see hash/hierarchical.h for the algorithm. A run is
 *
 *     fill      one thread an occurrence;
 *     extract   cells that are not empty, in order (CUB); then, one thread a word, what they point to; then
 *               where each part begins.
 */

#include "cuda/hierarchical.cuh"

#include "cuda/parallel.cuh"

enum { ALIGNMENT = 256 };

/* Extraction's memory: marks of nnz cells, the number that CUB selected, and CUB's own. */
struct scratch {
    size_t selected, temporary, bytes;
    size_t temporary_bytes;
};

static size_t align(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* With temporary == NULL, only the bytes that CUB wants. */
template <class Mark>
static enum sar_status select(const struct sar_cuda_hash *job, void *temporary, size_t *bytes, Mark *mark,
                              void *selected, cudaStream_t stream)
{
    const Mark *cells = (const Mark *)job->memory.cells;
    return pick(temporary, bytes, cells, mark, (unsigned long long *)selected, job->cells, sar_is_claimed(),
                stream);
}

static enum sar_status plan_scratch(const struct sar_cuda_hash *job, struct scratch *plan)
{
    size_t bytes = 0;
    if (job->memory.how.cell_size == 4)
        SAR_TRY(select(job, NULL, &bytes, (uint32_t *)NULL, NULL, 0));
    else
        SAR_TRY(select(job, NULL, &bytes, (uint64_t *)NULL, NULL, 0));
    plan->selected = align(job->input.nnz * job->memory.how.cell_size);
    plan->temporary = plan->selected + ALIGNMENT;
    plan->temporary_bytes = bytes;
    plan->bytes = plan->temporary + bytes;
    return SAR_OK;
}

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
    if (multiples % 2 == 0)
        return gather_words<uint16_t>(mark, from, size, n, to, stream);
    return gather_words<uint8_t>(mark, from, size, n, to, stream);
}

template <class Mark>
static enum sar_status extract(const struct sar_cuda_hash *job, const struct scratch *plan, char *scratch,
                               const struct sar_hash_output *out, cudaStream_t stream)
{
    const struct sar_hash_input *input = &job->input;
    Mark *mark = (Mark *)scratch;
    size_t bytes = plan->temporary_bytes;
    SAR_TRY(select(job, scratch + plan->temporary, &bytes, mark, scratch + plan->selected, stream));
    SAR_TRY(gather(mark, input->index, input->index_size, input->nnz, out->index, stream));
    if (input->value != NULL)
        SAR_TRY(gather(mark, input->value, input->value_size, input->nnz, out->value, stream));
    if (out->position != NULL)
        SAR_TRY(each(input->nnz, sar_position_body<Mark>{ mark, out->position }, stream));
    struct sar_first_body body = { job->map, *input, out->first };
    body.lists.index = out->index;
    return each(input->nnz + 1, body, stream);
}

enum sar_status sar_cuda_hash_fill(const struct sar_cuda_hash *job, cudaStream_t stream)
{
    const struct sar_hash_memory *memory = &job->memory;
    size_t appends = job->map.parts * sizeof *memory->appends;
    SAR_TRY(sar_cuda(cudaMemsetAsync(memory->cells, 0, job->cells * memory->how.cell_size, stream)));
    SAR_TRY(sar_cuda(cudaMemsetAsync(memory->appends, 0, appends, stream)));
    return each(job->input.nnz, sar_hash_body{ *job }, stream);
}

enum sar_status sar_cuda_hash_count(const struct sar_cuda_hash *job, unsigned long long *totals,
                                    cudaStream_t stream)
{
    SAR_TRY(sar_cuda(cudaMemsetAsync(totals, 0, job->map.parts * sizeof *totals, stream)));
    return each(job->input.nnz, sar_count_body{ *job, totals }, stream);
}

enum sar_status sar_cuda_hash_scratch(const struct sar_cuda_hash *job, size_t *bytes)
{
    struct scratch plan;
    SAR_TRY(plan_scratch(job, &plan));
    *bytes = plan.bytes;
    return SAR_OK;
}

enum sar_status sar_cuda_hash_extract(const struct sar_cuda_hash *job, void *scratch, size_t bytes,
                                      const struct sar_hash_output *out, cudaStream_t stream)
{
    struct scratch plan;
    SAR_TRY(plan_scratch(job, &plan));
    if (bytes < plan.bytes)
        return SAR_NO_MEMORY;
    if (job->memory.how.cell_size == 4)
        return extract<uint32_t>(job, &plan, (char *)scratch, out, stream);
    return extract<uint64_t>(job, &plan, (char *)scratch, out, stream);
}
