/* SPDX-License-Identifier: BSD-3-Clause */
/* The basic types and reductions, and numbers whose reduction is exact in every order. */
#ifndef PERF_NUMBER_H
#define PERF_NUMBER_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

union perf_number {
    float f32;
    double f64;
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
};

struct perf_type {
    const char *name;
    size_t size;
    bool is_real, is_signed;
    bool narrows;                      /* there are 16-bit forms of it */
    union perf_number lowest, highest; /* below and above all numbers made here */
    void (*put)(void *to, double value);
};

enum perf_op { PERF_SUM, PERF_MAX, PERF_MIN, PERF_PROD };

extern const struct perf_type perf_types[];

const char *perf_type_name(int i); /* NULL after the last */
const char *perf_op_name(int i);   /* NULL after the last */
MPI_Datatype perf_type_mpi(int i);
MPI_Datatype perf_index_mpi(int i);
MPI_Op perf_op_mpi(int op);

enum { PERF_LARGEST = 8 }; /* of the numbers made here, but for factors */

/* A nonzero number made from random bits. Sums and products of such numbers are exact on up to 2^20 ranks,
 * or wrap around where integers of 8 or 16 bits are too short for them. */
void perf_number_put(const struct perf_type *type, int op, int rank, uint64_t bits, void *to);

/* Fill n numbers with the one that changes nothing under op. */
void perf_number_neutral(const struct perf_type *type, int op, void *to, size_t n);

#endif
