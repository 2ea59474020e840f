/* SPDX-License-Identifier: BSD-3-Clause */
/* Top-k and DGC: what is sampled, selected by a threshold, and left behind. Values are those of the vector,
 * about half of which reach the threshold. */

#include <stdlib.h>
#include <string.h>

#include "cuda/dense.h"
#include "cuda/topk.h"
#include "kernels.h"
#include "tensor/magnitude.h"
#include "tensor/topk.h"

enum { SAMPLED = 100 /* one in so many */, SEED = 3 };

static const double THRESHOLD = 32768, MOMENTUM = 0.9;

size_t kernels_samples(const struct kernels *k)
{
    return k->options->count / SAMPLED + 1;
}

static struct sar_dgc plain(const struct kernels *k, void *values)
{
    return (struct sar_dgc){ .base = SAR_FLOAT, .count = k->options->count, .values = values };
}

/* A step of DGC: the vector is the gradient. */
static struct sar_dgc step(const struct kernels *k, void *values, const void *gradient, void *velocity)
{
    struct sar_dgc of = plain(k, values);
    of.gradient = gradient;
    of.velocity = velocity;
    of.momentum = MOMENTUM;
    of.scale = 1;
    of.masking = true;
    return of;
}

static uint64_t threshold(void)
{
    return sar_magnitude_from(SAR_FLOAT, THRESHOLD);
}

static enum sar_status run_sample(struct kernels *k)
{
    struct sar_dgc of = plain(k, k->vector.buf);
    return sar_cuda_sample(&k->vector, &of, kernels_samples(k), SEED, k->magnitudes);
}

static double sample_bytes(const struct kernels *k)
{
    return (double)kernels_samples(k) * (sizeof(float) + sizeof(uint64_t));
}

static bool sample_is_right(struct kernels *k)
{
    size_t n = kernels_samples(k);
    struct sar_dgc of = plain(k, k->dense);
    uint64_t *magnitudes = malloc(n * sizeof *magnitudes);
    kernels_require(magnitudes != NULL, "taking memory");
    sar_dgc_sample(&of, n, SEED, magnitudes);
    bool same = memcmp(magnitudes, k->magnitudes, n * sizeof *magnitudes) == 0;
    free(magnitudes);
    return same;
}

/* Mark what is selected, and compact it. */
static enum sar_status select_into_out(struct kernels *k, const struct sar_cutoff *cutoff)
{
    struct sar_dgc of = plain(k, k->vector.buf);
    struct sar_marks marks;
    SAR_TRY(sar_cuda_select(&k->vector, &of, cutoff, &marks));
    k->out.nnz = marks.nnz;
    enum sar_status status = marks.nnz == 0 ? SAR_OK : sar_cuda_compact(&k->vector, &marks, &k->out);
    sar_cuda_unmark(&k->vector, &marks);
    return status;
}

/* What the host selects, and makes of the values; in memory of the arena's. */
static struct sar_run select_on_host(const struct kernels *k, const struct sar_dgc *of,
                                     const struct sar_cutoff *cutoff, struct sar_arena *arena)
{
    struct sar_topk topk;
    kernels_require(sar_topk_open(&k->shape, cutoff->capacity, arena, &topk) == SAR_OK,
                    "selecting on the host");
    sar_topk_run(&topk, of, cutoff->least);
    return topk.run;
}

static bool selection_is_right(const struct kernels *k, const struct sar_cutoff *cutoff)
{
    struct sar_arena arena = { 0 };
    struct sar_dgc of = plain(k, k->dense);
    struct sar_run run = select_on_host(k, &of, cutoff, &arena);
    bool same = kernels_out_is(k, &run);
    sar_arena_free(&arena);
    return same;
}

static struct sar_cutoff by_threshold(const struct kernels *k)
{
    return (struct sar_cutoff){ threshold(), k->host.nnz };
}

/* Half of those present: which is found by counting digits. */
static struct sar_cutoff by_number(const struct kernels *k)
{
    return (struct sar_cutoff){ 1, k->host.nnz / 2 };
}

static enum sar_status run_by_threshold(struct kernels *k)
{
    struct sar_cutoff cutoff = by_threshold(k);
    return select_into_out(k, &cutoff);
}

static bool by_threshold_is_right(struct kernels *k)
{
    struct sar_cutoff cutoff = by_threshold(k);
    return selection_is_right(k, &cutoff);
}

static enum sar_status run_by_number(struct kernels *k)
{
    struct sar_cutoff cutoff = by_number(k);
    return select_into_out(k, &cutoff);
}

static bool by_number_is_right(struct kernels *k)
{
    struct sar_cutoff cutoff = by_number(k);
    return selection_is_right(k, &cutoff);
}

/* Once an outcome is there. */
static double select_bytes(const struct kernels *k)
{
    return kernels_vector_bytes(k) + (double)k->out.nnz * (sizeof(uint32_t) + sizeof(float));
}

/* Nothing has been left behind yet. */
static void prepare_step(struct kernels *k)
{
    size_t bytes = k->options->count * sizeof(float);
    kernels_require(cudaMemsetAsync(k->other, 0, bytes, k->stream) == cudaSuccess &&
                        cudaMemsetAsync(k->velocity, 0, bytes, k->stream) == cudaSuccess,
                    "clearing");
}

static enum sar_status run_step(struct kernels *k)
{
    struct sar_dgc of = step(k, k->other, k->vector.buf, k->velocity);
    struct sar_cutoff cutoff = by_threshold(k);
    struct sar_marks marks;
    SAR_TRY(sar_cuda_select(&k->vector, &of, &cutoff, &marks));
    enum sar_status status = sar_cuda_clear(&k->vector, &of, sar_dgc_masked(&of), &marks);
    sar_cuda_unmark(&k->vector, &marks);
    return status;
}

/* The gradient is read, values and velocities are read and written. */
static double step_bytes(const struct kernels *k)
{
    return 5 * kernels_vector_bytes(k);
}

/* Steps go on from what those before have left, so that two are made anew. */
static bool step_is_right(struct kernels *k)
{
    size_t count = k->options->count;
    struct sar_arena arena = { 0 };
    struct sar_cutoff cutoff = by_threshold(k);
    float *values = calloc(count, sizeof *values), *velocity = calloc(count, sizeof *velocity);
    kernels_require(values != NULL && velocity != NULL, "taking memory");
    struct sar_dgc of = step(k, values, k->dense, velocity);
    prepare_step(k);
    for (int i = 0; i < 2; i++) {
        kernels_require(run_step(k) == SAR_OK, "a step");
        struct sar_run run = select_on_host(k, &of, &cutoff, &arena);
        sar_dgc_clear(&of, &k->shape, &run);
        sar_arena_reset(&arena);
    }
    kernels_require(cudaStreamSynchronize(k->stream) == cudaSuccess, "a step");
    bool same = kernels_have(k->other, values, count * sizeof *values) &&
                kernels_have(k->velocity, velocity, count * sizeof *velocity);
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
