/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/profile.h"

#include <math.h>
#include <stdlib.h>

#include "hash/murmur3.h"

static const double SKEWNESS_UNIT = 1e6; /* gathered as a whole number */

enum {
    SAMPLE = 4096,   /* elements of all ranks to count */
    SLOTS_EACH = 16, /* slots for each of them, so that few are shared by accident */
    LEAST_SLOTS = 64,
    SAMPLE_SEED = 0x5eed
};

uint32_t sar_profile_slots(uint64_t nnz_sum)
{
    uint32_t slots = LEAST_SLOTS;
    while (slots < SAMPLE * SLOTS_EACH && slots / SLOTS_EACH < nnz_sum)
        slots *= 2;
    return slots;
}

void sar_sample_choose(struct sar_sample *s, const struct sar_shape *shape, uint64_t nnz_sum)
{
    double wanted = (double)s->slots / SLOTS_EACH, most = fmin((double)nnz_sum, (double)shape->count);
    s->exact = shape->count <= s->slots;
    s->share = s->exact || most <= wanted ? 1 : wanted / most;
    s->threshold = s->share == 1 ? UINT32_MAX : (uint32_t)(s->share * 4294967296.0);
}

void sar_sample_count(struct sar_sample *s, const struct sar_shape *shape, const struct sar_run *run)
{
    for (size_t i = 0; i < run->nnz; i++) {
        uint64_t index = sar_index_get(run->index, shape->index_size, i);
        uint32_t hash = sar_murmur3_wide(index, SAMPLE_SEED);
        if (s->exact)
            s->ranks_in[index] = 1;
        else if (hash <= s->threshold)
            s->ranks_in[sar_mix32(hash) % s->slots] = 1;
    }
}

/* lgamma itself writes a variable that all threads share. */
static double log_factorial(int n)
{
    int sign;
    return lgamma_r(n + 1.0, &sign);
}

/* The share of choices of k of n ranks that meet at least one of c ranks. */
static double share_met(int n, int c, int k)
{
    if (k > n - c)
        return 1;
    double log_missed =
        log_factorial(n - c) - log_factorial(n - c - k) - log_factorial(n) + log_factorial(n - k);
    return 1 - exp(log_missed);
}

/* Elements behind so many occupied slots. */
static double distinct(const struct sar_sample *s, double occupied)
{
    if (s->exact || occupied == 0)
        return occupied;
    return -(double)s->slots * log1p(-fmin(occupied, s->slots - 0.5) / s->slots);
}

/* What k of all ranks occupy, and the same with each slot weighted by the share of ranks that hold it. */
struct met {
    double occupied, weighted;
};

/* histogram[c] slots are held by c ranks. */
static struct met met_by(const double *histogram, int ranks, int k)
{
    struct met met = { 0, 0 };
    for (int c = 1; c <= ranks; c++) {
        if (histogram[c] == 0)
            continue;
        double slots = histogram[c] * share_met(ranks, c, k);
        met.occupied += slots;
        met.weighted += slots * c / ranks;
    }
    return met;
}

/* How many elements a rank has is known, of its share in the sample as well. What the sample has too few or
 * too many of these it has of unions, too: by a regression, whose slope is 1 at one rank and k where no two
 * ranks meet. */
