/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of study `threads`, each called as the library calls it. */

#include "bench/studies/thread_work.h"

#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "vector/canonicalize.h"
#include "vector/dense.h"
#include "vector/merge_bitmaps.h"
#include "vector/partition.h"
#include "vector/reduce.h"
#include "vector/reduce_bitmap.h"
#include "vector/topk.h"

static size_t dense_bytes(const struct perf_thread_job *job)
{
    return job->desc.count * job->desc.element_size;
}

static size_t vec_bytes(const struct perf_thread_job *job, size_t nnz)
{
    return nnz * (job->desc.element_size + job->desc.index_size);
}

static void set_work(struct perf_thread_job *job, size_t elements, size_t bytes)
{
    job->elements = elements;
    job->bytes = bytes;
}

static void set_vecs(struct perf_thread_job *job, const struct sar_spvec *out, size_t n, unsigned index_size)
{
    job->out = out;
    job->outs = n;
    job->out_index_size = index_size;
}

static void set_buffer(struct perf_thread_job *job, const void *buffer, size_t bytes)
{
    job->buffer = buffer;
    job->buffer_bytes = bytes;
}

static enum sar_status copy_piece(void *arg, size_t i)
{
    struct perf_thread_job *job = arg;
    size_t from = i * PERF_COPY_PIECE;
    size_t n = job->copied->bytes - from < PERF_COPY_PIECE ? job->copied->bytes - from : PERF_COPY_PIECE;

    memcpy((char *)job->copied->to.data + from, (char *)job->copied->from.data + from, n);
    return SAR_OK;
}

static void copy(struct perf_thread_job *job)
{
    sar_parallel_for((job->copied->bytes - 1) / PERF_COPY_PIECE + 1, copy_piece, job);
    set_work(job, job->copied->bytes / job->desc.element_size, 2 * job->copied->bytes);
}

static void scan(struct perf_thread_job *job)
{
    perf_study_require(
        sar_dense_compact(&job->desc, job->dense.data, job->vec.nnz, &job->arena, &job->result));
    set_work(job, job->desc.count, dense_bytes(job) + vec_bytes(job, job->vec.nnz));
    set_vecs(job, &job->result, 1, job->desc.index_size);
}

static void write_all(struct perf_thread_job *job)
{
    sar_dense_expand(&job->desc, &job->vec, 1, job->written.data);
    set_work(job, job->desc.count, dense_bytes(job) + vec_bytes(job, job->vec.nnz));
    set_buffer(job, job->written.data, dense_bytes(job));
}

/* The buffer has zeros elsewhere from the beginning. */
static void write_elements(struct perf_thread_job *job)
{
    sar_dense_update(&job->desc, &job->vec, 1, job->written.data);
    set_work(job, job->vec.nnz, vec_bytes(job, job->vec.nnz) + job->vec.nnz * job->desc.element_size);
    set_buffer(job, job->written.data, dense_bytes(job));
}

static void canonicalize_order(struct perf_thread_job *job, const void *indices)
{
    struct sar_coo_args coo = { indices, job->vec.value, job->vec.nnz,
                                job->desc.index_size == 4 ? SAR_INDEX_UINT32 : SAR_INDEX_UINT64 };
    long long bad;

    perf_study_require(sar_canonicalize(&job->desc, &coo, &job->arena, &job->result, &bad));
    set_vecs(job, &job->result, 1, job->desc.index_size);
}

static void check_sorted(struct perf_thread_job *job)
{
    canonicalize_order(job, job->vec.index);
    set_work(job, job->vec.nnz, job->vec.nnz * job->desc.index_size);
}

static void sort_unsorted(struct perf_thread_job *job)
{
    canonicalize_order(job, job->shuffled);
    set_work(job, job->vec.nnz, 2 * vec_bytes(job, job->vec.nnz));
}

static void partition(struct perf_thread_job *job)
{
    struct sar_spvec *parts;
    void *memory;

    perf_study_require(sar_arena_alloc(&job->arena, job->map.parts, sizeof *parts, &memory));
    parts = memory;
    perf_study_require(sar_partition_split(&job->map, &job->desc, &job->vec, &job->arena, parts));
    set_work(job, job->vec.nnz, 2 * vec_bytes(job, job->vec.nnz));
    set_vecs(job, parts, job->map.parts, 4);
}

static void encode(struct perf_thread_job *job)
{
    job->wire->encode(&job->layout, &job->vec, job->payload);
    set_work(job, job->vec.nnz, vec_bytes(job, job->vec.nnz) + job->payload_bytes);
    set_buffer(job, job->payload, job->payload_bytes);
}

