/* SPDX-License-Identifier: BSD-3-Clause */
#include "float16.h"

#include <math.h>

/* Number of fraction bits; the exponent has the rest of 15 bits. */
static int fraction_bits(enum sar_dtype base)
{
    return base == SAR_BF16 ? 7 : 10;
}

/* Exponent of the smallest normal number. */
static int least_exponent(enum sar_dtype base)
{
    return base == SAR_BF16 ? -126 : -14;
}

bool is_float16(enum sar_dtype base)
{
    return base == SAR_BF16 || base == SAR_FP16;
}

float float16_value(enum sar_dtype base, uint16_t bits)
{
    int width = fraction_bits(base), most = (1 << (15 - width)) - 1;
    int exponent = bits >> width & most, fraction = bits & ((1 << width) - 1);
    float size;
    if (exponent == most)
        size = fraction != 0 ? NAN : INFINITY;
    else if (exponent == 0)
        size = ldexpf((float)fraction, least_exponent(base) - width);
    else
        size = ldexpf((float)(fraction + (1 << width)), exponent - 1 + least_exponent(base) - width);
    return copysignf(size, bits >> 15 != 0 ? -1.0f : 1.0f);
}

/* Bits of a magnitude that is no NaN. Bits ascend with magnitudes, so a fraction rounded up to the next power
 * of two carries into the exponent, and finally into infinity. */
static uint16_t bits_of_size(enum sar_dtype base, double size)
{
    int width = fraction_bits(base), least = least_exponent(base), exponent;
    int infinite = ((1 << (15 - width)) - 1) << width;
    if (isinf(size))
        return (uint16_t)infinite;
    frexp(size, &exponent);
    exponent = size == 0 || exponent - 1 < least ? least : exponent - 1;
    double units = nearbyint(ldexp(size, width - exponent));
    double bits = units + (double)(exponent - least) * (1 << width);
    return (uint16_t)(bits < infinite ? bits : infinite);
}

uint16_t float16_of(enum sar_dtype base, double value)
{
    int sign = signbit(value) != 0 ? 1 << 15 : 0, quiet = 0x7fff;
    return (uint16_t)(sign | (isnan(value) ? quiet : bits_of_size(base, fabs(value))));
}
