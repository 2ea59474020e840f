/* SPDX-License-Identifier: BSD-3-Clause */
/* One top-k threshold for a tensor whose parts are on several ranks: each rank samples its part, all ranks
 * gather the samples and take the same one of them as threshold (DGC as the Zen paper adapts it to tensor
 * parallelism). Runs in the MPIX_Sparse functions for top-k over a communicator.
 *
 *     time = (4 log2(p) + p) alpha + samples * (8 beta + gamma) */

#include "core/global_topk.h"

#include <math.h>

#include "core/progress.h"
#include "device/ops.h"
#include "hash/murmur3.h"
#include "vector/magnitude.h"

enum {
    ABOVE_MIN = 100,      /* samples above the threshold: its error is about a tenth then */
    SAMPLES_MAX = 1 << 20 /* of all ranks */
};

/* Gathered from every rank; all members have 8 bytes. */
struct topk_msg {
    uint64_t count;
    double ratio, sample;
};

enum { TOPK_MSG_WORDS = sizeof(struct topk_msg) / sizeof(uint64_t) };

/* Samples of all ranks: one row of `stride` samples per rank, and a last one for this rank's own. */
struct samples {
    double share; /* samples per element */
    size_t stride;
    uint64_t *magnitudes;
};

static enum sar_status gather(const struct sar_comm *comm, const void *mine, size_t words, void *all)
{
    struct sar_collective collective;
    bool done;
    SAR_TRY(sar_collective_allgather_start(comm, mine, (int)words, all, &collective));
    return sar_collective_test(comm, &collective, true, &done);
}

static struct sar_error check_equal(const struct topk_msg msgs[], int ranks)
{
    struct sar_error error = { .agreed = true };
    for (int r = ranks - 1; r > 0; r--) {
        bool sample = msgs[r].sample != msgs[0].sample, ratio = msgs[r].ratio != msgs[0].ratio;
        if (!sample && !ratio)
            continue;
        error.status = ratio ? SAR_BAD_RATIO : SAR_BAD_SAMPLE;
        error.value = sar_error_bits_of(ratio ? msgs[r].ratio : msgs[r].sample);
        error.rank = r;
    }
    return error;
}

static size_t samples_of(const struct samples *s, uint64_t count)
{
    double wanted = ceil((double)count * s->share);
    return wanted < (double)count ? (size_t)wanted : (size_t)count;
}

/* Set share and stride. Equal on all ranks. */
static void plan_samples(const struct topk_msg msgs[], int ranks, struct samples *s)
{
    double total = 0;
    for (int r = 0; r < ranks; r++)
        total += (double)msgs[r].count;
    double share_min = fmin(ABOVE_MIN / msgs[0].ratio, SAMPLES_MAX) / fmax(total, 1);
    s->share = fmin(fmax(msgs[0].sample, share_min), SAMPLES_MAX / fmax(total, SAMPLES_MAX));
    s->stride = 1;
    for (int r = 0; r < ranks; r++) {
        size_t n = samples_of(s, msgs[r].count);
        s->stride = n > s->stride ? n : s->stride;
    }
}

/* Rows are padded with zeros, which are never among the largest magnitudes. */
static enum sar_status alloc_samples(int ranks, struct sar_arena *arena, struct samples *s)
{
    void *memory;
    size_t rows = (size_t)ranks + 1;
    if (s->stride > SIZE_MAX / sizeof *s->magnitudes / rows)
        return SAR_NO_MEMORY;
    SAR_TRY(sar_arena_alloc_zeroed(arena, rows * s->stride, sizeof *s->magnitudes, &memory));
    s->magnitudes = memory;
    return SAR_OK;
}