static void decode(struct perf_thread_job *job)
{
    job->result = (struct sar_spvec){ NULL, NULL, job->vec.nnz };
    perf_study_require(
        job->wire->decode(&job->layout, job->payload, job->payload_bytes, &job->arena, &job->result));
    set_work(job, job->vec.nnz, vec_bytes(job, job->vec.nnz) + job->payload_bytes);
    set_vecs(job, &job->result, 1, job->layout.index_size);
}

static enum sar_status encode_part(void *arg, size_t p)
{
    struct perf_thread_job *job = arg;

    job->wire->encode(&job->messages[p].layout, &job->parts[p], job->messages[p].payload);
    return SAR_OK;
}

static enum sar_status decode_part(void *arg, size_t p)
{
    struct perf_thread_job *job = arg;
    const struct perf_part_message *m = &job->messages[p];

    job->decoded[p] = (struct sar_spvec){ NULL, NULL, job->parts[p].nnz };
    return job->wire->decode(&m->layout, m->payload, m->bytes, &job->arena, &job->decoded[p]);
}

/* A call codes the messages of many parts at once, and each of few parts by loops within it. */
static void encode_parts(struct perf_thread_job *job)
{
    perf_study_require(sar_parallel_for(job->map.parts, encode_part, job));
    set_work(job, job->vec.nnz, vec_bytes(job, job->vec.nnz) + job->payloads_bytes);
    set_buffer(job, job->payloads, job->payloads_bytes);
}

static void decode_parts(struct perf_thread_job *job)
{
    perf_study_require(sar_parallel_for(job->map.parts, decode_part, job));
    set_work(job, job->vec.nnz, vec_bytes(job, job->vec.nnz) + job->payloads_bytes);
    set_vecs(job, job->decoded, job->map.parts, sizeof(uint32_t));
}

static void reduce(struct perf_thread_job *job)
{
    size_t nnz = 0;

    perf_study_require(sar_reduce_alloc(&job->desc, job->runs, job->map.parts, &job->arena, &job->result));
    for (size_t i = 0; i < job->map.parts; i++)
        nnz += job->runs[i].nnz;
    set_work(job, nnz, vec_bytes(job, nnz + job->result.nnz));
    set_vecs(job, &job->result, 1, job->desc.index_size);
}

/* The bits follow the values, as in a message. */
static void reduce_to_bitmap(struct perf_thread_job *job)
{
    struct sar_bitmap_reduction reduction;
    void *bits;
    size_t nnz = 0, bitmap = (size_t)sar_bitmap_bytes(job->desc.count);

    perf_study_require(
        sar_reduce_bitmap_count(&job->desc, job->runs, job->map.parts, &job->arena, &reduction));
    job->result = (struct sar_spvec){ NULL, NULL, reduction.nnz };
    perf_study_require(
        sar_arena_alloc(&job->arena, reduction.nnz, job->desc.element_size, &job->result.value));
    perf_study_require(sar_arena_alloc(&job->arena, bitmap, 1, &bits));
    sar_reduce_bitmap_write(&reduction, job->result.value, bits);
    for (size_t i = 0; i < job->map.parts; i++)
        nnz += job->runs[i].nnz;
    set_work(job, nnz, vec_bytes(job, nnz) + job->result.nnz * job->desc.element_size + bitmap);
    set_vecs(job, &job->result, 1, 0);
    set_buffer(job, bits, bitmap);
}

static void prepare_merge(struct perf_thread_job *job)
{
    perf_study_require(sar_spvec_alloc(&job->desc, job->vec.nnz, &job->arena, &job->result));
}

static void merge(struct perf_thread_job *job)
{
    perf_study_require(sar_partition_merge(&job->map, &job->desc, job->parts, &job->arena, &job->result));
    set_work(job, job->vec.nnz, 2 * vec_bytes(job, job->vec.nnz));
    set_vecs(job, &job->result, 1, job->desc.index_size);
}

static void place(struct perf_thread_job *job)
{
    perf_study_require(sar_merge_bitmaps(&job->map, &job->desc, job->bitmaps, &job->arena, &job->result));
    set_work(job, job->vec.nnz, vec_bytes(job, 2 * job->vec.nnz) + job->desc.count / 8);
    set_vecs(job, &job->result, 1, job->desc.index_size);
}

