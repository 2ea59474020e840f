/* SPDX-License-Identifier: BSD-3-Clause */
/* Users' datatypes and ops. The numbers that stand for them in an agreement:
 *
 *     datatype    native: base + 1 + 16 * row         other: -1 - bytes of an element
 *     op          predefined: 1 + its place below     user-defined: -1 */

#include "mpi_ext/types.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "mpi_ext/alive.h"
#include "net/net.h"

#if defined(OPEN_MPI) && (defined(HAVE_MPIX_C_FLOAT16) || defined(HAVE_MPIX_BFLOAT16))
#include <mpi-ext.h>
#endif

enum { BASE_RADIX = 16 };

/* Floats of 16 bits, where MPI has them. */
static bool find_half(MPI_Datatype type, enum sar_base *base)
{
    (void)type, (void)base;
#ifdef HAVE_MPIX_C_FLOAT16
    *base = SAR_FP16;
    if (type == MPIX_C_FLOAT16)
        return true;
#endif
#ifdef HAVE_MPIX_BFLOAT16
    *base = SAR_BF16;
    if (type == MPIX_BFLOAT16)
        return true;
#endif
    return false;
}

/* The basic type with which numbers of a kind are reduced. Of logicals, those of C: what bits mean true in
 * those of Fortran is its compiler's to say. */
static bool find_base(enum sar_kind kind, size_t size, enum sar_base *base)
{
    static const enum sar_base floats[] = { [4] = SAR_FLOAT, [8] = SAR_DOUBLE };
    static const enum sar_base integers[] = {
        [1] = SAR_INT8, [2] = SAR_INT16, [4] = SAR_INT32, [8] = SAR_INT64
    };
    static const enum sar_base naturals[] = {
        [1] = SAR_UINT8, [2] = SAR_UINT16, [4] = SAR_UINT32, [8] = SAR_UINT64
    };
    bool is_natural = (kind & (SAR_KIND_UNSIGNED | SAR_KIND_BYTE)) != 0;
    if (kind == SAR_KIND_LOGICAL && size == sizeof(bool))
        is_natural = true;
    else if ((kind & (SAR_KIND_REAL | SAR_KIND_BYTE)) == 0)
        return false;
    if (size > 8 || (size & (size - 1)) != 0 || size < (kind == SAR_KIND_FLOAT ? 4 : 1))
        return false;
    *base = kind == SAR_KIND_FLOAT ? floats[size] : is_natural ? naturals[size] : integers[size];
    return true;
}

static void release(MPI_Datatype *type)
{
    int n, addresses, types, combiner;
    PMPI_Type_get_envelope(*type, &n, &addresses, &types, &combiner);
    if (combiner != MPI_COMBINER_NAMED)
        PMPI_Type_free(type);
}

/* Follow contiguous types and duplicates down to one of MPI's own. */
static void find_row(MPI_Datatype type, size_t row, struct sar_datatype *found)
{
    int n, addresses, types, combiner, lengths[1] = { 1 };
    MPI_Datatype inner;
    MPI_Aint none;
    PMPI_Type_get_envelope(type, &n, &addresses, &types, &combiner);
    if (combiner == MPI_COMBINER_NAMED && row > 0) {
        const struct sar_predefined *predefined = sar_predefined_find(type);
        found->basic = type;
        found->row = row;
        found->kind = predefined == NULL ? SAR_KIND_OTHER : predefined->kind;
    }
    if (combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP)
        return;
    PMPI_Type_get_contents(type, n, 0, 1, lengths, &none, &inner);
    find_row(inner, row * (size_t)lengths[0], found);
    release(&inner);
}

/* What MPI has to be asked for. */
static bool ask(MPI_Datatype datatype, struct sar_datatype *found, size_t *size)
{
    MPI_Aint low, extent;
    MPI_Count bytes;
    if (datatype == MPI_DATATYPE_NULL || PMPI_Type_get_extent(datatype, &low, &extent) != MPI_SUCCESS)
        return false;
    PMPI_Type_size_x(datatype, &bytes);
    *size = (size_t)bytes;
    found->extent = extent > 0 ? (size_t)extent : 0;
    find_row(datatype, 1, found);
    return true;
}

enum { KNOWN = 4 };

/* What this thread has found of the last rows, since asking MPI takes as long as a small call does. A row of
 * ours has an attribute, whose delete function tells when its handle may become another's. */
static _Thread_local struct {
    struct sar_datatype found; /* .row is 0 where there is none */
    MPI_Datatype type;
    uint_fast64_t age; /* rows freed by then */
} known[KNOWN];
static _Thread_local unsigned newest;
static atomic_int keyval = MPI_KEYVAL_INVALID;
static atomic_uint_fast64_t rows_freed;

static int forget_row(MPI_Datatype type, int key, void *value, void *extra)
{
    (void)type, (void)key, (void)value, (void)extra;
    atomic_fetch_add(&rows_freed, 1);
    return MPI_SUCCESS;
}

