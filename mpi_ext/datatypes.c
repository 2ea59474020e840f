/* SPDX-License-Identifier: BSD-3-Clause */
/* Classifies datatypes. The id of a datatype, which the agree step compares between ranks:
 *
 *     native    dtype + 1 + 16 * row_len
 *     other     -1 - bytes of an element */

#include "mpi_ext/datatypes.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "mpi_ext/lifecycle.h"
#include "comm/comm.h"

#if defined(OPEN_MPI) && (defined(HAVE_MPIX_C_FLOAT16) || defined(HAVE_MPIX_BFLOAT16))
#include <mpi-ext.h>
#endif

enum { DTYPE_RADIX = 16 };

/* The most frequent types come first. A type that an MPI does not support is MPI_DATATYPE_NULL or no
 * macro. */
static const struct sar_predefined predefined_types[] = {
    { MPI_FLOAT, SAR_KIND_FLOAT, sizeof(float) },
    { MPI_DOUBLE, SAR_KIND_FLOAT, sizeof(double) },
    { MPI_INT, SAR_KIND_SIGNED, sizeof(int) },
    { MPI_LONG, SAR_KIND_SIGNED, sizeof(long) },
    { MPI_LONG_LONG, SAR_KIND_SIGNED, sizeof(long long) },
    { MPI_INT32_T, SAR_KIND_SIGNED, sizeof(int32_t) },
    { MPI_INT64_T, SAR_KIND_SIGNED, sizeof(int64_t) },
    { MPI_UNSIGNED, SAR_KIND_UNSIGNED, sizeof(unsigned) },
    { MPI_UNSIGNED_LONG, SAR_KIND_UNSIGNED, sizeof(unsigned long) },
    { MPI_UNSIGNED_LONG_LONG, SAR_KIND_UNSIGNED, sizeof(unsigned long long) },
    { MPI_UINT32_T, SAR_KIND_UNSIGNED, sizeof(uint32_t) },
    { MPI_UINT64_T, SAR_KIND_UNSIGNED, sizeof(uint64_t) },
    { MPI_SIGNED_CHAR, SAR_KIND_SIGNED, sizeof(signed char) },
    { MPI_SHORT, SAR_KIND_SIGNED, sizeof(short) },
    { MPI_INT8_T, SAR_KIND_SIGNED, sizeof(int8_t) },
    { MPI_INT16_T, SAR_KIND_SIGNED, sizeof(int16_t) },
    { MPI_UNSIGNED_CHAR, SAR_KIND_UNSIGNED, sizeof(unsigned char) },
    { MPI_UNSIGNED_SHORT, SAR_KIND_UNSIGNED, sizeof(unsigned short) },
    { MPI_UINT8_T, SAR_KIND_UNSIGNED, sizeof(uint8_t) },
    { MPI_UINT16_T, SAR_KIND_UNSIGNED, sizeof(uint16_t) },
    { MPI_LONG_DOUBLE, SAR_KIND_FLOAT, sizeof(long double) },
    { MPI_BYTE, SAR_KIND_BYTE, sizeof(char) },
    { MPI_C_BOOL, SAR_KIND_LOGICAL, 0 },
    { MPI_C_FLOAT_COMPLEX, SAR_KIND_COMPLEX, 0 },
    { MPI_C_DOUBLE_COMPLEX, SAR_KIND_COMPLEX, 0 },
    { MPI_C_LONG_DOUBLE_COMPLEX, SAR_KIND_COMPLEX, 0 },
    { MPI_AINT, SAR_KIND_ADDRESS, sizeof(MPI_Aint) },
    { MPI_OFFSET, SAR_KIND_ADDRESS, sizeof(MPI_Offset) },
    { MPI_COUNT, SAR_KIND_ADDRESS, sizeof(MPI_Count) },
    { MPI_FLOAT_INT, SAR_KIND_PAIR, 0 },
    { MPI_DOUBLE_INT, SAR_KIND_PAIR, 0 },
    { MPI_LONG_INT, SAR_KIND_PAIR, 0 },
    { MPI_2INT, SAR_KIND_PAIR, 0 },
    { MPI_SHORT_INT, SAR_KIND_PAIR, 0 },
    { MPI_LONG_DOUBLE_INT, SAR_KIND_PAIR, 0 },
    { MPI_REAL, SAR_KIND_FLOAT, 0 },
    { MPI_DOUBLE_PRECISION, SAR_KIND_FLOAT, 0 },
    { MPI_INTEGER, SAR_KIND_FORTRAN_INTEGER, 0 },
    { MPI_LOGICAL, SAR_KIND_LOGICAL, 0 },
    { MPI_COMPLEX, SAR_KIND_COMPLEX, 0 },
    { MPI_DOUBLE_COMPLEX, SAR_KIND_COMPLEX, 0 },
    { MPI_REAL4, SAR_KIND_FLOAT, 0 },
    { MPI_REAL8, SAR_KIND_FLOAT, 0 },
    { MPI_REAL16, SAR_KIND_FLOAT, 0 },
    { MPI_INTEGER1, SAR_KIND_FORTRAN_INTEGER, 0 },
    { MPI_INTEGER2, SAR_KIND_FORTRAN_INTEGER, 0 },
    { MPI_INTEGER4, SAR_KIND_FORTRAN_INTEGER, 0 },
    { MPI_INTEGER8, SAR_KIND_FORTRAN_INTEGER, 0 },
    { MPI_COMPLEX8, SAR_KIND_COMPLEX, 0 },
    { MPI_COMPLEX16, SAR_KIND_COMPLEX, 0 },
    { MPI_COMPLEX32, SAR_KIND_COMPLEX, 0 },
    { MPI_2REAL, SAR_KIND_PAIR, 0 },
    { MPI_2DOUBLE_PRECISION, SAR_KIND_PAIR, 0 },
    { MPI_2INTEGER, SAR_KIND_PAIR, 0 },
    { MPI_CXX_BOOL, SAR_KIND_LOGICAL, 0 },
    { MPI_CXX_FLOAT_COMPLEX, SAR_KIND_COMPLEX, 0 },
    { MPI_CXX_DOUBLE_COMPLEX, SAR_KIND_COMPLEX, 0 },
    { MPI_CXX_LONG_DOUBLE_COMPLEX, SAR_KIND_COMPLEX, 0 },
#ifdef MPI_INTEGER16
    { MPI_INTEGER16, SAR_KIND_FORTRAN_INTEGER, 0 },
#endif
#ifdef MPI_REAL2
    { MPI_REAL2, SAR_KIND_FLOAT, 0 },
#endif
#ifdef MPI_COMPLEX4
    { MPI_COMPLEX4, SAR_KIND_COMPLEX, 0 },
#endif
};