/* Selects all non-zeros, of which there are as many as there is room for. */
static void select_largest(struct perf_thread_job *job)
{
    struct sar_dgc dgc = { .dtype = job->desc.dtype, .count = job->desc.count, .values = job->dense.data };
    struct sar_topk topk;

    perf_study_require(sar_topk_open(&job->desc, job->vec.nnz, &job->arena, &topk));
    sar_topk_select(&topk, &dgc, 1);
    job->result = topk.vec;
    set_work(job, job->desc.count, dense_bytes(job) + vec_bytes(job, topk.vec.nnz));
    set_vecs(job, &job->result, 1, job->desc.index_size);
}

const struct perf_thread_work perf_thread_copy = { "copy", NULL, copy, false, false, false };

const struct perf_thread_work perf_thread_works[] = {
    { "scan", NULL, scan, false, false, false },
    { "write", NULL, write_all, false, false, false },
    { "update", NULL, write_elements, false, false, false },
    { "check", NULL, check_sorted, false, false, false },
    { "sort", NULL, sort_unsorted, false, false, false },
    { "partition", NULL, partition, false, false, false },
    { "encode", NULL, encode, true, false, false },
    { "decode", encode, decode, true, false, false }, /* decoding may change the payload */
    { "encode_parts", NULL, encode_parts, true, false, false },
    { "decode_parts", encode_parts, decode_parts, true, false, false },
    { "reduce", NULL, reduce, false, false, false },
    { "reduce_bitmap", NULL, reduce_to_bitmap, false, true, false },
    { "merge", prepare_merge, merge, false, false, false },
    { "place", prepare_merge, place, false, false, true },
    { "topk", NULL, select_largest, false, true, false },
    { NULL, NULL, NULL, false, false, false },
};

static uint64_t digest_bytes(uint64_t digest, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint64_t word = 0;

    for (size_t i = 0; i < bytes; i += sizeof word) {
        memcpy(&word, at + i, bytes - i < sizeof word ? bytes - i : sizeof word);
        digest = perf_mix(digest + word);
    }
    return digest;
}

/* Returns a number that depends on all bits of the last result. */
static uint64_t digest_result(const struct perf_thread_job *job)
{
    uint64_t digest = job->buffer_bytes;

    for (size_t i = 0; i < job->outs; i++) {
        digest =
            digest_bytes(digest + job->out[i].nnz, job->out[i].index, job->out[i].nnz * job->out_index_size);
        digest = digest_bytes(digest, job->out[i].value, job->out[i].nnz * job->desc.element_size);
    }
    return digest_bytes(digest, job->buffer, job->buffer_bytes);
}

double perf_thread_call(struct perf_thread_job *job, const struct perf_thread_work *work, int threads,
                        uint64_t *digest)
{
    struct sar_parallel former;
    double start, seconds;

    sar_arena_reset(&job->arena);
    set_vecs(job, NULL, 0, 0);
    if (work->prepare != NULL)
        work->prepare(job);
    set_buffer(job, NULL, 0);
    former = sar_parallel_begin((struct sar_parallel){ .threads = threads });
    start = MPI_Wtime();
    work->run(job);
    seconds = MPI_Wtime() - start;
    sar_parallel_end(former);
    if (digest != NULL)
        *digest = digest_result(job);
    return seconds;
}

static struct sar_spvec draw(const struct perf_study *study, const struct perf_case *c, int rank, int ranks)
{
    struct perf_world world = { .rank = rank, .ranks = ranks };
    struct perf_case own = *c;
    struct perf_set set;
    struct sar_spvec vec;

    own.world = &world;
    set = perf_workload_draw(&own, study->source, 0, 1);
    vec = perf_study_vector_make(c, &set);
    perf_set_free(&set);
    return vec;
}

/* Steps of a number that is coprime to the length visit each index once. */
static void *shuffle(const struct perf_thread_job *job)
{
    unsigned size = job->desc.index_size;
    size_t nnz = job->vec.nnz, step = perf_coprime(nnz * 5 / 8 + 1, nnz), at = 0;
    void *shuffled = perf_alloc(nnz, size);

    for (size_t i = 0; i < nnz; i++) {
        sar_index_set(shuffled, size, i, sar_index_get(job->vec.index, size, at));
        at = (at + step) % nnz;
    }
    return shuffled;
}

/* perf_types and enum sar_dtype have one order, and so have enum perf_op and enum sar_op. */
static struct sar_vec_desc describe(const struct perf_case *c, int type)
{
    return (struct sar_vec_desc){
        .count = c->count,
        .row_len = c->row_len,
        .element_size = c->element_bytes,
        .index_size = sar_index_size(c->count),
        .dtype = (enum sar_dtype)type,
        .op = (enum sar_op)c->op,
        .kernels = sar_op_kernels_of((enum sar_dtype)type, (enum sar_op)c->op),
    };
}

