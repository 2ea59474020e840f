/* SPDX-License-Identifier: BSD-3-Clause */
/* Momentum correction of Deep Gradient Compression (Lin et al., ICLR 2018): what is not sent is kept, and so
 * is the velocity that it was about to have.
 *
 *     time = 5 element bytes / memory bandwidth an element */

#include "tensor/dgc.h"

#include "tensor/dense.h"
#include "tensor/magnitude.h"
#include "tensor/momentum.h"

enum { BATCH = 32 /* samples fetched before they are looked at */ };

/* To foresee is to find the magnitudes of values at n places as they are about to be. */
#define DEFINE_STEP(name, base, type, wide, bits)                                                           \
    SAR_CLONES static void name##_advance(const struct sar_dgc *of, size_t from, size_t n)                  \
    {                                                                                                       \
        const type *restrict gradient = (const type *)of->gradient + from;                                  \
        type *restrict velocity = (type *)of->velocity + from, *restrict value = (type *)of->values + from; \
        const wide momentum = (wide)of->momentum, scale = (wide)of->scale;                                  \
        for (size_t i = 0; i < n; i++) {                                                                    \
            velocity[i] = sar_velocity_##name(velocity[i], gradient[i], momentum, scale);                   \
            value[i] = sar_value_##name(value[i], velocity[i]);                                             \
        }                                                                                                   \
    }                                                                                                       \
    static void name##_foresee(const struct sar_dgc *of, const size_t place[], size_t n, uint64_t found[])  \
    {                                                                                                       \
        const type *gradient = of->gradient, *velocity = of->velocity, *value = of->values;                 \
        const wide momentum = (wide)of->momentum, scale = (wide)of->scale;                                  \
        for (size_t j = 0; j < n; j++) {                                                                    \
            size_t i = place[j];                                                                            \
            type made = sar_velocity_##name(velocity[i], gradient[i], momentum, scale);                     \
            made = sar_value_##name(value[i], made);                                                        \
            bits same;                                                                                      \
            memcpy(&same, &made, sizeof same);                                                              \
            found[j] = sar_magnitude(base, &same, 0);                                                       \
        }                                                                                                   \
    }

DEFINE_STEP(float, SAR_FLOAT, float, float, uint32_t)
DEFINE_STEP(double, SAR_DOUBLE, double, double, uint64_t)
DEFINE_STEP(bf16, SAR_BF16, uint16_t, float, uint16_t)
DEFINE_STEP(fp16, SAR_FP16, uint16_t, float, uint16_t)

static const struct {
    size_t bytes; /* of a value */
    void (*advance)(const struct sar_dgc *of, size_t from, size_t n);
    void (*foresee)(const struct sar_dgc *of, const size_t place[], size_t n, uint64_t found[]);
} steps[SAR_BASES] = {
    [SAR_FLOAT] = { sizeof(float), float_advance, float_foresee },
    [SAR_DOUBLE] = { sizeof(double), double_advance, double_foresee },
    [SAR_BF16] = { sizeof(uint16_t), bf16_advance, bf16_foresee },
    [SAR_FP16] = { sizeof(uint16_t), fp16_advance, fp16_foresee },
};

void sar_dgc_advance(const struct sar_dgc *of, size_t from, size_t n)
{
    if (of->gradient != NULL)
        steps[of->base].advance(of, from, n);
}

static void foresee(const struct sar_dgc *of, const size_t place[], size_t n, uint64_t found[])
{
    if (of->gradient != NULL) {
        steps[of->base].foresee(of, place, n, found);
        return;
    }
    for (size_t j = 0; j < n; j++)
        found[j] = sar_magnitude(of->base, of->values, place[j]);
}

/* A batch of samples from number i on, of which there are n in all; returns how many. */
SAR_CLONES static size_t find_places(const struct sar_stretches *stretches, size_t i, size_t n,
                                     size_t place[BATCH])
{
    size_t batch = n - i < BATCH ? n - i : BATCH;
    for (size_t j = 0; j < batch; j++)
        place[j] = sar_place_in(stretches, i + j);
    return batch;
}

/* Places are too far from each other for the processor to guess the next. */
static void fetch(const struct sar_dgc *of, size_t bytes, const size_t place[], size_t n)
{
    for (size_t j = 0; j < n; j++) {
        __builtin_prefetch((const char *)of->values + place[j] * bytes);
        if (of->gradient == NULL)
            continue;
        __builtin_prefetch((const char *)of->gradient + place[j] * bytes);
        __builtin_prefetch((const char *)of->velocity + place[j] * bytes);
    }
}

void sar_dgc_sample(const struct sar_dgc *of, size_t n, uint32_t seed, uint64_t *magnitudes)
{
    size_t place[2][BATCH], bytes = steps[of->base].bytes;
    if (n == 0)
        return;
    struct sar_stretches stretches = sar_stretches_of(of->count, n, seed);
    size_t batch = find_places(&stretches, 0, n, place[0]);
    for (size_t i = 0, next, now = 0; i < n; i += batch, batch = next, now = !now) {
        next = find_places(&stretches, i + batch, n, place[!now]);
        fetch(of, bytes, place[!now], next);
        foresee(of, place[now], batch, magnitudes + i);
    }
}

uint64_t sar_dgc_masked(const struct sar_dgc *of)
{
    return of->masking ? 0 : sar_magnitude_infinite(of->base);
}

/* What is not finite would come again out of its velocity in every step to come. */
static void clear_velocity(const struct sar_dgc *of, const struct sar_shape *shape, const struct sar_run *run)
{
    size_t bytes = steps[of->base].bytes;
    uint64_t least = sar_dgc_masked(of);
    for (size_t i = 0; i < run->nnz; i++)
        if (sar_magnitude(of->base, run->value, i) >= least)
            memset((char *)of->velocity + sar_index_get(run->index, shape->index_size, i) * bytes, 0, bytes);
}

void sar_dgc_clear(const struct sar_dgc *of, const struct sar_shape *shape, const struct sar_run *run)
{
    sar_dense_clear(shape, run, of->values);
    clear_velocity(of, shape, run);
}
