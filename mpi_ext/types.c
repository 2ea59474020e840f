/* SPDX-License-Identifier: BSD-3-Clause */
/* Users' datatypes and ops. The numbers that stand for them in an agreement:
 *
 *     datatype    native: base + 1 + 16 * row         other: -1 - bytes of an element
 *     op          predefined: 1 + its place below     user-defined: -1 */

#include "mpi_ext/types.h"

#include <stdio.h>
#include <string.h>

#include "mpi_ext/alive.h"

enum { BASE_RADIX = 16 };

static const char *const base_names[SAR_BASES] = { "float", "double", "int32", "int64", "uint32", "uint64" };

/* Kinds of numbers among MPI's named types. */
enum kind { KIND_SIGNED, KIND_UNSIGNED, KIND_FLOAT };

static const struct {
    MPI_Datatype type;
    enum kind kind;
} numbers[] = {
    { MPI_INT, KIND_SIGNED },
    { MPI_LONG, KIND_SIGNED },
    { MPI_LONG_LONG, KIND_SIGNED },
    { MPI_INT32_T, KIND_SIGNED },
    { MPI_INT64_T, KIND_SIGNED },
    { MPI_UNSIGNED, KIND_UNSIGNED },
    { MPI_UNSIGNED_LONG, KIND_UNSIGNED },
    { MPI_UNSIGNED_LONG_LONG, KIND_UNSIGNED },
    { MPI_UINT32_T, KIND_UNSIGNED },
    { MPI_UINT64_T, KIND_UNSIGNED },
    { MPI_FLOAT, KIND_FLOAT },
    { MPI_DOUBLE, KIND_FLOAT },
    { MPI_INTEGER, KIND_SIGNED },
    { MPI_INTEGER4, KIND_SIGNED },
    { MPI_INTEGER8, KIND_SIGNED },
    { MPI_REAL, KIND_FLOAT },
    { MPI_REAL4, KIND_FLOAT },
    { MPI_REAL8, KIND_FLOAT },
    { MPI_DOUBLE_PRECISION, KIND_FLOAT },
};

/* Of 4 or 8 bytes; how long Fortran's are, its compiler says. */
static bool find_number(MPI_Datatype type, bool integers, enum sar_base *base)
{
    static const enum sar_base of_size[][2] = { [KIND_SIGNED] = { SAR_INT32, SAR_INT64 },
                                                [KIND_UNSIGNED] = { SAR_UINT32, SAR_UINT64 },
                                                [KIND_FLOAT] = { SAR_FLOAT, SAR_DOUBLE } };
    int size;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i].type != type || (integers && numbers[i].kind == KIND_FLOAT))
            continue;
        PMPI_Type_size(type, &size);
        if (size != 4 && size != 8)
            return false;
        *base = of_size[numbers[i].kind][size == 8];
        return true;
    }
    return false;
}

bool sar_datatype_basic(MPI_Datatype type, enum sar_base *base)
{
    return type != MPI_DATATYPE_NULL && find_number(type, false, base);
}

static void release(MPI_Datatype *type)
{
    int n, addresses, types, combiner;
    PMPI_Type_get_envelope(*type, &n, &addresses, &types, &combiner);
    if (combiner != MPI_COMBINER_NAMED)
        PMPI_Type_free(type);
}

/* Follow contiguous types and duplicates down to a basic type. */
static bool find_row(MPI_Datatype type, struct sar_datatype *found, size_t row)
{
    int n, addresses, types, combiner, lengths[1];
    MPI_Datatype inner;
    MPI_Aint none;
    PMPI_Type_get_envelope(type, &n, &addresses, &types, &combiner);
    if (combiner == MPI_COMBINER_NAMED) {
        found->basic = type;
        found->row = row;
        return row > 0 && sar_datatype_basic(type, &found->base);
    }
    if (combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP)
        return false;
    PMPI_Type_get_contents(type, n, 0, 1, lengths, &none, &inner);
    bool is_row =
        find_row(inner, found, row * (size_t)(combiner == MPI_COMBINER_CONTIGUOUS ? lengths[0] : 1));
    release(&inner);
    return is_row;
}

