/* SPDX-License-Identifier: BSD-3-Clause */
/* Momentum correction of Deep Gradient Compression (Lin et al., ICLR 2018): what is not sent is kept, and so
 * is the velocity that it was about to have.
 *
 *     time = 5 element bytes / memory bandwidth an element */

#include "tensor/dgc.h"

#include "hash/murmur3.h"
#include "tensor/half.h"
#include "tensor/magnitude.h"

enum { AHEAD = 16 /* samples fetched before they are looked at */ };

#define SAME(a) (a)
#define FROM(kind, a) sar_float_of(sar_from_##kind(a))
#define TO(kind, a) sar_to_##kind(sar_float_bits(a))
#define FROM_BF16(a) FROM(bf16, a)
#define TO_BF16(a) TO(bf16, a)
#define FROM_FP16(a) FROM(fp16, a)
#define TO_FP16(a) TO(fp16, a)

/* `type` is what memory holds, `wide` what is computed with. */
#define DEFINE_STEP(name, base, type, wide, bits, from_type, to_type)                                       \
    SAR_INLINE type name##_velocity(type velocity, type gradient, wide momentum, wide scale)                \
    {                                                                                                       \
        return to_type(momentum * from_type(velocity) + scale * from_type(gradient));                       \
    }                                                                                                       \
    SAR_INLINE type name##_value(type value, type velocity)                                                 \
    {                                                                                                       \
        return to_type(from_type(value) + from_type(velocity));                                             \
    }                                                                                                       \
    SAR_CLONES static void name##_advance(const struct sar_dgc *of, size_t from, size_t n)                  \
    {                                                                                                       \
        const type *restrict gradient = (const type *)of->gradient + from;                                  \
        type *restrict velocity = (type *)of->velocity + from, *restrict value = (type *)of->values + from; \
        const wide momentum = (wide)of->momentum, scale = (wide)of->scale;                                  \
        for (size_t i = 0; i < n; i++) {                                                                    \
            velocity[i] = name##_velocity(velocity[i], gradient[i], momentum, scale);                       \
            value[i] = name##_value(value[i], velocity[i]);                                                 \
        }                                                                                                   \
    }                                                                                                       \
    static uint64_t name##_foresee(const struct sar_dgc *of, size_t i)                                      \
    {                                                                                                       \
        const type *gradient = of->gradient, *velocity = of->velocity, *value = of->values;                 \
        wide momentum = (wide)of->momentum, scale = (wide)of->scale;                                        \
        type made = name##_value(value[i], name##_velocity(velocity[i], gradient[i], momentum, scale));     \
        bits found;                                                                                         \
        memcpy(&found, &made, sizeof found);                                                                \
        return sar_magnitude(base, &found, 0);                                                              \
    }

DEFINE_STEP(float32, SAR_FLOAT, float, float, uint32_t, SAME, SAME)
DEFINE_STEP(float64, SAR_DOUBLE, double, double, uint64_t, SAME, SAME)
DEFINE_STEP(bf16, SAR_BF16, uint16_t, float, uint16_t, FROM_BF16, TO_BF16)
DEFINE_STEP(fp16, SAR_FP16, uint16_t, float, uint16_t, FROM_FP16, TO_FP16)

static const struct {
    size_t bytes; /* of a value */
    void (*advance)(const struct sar_dgc *of, size_t from, size_t n);
    uint64_t (*foresee)(const struct sar_dgc *of, size_t i);
} steps[SAR_BASES] = {
    [SAR_FLOAT] = { sizeof(float), float32_advance, float32_foresee },
    [SAR_DOUBLE] = { sizeof(double), float64_advance, float64_foresee },
    [SAR_BF16] = { sizeof(uint16_t), bf16_advance, bf16_foresee },
    [SAR_FP16] = { sizeof(uint16_t), fp16_advance, fp16_foresee },
};

void sar_dgc_advance(const struct sar_dgc *of, size_t from, size_t n)
{
    if (of->gradient != NULL)
        steps[of->base].advance(of, from, n);
}

static uint64_t foresee(const struct sar_dgc *of, size_t i)
{
    return of->gradient != NULL ? steps[of->base].foresee(of, i) : sar_magnitude(of->base, of->values, i);
}

/* Stretches of values, of which the first `longer` have one more than the others. */
struct stretches {
    size_t length, longer;
    uint32_t seed;
};

/* A random place in stretch i. */
static size_t place_in(const struct stretches *s, size_t i)
{
    size_t begin = i * s->length + (i < s->longer ? i : s->longer), length = s->length + (i < s->longer);
    uint32_t range = length < UINT32_MAX ? (uint32_t)length : UINT32_MAX;
    return begin + sar_hash_range(sar_murmur3((uint32_t)i, s->seed), range);
}

/* Places are too far from each other for the processor to guess the next. */
static void fetch(const struct sar_dgc *of, size_t bytes, size_t i)
{
    __builtin_prefetch((const char *)of->values + i * bytes);
    if (of->gradient == NULL)
        return;
    __builtin_prefetch((const char *)of->gradient + i * bytes);
    __builtin_prefetch((const char *)of->velocity + i * bytes);
}

void sar_dgc_sample(const struct sar_dgc *of, size_t n, uint32_t seed, uint64_t *magnitudes)
{
    size_t count = (size_t)of->count, bytes = steps[of->base].bytes;
    if (n == 0)
        return;
    struct stretches s = { count / n, count % n, seed };
    for (size_t i = 0; i < n; i++) {
        if (i + AHEAD < n)
            fetch(of, bytes, place_in(&s, i + AHEAD));
        magnitudes[i] = foresee(of, place_in(&s, i));
    }
}
