/* SPDX-License-Identifier: BSD-3-Clause */
/* Profiles. Runs in the first call of a tensor and then every MPIX_SPARSE_PROFILE_EVERY calls; costs one
 * pass over the elements and the collectives that sar_profile_start names. */

#include "core/profile.h"

#include <math.h>
#include <stdlib.h>

#include "hash/murmur3.h"
#include "scheme/engine/spread.h"

static const double SKEWNESS_SCALE = 1e6; /* skewness is gathered as an integer */

enum {
    SAMPLE_ELEMENTS = 4096, /* sampled elements of all ranks */
    SLOTS_PER_ELEMENT = 16, /* so that few slots have several indices */
    SLOTS_MIN = 64,
    SAMPLE_SEED = 0x5eed
};

uint32_t sar_profile_slots(uint64_t nnz_sum)
{
    uint32_t slots = SLOTS_MIN;
    while (slots < SAMPLE_ELEMENTS * SLOTS_PER_ELEMENT && slots / SLOTS_PER_ELEMENT < nnz_sum)
        slots *= 2;
    return slots;
}

void sar_index_sample_choose(struct sar_index_sample *s, const struct sar_vec_desc *desc, uint64_t nnz_sum)
{
    double wanted = (double)s->slots / SLOTS_PER_ELEMENT,
           elements_max = fmin((double)nnz_sum, (double)desc->count);
    s->exact = desc->count <= s->slots;
    s->fraction = s->exact || elements_max <= wanted ? 1 : wanted / elements_max;
    s->threshold = s->fraction == 1 ? UINT32_MAX : (uint32_t)(s->fraction * 4294967296.0);
}

void sar_index_sample_count(struct sar_index_sample *s, const struct sar_vec_desc *desc,
                            const struct sar_spvec *vec)
{
    for (size_t i = 0; i < vec->nnz; i++) {
        uint64_t index = sar_index_get(vec->index, desc->index_size, i);
        uint32_t hash = sar_murmur3_u64(index, SAMPLE_SEED);
        if (s->exact)
            s->holders[index] = 1;
        else if (hash <= s->threshold)
            s->holders[sar_mix32(hash) % s->slots] = 1;
    }
}

/* lgamma writes a global variable; lgamma_r does not. */
static double log_factorial(int n)
{
    int sign;
    return lgamma_r(n + 1.0, &sign);
}

/* Share of the choices of k of n ranks that include at least one of c given ranks. */
static double share_covered(int n, int c, int k)
{
    if (k > n - c)
        return 1;
    double log_missed =
        log_factorial(n - c) - log_factorial(n - c - k) - log_factorial(n) + log_factorial(n - k);
    return 1 - exp(log_missed);
}

/* Estimated distinct sampled elements for this number of occupied slots. */
static double distinct_elements(const struct sar_index_sample *s, double occupied)
{
    if (s->exact || occupied == 0)
        return occupied;
    return -(double)s->slots * log1p(-fmin(occupied, s->slots - 0.5) / s->slots);
}

/* Slots that k of all ranks occupy on average; and their sum weighted by the share of ranks with elements
 * there. */
struct coverage {
    double occupied, weighted;
};

/* histogram[c] slots have elements of c ranks. */
static struct coverage coverage_of(const double *histogram, int ranks, int k)
{
    struct coverage coverage = { 0, 0 };
    for (int c = 1; c <= ranks; c++) {
        if (histogram[c] == 0)
            continue;
        double slots = histogram[c] * share_covered(ranks, c, k);
        coverage.occupied += slots;
        coverage.weighted += slots * c / ranks;
    }
    return coverage;
}

/* The mean elements per rank are known exactly. The difference between them and the sample's estimate
 * corrects the unions of k ranks, too. Its regression coefficient is 1 for one rank, and k if no two ranks
 * share an element. */