struct sar_gamma sar_sample_gamma(const struct sar_sample *s, const double *histogram, double nnz, int ranks)
{
    struct sar_gamma gamma = sar_gamma_independent(0, ranks);
    struct met one = met_by(histogram, ranks, 1);
    double wanted = nnz * s->share, missing = wanted - distinct(s, one.occupied);
    for (int i = 0; i < gamma.entries && one.weighted > 0; i++) {
        struct met met = met_by(histogram, ranks, gamma.ranks[i]);
        double elements = distinct(s, met.occupied) + missing * met.weighted / one.weighted;
        gamma.ratio[i] = fmin(fmax(elements / wanted, 1), gamma.ranks[i]);
    }
    return gamma;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Mean of |I1 & I2| over pairs, over the mean of min(|I1|, |I2|). */
static double overlap_of(const struct sar_sample *s, const double *histogram, uint64_t *nnz, int ranks)
{
    double both = 0, smaller = 0, by_chance = 0, before = 0;
    qsort(nnz, (size_t)ranks, sizeof *nnz, by_size);
    for (int r = 0; r < ranks; r++) {
        double sampled = (double)nnz[r] * s->share;
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
static double skewness_of(const struct sar_shape *shape, const struct sar_run *run, int parts)
{
    uint64_t width = shape->count / (uint64_t)parts + (shape->count % (uint64_t)parts != 0);
    size_t most = 0, here = 0;
    uint64_t part = 0;
    for (size_t i = 0; i < run->nnz; i++) {
        uint64_t of = sar_index_get(run->index, shape->index_size, i) / width;
        here = of == part ? here + 1 : 1;
        part = of;
        most = here > most ? here : most;
    }
    return run->nnz == 0 ? 1 : (double)most * parts / (double)run->nnz;
}

static enum sar_status take(struct sar_profiling *p, struct sar_arena *arena)
{
    size_t ranks = (size_t)p->net->ranks;
    void *counters, *list, *bins;
    SAR_TRY(sar_arena_take_zeroed(arena, p->sample.slots, sizeof *p->sample.ranks_in, &counters));
    SAR_TRY(sar_arena_take(arena, 2 * ranks, sizeof *p->gathered, &list));
    SAR_TRY(sar_arena_take_zeroed(arena, ranks + 1, sizeof *p->histogram, &bins));
    p->sample.ranks_in = counters;
    p->gathered = list;
    p->histogram = bins;
    return SAR_OK;
}

static double density_of(double nnz, const struct sar_shape *shape)
{
    return shape->count == 0 ? 0 : nnz / (double)shape->count;
}

enum sar_status sar_profile_start(const struct sar_net *net, const struct sar_shape *shape,
                                  const struct sar_run *run, uint32_t slots, struct sar_arena *arena,
                                  struct sar_profiling *p)
{
    *p = (struct sar_profiling){ .net = net, .shape = *shape, .run = *run, .sample.slots = slots };
    p->worst = (int)take(p, arena);
    return sar_net_worst_start(net, &p->worst, &p->collective);
}

static enum sar_status gather(struct sar_profiling *p)
{
    SAR_TRY((enum sar_status)p->worst);
    p->mine[0] = p->run.nnz;
    p->mine[1] = (uint64_t)(skewness_of(&p->shape, &p->run, p->net->ranks) * SKEWNESS_UNIT);
    return sar_net_gather_start(p->net, p->mine, 2, p->gathered, &p->collective);
}

static enum sar_status count(struct sar_profiling *p)
{
    uint64_t sum = 0;
    for (int r = 0; r < p->net->ranks; r++)
        sum += p->gathered[2 * r];
    sar_sample_choose(&p->sample, &p->shape, sum);
    sar_sample_count(&p->sample, &p->shape, &p->run);
    return sar_net_sum_start(p->net, p->sample.ranks_in, (int)p->sample.slots, &p->collective);
}

static struct sar_profile conclude(struct sar_profiling *p)
{
    const struct sar_sample *s = &p->sample;
    int ranks = p->net->ranks;
    struct sar_profile made = { 0 };
    double sum = 0;
    for (int r = 0; r < ranks; r++) {
        made.skewness += (double)p->gathered[2 * r + 1] / SKEWNESS_UNIT / ranks;
        made.density_max = fmax(made.density_max, density_of((double)p->gathered[2 * r], &p->shape));
        sum += (double)p->gathered[2 * r];
        p->gathered[r] = p->gathered[2 * r];
    }
    for (uint32_t i = 0; i < s->slots; i++)
        p->histogram[s->ranks_in[i]]++;
    made.density = density_of(sum / ranks, &p->shape);
    made.gamma = sar_sample_gamma(s, p->histogram, sum / ranks, ranks);
    made.overlap = overlap_of(s, p->histogram, p->gathered, ranks);
    made.density_out = fmin(made.density * made.gamma.ratio[made.gamma.entries - 1], 1);
    made.sampled = s->exact ? p->shape.count : (uint64_t)(s->share * (double)p->shape.count);
    return made;
}

enum sar_status sar_profile_advance(struct sar_profiling *p, bool block, struct sar_profile *profile,
                                    bool *done)
{
    bool arrived;
    *done = false;
    for (;;) {
        SAR_TRY(sar_net_test(p->net, &p->collective, block, &arrived));
        if (!arrived)
            return SAR_OK;
        *done = p->step == SAR_PROFILE_COUNT;
        if (*done)
            break;
        SAR_TRY(p->step++ == SAR_PROFILE_VOTE ? gather(p) : count(p));
    }
    *profile = conclude(p);
    return SAR_OK;
}
