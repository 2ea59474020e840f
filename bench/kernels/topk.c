/* SPDX-License-Identifier: BSD-3-Clause */
/* Top-k and DGC: sampling, selection by a threshold, and residuals. About half of the nonzero values reach
 * the threshold. */

#include <stdlib.h>
#include <string.h>

#include "bench/kernels/kernels.h"
#include "cuda/launch.h"
#include "vector/magnitude.h"
#include "vector/topk.h"

enum { SAMPLED = 100 /* one element in SAMPLED */, SEED = 3 };

static const double THRESHOLD = 32768, MOMENTUM = 0.9;

size_t kernels_samples(const struct kernels *k)
{
    return k->options->count / SAMPLED + 1;
}

static struct sar_dgc select_args(const struct kernels *k, void *values)
{
    return (struct sar_dgc){ .dtype = SAR_FLOAT, .count = k->options->count, .values = values };
}

/* Arguments of a DGC step; the vector is the gradient. */
static struct sar_dgc step(const struct kernels *k, void *values, const void *gradient, void *velocity)
{
    struct sar_dgc of = select_args(k, values);
    of.gradient = gradient;
    of.velocity = velocity;
    of.momentum = MOMENTUM;
    of.scale = 1;
    of.masking = true;
    return of;
}

static uint64_t threshold(void)
{
    return sar_magnitude_ceil(SAR_FLOAT, THRESHOLD);
}

static enum sar_status run_sample(struct kernels *k)
{
    struct sar_dgc of = select_args(k, k->vector.buf);
    return sar_cuda_sample(&k->vector, &of, kernels_samples(k), SEED, k->magnitudes);
}

static double sample_bytes(const struct kernels *k)
{
    return (double)kernels_samples(k) * (sizeof(float) + sizeof(uint64_t));
}

static bool sample_is_right(struct kernels *k)
{
    size_t n = kernels_samples(k);
    struct sar_dgc of = select_args(k, k->dense);
    uint64_t *magnitudes = malloc(n * sizeof *magnitudes);
    kernels_require(magnitudes != NULL, "taking memory");
    sar_dgc_sample(&of, n, SEED, magnitudes);
    bool same = memcmp(magnitudes, k->magnitudes, n * sizeof *magnitudes) == 0;
    free(magnitudes);
    return same;
}

/* Marks and compacts the selected elements. */
static enum sar_status select_into_out(struct kernels *k, const struct sar_topk_limit *limit)
{
    struct sar_dgc of = select_args(k, k->vector.buf);
    struct sar_nonzero_mask mask;
    SAR_TRY(sar_cuda_select(&k->vector, &of, limit, &mask));
    k->out.nnz = mask.nnz;
    enum sar_status status = mask.nnz == 0 ? SAR_OK : sar_cuda_compact(&k->vector, &mask, &k->out);
    sar_cuda_free_mask(&k->vector, &mask);
    return status;
}

/* Selects on the host. The result lives in the arena. */
static struct sar_spvec select_on_host(const struct kernels *k, const struct sar_dgc *of,
                                       const struct sar_topk_limit *limit, struct sar_arena *arena)
{
    struct sar_topk topk;
    kernels_require(sar_topk_open(&k->desc, limit->capacity, arena, &topk) == SAR_OK,
                    "selecting on the host");
    sar_topk_select(&topk, of, limit->min_magnitude);
    return topk.vec;
}

static bool selection_is_right(const struct kernels *k, const struct sar_topk_limit *limit)
{
    struct sar_arena arena = { 0 };
    struct sar_dgc of = select_args(k, k->dense);
    struct sar_spvec vec = select_on_host(k, &of, limit, &arena);
    bool same = kernels_out_equals(k, &vec);
    sar_arena_free(&arena);
    return same;
}

static struct sar_topk_limit by_threshold(const struct kernels *k)
{
    return (struct sar_topk_limit){ threshold(), k->host.nnz };
}

/* Half of the nonzero elements. The device finds their threshold by counting digits. */
static struct sar_topk_limit by_number(const struct kernels *k)
{
    return (struct sar_topk_limit){ 1, k->host.nnz / 2 };
}

static enum sar_status run_by_threshold(struct kernels *k)
{
    struct sar_topk_limit limit = by_threshold(k);
    return select_into_out(k, &limit);
}

static bool by_threshold_is_right(struct kernels *k)
{
    struct sar_topk_limit limit = by_threshold(k);
    return selection_is_right(k, &limit);
}

static enum sar_status run_by_number(struct kernels *k)
{
    struct sar_topk_limit limit = by_number(k);
    return select_into_out(k, &limit);
}

static bool by_number_is_right(struct kernels *k)
{
    struct sar_topk_limit limit = by_number(k);
    return selection_is_right(k, &limit);
}

/* To be called after a run, which sets k->out. */
static double select_bytes(const struct kernels *k)
{
    return kernels_vector_bytes(k) + (double)k->out.nnz * (sizeof(uint32_t) + sizeof(float));
}

/* Clears the residuals. */
static void prepare_step(struct kernels *k)
{
    size_t bytes = k->options->count * sizeof(float);
    kernels_require(cudaMemsetAsync(k->scratch, 0, bytes, k->stream) == cudaSuccess &&
                        cudaMemsetAsync(k->velocity, 0, bytes, k->stream) == cudaSuccess,
                    "clearing");
}

static enum sar_status run_step(struct kernels *k)
{
    struct sar_dgc of = step(k, k->scratch, k->vector.buf, k->velocity);
    struct sar_topk_limit limit = by_threshold(k);
    struct sar_nonzero_mask mask;
    SAR_TRY(sar_cuda_select(&k->vector, &of, &limit, &mask));
    enum sar_status status = sar_cuda_clear_selected(&k->vector, &of, sar_dgc_mask_threshold(&of), &mask);
    sar_cuda_free_mask(&k->vector, &mask);
    return status;
}

/* Reads the gradient; reads and writes values and velocities. */
static double step_bytes(const struct kernels *k)
{
    return 5 * kernels_vector_bytes(k);
}

/* A step depends on residuals of earlier steps, so two steps start from cleared residuals. */
static bool step_is_right(struct kernels *k)
{
    size_t count = k->options->count;
    struct sar_arena arena = { 0 };
    struct sar_topk_limit limit = by_threshold(k);
    float *values = calloc(count, sizeof *values), *velocity = calloc(count, sizeof *velocity);
    kernels_require(values != NULL && velocity != NULL, "taking memory");
    struct sar_dgc of = step(k, values, k->dense, velocity);
    prepare_step(k);
    for (int i = 0; i < 2; i++) {
        kernels_require(run_step(k) == SAR_OK, "a step");
        struct sar_spvec vec = select_on_host(k, &of, &limit, &arena);
        sar_dgc_clear(&of, &k->desc, &vec);
        sar_arena_reset(&arena);
    }
    kernels_require(cudaStreamSynchronize(k->stream) == cudaSuccess, "a step");
    bool same = kernels_device_equals(k->scratch, values, count * sizeof *values) &&
                kernels_device_equals(k->velocity, velocity, count * sizeof *velocity);
    sar_arena_free(&arena);
    free(values);
    free(velocity);
    return same;
}

const struct kernels_job kernels_of_selections[] = {
    { "sample", run_sample, sample_bytes, sample_is_right, NULL, NULL },
    { "select by threshold", run_by_threshold, select_bytes, by_threshold_is_right, NULL, NULL },
    { "select by number", run_by_number, select_bytes, by_number_is_right, NULL, NULL },
    { "DGC step", run_step, step_bytes, step_is_right, prepare_step, NULL },
    { .name = NULL },
};
