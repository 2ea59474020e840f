/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/profile.h"

#include <math.h>
#include <stdlib.h>

#include "hash/murmur3.h"

enum {
    SAMPLE = 4096,   /* elements of all ranks to count */
    SLOTS_EACH = 16, /* slots for each of them, so that few are shared by accident */
    LEAST_SLOTS = 64,
    SAMPLE_SEED = 0x5eed
};

/* Everything is counted in slots of one sample. */
struct sample {
    uint32_t slots;
    bool exact;         /* slot i is element i */
    uint32_t threshold; /* an index whose hash is below is in the sample */
    double share;       /* of the index space */
    uint16_t *ranks_in; /* of each slot */
};

uint32_t sar_profile_slots(uint64_t nnz_sum)
{
    uint32_t slots = LEAST_SLOTS;
    while (slots < SAMPLE * SLOTS_EACH && slots / SLOTS_EACH < nnz_sum)
        slots *= 2;
    return slots;
}

static void choose_share(struct sample *s, const struct sar_shape *shape, uint64_t nnz_sum)
{
    double wanted = (double)s->slots / SLOTS_EACH;
    s->exact = shape->count <= s->slots;
    s->share = s->exact || (double)nnz_sum <= wanted ? 1 : wanted / (double)nnz_sum;
    s->threshold = s->share == 1 ? UINT32_MAX : (uint32_t)(s->share * 4294967296.0);
}

static void count_run(struct sample *s, const struct sar_shape *shape, const struct sar_run *run)
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

/* The share of choices of k of n ranks that meet at least one of c ranks. */
static double share_met(int n, int c, int k)
{
    if (k > n - c)
        return 1;
    double log_missed = lgamma(n - c + 1.0) - lgamma(n - c - k + 1.0) - lgamma(n + 1.0) + lgamma(n - k + 1.0);
    return 1 - exp(log_missed);
}

/* Elements behind so many occupied slots. */
static double distinct(const struct sample *s, double occupied)
{
    if (s->exact || occupied == 0)
        return occupied;
    return -(double)s->slots * log1p(-fmin(occupied, s->slots - 0.5) / s->slots);
}

/* histogram[c] slots are held by c ranks. */
static struct sar_gamma gamma_of(const struct sample *s, const double *histogram, int ranks)
{
    struct sar_gamma gamma = sar_gamma_independent(0, ranks);
    double one = 0;
    for (int i = 0; i < gamma.entries; i++) {
        double occupied = 0;
        for (int c = 1; c <= ranks; c++)
            if (histogram[c] != 0)
                occupied += histogram[c] * share_met(ranks, c, gamma.ranks[i]);
        double elements = distinct(s, occupied);
        one = i == 0 ? elements : one;
        gamma.ratio[i] = one > 0 ? fmin(fmax(elements / one, 1), gamma.ranks[i]) : 1;
    }
    return gamma;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Mean of |I1 & I2| over pairs, over the mean of min(|I1|, |I2|). */
static double overlap_of(const struct sample *s, const double *histogram, uint64_t *nnz, int ranks)
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

static enum sar_status take(int ranks, struct sample *s, struct sar_arena *arena, uint64_t **gathered,
                            double **histogram)
{
    void *counters, *list, *bins;
    SAR_TRY(sar_arena_take_zeroed(arena, s->slots, sizeof *s->ranks_in, &counters));
    SAR_TRY(sar_arena_take(arena, (size_t)ranks, sizeof **gathered, &list));
    SAR_TRY(sar_arena_take_zeroed(arena, (size_t)ranks + 1, sizeof **histogram, &bins));
    s->ranks_in = counters;
    *gathered = list;
    *histogram = bins;
    return SAR_OK;
}

static double mean(const uint64_t *values, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)values[i];
    return sum / n;
}

static double density_of(double nnz, const struct sar_shape *shape)
{
    return shape->count == 0 ? 0 : nnz / (double)shape->count;
}

enum sar_status sar_profile_measure(const struct sar_net *net, const struct sar_shape *shape,
                                    const struct sar_run *run, uint32_t slots, struct sar_arena *arena,
                                    struct sar_profile *profile)
{
    const double unit = 1e6; /* of the skewness, gathered as a whole number */
    struct sample s = { .slots = slots };
    struct sar_profile made = { 0 };
    uint64_t *gathered = NULL, sum = 0;
    double *histogram = NULL;
    SAR_TRY(sar_net_worst(net, take(net->ranks, &s, arena, &gathered, &histogram)));
    SAR_TRY(sar_net_gather(net, (uint64_t)(skewness_of(shape, run, net->ranks) * unit), gathered));
    made.skewness = mean(gathered, net->ranks) / unit;
    SAR_TRY(sar_net_gather(net, run->nnz, gathered));
    for (int r = 0; r < net->ranks; r++) {
        sum += gathered[r];
        made.density_max = fmax(made.density_max, density_of((double)gathered[r], shape));
    }
    choose_share(&s, shape, sum);
    count_run(&s, shape, run);
    SAR_TRY(sar_net_sum(net, s.ranks_in, (int)slots));
    for (uint32_t i = 0; i < slots; i++)
        histogram[s.ranks_in[i]]++;
    made.density = density_of(mean(gathered, net->ranks), shape);
    made.gamma = gamma_of(&s, histogram, net->ranks);
    made.overlap = overlap_of(&s, histogram, gathered, net->ranks);
    made.density_out = fmin(made.density * made.gamma.ratio[made.gamma.entries - 1], 1);
    made.sampled = s.exact ? shape->count : (uint64_t)(s.share * (double)shape->count);
    *profile = made;
    return SAR_OK;
}
