/* SPDX-License-Identifier: BSD-3-Clause */
/* The vectors are those of an owner among VECS ranks: their index space is a part of the tensor's. */

#include "bench/perf/cost_reductions.h"

#include <mpi.h>
#include <string.h>

#include "bench/studies/study.h"
#include "vector/op_kernels.h"
#include "vector/reduce.h"
#include "vector/reduce_bitmap.h"
#include "wire/wire.h"

enum { VECS = 16 };

struct job {
    struct sar_vec_desc desc;
    struct sar_spvec vecs[VECS];
    struct sar_arena inputs, scratch;
    struct perf_samples now;
};

/* Adds the work since `start` as the trace would report it. */
static void add_sample(struct job *job, const char *kind, const char *format, size_t elements, double start)
{
    double seconds = MPI_Wtime() - start;
    struct sar_span span = { .work = sar_span_work_make(kind, elements, job->desc.element_size,
                                                        job->desc.count) };
    span.work.format = format;
    perf_samples_on_work(&job->now, &span, (int64_t)(seconds * 1e9));
}

/* Returns the number of elements. */
static size_t make_vec(struct job *job, double density, uint64_t seed, struct sar_spvec *vec)
{
    uint64_t index = 0, number = seed;
    double gaps = 2 / density - 1; /* numbers of gaps, all as likely; their mean is 1 / density */
    size_t capacity = (size_t)(density * (double)job->desc.count * 1.1) + 16, nnz = 0;

    perf_study_require(sar_spvec_alloc(&job->desc, capacity, &job->inputs, vec));
    memset(vec->value, 0, capacity * job->desc.element_size);
    for (; nnz < capacity && index < job->desc.count; nnz++) {
        ((uint32_t *)vec->index)[nnz] = (uint32_t)index;
        ((float *)vec->value)[nnz * job->desc.row_len] = 1;
        number = perf_mix(number + 1);
        index += 1 + (uint64_t)(gaps * ((double)(number >> 11) * 0x1p-53));
    }
    vec->nnz = nnz;
    return nnz;
}

/* Sums into memory that is large enough, as an owner does where the pull does not depend on the number. */
static void sum_at_once(struct job *job, size_t elements)
{
    struct sar_spvec out;
    double start;

    sar_arena_reset(&job->scratch);
    perf_study_require(
        sar_spvec_alloc(&job->desc, sar_reduce_max_nnz(&job->desc, job->vecs, VECS), &job->scratch, &out));
    start = MPI_Wtime();
    perf_study_require(sar_reduce(&job->desc, job->vecs, VECS, &job->scratch, &out));
    add_sample(job, "reduce", NULL, elements, start);
}

static void count_and_fill(struct job *job, size_t elements)
{
    struct sar_reduction reduction;
    struct sar_spvec out;
    double start;

    sar_arena_reset(&job->scratch);
    start = MPI_Wtime();
    perf_study_require(
        sar_reduce_count(&job->desc, job->vecs, VECS, job->desc.index_size, &job->scratch, &reduction));
    add_sample(job, "count", NULL, elements, start);
    perf_study_require(sar_spvec_alloc(&job->desc, reduction.nnz, &job->scratch, &out));
    start = MPI_Wtime();
    sar_reduce_write(&reduction, &out);
    if (!reduction.computed)
        add_sample(job, "fill", NULL, reduction.nnz, start);
}

/* Sums into the payload of a message, as an owner does where it is dense enough. */
static void sum_to_bitmap(struct job *job, size_t elements)
{
    struct sar_bitmap_reduction reduction;
    void *payload;
    double start;

    if (!sar_reduces_to_bitmap(&job->desc, job->vecs, VECS))
        return;
    sar_arena_reset(&job->scratch);
    perf_study_require(sar_arena_alloc(&job->scratch, job->desc.count, job->desc.element_size + 1, &payload));
    start = MPI_Wtime();
    perf_study_require(sar_reduce_bitmap_count(&job->desc, job->vecs, VECS, &job->scratch, &reduction));
    if (reduction.clustered)
        return;
    sar_reduce_bitmap_write(&reduction, payload,
                            (unsigned char *)payload + reduction.nnz * job->desc.element_size);
    add_sample(job, "reduce", sar_wire_hash_bitmap.name, elements, start);
}

void perf_sample_reductions(const struct perf_reductions *like, int calls, struct perf_samples *least)
{
    struct job job = { .desc = { .count = like->count / VECS,
                                 .row_len = like->row_len,
                                 .element_size = like->row_len * sizeof(float),
                                 .index_size = sizeof(uint32_t),
                                 .kernels = sar_op_kernels_of(SAR_FLOAT, SAR_SUM) },
                       .now = perf_samples_make(PERF_SAMPLES) };
    size_t elements = 0;

    for (uint64_t r = 0; r < VECS; r++)
        elements += make_vec(&job, like->density, r << 32, &job.vecs[r]);
    for (int i = 0; i < calls; i++) {
        job.now.n = 0;
        sum_at_once(&job, elements);
        count_and_fill(&job, elements);
        sum_to_bitmap(&job, elements);
        perf_samples_keep_least(least, &job.now);
    }
    perf_samples_free(&job.now);
    sar_arena_free(&job.inputs);
    sar_arena_free(&job.scratch);
}