enum sar_status sar_types_setup(void)
{
    int made = MPI_KEYVAL_INVALID;
    enum sar_status status = sar_mpi(PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, forget_row, &made, NULL));
    atomic_store(&keyval, made);
    return status;
}

void sar_types_cleanup(void)
{
    int gone = atomic_exchange(&keyval, MPI_KEYVAL_INVALID);
    atomic_fetch_add(&rows_freed, 1);
    if (gone != MPI_KEYVAL_INVALID)
        PMPI_Type_free_keyval(&gone);
}

static bool recall(MPI_Datatype type, struct sar_datatype *found)
{
    uint_fast64_t age = atomic_load_explicit(&rows_freed, memory_order_acquire);
    for (int i = 0; i < KNOWN; i++) {
        if (known[i].type != type || known[i].found.row == 0 || known[i].age != age)
            continue;
        *found = known[i].found;
        return true;
    }
    return false;
}

static void remember(MPI_Datatype type, const struct sar_datatype *found)
{
    void *value;
    int has = 0, key = atomic_load(&keyval);
    uint_fast64_t age = atomic_load_explicit(&rows_freed, memory_order_acquire);
    if (key == MPI_KEYVAL_INVALID || !found->native || found->basic == type)
        return;
    if (PMPI_Type_get_attr(type, key, &value, &has) != MPI_SUCCESS ||
        (!has && PMPI_Type_set_attr(type, key, NULL) != MPI_SUCCESS))
        return;
    unsigned at = newest++ % KNOWN;
    known[at].found = *found;
    known[at].type = type;
    known[at].age = age;
}

struct sar_datatype sar_datatype_look(MPI_Datatype datatype)
{
    struct sar_datatype found = { .kind = SAR_KIND_DERIVED, .row = 1, .basic = datatype };
    if (sar_is_forked() || recall(datatype, &found))
        return found;
    const struct sar_predefined *own = sar_predefined_find(datatype);
    size_t size = 0;
    if (own != NULL && own->size != 0) {
        found.kind = own->kind;
        found.extent = size = own->size;
    } else if (!ask(datatype, &found, &size)) {
        return found;
    }
    found.valid = true;
    size_t basic = found.row == 1 ? size : size / found.row;
    bool counted = size <= INT_MAX; /* what has more bytes is left to MPI */
    found.native =
        counted && (find_base(found.kind, basic, &found.base) || find_half(found.basic, &found.base));
    found.narrow = counted && (found.kind & SAR_KIND_WHOLE) != 0 && basic == 2;
    found.number =
        found.native ? (int64_t)found.row * BASE_RADIX + (int64_t)found.base + 1 : -1 - (int64_t)size;
    remember(datatype, &found);
    return found;
}

/* MPI defines LAND, LOR and LXOR for integers of C and logicals; MPICH takes all numbers, and the MPI there
 * is has its say. */
static const struct {
    MPI_Op op;
    const char *name;
    unsigned kinds; /* that it takes, besides SAR_KIND_OTHER */
} operations[] = {
    { MPI_SUM, "MPI_SUM", SAR_KIND_REAL | SAR_KIND_COMPLEX },
    { MPI_MAX, "MPI_MAX", SAR_KIND_REAL },
    { MPI_MIN, "MPI_MIN", SAR_KIND_REAL },
    { MPI_PROD, "MPI_PROD", SAR_KIND_REAL | SAR_KIND_COMPLEX },
    { MPI_LAND, "MPI_LAND", SAR_KIND_REAL | SAR_KIND_LOGICAL },
    { MPI_BAND, "MPI_BAND", SAR_KIND_WHOLE | SAR_KIND_BYTE },
    { MPI_LOR, "MPI_LOR", SAR_KIND_REAL | SAR_KIND_LOGICAL },
    { MPI_BOR, "MPI_BOR", SAR_KIND_WHOLE | SAR_KIND_BYTE },
    { MPI_LXOR, "MPI_LXOR", SAR_KIND_REAL | SAR_KIND_LOGICAL },
    { MPI_BXOR, "MPI_BXOR", SAR_KIND_WHOLE | SAR_KIND_BYTE },
    { MPI_MINLOC, "MPI_MINLOC", SAR_KIND_PAIR },
    { MPI_MAXLOC, "MPI_MAXLOC", SAR_KIND_PAIR },
    { MPI_REPLACE, "MPI_REPLACE", 0 },
    { MPI_NO_OP, "MPI_NO_OP", 0 },
};

enum { OPERATIONS = sizeof operations / sizeof operations[0] };

struct sar_operation sar_operation_look(MPI_Op op)
{
    struct sar_operation found = { .valid = op != MPI_OP_NULL && op != MPI_REPLACE && op != MPI_NO_OP,
                                   .number = -1,
                                   .kinds = SAR_KIND_ANY };
    for (int i = 0; i < OPERATIONS && found.number < 0; i++) {
        if (operations[i].op != op)
            continue;
        found.number = i + 1;
        found.kinds = operations[i].kinds | SAR_KIND_OTHER;
    }
    found.native = found.number >= 1 && found.number <= SAR_OPS;
    found.op = found.native ? (enum sar_op)(found.number - 1) : SAR_SUM;
    return found;
}