const struct sar_predefined *sar_predefined_find(MPI_Datatype datatype)
{
    for (size_t i = 0; i < sizeof predefined_types / sizeof predefined_types[0]; i++)
        if (predefined_types[i].type == datatype)
            return &predefined_types[i];
    return NULL;
}

/* 16-bit floats are extensions of some MPI libraries. */
static bool find_float16(MPI_Datatype type, enum sar_dtype *base)
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

/* Find the library type for values of a kind and size. Only C's logicals have one: the bits of a true Fortran
 * logical depend on the compiler. */
static bool find_dtype(enum sar_datatype_kind kind, size_t size, enum sar_dtype *base)
{
    static const enum sar_dtype floats[] = { [4] = SAR_FLOAT, [8] = SAR_DOUBLE };
    static const enum sar_dtype integers[] = {
        [1] = SAR_INT8, [2] = SAR_INT16, [4] = SAR_INT32, [8] = SAR_INT64
    };
    static const enum sar_dtype unsigned_integers[] = {
        [1] = SAR_UINT8, [2] = SAR_UINT16, [4] = SAR_UINT32, [8] = SAR_UINT64
    };
    bool is_unsigned = (kind & (SAR_KIND_UNSIGNED | SAR_KIND_BYTE)) != 0;
    if (kind == SAR_KIND_LOGICAL && size == sizeof(bool))
        is_unsigned = true;
    else if ((kind & (SAR_KIND_REAL | SAR_KIND_BYTE)) == 0)
        return false;
    if (size > 8 || (size & (size - 1)) != 0 || size < (kind == SAR_KIND_FLOAT ? 4 : 1))
        return false;
    *base = kind == SAR_KIND_FLOAT ? floats[size] : is_unsigned ? unsigned_integers[size] : integers[size];
    return true;
}

