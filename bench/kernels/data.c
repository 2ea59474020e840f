/* SPDX-License-Identifier: BSD-3-Clause */
/* The vector and its encodings, made on the host and copied to the device. */

#include <stdlib.h>
#include <string.h>

#include "bench/kernels/kernels.h"
#include "vector/dense.h"
#include "vector/partition.h"
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

double kernels_vector_coo_bytes(const struct kernels *k)
{
    return (double)k->host.nnz * (sizeof(uint32_t) + sizeof(float));
}

bool kernels_device_equals(const void *device, const void *host, size_t bytes)
{
    void *copy = malloc(bytes + 1);
    kernels_require(copy != NULL && cudaMemcpy(copy, device, bytes, cudaMemcpyDeviceToHost) == cudaSuccess,
                    "a copy");
    bool same = memcmp(copy, host, bytes) == 0;
    free(copy);
    return same;
}

bool kernels_out_equals(const struct kernels *k, const struct sar_spvec *vec)
{
    return k->out.nnz == vec->nnz &&
           kernels_device_equals(k->out.index, vec->index, vec->nnz * sizeof(uint32_t)) &&
           kernels_device_equals(k->out.value, vec->value, vec->nnz * sizeof(float));
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

static struct sar_spvec run_on_device(size_t nnz)
{
    return (struct sar_spvec){ on_device(nnz * sizeof(uint32_t)), on_device(nnz * sizeof(float)), nnz };
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
    k->map = sar_partition_map_make(SAR_PARTITION_HASH, k->options->count, (uint32_t)parts, GRAIN, SEED);
    k->parts = on_host(parts * sizeof *k->parts);
    k->first = on_host((parts + 1) * sizeof *k->first);
    kernels_require(sar_partition_split(&k->map, &k->desc, &k->host, &k->arena, k->parts) == SAR_OK,
                    "splitting on the host");
    k->partitioned =
        (struct sar_spvec){ copy_to_device(k->parts[0].index, k->host.nnz * sizeof(uint32_t)),
                            copy_to_device(k->parts[0].value, k->host.nnz * sizeof(float)), k->host.nnz };
}

/* Fisher-Yates shuffle. */
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
    k->desc = (struct sar_vec_desc){ .count = options->count,
                                     .row_len = 1,
                                     .element_size = sizeof(float),
                                     .index_size = sizeof(uint32_t),
                                     .dtype = SAR_FLOAT,
                                     .op = SAR_SUM,
                                     .kernels = sar_op_kernels_of(SAR_FLOAT, SAR_SUM) };
    kernels_require(cudaStreamCreateWithFlags(&k->stream, cudaStreamNonBlocking) == cudaSuccess &&
                        cudaEventCreate(&k->begin) == cudaSuccess && cudaEventCreate(&k->end) == cudaSuccess,
                    "making a stream");
    draw(k);
    kernels_require(sar_dense_compact(&k->desc, k->dense, 0, &k->arena, &k->host) == SAR_OK,
                    "compacting on the host");
    split(k);
    shuffle(k);
    size_t bytes = options->count * sizeof(float), nnz = k->host.nnz;
    k->vector = (struct sar_device_vec){ &k->desc, copy_to_device(k->dense, bytes), 0, k->stream };
    k->device = (struct sar_spvec){ copy_to_device(k->host.index, nnz * sizeof(uint32_t)),
                                    copy_to_device(k->host.value, nnz * sizeof(float)), nnz };
    k->out = run_on_device(nnz);
    size_t payload = kernels_largest_payload(k);
    k->scratch = on_device(bytes > payload ? bytes : payload);
    k->velocity = on_device(bytes);
    k->magnitudes = on_host(kernels_samples(k) * sizeof *k->magnitudes);
    k->flags = copy_to_device(&(struct sar_device_flags){ 0, 0 }, sizeof *k->flags);
}

void kernels_close(struct kernels *k)
{
    void *const taken[] = { k->vector.buf, k->device.index, k->device.value,      k->out.index,
                            k->out.value,  k->scratch,      k->partitioned.index, k->partitioned.value,
                            k->unsorted,   k->flags,        k->velocity };
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
