/* SPDX-License-Identifier: BSD-3-Clause */
/* What is measured. The first one is what the others are compared with. */

#include <stdlib.h>
#include <string.h>

#include "cuda/baseline.h"
#include "cuda/dense.h"
#include "cuda/reduce.h"
#include "kernels.h"
#include "tensor/reduce.h"

static enum sar_status run_copy(struct kernels *k)
{
    size_t bytes = (size_t)kernels_vector_bytes(k);
    return cudaMemcpyAsync(k->other, k->vector.buf, bytes, cudaMemcpyDeviceToDevice, k->stream) == cudaSuccess
               ? SAR_OK
               : SAR_DEVICE_FAILED;
}

static double copy_bytes(const struct kernels *k)
{
    return 2 * kernels_vector_bytes(k);
}

static enum sar_status run_mark(struct kernels *k)
{
    struct sar_marks marks;
    SAR_TRY(sar_cuda_mark(&k->vector, &marks));
    sar_cuda_unmark(&k->vector, &marks);
    return SAR_OK;
}

static double mark_bytes(const struct kernels *k)
{
    return kernels_vector_bytes(k) + kernels_bitmap_bytes(k);
}

static enum sar_status run_scan(struct kernels *k)
{
    struct sar_marks marks;
    SAR_TRY(sar_cuda_mark(&k->vector, &marks));
    k->out.nnz = marks.nnz;
    enum sar_status status = sar_cuda_compact(&k->vector, &marks, &k->out);
    sar_cuda_unmark(&k->vector, &marks);
    return status;
}

static double scan_bytes(const struct kernels *k)
{
    return kernels_vector_bytes(k) + kernels_run_bytes(k);
}

static bool scan_is_right(struct kernels *k)
{
    return kernels_out_is(k, &k->host);
}

static enum sar_status run_split(struct kernels *k)
{
    struct sar_marks marks;
    uint64_t width = (k->map.span + 63) / 64 * 64;
    struct sar_division division = { k->map, width, 1 };
    SAR_TRY(sar_cuda_mark(&k->vector, &marks));
    k->out.nnz = marks.nnz;
    enum sar_status status = sar_cuda_split(&k->vector, &marks, &division, &k->out, k->first);
    sar_cuda_unmark(&k->vector, &marks);
    return status;
}

static bool split_is_right(struct kernels *k)
{
    size_t begin = 0;
    struct sar_run all = { k->parts[0].index, k->parts[0].value, k->host.nnz };
    bool good = kernels_out_is(k, &all);
    for (int p = 0; p < k->options->parts; p++) {
        good &= k->first[p] == begin;
        begin += k->parts[p].nnz;
    }
    return good;
}

static enum sar_status run_select_and_sort(struct kernels *k)
{
    k->out.nnz = k->host.nnz;
    return sar_cuda_select_and_sort(&k->vector, &k->map, &k->out);
}

/* Parts have slots of the same numbers, so that they can stand for what ranks send to one owner. */
static struct sar_shape part_shape(const struct kernels *k)
{
    struct sar_shape shape = k->shape;
    shape.count = k->map.span;
    return shape;
}

static enum sar_status run_reduce(struct kernels *k)
{
    struct sar_shape shape = part_shape(k);
    struct sar_run runs[4096];
    size_t begin = 0, parts = (size_t)k->options->parts;
    for (size_t p = 0; p < parts; p++) {
        runs[p] = (struct sar_run){ (uint32_t *)k->parted.index + begin, (float *)k->parted.value + begin,
                                    k->parts[p].nnz };
        begin += k->parts[p].nnz;
    }
    return sar_cuda_reduce(&shape, runs, parts, &k->out, k->stream);
}

/* Once an outcome is there. */
static double reduce_bytes(const struct kernels *k)
{
    return kernels_run_bytes(k) + (double)k->out.nnz * (sizeof(uint32_t) + sizeof(float));
}

static bool reduce_is_right(struct kernels *k)
{
    struct sar_shape shape = part_shape(k);
    struct sar_arena arena = { 0 };
    struct sar_run host;
    kernels_require(sar_reduce_taken(&shape, k->parts, (size_t)k->options->parts, &arena, &host) == SAR_OK,
                    "reducing on the host");
    bool same = kernels_out_is(k, &host);
    sar_arena_free(&arena);
    return same;
}

static enum sar_status run_coalesce(struct kernels *k)
{
    struct sar_run from = { k->unsorted, k->device.value, k->host.nnz };
    return sar_cuda_coalesce(&k->shape, &from, k->shape.count - 1, &k->out, k->stream);
}

static double coalesce_bytes(const struct kernels *k)
{
    return 2 * kernels_run_bytes(k);
}

static bool coalesce_is_right(struct kernels *k)
{
    struct sar_unsorted from = { k->shuffled, k->host.value, k->host.nnz, sizeof(uint32_t),
                                 k->shape.count - 1 };
    struct sar_arena arena = { 0 };
    struct sar_run host;
    kernels_require(sar_sort(&k->shape, &from, &arena, &host) == SAR_OK, "sorting on the host");
    bool same = kernels_out_is(k, &host);
    sar_arena_free(&arena);
    return same;
}

static enum sar_status run_partition(struct kernels *k)
{
    struct sar_division division = { k->map, (k->map.span + 63) / 64 * 64, 1 };
    memset(k->first, 0, (size_t)k->options->parts * sizeof *k->first);
    k->out.nnz = k->host.nnz;
    return k->host.nnz == 0 ? SAR_OK
                            : sar_cuda_partition(&k->vector, &division, &k->device, &k->out, k->first);
}

static enum sar_status run_scatter(struct kernels *k)
{
    struct sar_vector vector = k->vector;
    vector.buf = k->other;
    return sar_cuda_scatter(&vector, &k->device, 1, true);
}

static bool scatter_is_right(struct kernels *k)
{
    return kernels_have(k->other, k->dense, k->options->count * sizeof(float));
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
