/* SPDX-License-Identifier: BSD-3-Clause */
/* Momentum correction of Deep Gradient Compression (Lin et al., ICLR 2018): values that are not sent stay,
 * with their velocity. Runs on the host in a top-k call.
 *
 *     time of an update = 5 * count * element bytes / memory bandwidth */

#include "vector/dgc.h"

#include "vector/dense.h"
#include "vector/magnitude.h"
#include "vector/momentum.h"
#include "vector/pieces.h"

enum {
    BATCH = 32,     /* samples prefetched at a time */
    UNIT = 8,       /* samples: pieces of an array that is written share no cache line if it is aligned */
    CACHE_LINE = 64 /* bytes */
};

/* A preview computes the magnitudes that the values at n positions will have after the update. */
#define DEFINE_STEP(name, dtype, type, wide, bits)                                              \
    SAR_CLONES static void name##_update(const struct sar_dgc *dgc, size_t from, size_t n)      \
    {                                                                                           \
        const type *restrict gradient = (const type *)dgc->gradient + from;                     \
        type *restrict velocity = (type *)dgc->velocity + from, *restrict value =               \
                                                                    (type *)dgc->values + from; \
        const wide momentum = (wide)dgc->momentum, scale = (wide)dgc->scale;                    \
        for (size_t i = 0; i < n; i++) {                                                        \
            velocity[i] = sar_velocity_##name(velocity[i], gradient[i], momentum, scale);       \
            value[i] = sar_value_##name(value[i], velocity[i]);                                 \
        }                                                                                       \
    }                                                                                           \
    static void name##_preview(const struct sar_dgc *dgc, const size_t position[], size_t n,    \
                               uint64_t magnitude[])                                            \
    {                                                                                           \
        const type *gradient = dgc->gradient, *velocity = dgc->velocity, *value = dgc->values;  \
        const wide momentum = (wide)dgc->momentum, scale = (wide)dgc->scale;                    \
        for (size_t j = 0; j < n; j++) {                                                        \
            size_t i = position[j];                                                             \
            type next = sar_velocity_##name(velocity[i], gradient[i], momentum, scale);         \
            next = sar_value_##name(value[i], next);                                            \
            bits pattern;                                                                       \
            memcpy(&pattern, &next, sizeof pattern);                                            \
            magnitude[j] = sar_magnitude(dtype, &pattern, 0);                                   \
        }                                                                                       \
    }

DEFINE_STEP(float, SAR_FLOAT, float, float, uint32_t)
DEFINE_STEP(double, SAR_DOUBLE, double, double, uint64_t)
DEFINE_STEP(bf16, SAR_BF16, uint16_t, float, uint16_t)
DEFINE_STEP(fp16, SAR_FP16, uint16_t, float, uint16_t)

static const struct {
    size_t bytes; /* bytes of a value */
    void (*update)(const struct sar_dgc *dgc, size_t from, size_t n);
    void (*preview)(const struct sar_dgc *dgc, const size_t position[], size_t n, uint64_t magnitude[]);
} steps[SAR_DTYPES] = {
    [SAR_FLOAT] = { sizeof(float), float_update, float_preview },
    [SAR_DOUBLE] = { sizeof(double), double_update, double_preview },
    [SAR_BF16] = { sizeof(uint16_t), bf16_update, bf16_preview },
    [SAR_FP16] = { sizeof(uint16_t), fp16_update, fp16_preview },
};

void sar_dgc_update(const struct sar_dgc *dgc, size_t from, size_t n)
{
    if (dgc->gradient != NULL)
        steps[dgc->dtype].update(dgc, from, n);
}

static void preview(const struct sar_dgc *dgc, const size_t position[], size_t n, uint64_t magnitude[])
{
    if (dgc->gradient != NULL) {
        steps[dgc->dtype].preview(dgc, position, n, magnitude);
        return;
    }
    for (size_t j = 0; j < n; j++)
        magnitude[j] = sar_magnitude(dgc->dtype, dgc->values, position[j]);
}