bool sar_pair_is_defined(const struct sar_datatype *type, const struct sar_operation *op)
{
    unsigned kinds = op->kinds;
    if (sar_op_is_logical(op->op))
        kinds &= SAR_KIND_SIGNED | SAR_KIND_UNSIGNED | SAR_KIND_LOGICAL;
    return type->native && op->native && (kinds & type->kind) != 0 &&
           sar_kernels_of(type->base, op->op) != NULL;
}

/* Where MPI is known to have its own ways: MPICH up to 4.0.2 compares unsigned numbers as signed ones, and so
 * does Open MPI 4.1 those of MPI_UNSIGNED_LONG; its sums of short integers stop at the largest number where
 * vectors are added. */
static bool is_in_doubt(const struct sar_datatype *type, enum sar_op op)
{
    bool compares = op == SAR_MAX || op == SAR_MIN, is_short = type->extent / type->row <= sizeof(int16_t);
    return (compares && type->kind == SAR_KIND_UNSIGNED) ||
           (op == SAR_SUM && is_short && (type->kind & SAR_KIND_WHOLE) != 0);
}

/* Whether MPI computes what the kernels do: of numbers above and below zero, and sums that wrap around. */
static bool is_done_alike(const struct sar_datatype *type, const struct sar_operation *op)
{
    enum { NUMBERS = 64, BYTES = 8 * NUMBERS };
    static const unsigned char left[] = { 0x7f, 0xff, 0x01 }, right[] = { 0x7f, 0x80, 0xff };
    _Alignas(8) unsigned char in[BYTES], found[BYTES], expected[BYTES];
    const struct sar_kernels *kernels = sar_kernels_of(type->base, op->op);
    for (size_t i = 0; i < NUMBERS; i++) {
        memset(in + i * kernels->size, left[i % sizeof left], kernels->size);
        memset(found + i * kernels->size, right[i % sizeof right], kernels->size);
    }
    memcpy(expected, found, NUMBERS * kernels->size);
    kernels->fold(expected, in, NUMBERS);
    return PMPI_Reduce_local(in, found, NUMBERS, type->basic, operations[op->number - 1].op) == MPI_SUCCESS &&
           memcmp(found, expected, NUMBERS * kernels->size) == 0;
}

/* Asked once for each pair that a thread's calls have in turn, since predefined types do not change. */
static bool is_trusted(const struct sar_datatype *type, const struct sar_operation *op)
{
    static _Thread_local struct {
        MPI_Datatype type;
        int64_t op; /* 0 for none yet */
        bool alike;
    } last;
    if (last.op != op->number || last.type != type->basic) {
        last.alike = is_done_alike(type, op);
        last.type = type->basic;
        last.op = op->number;
    }
    return last.alike;
}

bool sar_pair_is_for_vectors(const struct sar_datatype *type, const struct sar_operation *op)
{
    return sar_pair_is_defined(type, op) && !sar_op_is_logical(op->op) &&
           (!is_in_doubt(type, op->op) || is_trusted(type, op));
}

bool sar_datatype_basic(MPI_Datatype datatype, const struct sar_operation *op, enum sar_base *base)
{
    if (sar_predefined_find(datatype) == NULL)
        return false;
    struct sar_datatype found = sar_datatype_look(datatype);
    *base = found.base;
    return !found.narrow && sar_pair_is_for_vectors(&found, op);
}

bool sar_index_type_look(MPI_Datatype indextype, enum sar_index_type *type)
{
    static const enum sar_index_type of_base[SAR_BASES] = {
        [SAR_INT32] = SAR_INDEX_INT32,
        [SAR_INT64] = SAR_INDEX_INT64,
        [SAR_UINT32] = SAR_INDEX_UINT32,
        [SAR_UINT64] = SAR_INDEX_UINT64,
    };
    struct sar_datatype found = sar_datatype_look(indextype);
    bool is_index = found.native && (found.extent == sizeof(int32_t) || found.extent == sizeof(int64_t));
    if (!is_index || found.row != 1 || (found.kind & SAR_KIND_WHOLE) == 0)
        return false;
    *type = of_base[found.base];
    return true;
}

const char *sar_base_name(enum sar_base base)
{
    static const char *const names[SAR_BASES] = { "float", "double", "int8",   "int16",  "int32", "int64",
                                                  "uint8", "uint16", "uint32", "uint64", "bf16",  "fp16" };
    return names[base];
}

void sar_datatype_describe(int64_t number, char *text, size_t room)
{
    if (number == 0)
        snprintf(text, room, "invalid");
    else if (number < 0)
        snprintf(text, room, "a type of %lld bytes", (long long)(-1 - number));
    else if ((number - 1) / BASE_RADIX == 1)
        snprintf(text, room, "%s", sar_base_name((enum sar_base)((number - 1) % BASE_RADIX)));
    else
        snprintf(text, room, "%lld x %s", (long long)((number - 1) / BASE_RADIX),
                 sar_base_name((enum sar_base)((number - 1) % BASE_RADIX)));
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