static void release(MPI_Datatype *type)
{
    int n, addresses, types, combiner;
    PMPI_Type_get_envelope(*type, &n, &addresses, &types, &combiner);
    if (combiner != MPI_COMBINER_NAMED)
        PMPI_Type_free(type);
}

/* Follow contiguous types and duplicates down to a predefined type; other types leave `found` unchanged. */
static void unwrap_contiguous(MPI_Datatype type, size_t row, struct sar_datatype *found)
{
    int n, addresses, types, combiner, lengths[1] = { 1 };
    MPI_Datatype inner;
    MPI_Aint none;
    PMPI_Type_get_envelope(type, &n, &addresses, &types, &combiner);
    if (combiner == MPI_COMBINER_NAMED && row > 0) {
        const struct sar_predefined *predefined = sar_predefined_find(type);
        found->basic = type;
        found->row_len = row;
        found->kind = predefined == NULL ? SAR_KIND_OTHER : predefined->kind;
    }
    if (combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP)
        return;
    PMPI_Type_get_contents(type, n, 0, 1, lengths, &none, &inner);
    unwrap_contiguous(inner, row * (size_t)lengths[0], found);
    release(&inner);
}

static bool query_mpi(MPI_Datatype datatype, struct sar_datatype *found, size_t *size)
{
    MPI_Aint low, extent;
    MPI_Count bytes;
    if (datatype == MPI_DATATYPE_NULL || PMPI_Type_get_extent(datatype, &low, &extent) != MPI_SUCCESS)
        return false;
    PMPI_Type_size_x(datatype, &bytes);
    *size = (size_t)bytes;
    found->extent = extent > 0 ? (size_t)extent : 0;
    unwrap_contiguous(datatype, 1, found);
    return true;
}

enum { ROW_CACHE = 4 };

/* The thread's last contiguous types: their queries take as long as a small allreduce. Each has an
 * attribute, whose delete function starts a new generation, since MPI may reuse the handle of a freed
 * type. */
static _Thread_local struct {
    struct sar_datatype found; /* .row_len is 0 in an unused entry */
    MPI_Datatype type;
    uint_fast64_t generation; /* rows_freed when the entry was stored */
} row_cache[ROW_CACHE];
static _Thread_local unsigned row_cache_next;
static atomic_int keyval = MPI_KEYVAL_INVALID;
static atomic_uint_fast64_t rows_freed;

static int on_row_freed(MPI_Datatype type, int key, void *value, void *extra)
{
    (void)type, (void)key, (void)value, (void)extra;
    atomic_fetch_add(&rows_freed, 1);
    return MPI_SUCCESS;
}

enum sar_status sar_datatypes_setup(void)
{
    int made = MPI_KEYVAL_INVALID;
    enum sar_status status =
        sar_mpi(PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, on_row_freed, &made, NULL));
    atomic_store(&keyval, made);
    return status;
}

void sar_datatypes_cleanup(void)
{
    int freed = atomic_exchange(&keyval, MPI_KEYVAL_INVALID);
    atomic_fetch_add(&rows_freed, 1);
    if (freed != MPI_KEYVAL_INVALID)
        PMPI_Type_free_keyval(&freed);
}

static bool cache_find(MPI_Datatype type, struct sar_datatype *found)
{
    uint_fast64_t generation = atomic_load_explicit(&rows_freed, memory_order_acquire);
    for (int i = 0; i < ROW_CACHE; i++) {
        if (row_cache[i].type != type || row_cache[i].found.row_len == 0 ||
            row_cache[i].generation != generation)
            continue;
        *found = row_cache[i].found;
        return true;
    }
    return false;
}

