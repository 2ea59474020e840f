/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of basic types and reductions, and generated numbers. */

#include "bench/lib/number.h"

#include <math.h>
#include <string.h>

#include "bench/lib/names.h"

static void put_float(void *to, double value)
{
    *(float *)to = (float)value;
}

static void put_double(void *to, double value)
{
    *(double *)to = value;
}

static void put_int8(void *to, double value)
{
    *(int8_t *)to = (int8_t)value;
}

static void put_int16(void *to, double value)
{
    *(int16_t *)to = (int16_t)value;
}

static void put_int32(void *to, double value)
{
    *(int32_t *)to = (int32_t)value;
}

static void put_int64(void *to, double value)
{
    *(int64_t *)to = (int64_t)value;
}

static void put_uint8(void *to, double value)
{
    *(uint8_t *)to = (uint8_t)value;
}

static void put_uint16(void *to, double value)
{
    *(uint16_t *)to = (uint16_t)value;
}

static void put_uint32(void *to, double value)
{
    *(uint32_t *)to = (uint32_t)value;
}

static void put_uint64(void *to, double value)
{
    *(uint64_t *)to = (uint64_t)value;
}

enum { TYPES = 10 };

/* Unsigned types stop at the signed maximum, since MPICH 4.0 compares unsigned values as signed ones. */
const struct perf_type perf_types[TYPES] = {
    { "float", 4, true, true, true, { .f32 = -INFINITY }, { .f32 = INFINITY }, put_float },
    { "double", 8, true, true, false, { .f64 = -(double)INFINITY }, { .f64 = (double)INFINITY }, put_double },
    { "int8", 1, false, true, false, { .i8 = INT8_MIN }, { .i8 = INT8_MAX }, put_int8 },
    { "int16", 2, false, true, false, { .i16 = INT16_MIN }, { .i16 = INT16_MAX }, put_int16 },
    { "int32", 4, false, true, false, { .i32 = INT32_MIN }, { .i32 = INT32_MAX }, put_int32 },
    { "int64", 8, false, true, false, { .i64 = INT64_MIN }, { .i64 = INT64_MAX }, put_int64 },
    { "uint8", 1, false, false, false, { .u8 = 0 }, { .u8 = INT8_MAX }, put_uint8 },
    { "uint16", 2, false, false, false, { .u16 = 0 }, { .u16 = INT16_MAX }, put_uint16 },
    { "uint32", 4, false, false, false, { .u32 = 0 }, { .u32 = INT32_MAX }, put_uint32 },
    { "uint64", 8, false, false, false, { .u64 = 0 }, { .u64 = INT64_MAX }, put_uint64 },
};

const char *perf_type_name(int i)
{
    return i < TYPES ? perf_types[i].name : NULL;
}

const char *perf_op_name(int i)
{
    static const char *const names[] = { "sum", "max", "min", "prod" };
    return i <= PERF_PROD ? names[i] : NULL;
}

/* MPI's handles need not be constants, so this table and the next two cannot be static. */
MPI_Datatype perf_type_mpi(int i)
{
    const MPI_Datatype handles[TYPES] = {
        MPI_FLOAT,   MPI_DOUBLE,  MPI_INT8_T,   MPI_INT16_T,  MPI_INT32_T,
        MPI_INT64_T, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T
    };
    return handles[i];
}

MPI_Datatype perf_index_mpi(int i)
{
    const MPI_Datatype handles[] = { MPI_INT32_T, MPI_UINT32_T, MPI_INT64_T, MPI_UINT64_T };
    return handles[i];
}

MPI_Op perf_op_mpi(int op)
{
    const MPI_Op handles[] = { MPI_SUM, MPI_MAX, MPI_MIN, MPI_PROD };
    return handles[op];
}

/* Integer factors above 1 occur on 16 ranks only, because 3^16 fits into 31 bits. */
static double factor(const struct perf_type *type, int rank, uint64_t bits)
{
    static const double powers[] = { 0.5, 1, 2 };
    if (type->is_real)
        return powers[bits % 3];
    return rank < 16 ? 1 + (double)(bits % 3) : 1;
}

void perf_number_put(const struct perf_type *type, int op, int rank, uint64_t bits, void *to)
{
    bool negative = type->is_signed && (bits & 8) != 0;
    double magnitude = op == PERF_PROD ? factor(type, rank, bits >> 4) : 1 + (double)(bits % PERF_LARGEST);
    type->put(to, negative ? -magnitude : magnitude);
}

void perf_number_neutral(const struct perf_type *type, int op, void *to, size_t n)
{
    union perf_number neutral;

    memset(&neutral, 0, sizeof neutral);
    if (op == PERF_SUM) {
        memset(to, 0, n * type->size);
        return;
    }
    if (op == PERF_MAX)
        neutral = type->lowest;
    else if (op == PERF_MIN)
        neutral = type->highest;
    else if (op == PERF_PROD)
        type->put(&neutral, 1);
    for (size_t i = 0; i < n; i++)
        memcpy((char *)to + i * type->size, &neutral, type->size);
}