struct sar_datatype sar_datatype_look(MPI_Datatype datatype)
{
    struct sar_datatype found = { .valid = datatype != MPI_DATATYPE_NULL };
    MPI_Aint low, extent;
    int size;
    if (!found.valid || sar_is_forked() || PMPI_Type_get_extent(datatype, &low, &extent) != MPI_SUCCESS)
        return (struct sar_datatype){ .valid = false };
    PMPI_Type_size(datatype, &size);
    found.extent = extent > 0 ? (size_t)extent : 0;
    found.native = find_row(datatype, &found, 1);
    found.number =
        found.native ? (int64_t)found.row * BASE_RADIX + (int64_t)found.base + 1 : -1 - (int64_t)size;
    return found;
}

static const struct {
    MPI_Op op;
    const char *name;
} operations[] = {
    { MPI_SUM, "MPI_SUM" },         { MPI_MAX, "MPI_MAX" },       { MPI_MIN, "MPI_MIN" },
    { MPI_PROD, "MPI_PROD" },       { MPI_LAND, "MPI_LAND" },     { MPI_BAND, "MPI_BAND" },
    { MPI_LOR, "MPI_LOR" },         { MPI_BOR, "MPI_BOR" },       { MPI_LXOR, "MPI_LXOR" },
    { MPI_BXOR, "MPI_BXOR" },       { MPI_MINLOC, "MPI_MINLOC" }, { MPI_MAXLOC, "MPI_MAXLOC" },
    { MPI_REPLACE, "MPI_REPLACE" }, { MPI_NO_OP, "MPI_NO_OP" },
};

enum { OPERATIONS = sizeof operations / sizeof operations[0] };

struct sar_operation sar_operation_look(MPI_Op op)
{
    struct sar_operation found = { .valid = op != MPI_OP_NULL && op != MPI_REPLACE && op != MPI_NO_OP,
                                   .number = -1 };
    for (int i = 0; i < OPERATIONS; i++)
        if (operations[i].op == op)
            found.number = i + 1;
    found.native = found.number >= 1 && found.number <= SAR_OPS;
    found.op = found.native ? (enum sar_op)(found.number - 1) : SAR_SUM;
    return found;
}

bool sar_index_type_look(MPI_Datatype indextype, enum sar_index_type *type)
{
    static const enum sar_index_type of_base[SAR_BASES] = {
        [SAR_INT32] = SAR_INDEX_INT32,
        [SAR_INT64] = SAR_INDEX_INT64,
        [SAR_UINT32] = SAR_INDEX_UINT32,
        [SAR_UINT64] = SAR_INDEX_UINT64,
    };
    enum sar_base base;
    if (indextype == MPI_DATATYPE_NULL || sar_is_forked() || !find_number(indextype, true, &base))
        return false;
    *type = of_base[base];
    return true;
}

void sar_datatype_describe(int64_t number, char *text, size_t room)
{
    if (number == 0)
        snprintf(text, room, "invalid");
    else if (number < 0)
        snprintf(text, room, "a type of %lld bytes", (long long)(-1 - number));
    else if ((number - 1) / BASE_RADIX == 1)
        snprintf(text, room, "%s", base_names[(number - 1) % BASE_RADIX]);
    else
        snprintf(text, room, "%lld x %s", (long long)((number - 1) / BASE_RADIX),
                 base_names[(number - 1) % BASE_RADIX]);
}

void sar_operation_describe(int64_t number, char *text, size_t room)
{
    if (number == 0)
        snprintf(text, room, "invalid");
    else if (number < 0 || number > OPERATIONS)
        snprintf(text, room, "a user-defined op");
    else
        snprintf(text, room, "%s", operations[number - 1].name);
}