static void cache_store(MPI_Datatype type, const struct sar_datatype *found)
{
    void *value;
    int has = 0, key = atomic_load(&keyval);
    uint_fast64_t generation = atomic_load_explicit(&rows_freed, memory_order_acquire);
    if (key == MPI_KEYVAL_INVALID || !found->native || found->basic == type)
        return;
    if (PMPI_Type_get_attr(type, key, &value, &has) != MPI_SUCCESS ||
        (!has && PMPI_Type_set_attr(type, key, NULL) != MPI_SUCCESS))
        return;
    unsigned at = row_cache_next++ % ROW_CACHE;
    row_cache[at].found = *found;
    row_cache[at].type = type;
    row_cache[at].generation = generation;
}

struct sar_datatype sar_datatype_classify(MPI_Datatype datatype)
{
    struct sar_datatype found = { .kind = SAR_KIND_DERIVED, .row_len = 1, .basic = datatype };
    if (sar_lifecycle_is_forked() || cache_find(datatype, &found))
        return found;
    const struct sar_predefined *own = sar_predefined_find(datatype);
    size_t size = 0;
    if (own != NULL && own->size != 0) {
        found.kind = own->kind;
        found.extent = size = own->size;
    } else if (!query_mpi(datatype, &found, &size)) {
        return found;
    }
    found.valid = true;
    size_t basic = found.row_len == 1 ? size : size / found.row_len;
    bool fits_int = size <= INT_MAX; /* larger elements go to MPI_Allreduce */
    found.native =
        fits_int && (find_dtype(found.kind, basic, &found.dtype) || find_float16(found.basic, &found.dtype));
    found.is_int16 = fits_int && (found.kind & SAR_KIND_INTEGER) != 0 && basic == 2;
    found.id =
        found.native ? (int64_t)found.row_len * DTYPE_RADIX + (int64_t)found.dtype + 1 : -1 - (int64_t)size;
    cache_store(datatype, &found);
    return found;
}

bool sar_index_type_classify(MPI_Datatype indextype, enum sar_index_type *type)
{
    static const enum sar_index_type of_base[SAR_DTYPES] = {
        [SAR_INT32] = SAR_INDEX_INT32,
        [SAR_INT64] = SAR_INDEX_INT64,
        [SAR_UINT32] = SAR_INDEX_UINT32,
        [SAR_UINT64] = SAR_INDEX_UINT64,
    };
    struct sar_datatype found = sar_datatype_classify(indextype);
    bool is_index = found.native && (found.extent == sizeof(int32_t) || found.extent == sizeof(int64_t));
    if (!is_index || found.row_len != 1 || (found.kind & SAR_KIND_INTEGER) == 0)
        return false;
    *type = of_base[found.dtype];
    return true;
}

const char *sar_dtype_name(enum sar_dtype base)
{
    static const char *const names[SAR_DTYPES] = { "float", "double", "int8",   "int16",  "int32", "int64",
                                                   "uint8", "uint16", "uint32", "uint64", "bf16",  "fp16" };
    return names[base];
}

/* Faults are the lowest ids: INT64_MIN plus a place in predefined_types. */
int64_t sar_datatype_fault(MPI_Datatype datatype, const struct sar_datatype *found)
{
    const struct sar_predefined *own = sar_predefined_find(datatype);
    return own == NULL || found->row_len != 1 ? found->id : INT64_MIN + (own - predefined_types);
}

static void describe_fault(int64_t id, char *text, size_t capacity)
{
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length;
    PMPI_Type_get_name(predefined_types[id - INT64_MIN].type, name, &length);
    snprintf(text, capacity, "%s (no integer, no float of up to 8 bytes, no row of them)", name);
}

void sar_datatype_describe(int64_t id, char *text, size_t capacity)
{
    if (id < INT64_MIN + (int64_t)(sizeof predefined_types / sizeof predefined_types[0]))
        describe_fault(id, text, capacity);
    else if (id == 0)
        snprintf(text, capacity, "an invalid handle");
    else if (id < 0)
        snprintf(text, capacity, "a type of %lld bytes", (long long)(-1 - id));
    else if ((id - 1) / DTYPE_RADIX == 1)
        snprintf(text, capacity, "%s", sar_dtype_name((enum sar_dtype)((id - 1) % DTYPE_RADIX)));
    else
        snprintf(text, capacity, "%lld x %s", (long long)((id - 1) / DTYPE_RADIX),
                 sar_dtype_name((enum sar_dtype)((id - 1) % DTYPE_RADIX)));
}
