/* SPDX-License-Identifier: BSD-3-Clause */
/* Basic types, reductions, and numbers whose reduction is exact in every order. */
#ifndef PERF_NUMBER_H
#define PERF_NUMBER_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A value of a basic type. */
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

/** A basic type of option --datatype. */
struct perf_type {
    const char *name;
    size_t size;
    bool is_real, is_signed;
    bool has_16bit;                    /**< MPIX_SPARSE_WIRE_VALUES has 16-bit forms of the type */
    union perf_number lowest, highest; /**< neutral elements of max and min */
    void (*put)(void *to, double value);
};

enum perf_op { PERF_SUM, PERF_MAX, PERF_MIN, PERF_PROD };

/** All basic types, in the order of perf_type_name. */
extern const struct perf_type perf_types[];

const char *perf_type_name(int i); /**< NULL after the last */
const char *perf_op_name(int i);   /**< NULL after the last */
MPI_Datatype perf_type_mpi(int i);
MPI_Datatype perf_index_mpi(int i);
MPI_Op perf_op_mpi(int op);

enum { PERF_LARGEST = 8 }; /**< largest magnitude of a generated number, except for products */

/** Writes a nonzero number derived from random bits to `to`. Sums and products of such numbers are exact on
 * up to 2^20 ranks; 8 and 16-bit integers wrap around instead. */
void perf_number_put(const struct perf_type *type, int op, int rank, uint64_t bits, void *to);

/** Writes the neutral element of op n times. */
void perf_number_neutral(const struct perf_type *type, int op, void *to, size_t n);

#endif