/* Choose the positions of a batch of samples from sample i, of n in all; returns the size of the batch. */
SAR_CLONES static size_t draw_positions(const struct sar_strata *strata, size_t i, size_t n,
                                        size_t position[BATCH])
{
    size_t batch = n - i < BATCH ? n - i : BATCH;
    for (size_t j = 0; j < batch; j++)
        position[j] = sar_strata_sample(strata, i + j);
    return batch;
}

/* Samples are too far apart for the hardware prefetcher. */
static void prefetch(const struct sar_dgc *dgc, size_t bytes, const size_t position[], size_t n)
{
    for (size_t j = 0; j < n; j++) {
        __builtin_prefetch((const char *)dgc->values + position[j] * bytes);
        if (dgc->gradient == NULL)
            continue;
        __builtin_prefetch((const char *)dgc->gradient + position[j] * bytes);
        __builtin_prefetch((const char *)dgc->velocity + position[j] * bytes);
    }
}

/* Samples to draw. */
struct drawn {
    const struct sar_dgc *dgc;
    struct sar_strata strata;
    uint64_t *magnitudes;
};

static void sample_range(void *drawn, size_t from, size_t to)
{
    const struct drawn *d = drawn;
    const struct sar_dgc *dgc = d->dgc;
    struct sar_strata strata = d->strata; /* a local copy: stores cannot alias it */
    size_t position[2][BATCH], bytes = steps[dgc->dtype].bytes;
    size_t batch = draw_positions(&strata, from, to, position[0]);
    for (size_t i = from, next, now = 0; i < to; i += batch, batch = next, now = !now) {
        next = draw_positions(&strata, i + batch, to, position[!now]);
        prefetch(dgc, bytes, position[!now], next);
        preview(dgc, position[now], batch, d->magnitudes + i);
    }
}

/* Returns the cache lines that an element of a loop touches: one, or three with a gradient. */
static size_t lines_of(const struct sar_dgc *dgc)
{
    return dgc->gradient == NULL ? 1 : 3;
}

void sar_dgc_sample(const struct sar_dgc *dgc, size_t n, uint32_t seed, uint64_t *magnitudes)
{
    if (n == 0)
        return;
    struct drawn drawn = { dgc, sar_strata_make(dgc->count, n, seed), magnitudes };
    sar_ranges_run(
        (struct sar_ranges){ n, UNIT, sar_pieces(n * lines_of(dgc) * CACHE_LINE), sample_range, &drawn });
}

uint64_t sar_dgc_mask_threshold(const struct sar_dgc *dgc)
{
    return dgc->masking ? 0 : sar_magnitude_infinite(dgc->dtype);
}

/* Elements whose velocity is cleared. */
struct masked {
    const struct sar_dgc *dgc;
    const struct sar_vec_desc *desc;
    const struct sar_spvec *vec;
};

static void mask_range(void *masked, size_t from, size_t to)
{
    const struct masked *m = masked;
    size_t bytes = steps[m->dgc->dtype].bytes;
    uint64_t threshold = sar_dgc_mask_threshold(m->dgc);
    for (size_t i = from; i < to; i++)
        if (sar_magnitude(m->dgc->dtype, m->vec->value, i) >= threshold)
            memset((char *)m->dgc->velocity + sar_index_get(m->vec->index, m->desc->index_size, i) * bytes, 0,
                   bytes);
}

/* A non-finite velocity would make its value non-finite again in every later step. */
static void clear_velocity(const struct sar_dgc *dgc, const struct sar_vec_desc *desc,
                           const struct sar_spvec *vec)
{
    struct masked masked = { dgc, desc, vec };
    sar_ranges_run(
        (struct sar_ranges){ vec->nnz, UNIT, sar_pieces(vec->nnz * CACHE_LINE), mask_range, &masked });
}

void sar_dgc_clear(const struct sar_dgc *dgc, const struct sar_vec_desc *desc, const struct sar_spvec *vec)
{
    sar_dense_clear(desc, vec, dgc->values);
    clear_velocity(dgc, desc, vec);
}
