/* SPDX-License-Identifier: BSD-3-Clause */
/* Algorithm 1 of the Zen paper on a device: times for several numbers of hashes and sizes of memory, and a
 * search for lost elements. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kernels/kernels.h"
#include "cuda/launch.h"

static const double memories[] = { 1, 1.5, 2, 3, 4 }; /* r1: cells of all parts for each element */

enum { HASHES = 4, SERIAL_SHARE = 10, LEAST_SERIAL = 16 };

/* Arguments and output of run_hash. */
static struct sar_hierarchical_params parameters;
static struct sar_hash_output out;

static struct sar_hash_input input_of(const struct kernels *k)
{
    return (struct sar_hash_input){ k->device.index, k->device.value, sizeof(uint32_t), sizeof(float),
                                    k->device.nnz };
}

static enum sar_status run_hash(struct kernels *k)
{
    struct sar_hash_input input = input_of(k);
    return sar_cuda_hierarchical_hash(&parameters, &k->map, &input, &out, k->stream);
}

static void study_one(struct kernels *k, unsigned hashes, double memory)
{
    parameters = sar_hierarchical_params_make(k->device.nnz, k->map.parts, 1);
    parameters.hashes = hashes;
    parameters.parallel_cells = (size_t)(memory * (double)k->device.nnz / k->map.parts) + 1;
    parameters.serial_cells = parameters.parallel_cells / SERIAL_SHARE + LEAST_SERIAL;
    double milliseconds = kernels_time(k, run_hash);
    printf("  %6u %6.1f %10.3f %8.3f%% %8u\n", hashes, memory, milliseconds,
           k->device.nnz == 0 ? 0 : 100 * (double)out.serial_count / (double)k->device.nnz, out.reruns);
    fflush(stdout);
}

static void *take(size_t bytes)
{
    void *memory = NULL;
    kernels_require(cudaMalloc(&memory, bytes + 1) == cudaSuccess, "taking memory of the device");
    return memory;
}

/* Returns the occurrences that are missing or in a wrong part. */
static size_t lost(const struct kernels *k, const size_t *first, const size_t *position, unsigned char *seen)
{
    size_t found = 0;
    memset(seen, 0, k->host.nnz);
    for (uint32_t p = 0; p < k->map.parts; p++)
        for (size_t i = first[p]; i < first[p + 1]; i++) {
            uint64_t index = ((const uint32_t *)k->host.index)[position[i]];
            if (!seen[position[i]] && sar_partition_map_locate(&k->map, index).part == p)
                found++;
            seen[position[i]] = 1;
        }
    return k->host.nnz - found;
}

/* Each run has another seed. */
static size_t lost_in_runs(struct kernels *k)
{
    size_t parts = k->map.parts, nnz = k->host.nnz, all = 0;
    size_t *first = malloc((parts + 1) * sizeof *first), *position = malloc(nnz * sizeof *position + 1);
    unsigned char *seen = malloc(nnz + 1);
    kernels_require(first != NULL && position != NULL && seen != NULL, "taking memory");
    for (int run = 0; run < k->options->runs; run++) {
        parameters = sar_hierarchical_params_make(nnz, k->map.parts, (uint32_t)run);
        kernels_require(run_hash(k) == SAR_OK &&
                            cudaMemcpyAsync(first, out.first, (parts + 1) * sizeof *first,
                                            cudaMemcpyDeviceToHost, k->stream) == cudaSuccess &&
                            cudaMemcpyAsync(position, out.position, nnz * sizeof *position,
                                            cudaMemcpyDeviceToHost, k->stream) == cudaSuccess &&
                            cudaStreamSynchronize(k->stream) == cudaSuccess,
                        "Algorithm 1");
        all += lost(k, first, position, seen);
    }
    free(first);
    free(position);
    free(seen);
    return all;
}

bool kernels_study_hash(struct kernels *k)
{
    out = (struct sar_hash_output){ .first = take((k->map.parts + 1) * sizeof(size_t)),
                                    .position = take(k->device.nnz * sizeof(size_t)),
                                    .index = k->out.index,
                                    .value = k->out.value };
    printf("# Algorithm 1\n# %6s %6s %10s %9s %8s\n", "hashes", "r1/nnz", "ms", "serial", "reruns");
    for (unsigned hashes = 1; hashes <= HASHES; hashes++)
        for (size_t m = 0; m < sizeof memories / sizeof *memories; m++)
            study_one(k, hashes, memories[m]);
    size_t gone = lost_in_runs(k);
    printf("# %zu elements lost in %d runs\n", gone, k->options->runs);
    cudaFree(out.first);
    cudaFree(out.position);
    return gone == 0;
}