struct sar_densification sar_index_sample_gamma(const struct sar_index_sample *s, const double *histogram,
                                                double nnz, int ranks)
{
    struct sar_densification gamma = sar_densification_independent(0, ranks);
    struct coverage one = coverage_of(histogram, ranks, 1);
    double wanted = nnz * s->fraction, missing = wanted - distinct_elements(s, one.occupied);
    for (int i = 0; i < gamma.points && one.weighted > 0; i++) {
        struct coverage coverage = coverage_of(histogram, ranks, gamma.ranks[i]);
        double elements =
            distinct_elements(s, coverage.occupied) + missing * coverage.weighted / one.weighted;
        gamma.ratio[i] = fmin(fmax(elements / wanted, 1), gamma.ranks[i]);
    }
    return gamma;
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Mean of |I1 & I2| over pairs, over the mean of min(|I1|, |I2|). */
static double overlap_of(const struct sar_index_sample *s, const double *histogram, uint64_t *nnz, int ranks)
{
    double both = 0, smaller = 0, by_chance = 0, before = 0;
    qsort(nnz, (size_t)ranks, sizeof *nnz, compare_u64);
    for (int r = 0; r < ranks; r++) {
        double sampled = (double)nnz[r] * s->fraction;
        smaller += sampled * (ranks - 1 - r);
        by_chance += sampled * before / s->slots;
        before += sampled;
    }
    for (int c = 2; c <= ranks; c++)
        both += histogram[c] * c * (c - 1) / 2;
    if (!s->exact)
        both -= by_chance;
    return smaller > 0 ? fmin(fmax(both / smaller, 0), 1) : 0;
}

/* Density of the densest of `parts` contiguous parts over the density of all (Zen, Definition 4). */
static double skewness_of(const struct sar_vec_desc *desc, const struct sar_spvec *vec, int parts)
{
    uint64_t width = desc->count / (uint64_t)parts + (desc->count % (uint64_t)parts != 0);
    size_t elements_max = 0, in_part = 0;
    uint64_t part = 0;
    for (size_t i = 0; i < vec->nnz; i++) {
        uint64_t of = sar_index_get(vec->index, desc->index_size, i) / width;
        in_part = of == part ? in_part + 1 : 1;
        part = of;
        elements_max = in_part > elements_max ? in_part : elements_max;
    }
    return vec->nnz == 0 ? 1 : (double)elements_max * parts / (double)vec->nnz;
}

static enum sar_status alloc(struct sar_profile_state *state, struct sar_arena *arena)
{
    size_t ranks = (size_t)state->comm->ranks;
    void *counters, *list, *nnz, *quantiles, *bins;
    SAR_TRY(sar_arena_alloc_zeroed(arena, state->sample.slots, sizeof *state->sample.holders, &counters));
    SAR_TRY(sar_arena_alloc(arena, ranks, sizeof *state->gathered, &list));
    SAR_TRY(sar_arena_alloc(arena, ranks, sizeof *state->nnz, &nnz));
    SAR_TRY(sar_arena_alloc(arena, ranks, sizeof *state->quantiles, &quantiles));
    SAR_TRY(sar_arena_alloc_zeroed(arena, ranks + 1, sizeof *state->histogram, &bins));
    state->sample.holders = counters;
    state->gathered = list;
    state->nnz = nnz;
    state->quantiles = quantiles;
    state->histogram = bins;
    return SAR_OK;
}

static double density_of(double nnz, const struct sar_vec_desc *desc)
{
    return desc->count == 0 ? 0 : nnz / (double)desc->count;
}

struct sar_profile sar_profile_empty(int ranks)
{
    return (struct sar_profile){ .skewness = 1, .gamma = sar_densification_independent(0, ranks) };
}

enum sar_status sar_profile_start(const struct sar_comm *comm, const struct sar_vec_desc *desc,
                                  const struct sar_spvec *vec, uint32_t slots, struct sar_arena *arena,
                                  struct sar_profile_state *state)
{
    *state = (struct sar_profile_state){ .comm = comm, .desc = *desc, .vec = *vec, .sample.slots = slots };
    state->max_status = (int)alloc(state, arena);
    return sar_collective_max_status_start(comm, &state->max_status, &state->collective);
}

static enum sar_status gather(struct sar_profile_state *state)
{
    SAR_TRY((enum sar_status)state->max_status);
    double skewness = skewness_of(&state->desc, &state->vec, state->comm->ranks);
    state->local = (struct sar_profile_part){ .nnz = state->vec.nnz,
                                              .skewness = (uint64_t)(skewness * SKEWNESS_SCALE),
                                              .quantiles = sar_quantiles_of(&state->desc, &state->vec) };
    return sar_collective_allgather_start(state->comm, &state->local.nnz,
                                          (int)(sizeof state->local / sizeof(uint64_t)),
                                          &state->gathered->nnz, &state->collective);
}

static enum sar_status count(struct sar_profile_state *state)
{
    uint64_t sum = 0;
    for (int r = 0; r < state->comm->ranks; r++)
        sum += state->gathered[r].nnz;
    sar_index_sample_choose(&state->sample, &state->desc, sum);
    sar_index_sample_count(&state->sample, &state->desc, &state->vec);
    return sar_collective_sum_start(state->comm, state->sample.holders, (int)state->sample.slots,
                                    &state->collective);
}

static struct sar_profile make_profile(struct sar_profile_state *state)
{
    const struct sar_index_sample *s = &state->sample;
    int ranks = state->comm->ranks;
    struct sar_profile made = { 0 };
    double sum = 0;
    for (int r = 0; r < ranks; r++) {
        const struct sar_profile_part *part = &state->gathered[r];
        made.skewness += (double)part->skewness / SKEWNESS_SCALE / ranks;
        made.density_max = fmax(made.density_max, density_of((double)part->nnz, &state->desc));
        sum += (double)part->nnz;
        state->nnz[r] = part->nnz;
        state->quantiles[r] = part->quantiles;
    }
    sar_segment_imbalance(state->nnz, state->quantiles, ranks, made.segment_imbalance);
    for (uint32_t i = 0; i < s->slots; i++)
        state->histogram[s->holders[i]]++;
    made.density = density_of(sum / ranks, &state->desc);
    made.gamma = sar_index_sample_gamma(s, state->histogram, sum / ranks, ranks);
    made.overlap = overlap_of(s, state->histogram, state->nnz, ranks);
    made.density_out = fmin(made.density * made.gamma.ratio[made.gamma.points - 1], 1);
    made.sampled = s->exact ? state->desc.count : (uint64_t)(s->fraction * (double)state->desc.count);
    return made;
}

enum sar_status sar_profile_advance(struct sar_profile_state *state, bool block, struct sar_profile *profile,
                                    bool *done)
{
    bool arrived;
    *done = false;
    for (;;) {
        SAR_TRY(sar_collective_test(state->comm, &state->collective, block, &arrived));
        if (!arrived)
            return SAR_OK;
        *done = state->step == SAR_PROFILE_COUNT;
        if (*done)
            break;
        SAR_TRY(state->step++ == SAR_PROFILE_MAX_STATUS ? gather(state) : count(state));
    }
    *profile = make_profile(state);
    return SAR_OK;
}
