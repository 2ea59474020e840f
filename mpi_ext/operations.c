/* SPDX-License-Identifier: BSD-3-Clause */
/* Classifies ops, and pairs of datatypes and ops. The id of an op, which the agree step compares between
 * ranks, is 1 + its index in the table for a predefined op, and -1 for a user-defined op. */

#include "mpi_ext/datatypes.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* MPI defines LAND, LOR and LXOR for C integers and logicals only, but MPICH accepts all numbers. The table
 * accepts them too, and MPI reports the error where it does not. */
static const struct {
    MPI_Op op;
    const char *name;
    unsigned kinds; /* datatype kinds that the op accepts, besides SAR_KIND_OTHER */
} operations[] = {
    { MPI_SUM, "MPI_SUM", SAR_KIND_REAL | SAR_KIND_COMPLEX },
    { MPI_MAX, "MPI_MAX", SAR_KIND_REAL },
    { MPI_MIN, "MPI_MIN", SAR_KIND_REAL },
    { MPI_PROD, "MPI_PROD", SAR_KIND_REAL | SAR_KIND_COMPLEX },
    { MPI_LAND, "MPI_LAND", SAR_KIND_REAL | SAR_KIND_LOGICAL },
    { MPI_BAND, "MPI_BAND", SAR_KIND_INTEGER | SAR_KIND_BYTE },
    { MPI_LOR, "MPI_LOR", SAR_KIND_REAL | SAR_KIND_LOGICAL },
    { MPI_BOR, "MPI_BOR", SAR_KIND_INTEGER | SAR_KIND_BYTE },
    { MPI_LXOR, "MPI_LXOR", SAR_KIND_REAL | SAR_KIND_LOGICAL },
    { MPI_BXOR, "MPI_BXOR", SAR_KIND_INTEGER | SAR_KIND_BYTE },
    { MPI_MINLOC, "MPI_MINLOC", SAR_KIND_PAIR },
    { MPI_MAXLOC, "MPI_MAXLOC", SAR_KIND_PAIR },
    { MPI_REPLACE, "MPI_REPLACE", 0 },
    { MPI_NO_OP, "MPI_NO_OP", 0 },
};

enum { OPERATIONS = sizeof operations / sizeof operations[0] };

struct sar_operation sar_operation_classify(MPI_Op op)
{
    struct sar_operation found = { .valid = op != MPI_OP_NULL && op != MPI_REPLACE && op != MPI_NO_OP,
                                   .id = -1,
                                   .kinds = SAR_KIND_ANY };
    for (int i = 0; i < OPERATIONS && found.id < 0; i++) {
        if (operations[i].op != op)
            continue;
        found.id = i + 1;
        found.kinds = operations[i].kinds | SAR_KIND_OTHER;
    }
    found.native = found.id >= 1 && found.id <= SAR_OPS;
    found.op = found.native ? (enum sar_op)(found.id - 1) : SAR_SUM;
    return found;
}

bool sar_datatype_op_defined(const struct sar_datatype *type, const struct sar_operation *op)
{
    unsigned kinds = op->kinds;
    if (sar_op_is_logical(op->op))
        kinds &= SAR_KIND_SIGNED | SAR_KIND_UNSIGNED | SAR_KIND_LOGICAL;
    return type->native && op->native && (kinds & type->kind) != 0 &&
           sar_op_kernels_of(type->dtype, op->op) != NULL;
}

/* Known differences: MPICH up to 4.0.2 compares unsigned integers as signed ones; so does Open MPI 4.1 for
 * MPI_UNSIGNED_LONG, whose vectorized sums of 8-bit and 16-bit integers also saturate. */
static bool mpi_may_differ(const struct sar_datatype *type, enum sar_op op)
{
    bool compares = op == SAR_MAX || op == SAR_MIN,
         is_short = type->extent / type->row_len <= sizeof(int16_t);
    return (compares && type->kind == SAR_KIND_UNSIGNED) ||
           (op == SAR_SUM && is_short && (type->kind & SAR_KIND_INTEGER) != 0);
}

/* True if MPI_Reduce_local and the kernel agree on values of both signs and on sums that wrap around. */
static bool mpi_agrees(const struct sar_datatype *type, const struct sar_operation *op)
{
    enum { NUMBERS = 64, BYTES = 8 * NUMBERS };
    static const unsigned char left[] = { 0x7f, 0xff, 0x01 }, right[] = { 0x7f, 0x80, 0xff };
    _Alignas(8) unsigned char in[BYTES], found[BYTES], expected[BYTES];
    const struct sar_op_kernels *kernels = sar_op_kernels_of(type->dtype, op->op);
    for (size_t i = 0; i < NUMBERS; i++) {
        memset(in + i * kernels->size, left[i % sizeof left], kernels->size);
        memset(found + i * kernels->size, right[i % sizeof right], kernels->size);
    }
    memcpy(expected, found, NUMBERS * kernels->size);
    kernels->apply(expected, in, NUMBERS);
    return PMPI_Reduce_local(in, found, NUMBERS, type->basic, operations[op->id - 1].op) == MPI_SUCCESS &&
           memcmp(found, expected, NUMBERS * kernels->size) == 0;
}

/* mpi_agrees for the last pair of a thread is cached: predefined types do not change. */
static bool mpi_agrees_cached(const struct sar_datatype *type, const struct sar_operation *op)
{
    static _Thread_local struct {
        MPI_Datatype type;
        int64_t op; /* id, or 0 while the entry is unused */
        bool agrees;
    } last;
    if (last.op != op->id || last.type != type->basic) {
        last.agrees = mpi_agrees(type, op);
        last.type = type->basic;
        last.op = op->id;
    }
    return last.agrees;
}

bool sar_datatype_op_exact(const struct sar_datatype *type, const struct sar_operation *op)
{
    return sar_datatype_op_defined(type, op) && !sar_op_is_logical(op->op) &&
           (!mpi_may_differ(type, op->op) || mpi_agrees_cached(type, op));
}

bool sar_datatype_exact_basic(MPI_Datatype datatype, const struct sar_operation *op, enum sar_dtype *base)
{
    if (sar_predefined_find(datatype) == NULL)
        return false;
    struct sar_datatype found = sar_datatype_classify(datatype);
    *base = found.dtype;
    return !found.is_int16 && sar_datatype_op_exact(&found, op);
}

void sar_operation_describe(int64_t id, char *text, size_t capacity)
{
    if (id == 0)
        snprintf(text, capacity, "an invalid handle");
    else if (id < 0 || id > OPERATIONS)
        snprintf(text, capacity, "a user-defined op");
    else
        snprintf(text, capacity, "%s", operations[id - 1].name);
}
