/* SPDX-License-Identifier: BSD-3-Clause */
/* Reference implementations of the reductions. */

#include <stdlib.h>
#include <string.h>

#include "float16.h"
#include "generate.h"

#define FOLD_FLOAT(type)                                 \
    do {                                                 \
        type a = *(type *)sum, b = *(const type *)value; \
        switch (op) {                                    \
        case SAR_SUM: a = a + b; break;                  \
        case SAR_PROD: a = a * b; break;                 \
        case SAR_MAX: a = a > b ? a : b; break;          \
        default: a = a < b ? a : b; break;               \
        }                                                \
        *(type *)sum = a;                                \
    } while (0)

/* Builtin functions return the low bits of the exact sum or product. */
#define FOLD_WHOLE(type)                                                \
    do {                                                                \
        type a = *(type *)sum, b = *(const type *)value;                \
        bool wraps = false;                                             \
        switch (op) {                                                   \
        case SAR_SUM: wraps = __builtin_add_overflow(a, b, &a); break;  \
        case SAR_PROD: wraps = __builtin_mul_overflow(a, b, &a); break; \
        case SAR_MAX: a = a > b ? a : b; break;                         \
        case SAR_MIN: a = a < b ? a : b; break;                         \
        case SAR_BAND: a = (type)(a & b); break;                        \
        case SAR_BOR: a = (type)(a | b); break;                         \
        case SAR_BXOR: a = (type)(a ^ b); break;                        \
        case SAR_LAND: a = a && b; break;                               \
        case SAR_LOR: a = a || b; break;                                \
        default: a = !a != !b; break;                                   \
        }                                                               \
        (void)wraps;                                                    \
        *(type *)sum = a;                                               \
    } while (0)

static void fold_half(enum sar_dtype base, enum sar_op op, uint16_t *sum, const uint16_t *value)
{
    float a = float16_value(base, *sum), b = float16_value(base, *value);
    switch (op) {
    case SAR_SUM: *sum = float16_of(base, a + b); break;
    case SAR_PROD: *sum = float16_of(base, a * b); break;
    case SAR_MAX: *sum = a > b ? *sum : *value; break;
    default: *sum = a < b ? *sum : *value; break;
    }
}

void reference_fold(enum sar_dtype base, enum sar_op op, void *sum, const void *value)
{
    switch (base) {
    case SAR_FLOAT: FOLD_FLOAT(float); break;
    case SAR_DOUBLE: FOLD_FLOAT(double); break;
    case SAR_INT8: FOLD_WHOLE(int8_t); break;
    case SAR_INT16: FOLD_WHOLE(int16_t); break;
    case SAR_INT32: FOLD_WHOLE(int32_t); break;
    case SAR_INT64: FOLD_WHOLE(int64_t); break;
    case SAR_UINT8: FOLD_WHOLE(uint8_t); break;
    case SAR_UINT16: FOLD_WHOLE(uint16_t); break;
    case SAR_UINT32: FOLD_WHOLE(uint32_t); break;
    case SAR_BF16:
    case SAR_FP16: fold_half(base, op, sum, value); break;
    default: FOLD_WHOLE(uint64_t); break;
    }
}

static void fold_element(const struct sar_vec_desc *shape, unsigned char *sum, const unsigned char *value)
{
    static const uint64_t zero = 0;
    size_t size = shape->kernels->size;
    for (size_t k = 0; k < shape->row_len; k++)
        reference_fold(shape->dtype, shape->op, sum + k * size,
                       value == NULL ? (const void *)&zero : value + k * size);
}

static uint64_t least_index(const struct sar_vec_desc *shape, const struct sar_spvec runs[], size_t n,
                            const size_t at[])
{
    uint64_t least = UINT64_MAX;
    for (size_t r = 0; r < n; r++) {
        if (at[r] == runs[r].nnz)
            continue;
        uint64_t index = sar_index_get(runs[r].index, shape->index_size, at[r]);
        least = index < least ? index : least;
    }
    return least;
}

/* Convert vectors of 16-bit floats to fp32. */
static struct sar_spvec *widened(const struct sar_vec_desc *shape, const struct sar_spvec runs[], size_t n)
{
    struct sar_spvec *wide = exact_alloc(n * sizeof *wide);
    for (size_t r = 0; r < n; r++) {
        size_t values = runs[r].nnz * shape->row_len;
        float *value = exact_alloc(values * sizeof *value);
        for (size_t i = 0; i < values; i++)
            value[i] = float16_value(shape->dtype, ((const uint16_t *)runs[r].value)[i]);
        wide[r] = (struct sar_spvec){ runs[r].index, value, runs[r].nnz };
    }
    return wide;
}

/* Reduce in fp32, and round once. */
static struct sar_spvec reduce_float16(const struct sar_vec_desc *shape, const struct sar_spvec runs[],
                                       size_t n)
{
    struct sar_spvec *wide = widened(shape, runs, n);
    struct sar_vec_desc floats = vec_desc_make(SAR_FLOAT, shape->op, shape->count, shape->row_len);
    floats.index_size = shape->index_size;
    floats.absent_is_zero = shape->absent_is_zero;
    struct sar_spvec sums = reference_reduce(&floats, wide, n), out = spvec_alloc(shape, sums.nnz);
    memcpy(out.index, sums.index, sums.nnz * shape->index_size);
    for (size_t i = 0; i < sums.nnz * shape->row_len; i++)
        ((uint16_t *)out.value)[i] = float16_of(shape->dtype, ((const float *)sums.value)[i]);
    spvec_free(&sums);
    for (size_t r = 0; r < n; r++)
        free(wide[r].value);
    free(wide);
    return out;
}

struct sar_spvec reference_reduce(const struct sar_vec_desc *shape, const struct sar_spvec runs[], size_t n)
{
    if (is_float16(shape->dtype) && (shape->op == SAR_SUM || shape->op == SAR_PROD))
        return reduce_float16(shape, runs, n);
    size_t *at = memset(exact_alloc(n * sizeof *at), 0, n * sizeof *at), sum = 0, size = shape->element_size;
    for (size_t r = 0; r < n; r++)
        sum += runs[r].nnz;
    struct sar_spvec out = spvec_alloc(shape, sum);
    out.nnz = 0;
    for (uint64_t i; (i = least_index(shape, runs, n, at)) != UINT64_MAX; out.nnz++) {
        unsigned char *to = (unsigned char *)out.value + out.nnz * size;
        size_t reached = 0, before;
        sar_index_set(out.index, shape->index_size, out.nnz, i);
        for (size_t r = 0, folded = 0; r < n; r++) {
            for (before = at[r]; at[r] < runs[r].nnz; at[r]++, folded++) {
                const unsigned char *from = (const unsigned char *)runs[r].value + at[r] * size;
                if (sar_index_get(runs[r].index, shape->index_size, at[r]) != i)
                    break;
                if (folded == 0)
                    memcpy(to, from, size);
                else
                    fold_element(shape, to, from);
            }
            reached += at[r] > before;
        }
        if (shape->absent_is_zero && reached < n)
            fold_element(shape, to, NULL);
    }
    free(at);
    return out;
}
