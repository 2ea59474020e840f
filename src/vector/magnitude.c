/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversion of magnitudes and selection by radix.
 *
 *     time of a selection = bits / 8 passes over fewer and fewer magnitudes */

#include "vector/magnitude.h"

#include <math.h>

#include "vector/half.h"
#include "vector/pieces.h"

enum {
    DIGIT_BITS = 8,
    DIGITS = 1 << DIGIT_BITS,
    UNIT = 8 /* magnitudes: pieces share no cache line if the array is aligned */
};

static const struct {
    uint64_t infinite;
    int bits;
} float_formats[SAR_DTYPES] = {
    [SAR_FLOAT] = { SAR_FLOAT_INFINITY_BITS, 32 },
    [SAR_DOUBLE] = { (uint64_t)0x7ff << 52, 64 },
    [SAR_BF16] = { 0x7f80, 16 },
    [SAR_FP16] = { 0x7c00, 16 },
};

bool sar_magnitude_defined(enum sar_dtype dtype)
{
    return float_formats[dtype].bits != 0;
}

uint64_t sar_magnitude_infinite(enum sar_dtype dtype)
{
    return float_formats[dtype].infinite;
}

uint64_t sar_magnitude_max(enum sar_dtype dtype)
{
    return UINT64_MAX >> (65 - float_formats[dtype].bits);
}

static double number_of(enum sar_dtype dtype, uint64_t magnitude)
{
    double number;
    if (dtype == SAR_FLOAT)
        return (double)sar_float_from_bits((uint32_t)magnitude);
    if (dtype == SAR_BF16)
        return (double)sar_float_from_bits(sar_from_bf16((uint16_t)magnitude));
    if (dtype == SAR_FP16)
        return (double)sar_float_from_bits(sar_from_fp16((uint16_t)magnitude));
    memcpy(&number, &magnitude, sizeof number);
    return number;
}

double sar_magnitude_to_double(enum sar_dtype dtype, uint64_t magnitude)
{
    return magnitude >= float_formats[dtype].infinite ? INFINITY : number_of(dtype, magnitude);
}

static uint64_t nearest(enum sar_dtype dtype, double number)
{
    uint64_t bits;
    uint32_t single = sar_float_bits((float)number);
    if (dtype == SAR_FLOAT)
        return single;
    if (dtype == SAR_BF16)
        return sar_to_bf16(single);
    if (dtype == SAR_FP16)
        return sar_to_fp16(single);
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* The conversion to 16 bits rounds twice, which is off by one magnitude at most. */
uint64_t sar_magnitude_ceil(enum sar_dtype dtype, double number)
{
    uint64_t magnitude = nearest(dtype, number);
    if (magnitude > 0 && number_of(dtype, magnitude - 1) >= number)
        return magnitude - 1;
    return number_of(dtype, magnitude) < number ? magnitude + 1 : magnitude;
}

static void count_digits(const uint64_t *magnitudes, size_t n, int shift, size_t counts[DIGITS])
{
    for (size_t i = 0; i < n; i++)
        counts[magnitudes[i] >> shift & (DIGITS - 1)]++;
}

/* Returns the digit of the k-th largest magnitude, and subtracts those with larger digits from k. */
static unsigned choose_digit(const size_t counts[DIGITS], size_t *k)
{
    unsigned digit = DIGITS - 1;
    for (; counts[digit] < *k; digit--)
        *k -= counts[digit];
    return digit;
}

/* Keep the magnitudes with a digit; returns their number. */
static size_t filter(uint64_t *magnitudes, size_t n, int shift, unsigned digit)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t magnitude = magnitudes[i];
        magnitudes[kept] = magnitude;
        kept += (magnitude >> shift & (DIGITS - 1)) == digit;
    }
    return kept;
}

/* Pieces of an array, each filtered in its place. */
struct selection {
    uint64_t *magnitudes;
    int shift;
    unsigned digit;
    size_t pieces, begin[SAR_RANGES_MAX], n[SAR_RANGES_MAX], counts[DIGITS];
};

static enum sar_status count_piece(void *selection, size_t i)
{
    struct selection *s = selection;
    size_t counts[DIGITS] = { 0 };
    count_digits(s->magnitudes + s->begin[i], s->n[i], s->shift, counts);
    for (size_t d = 0; d < DIGITS; d++)
        __atomic_fetch_add(&s->counts[d], counts[d], __ATOMIC_RELAXED);
    return SAR_OK;
}

static enum sar_status filter_piece(void *selection, size_t i)
{
    struct selection *s = selection;
    s->n[i] = filter(s->magnitudes + s->begin[i], s->n[i], s->shift, s->digit);
    return SAR_OK;
}

/* Move the magnitudes of all pieces together; returns their number. */
static size_t join_pieces(struct selection *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->pieces; i++) {
        memmove(s->magnitudes + n, s->magnitudes + s->begin[i], s->n[i] * sizeof *s->magnitudes);
        n += s->n[i];
    }
    return n;
}

/* Determine the highest digits, until few magnitudes are left. Sets *shift to that of the next digit. */
static size_t select_parallel(uint64_t *magnitudes, size_t n, size_t pieces, size_t *k, int *shift)
{
    struct selection s = { .magnitudes = magnitudes, .pieces = pieces };
    for (size_t i = 0; i < pieces; i++) {
        s.begin[i] = sar_parallel_bound(n, UNIT, pieces, i);
        s.n[i] = sar_parallel_bound(n, UNIT, pieces, i + 1) - s.begin[i];
    }
    for (; *shift >= 0 && sar_pieces(n * sizeof *magnitudes) > 1; *shift -= DIGIT_BITS) {
        memset(s.counts, 0, sizeof s.counts);
        s.shift = *shift;
        sar_parallel_for(pieces, count_piece, &s);
        s.digit = choose_digit(s.counts, k);
        n = s.counts[s.digit];
        sar_parallel_for(pieces, filter_piece, &s);
    }
    return join_pieces(&s);
}

/* Determine the result digit by digit, the highest first; keep only magnitudes with the digits so far. */
uint64_t sar_magnitude_select(enum sar_dtype dtype, uint64_t *magnitudes, size_t n, size_t k)
{
    int shift = float_formats[dtype].bits - DIGIT_BITS;
    size_t pieces = sar_pieces(n * sizeof *magnitudes);
    if (pieces > 1)
        n = select_parallel(magnitudes, n, pieces, &k, &shift);
    for (; shift >= 0 && n > 1; shift -= DIGIT_BITS) {
        size_t counts[DIGITS] = { 0 };
        count_digits(magnitudes, n, shift, counts);
        unsigned digit = choose_digit(counts, &k);
        n = filter(magnitudes, n, shift, digit);
    }
    return magnitudes[0];
}
