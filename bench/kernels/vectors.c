/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels on vectors. The first job, a copy, is the reference of all rates. */

#include <stdlib.h>
#include <string.h>

#include "bench/kernels/kernels.h"
#include "cuda/launch.h"
#include "vector/reduce.h"

static enum sar_status run_copy(struct kernels *k)
{
    size_t bytes = (size_t)kernels_vector_bytes(k);
    return cudaMemcpyAsync(k->scratch, k->vector.buf, bytes, cudaMemcpyDeviceToDevice, k->stream) ==
                   cudaSuccess
               ? SAR_OK
               : SAR_DEVICE_FAILED;
}

static double copy_bytes(const struct kernels *k)
{
    return 2 * kernels_vector_bytes(k);
}

static enum sar_status run_mark(struct kernels *k)
{
    struct sar_nonzero_mask mask;
    SAR_TRY(sar_cuda_find_nonzeros(&k->vector, &mask));
    sar_cuda_free_mask(&k->vector, &mask);
    return SAR_OK;
}

static double mark_bytes(const struct kernels *k)
{
    return kernels_vector_bytes(k) + kernels_bitmap_bytes(k);
}

static enum sar_status run_scan(struct kernels *k)
{
    struct sar_nonzero_mask mask;
    SAR_TRY(sar_cuda_find_nonzeros(&k->vector, &mask));
    k->out.nnz = mask.nnz;
    enum sar_status status = sar_cuda_compact(&k->vector, &mask, &k->out);
    sar_cuda_free_mask(&k->vector, &mask);
    return status;
}

static double scan_bytes(const struct kernels *k)
{
    return kernels_vector_bytes(k) + kernels_vector_coo_bytes(k);
}

static bool scan_is_right(struct kernels *k)
{
    return kernels_out_equals(k, &k->host);
}

static enum sar_status run_split(struct kernels *k)
{
    struct sar_nonzero_mask mask;
    uint64_t width = (k->map.slots_max + 63) / 64 * 64;
    struct sar_partition_layout layout = { k->map, width, 1, NULL };
    SAR_TRY(sar_cuda_find_nonzeros(&k->vector, &mask));
    k->out.nnz = mask.nnz;
    enum sar_status status = sar_cuda_compact_parts(&k->vector, &mask, &layout, &k->out, k->first);
    sar_cuda_free_mask(&k->vector, &mask);
    return status;
}

static bool split_is_right(struct kernels *k)
{
    size_t begin = 0;
    struct sar_spvec all = { k->parts[0].index, k->parts[0].value, k->host.nnz };
    bool good = kernels_out_equals(k, &all);
    for (int p = 0; p < k->options->parts; p++) {
        good &= k->first[p] == begin;
        begin += k->parts[p].nnz;
    }
    return good;
}

static enum sar_status run_select_and_sort(struct kernels *k)
{
    k->out.nnz = k->host.nnz;
    return sar_cuda_baseline_partition(&k->vector, &k->map, &k->out);
}

/* Slots of different parts have equal ranges, so that parts can stand for the messages to one owner. */
static struct sar_vec_desc part_desc(const struct kernels *k)
{
    struct sar_vec_desc desc = k->desc;
    desc.count = k->map.slots_max;
    return desc;
}

static enum sar_status run_reduce(struct kernels *k)
{
    struct sar_vec_desc desc = part_desc(k);
    struct sar_spvec runs[4096];
    size_t begin = 0, parts = (size_t)k->options->parts;
    for (size_t p = 0; p < parts; p++) {
        runs[p] = (struct sar_spvec){ (uint32_t *)k->partitioned.index + begin,
                                      (float *)k->partitioned.value + begin, k->parts[p].nnz };
        begin += k->parts[p].nnz;
    }
    return sar_cuda_reduce(&desc, runs, parts, &k->out, k->stream);
}

/* To be called after a run, which sets k->out. */
static double reduce_bytes(const struct kernels *k)
{
    return kernels_vector_coo_bytes(k) + (double)k->out.nnz * (sizeof(uint32_t) + sizeof(float));
}

static bool reduce_is_right(struct kernels *k)
{
    struct sar_vec_desc desc = part_desc(k);
    struct sar_arena arena = { 0 };
    struct sar_spvec host;
    kernels_require(sar_reduce_alloc(&desc, k->parts, (size_t)k->options->parts, &arena, &host) == SAR_OK,
                    "reducing on the host");
    bool same = kernels_out_equals(k, &host);
    sar_arena_free(&arena);
    return same;
}

static enum sar_status run_coalesce(struct kernels *k)
{
    struct sar_spvec from = { k->unsorted, k->device.value, k->host.nnz };
    return sar_cuda_coalesce(&k->desc, &from, k->desc.count - 1, &k->out, k->stream);
}

static double coalesce_bytes(const struct kernels *k)
{
    return 2 * kernels_vector_coo_bytes(k);
}

static bool coalesce_is_right(struct kernels *k)
{
    struct sar_sort_input from = { k->shuffled, k->host.value, k->host.nnz, sizeof(uint32_t),
                                   k->desc.count - 1 };
    struct sar_arena arena = { 0 };
    struct sar_spvec host;
    kernels_require(sar_sort(&k->desc, &from, &arena, &host) == SAR_OK, "sorting on the host");
    bool same = kernels_out_equals(k, &host);
    sar_arena_free(&arena);
    return same;
}

static enum sar_status run_partition(struct kernels *k)
{
    struct sar_partition_layout layout = { k->map, (k->map.slots_max + 63) / 64 * 64, 1, NULL };
    memset(k->first, 0, (size_t)k->options->parts * sizeof *k->first);
    k->out.nnz = k->host.nnz;
    return k->host.nnz == 0 ? SAR_OK : sar_cuda_partition(&k->vector, &layout, &k->device, &k->out, k->first);
}

static enum sar_status run_scatter(struct kernels *k)
{
    struct sar_device_vec vector = k->vector;
    vector.buf = k->scratch;
    return sar_cuda_scatter(&vector, &k->device, 1, true);
}

static bool scatter_is_right(struct kernels *k)
{
    return kernels_device_equals(k->scratch, k->dense, k->options->count * sizeof(float));
}

const struct kernels_job kernels_of_vectors[] = {
    { "copy", run_copy, copy_bytes, NULL, NULL, NULL },
    { "mark", run_mark, mark_bytes, NULL, NULL, NULL },
    { "scan", run_scan, scan_bytes, scan_is_right, NULL, NULL },
    { "scan and partition", run_split, scan_bytes, split_is_right, NULL, NULL },
    { "CUB select and sort", run_select_and_sort, scan_bytes, split_is_right, NULL, NULL },
    { "reduce", run_reduce, reduce_bytes, reduce_is_right, NULL, NULL },
    { "coalesce", run_coalesce, coalesce_bytes, coalesce_is_right, NULL, NULL },
    { "partition", run_partition, coalesce_bytes, split_is_right, NULL, NULL },
    { "scatter", run_scatter, scan_bytes, scatter_is_right, NULL, NULL },
    { .name = NULL },
};
