/* SPDX-License-Identifier: BSD-3-Clause */
/* One threshold for a tensor whose parts are on several ranks: each samples its part, all gather the samples
 * and take the same one of them (DGC as the Zen paper adapts it to tensor parallelism).
 *
 *     time = (4 log2(p) + p) alpha + samples * (8 beta + gamma) */

#include "plan/topk.h"

#include <math.h>

#include "device/offload.h"
#include "hash/murmur3.h"
#include "tensor/magnitude.h"

enum {
    LEAST_ABOVE = 100, /* samples that are to be above the threshold, so that it is right to within a tenth */
    MOST_SAMPLES = 1 << 20 /* of all ranks */
};

/* What a rank tells the others; all numbers of 8 bytes. */
struct card {
    uint64_t count;
    double ratio, sample;
};

enum { CARD_WORDS = sizeof(struct card) / sizeof(uint64_t) };

/* Samples of all ranks, those of each in a row of `width`. */
struct samples {
    double share; /* of the elements */
    size_t width;
    uint64_t *magnitudes;
};

static enum sar_status gather(const struct sar_net *net, const void *mine, size_t words, void *all)
{
    struct sar_collective collective;
    bool done;
    SAR_TRY(sar_net_gather_start(net, mine, (int)words, all, &collective));
    return sar_net_test(net, &collective, true, &done);
}

static struct sar_verdict judge(const struct card cards[], int ranks)
{
    struct sar_verdict v = { .agreed = true };
    for (int r = ranks - 1; r > 0; r--) {
        bool sample = cards[r].sample != cards[0].sample, ratio = cards[r].ratio != cards[0].ratio;
        if (!sample && !ratio)
            continue;
        v.status = ratio ? SAR_BAD_RATIO : SAR_BAD_SAMPLE;
        v.value = sar_real_bits(ratio ? cards[r].ratio : cards[r].sample);
        v.rank = r;
    }
    return v;
}

static size_t samples_of(const struct samples *s, uint64_t count)
{
    double wanted = ceil((double)count * s->share);
    return wanted < (double)count ? (size_t)wanted : (size_t)count;
}

/* The same on all ranks. */
static void measure(const struct card cards[], int ranks, struct samples *s)
{
    double total = 0;
    for (int r = 0; r < ranks; r++)
        total += (double)cards[r].count;
    double least = fmin(LEAST_ABOVE / cards[0].ratio, MOST_SAMPLES) / fmax(total, 1);
    s->share = fmin(fmax(cards[0].sample, least), MOST_SAMPLES / fmax(total, MOST_SAMPLES));
    s->width = 1;
    for (int r = 0; r < ranks; r++) {
        size_t n = samples_of(s, cards[r].count);
        s->width = n > s->width ? n : s->width;
    }
}

/* Room for one row more, this rank's own. Whoever has fewer samples than others has zeros for the rest, which
 * are never among the largest. */
static enum sar_status take(int ranks, struct sar_arena *arena, struct samples *s)
{
    void *memory;
    size_t rows = (size_t)ranks + 1;
    if (s->width > SIZE_MAX / sizeof *s->magnitudes / rows)
        return SAR_NO_MEMORY;
    SAR_TRY(sar_arena_take_zeroed(arena, rows * s->width, sizeof *s->magnitudes, &memory));
    s->magnitudes = memory;
    return SAR_OK;
}

/* This rank's own samples, behind those of all. */
static enum sar_status sample(struct sar_context *context, const struct sar_call *call,
                              const struct sar_dgc *of, uint32_t seed, struct samples *s)
{
    const struct sar_net *net = &context->net;
    size_t n = samples_of(s, of->count);
    SAR_TRY(take(net->ranks, &context->arena, s));
    uint64_t *mine = s->magnitudes + (size_t)net->ranks * s->width;
    seed = sar_murmur3((uint32_t)net->rank, seed);
    if (call->memory.accelerator != NULL)
        return sar_offload_sample(&call->memory, &call->shape, of, n, seed, mine);
    sar_dgc_sample(of, n, seed, mine);
    return SAR_OK;
}

static enum sar_status find(struct sar_context *context, const struct sar_call *call,
                            const struct sar_dgc *of, const struct sar_share *share,
                            const struct card cards[], uint64_t *least)
{
    const struct sar_net *net = &context->net;
    struct samples s = { 0 };
    size_t ranks = (size_t)net->ranks, wanted, n = 0;
    /* The least of a sample would leave out what is less. */
    if (share->ratio >= 1) {
        *least = 0;
        return SAR_OK;
    }
    measure(cards, net->ranks, &s);
    SAR_TRY(sar_net_worst(net, sample(context, call, of, share->seed, &s)));
    SAR_TRY(gather(net, s.magnitudes + ranks * s.width, s.width, s.magnitudes));
    for (size_t r = 0; r < ranks; r++)
        n += samples_of(&s, cards[r].count);
    wanted = (size_t)(share->ratio * (double)n + 0.5);
    *least =
        n == 0 ? 0 : sar_magnitude_select(of->base, s.magnitudes, ranks * s.width, wanted > 0 ? wanted : 1);
    if (*least > sar_magnitude_infinite(of->base))
        *least = sar_magnitude_infinite(of->base);
    return SAR_OK;
}

/* Memory that only depends on the arguments is taken before the agreement, so that its lack is part of that.
 */
static void find_taken(struct sar_context *context, struct sar_call *call, const struct sar_dgc *of,
                       const struct sar_share *share, uint64_t *least)
{
    const struct sar_net *net = &context->net;
    struct card mine = { of->count, share->ratio, share->sample };
    void *cards = NULL;
    enum sar_status status = sar_arena_take(&context->arena, (size_t)net->ranks, sizeof(struct card), &cards);
    if (call->verdict.status == SAR_OK)
        call->verdict.status = status;
    sar_call_check(context, call);
    if (call->verdict.status != SAR_OK)
        return;
    status = gather(net, &mine, CARD_WORDS, cards);
    if (status == SAR_OK)
        call->verdict = judge(cards, net->ranks);
    if (status == SAR_OK && call->verdict.status == SAR_OK)
        status = find(context, call, of, share, cards, least);
    if (status != SAR_OK)
        call->verdict = (struct sar_verdict){ .status = status };
}

void sar_topk_find(struct sar_context *context, struct sar_call *call, const struct sar_dgc *of,
                   const struct sar_share *share, uint64_t *least)
{
    sar_arena_reset(&context->arena);
    find_taken(context, call, of, share, least);
}

void sar_topk_step(struct sar_context *context, struct sar_call *call, const struct sar_dgc *of,
                   const struct sar_share *share, size_t capacity, struct sar_topk *topk)
{
    uint64_t least;
    sar_arena_reset(&context->arena);
    if (call->verdict.status == SAR_OK)
        call->verdict.status = sar_topk_open(&call->shape, capacity, &context->arena, topk);
    find_taken(context, call, of, share, &least);
    if (call->verdict.status == SAR_OK)
        sar_topk_run(topk, of, least);
}
