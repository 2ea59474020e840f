/* SPDX-License-Identifier: BSD-3-Clause */
/* The vector, drawn on the host, and everything that is made of it there. */

#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "tensor/dense.h"
#include "tensor/partition.h"
#include "wire/wire.h"

enum { GRAIN = 64, SEED = 7 };

double kernels_vector_bytes(const struct kernels *k)
{
    return (double)k->options->count * sizeof(float);
}

double kernels_bitmap_bytes(const struct kernels *k)
{
    return (double)k->options->count / 8;
}

double kernels_run_bytes(const struct kernels *k)
{
    return (double)k->host.nnz * (sizeof(uint32_t) + sizeof(float));
}

bool kernels_have(const void *device, const void *host, size_t bytes)
{
    void *copy = malloc(bytes + 1);
    kernels_require(copy != NULL && cudaMemcpy(copy, device, bytes, cudaMemcpyDeviceToHost) == cudaSuccess,
                    "a copy");
    bool same = memcmp(copy, host, bytes) == 0;
    free(copy);
    return same;
}

bool kernels_out_is(const struct kernels *k, const struct sar_run *run)
{
    return k->out.nnz == run->nnz && kernels_have(k->out.index, run->index, run->nnz * sizeof(uint32_t)) &&
           kernels_have(k->out.value, run->value, run->nnz * sizeof(float));
}

static void *on_host(size_t bytes)
{
    void *memory = malloc(bytes + 1);
    kernels_require(memory != NULL, "taking memory");
    return memory;
}

static void *on_device(size_t bytes)
{
    void *memory = NULL;
    kernels_require(cudaMalloc(&memory, bytes + 1) == cudaSuccess, "taking memory of the device");
    return memory;
}

static void *copy_to_device(const void *from, size_t bytes)
{
    void *memory = on_device(bytes);
    kernels_require(cudaMemcpy(memory, from, bytes, cudaMemcpyHostToDevice) == cudaSuccess, "a copy");
    return memory;
}

static struct sar_run run_on_device(size_t nnz)
{
    return (struct sar_run){ on_device(nnz * sizeof(uint32_t)), on_device(nnz * sizeof(float)), nnz };
}

static void draw(struct kernels *k)
{
    double limit = k->options->density * 18446744073709551616.0;
    k->dense = on_host(k->options->count * sizeof(float));
    for (size_t i = 0; i < k->options->count; i++) {
        uint64_t hash = sar_mix64(i + 1);
        k->dense[i] = (double)hash < limit ? (float)(hash & 0xffff) + 1 : 0;
    }
}

static void split(struct kernels *k)
{
    size_t parts = (size_t)k->options->parts;
    k->map = sar_map_make(SAR_PARTITION_HASH, k->options->count, (uint32_t)parts, GRAIN, SEED);
    k->parts = on_host(parts * sizeof *k->parts);
    k->first = on_host((parts + 1) * sizeof *k->first);
    kernels_require(sar_partition(&k->map, &k->shape, &k->host, &k->arena, k->parts) == SAR_OK,
                    "splitting on the host");
    k->parted =
        (struct sar_run){ copy_to_device(k->parts[0].index, k->host.nnz * sizeof(uint32_t)),
                          copy_to_device(k->parts[0].value, k->host.nnz * sizeof(float)), k->host.nnz };
}

/* Fisher and Yates. */
static void shuffle(struct kernels *k)
{
    size_t nnz = k->host.nnz;
    k->shuffled = on_host(nnz * sizeof *k->shuffled);
    memcpy(k->shuffled, k->host.index, nnz * sizeof *k->shuffled);
    for (size_t i = nnz; i > 1; i--) {
        size_t j = (size_t)(sar_mix64(i) % i);
        uint32_t swapped = k->shuffled[i - 1];
        k->shuffled[i - 1] = k->shuffled[j];
        k->shuffled[j] = swapped;
    }
    k->unsorted = copy_to_device(k->shuffled, nnz * sizeof *k->shuffled);
}

void kernels_open(struct kernels *k, const struct kernels_options *options)
{
    *k = (struct kernels){ .options = options };
    k->shape = (struct sar_shape){ .count = options->count,
                                   .row = 1,
                                   .element_size = sizeof(float),
                                   .index_size = sizeof(uint32_t),
                                   .base = SAR_FLOAT,
                                   .op = SAR_SUM,
                                   .kernels = sar_kernels_of(SAR_FLOAT, SAR_SUM) };
    kernels_require(cudaStreamCreateWithFlags(&k->stream, cudaStreamNonBlocking) == cudaSuccess &&
                        cudaEventCreate(&k->begin) == cudaSuccess && cudaEventCreate(&k->end) == cudaSuccess,
                    "making a stream");
    draw(k);
    kernels_require(sar_dense_compact(&k->shape, k->dense, 0, &k->arena, &k->host) == SAR_OK,
                    "compacting on the host");
    split(k);
    shuffle(k);
    size_t bytes = options->count * sizeof(float), nnz = k->host.nnz;
    k->vector = (struct sar_vector){ &k->shape, copy_to_device(k->dense, bytes), 0, k->stream };
    k->device = (struct sar_run){ copy_to_device(k->host.index, nnz * sizeof(uint32_t)),
                                  copy_to_device(k->host.value, nnz * sizeof(float)), nnz };
    k->out = run_on_device(nnz);
    size_t payload = kernels_largest_payload(k);
    k->other = on_device(bytes > payload ? bytes : payload);
    k->velocity = on_device(bytes);
    k->magnitudes = on_host(kernels_samples(k) * sizeof *k->magnitudes);
    k->findings = copy_to_device(&(struct sar_findings){ 0, 0 }, sizeof *k->findings);
}

void kernels_close(struct kernels *k)
{
    void *const taken[] = { k->vector.buf, k->device.index, k->device.value, k->out.index,
                            k->out.value,  k->other,        k->parted.index, k->parted.value,
                            k->unsorted,   k->findings,     k->velocity };
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        cudaFree(taken[i]);
    cudaEventDestroy(k->begin);
    cudaEventDestroy(k->end);
    cudaStreamDestroy(k->stream);
    sar_arena_free(&k->arena);
    free(k->dense);
    free(k->parts);
    free(k->first);
    free(k->shuffled);
    free(k->magnitudes);
}