/* Sample this rank's part into the last row. */
static enum sar_status sample(struct sar_comm_state *comm_state, const struct sar_call_args *args,
                              const struct sar_dgc *dgc, uint32_t seed, struct samples *s)
{
    const struct sar_comm *comm = &comm_state->comm;
    const struct sar_device_ctx *memory = &args->device.memory;
    size_t n = samples_of(s, dgc->count);
    SAR_TRY(alloc_samples(comm->ranks, &comm_state->memory.arena, s));
    uint64_t *mine = s->magnitudes + (size_t)comm->ranks * s->stride;
    seed = sar_murmur3((uint32_t)comm->rank, seed);
    if (memory->accelerator != NULL) {
        struct sar_device_vec vector = sar_device_vec_of(memory, &args->sig.desc, dgc->values);
        return memory->accelerator->sample(&vector, dgc, n, seed, mine);
    }
    sar_dgc_sample(dgc, n, seed, mine);
    return SAR_OK;
}

static enum sar_status find_threshold(struct sar_comm_state *comm_state, const struct sar_call_args *args,
                                      const struct sar_dgc *dgc, const struct sar_topk_params *params,
                                      const struct topk_msg msgs[], uint64_t *threshold)
{
    const struct sar_comm *comm = &comm_state->comm;
    struct samples s = { 0 };
    size_t ranks = (size_t)comm->ranks, wanted, n = 0;
    if (params->ratio >= 1) { /* the smallest sample would exclude smaller elements */
        *threshold = 0;
        return SAR_OK;
    }
    plan_samples(msgs, comm->ranks, &s);
    SAR_TRY(sar_comm_max_status(comm, sample(comm_state, args, dgc, params->seed, &s)));
    SAR_TRY(gather(comm, s.magnitudes + ranks * s.stride, s.stride, s.magnitudes));
    for (size_t r = 0; r < ranks; r++)
        n += samples_of(&s, msgs[r].count);
    wanted = (size_t)(params->ratio * (double)n + 0.5);
    *threshold =
        n == 0 ? 0
               : sar_magnitude_select(dgc->dtype, s.magnitudes, ranks * s.stride, wanted > 0 ? wanted : 1);
    if (*threshold > sar_magnitude_infinite(dgc->dtype))
        *threshold = sar_magnitude_infinite(dgc->dtype);
    return SAR_OK;
}

/* Memory whose size depends only on arguments is allocated before the agreement, which then shares the
 * error. */
static void agree_and_find(struct sar_comm_state *comm_state, struct sar_call_args *args,
                           const struct sar_dgc *dgc, const struct sar_topk_params *params,
                           uint64_t *threshold)
{
    const struct sar_comm *comm = &comm_state->comm;
    struct topk_msg mine = { dgc->count, params->ratio, params->sample_fraction };
    void *msgs = NULL;
    enum sar_status status =
        sar_arena_alloc(&comm_state->memory.arena, (size_t)comm->ranks, sizeof(struct topk_msg), &msgs);
    if (args->result.error.status == SAR_OK)
        args->result.error.status = status;
    sar_progress_check(comm_state, args);
    if (args->result.error.status != SAR_OK)
        return;
    status = gather(comm, &mine, TOPK_MSG_WORDS, msgs);
    if (status == SAR_OK)
        args->result.error = check_equal(msgs, comm->ranks);
    if (status == SAR_OK && args->result.error.status == SAR_OK)
        status = find_threshold(comm_state, args, dgc, params, msgs, threshold);
    if (status != SAR_OK)
        args->result.error = (struct sar_error){ .status = status };
}

void sar_global_topk_threshold(struct sar_comm_state *comm_state, struct sar_call_args *args,
                               const struct sar_dgc *dgc, const struct sar_topk_params *params,
                               uint64_t *threshold)
{
    sar_arena_reset(&comm_state->memory.arena);
    agree_and_find(comm_state, args, dgc, params, threshold);
}

void sar_global_topk_select(struct sar_comm_state *comm_state, struct sar_call_args *args,
                            const struct sar_dgc *dgc, const struct sar_topk_params *params, size_t capacity,
                            struct sar_topk *topk)
{
    uint64_t threshold;
    sar_arena_reset(&comm_state->memory.arena);
    if (args->result.error.status == SAR_OK)
        args->result.error.status = sar_topk_open(&args->sig.desc, capacity, &comm_state->memory.arena, topk);
    agree_and_find(comm_state, args, dgc, params, &threshold);
    if (args->result.error.status == SAR_OK)
        sar_topk_select(topk, dgc, threshold);
}