static struct sar_wire_layout part_layout(const struct perf_thread_job *job, uint32_t part)
{
    struct sar_wire_layout layout = job->layout;

    layout.slots = sar_partition_map_slots(&job->map, part);
    layout.index_size = sizeof(uint32_t);
    return layout;
}

void perf_thread_messages_open(struct perf_thread_job *job)
{
    enum { ALIGNMENT = 64 };
    size_t at = 0;

    job->messages = perf_alloc(job->map.parts, sizeof *job->messages);
    job->decoded = perf_alloc(job->map.parts, sizeof *job->decoded);
    for (uint32_t p = 0; p < job->map.parts; p++) {
        struct perf_part_message *m = &job->messages[p];
        m->layout = part_layout(job, p);
        m->bytes = sar_wire_bytes(job->wire, &m->layout, &job->parts[p]);
        at += (size_t)m->bytes + ALIGNMENT - (size_t)m->bytes % ALIGNMENT;
    }
    job->payloads_bytes = at;
    job->payloads = perf_alloc(at, 1);
    memset(job->payloads, 0, at);
    at = 0;
    for (uint32_t p = 0; p < job->map.parts; p++) {
        job->messages[p].payload = (char *)job->payloads + at;
        at += (size_t)job->messages[p].bytes + ALIGNMENT - (size_t)job->messages[p].bytes % ALIGNMENT;
    }
}

void perf_thread_messages_close(struct perf_thread_job *job)
{
    free(job->messages);
    free(job->decoded);
    free(job->payloads);
}

/* Makes the bitmaps of the parts, if blocks are whole words. */
static void make_bitmaps(struct perf_thread_job *job)
{
    if (!sar_merge_bitmaps_works(&job->map))
        return;
    job->bitmaps = perf_alloc(job->map.parts, sizeof *job->bitmaps);
    for (uint32_t p = 0; p < job->map.parts; p++) {
        struct sar_wire_layout layout = part_layout(job, p);
        void *bits;
        perf_study_require(sar_arena_alloc(&job->data, sar_bitmap_bytes(layout.slots), 1, &bits));
        sar_bitmap_encode(&layout, &job->parts[p], bits);
        job->bitmaps[p] = (struct sar_part_bitmap){ bits, sar_bitmap_bytes(layout.slots), job->parts[p].value,
                                                    job->parts[p].nnz };
    }
}

struct perf_thread_job perf_thread_job_make(const struct perf_study *study, const struct perf_case *c,
                                            const struct perf_copied *copied)
{
    const struct perf_options *options = study->options;
    struct perf_thread_job job = { .iterations = (size_t)options->iterations, .copied = copied };
    int parts = (int)options->parts;

    job.desc = describe(c, options->type.at[0]);
    job.vec = draw(study, c, 0, parts);
    job.map = perf_study_map(study, c->count, job.vec.nnz);
    job.layout = (struct sar_wire_layout){ .slots = c->count,
                                           .element_size = c->element_bytes,
                                           .row_len = c->row_len,
                                           .index_size = job.desc.index_size,
                                           .zero_is_absent = options->interface == PERF_DENSE };
    job.shuffled = shuffle(&job);
    job.runs = perf_alloc((size_t)parts, sizeof *job.runs);
    for (int i = 0; i < parts; i++)
        job.runs[i] = draw(study, c, i, parts);
    job.parts = perf_alloc((size_t)parts, sizeof *job.parts);
    perf_study_require(sar_partition_split(&job.map, &job.desc, &job.vec, &job.data, job.parts));
    make_bitmaps(&job);
    job.dense = perf_block_make(dense_bytes(&job), 0);
    sar_dense_scatter(&job.desc, &job.vec, job.dense.data);
    job.written = perf_block_make(dense_bytes(&job), 0);
    return job;
}

void perf_thread_job_free(struct perf_thread_job *job)
{
    for (size_t i = 0; i < job->map.parts; i++)
        perf_study_vector_free(&job->runs[i]);
    perf_study_vector_free(&job->vec);
    perf_block_free(&job->dense);
    perf_block_free(&job->written);
    sar_arena_free(&job->data);
    sar_arena_free(&job->arena);
    free(job->shuffled);
    free(job->runs);
    free(job->parts);
    free(job->bitmaps);
}
