/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests coordinates of every integer, logical and byte type with every op, in every scheme and format,
 * against a plain loop over all ranks' elements. Cases include rows, equal indices, any order, few elements
 * and none. Undefined pairs give an error. Dense buffers give the bytes of MPI_Allreduce. */

#include <mpix_sparse.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum {
    MOST_COUNT = 700,
    MOST_ROW = 40,
    MOST_SIZE = 8,
    MOST_NNZ = 90,
    BYTES = MOST_COUNT * MOST_ROW * MOST_SIZE
};

/* Signed, unsigned, Fortran and address integers; logical; byte; reals. */
static const struct {
    const char *name;
    MPI_Datatype type;
    size_t size;
    char group;
} types[] = {
    { "MPI_SIGNED_CHAR", MPI_SIGNED_CHAR, 1, 'S' },
    { "MPI_INT8_T", MPI_INT8_T, 1, 'S' },
    { "MPI_SHORT", MPI_SHORT, 2, 'S' },
    { "MPI_INT16_T", MPI_INT16_T, 2, 'S' },
    { "MPI_INT32_T", MPI_INT32_T, 4, 'S' },
    { "MPI_LONG_LONG", MPI_LONG_LONG, 8, 'S' },
    { "MPI_UNSIGNED_CHAR", MPI_UNSIGNED_CHAR, 1, 'U' },
    { "MPI_UINT8_T", MPI_UINT8_T, 1, 'U' },
    { "MPI_UNSIGNED_SHORT", MPI_UNSIGNED_SHORT, 2, 'U' },
    { "MPI_UINT16_T", MPI_UINT16_T, 2, 'U' },
    { "MPI_UINT32_T", MPI_UINT32_T, 4, 'U' },
    { "MPI_UNSIGNED_LONG", MPI_UNSIGNED_LONG, sizeof(long), 'U' },
    { "MPI_AINT", MPI_AINT, sizeof(MPI_Aint), 'A' },
    { "MPI_COUNT", MPI_COUNT, sizeof(MPI_Count), 'A' },
    { "MPI_C_BOOL", MPI_C_BOOL, 1, 'L' },
    { "MPI_CXX_BOOL", MPI_CXX_BOOL, 1, 'L' },
    { "MPI_BYTE", MPI_BYTE, 1, 'B' },
    { "MPI_FLOAT", MPI_FLOAT, 4, 'R' },
    { "MPI_DOUBLE", MPI_DOUBLE, 8, 'R' },
};

enum op { SUM, PROD, MAX, MIN, BAND, BOR, BXOR, LAND, LOR, LXOR, OPS };

static const struct {
    const char *name;
    MPI_Op op;
    const char *takes;
} ops[OPS] = {
    { "MPI_SUM", MPI_SUM, "SUAR" },   { "MPI_PROD", MPI_PROD, "SUAR" }, { "MPI_MAX", MPI_MAX, "SUAR" },
    { "MPI_MIN", MPI_MIN, "SUAR" },   { "MPI_BAND", MPI_BAND, "SUAB" }, { "MPI_BOR", MPI_BOR, "SUAB" },
    { "MPI_BXOR", MPI_BXOR, "SUAB" }, { "MPI_LAND", MPI_LAND, "SUL" },  { "MPI_LOR", MPI_LOR, "SUL" },
    { "MPI_LXOR", MPI_LXOR, "SUL" },
};

enum { TYPES = sizeof types / sizeof types[0] };

/* Parameters that are equal on all ranks. */
struct trial {
    int t, o;
    MPI_Count count;
    size_t row;
    uint64_t seed;
};

/* One rank's coordinates. */
static int32_t index_of[MOST_NNZ];
static unsigned char value_of[MOST_NNZ * MOST_ROW * MOST_SIZE];

static unsigned char expected[BYTES], found[BYTES], mine[BYTES];
static bool there[MOST_COUNT];

static size_t element_size(const struct trial *trial)
{
    return types[trial->t].size * trial->row;
}

/* A logical has two values. Half of the other values are 0 if the op depends on zero. */
static void put_value(const struct trial *trial, uint64_t key, unsigned char *out)
{
    uint64_t bits = mix(key);
    if (types[trial->t].group == 'L')
        *out = (unsigned char)(bits & 1);
    else if (ops[trial->o].op == MPI_LAND || ops[trial->o].op == MPI_LOR || ops[trial->o].op == MPI_LXOR)
        memset(out, bits % 2 == 0 ? 0 : 1 << bits / 2 % 8, types[trial->t].size);
    else
        for (size_t i = 0; i < types[trial->t].size; i++)
            out[i] = (unsigned char)(bits >> 8 * i);
}

/* Draw a rank's elements; every rank can draw those of all. Some indices repeat; every second trial has them
 * unsorted. */
static int draw(const struct trial *trial, int of)
{
    uint64_t key = mix(trial->seed * 64 + (uint64_t)of);
    int n = trial->count == 0 || key % 5 == 0 ? 0 : (int)(key / 5 % MOST_NNZ);
    bool ascending = trial->seed % 2 == 0;
    int32_t index = -1;
    for (int i = 0; i < n; i++) {
        uint64_t random_bits = mix(key + (uint64_t)i);
        index = ascending ? index + 1 + (int32_t)(random_bits % 7)
                          : (int32_t)(random_bits % (uint64_t)trial->count);
        if (index >= trial->count)
            return i;
        index_of[i] = index;
        for (size_t k = 0; k < trial->row; k++)
            put_value(trial, random_bits + k, value_of + ((size_t)i * trial->row + k) * types[trial->t].size);
    }
    return n;
}

#define FOLD(type)                                                                   \
    do {                                                                             \
        type a, b;                                                                   \
        memcpy(&a, sum, sizeof a);                                                   \
        memcpy(&b, value, sizeof b);                                                 \
        switch (o) {                                                                 \
        case SUM: a = (type)((unsigned long long)a + (unsigned long long)b); break;  \
        case PROD: a = (type)((unsigned long long)a * (unsigned long long)b); break; \
        case MAX: a = a > b ? a : b; break;                                          \
        case MIN: a = a < b ? a : b; break;                                          \
        case BAND: a = (type)(a & b); break;                                         \
        case BOR: a = (type)(a | b); break;                                          \
        case BXOR: a = (type)(a ^ b); break;                                         \
        case LAND: a = a && b; break;                                                \
        case LOR: a = a || b; break;                                                 \
        default: a = !a != !b; break;                                                \
        }                                                                            \
        memcpy(sum, &a, sizeof a);                                                   \
    } while (0)

static void fold(int t, enum op o, unsigned char *sum, const unsigned char *value)
{
    bool is_signed = types[t].group == 'S' || types[t].group == 'A';
    switch (types[t].size) {
    case 1:
        if (is_signed)
            FOLD(int8_t);
        else
            FOLD(uint8_t);
        break;
    case 2:
        if (is_signed)
            FOLD(int16_t);
        else
            FOLD(uint16_t);
        break;
    case 4:
        if (is_signed)
            FOLD(int32_t);
        else
            FOLD(uint32_t);
        break;
    default:
        if (is_signed)
            FOLD(int64_t);
        else
            FOLD(uint64_t);
        break;
    }
}

/* Logical ops set values to 0 or 1, even without a second contribution. */
static void settle(const struct trial *trial, unsigned char *element)
{
    static const unsigned char zero[MOST_SIZE];
    size_t size = types[trial->t].size;
    for (size_t k = 0; trial->o >= LAND && k < trial->row; k++)
        fold(trial->t, LOR, element + k * size, zero);
}

/* Compute the expected result by a plain loop. */
static void expect(const struct trial *trial)
{
    size_t bytes = element_size(trial), size = types[trial->t].size;
    memset(there, 0, sizeof there);
    memset(expected, 0, sizeof expected);
    for (int r = 0; r < ranks; r++) {
        int n = draw(trial, r);
        for (int i = 0; i < n; i++) {
            unsigned char *to = expected + (size_t)index_of[i] * bytes;
            const unsigned char *from = value_of + (size_t)i * bytes;
            for (size_t k = 0; there[index_of[i]] && k < trial->row; k++)
                fold(trial->t, (enum op)trial->o, to + k * size, from + k * size);
            if (!there[index_of[i]])
                memcpy(to, from, bytes);
            there[index_of[i]] = true;
        }
    }
    for (MPI_Count i = 0; i < trial->count; i++)
        settle(trial, expected + (size_t)i * bytes);
}

static MPI_Datatype element_type(const struct trial *trial)
{
    MPI_Datatype type = types[trial->t].type;
    if (trial->row != 1) {
        MPI_Type_contiguous((int)trial->row, type, &type);
        MPI_Type_commit(&type);
    }
    return type;
}

/* Make the call in one of its forms. */
static int call(const struct trial *trial, int form, int nnz, MPI_Datatype type, MPI_Comm comm,
                MPIX_Sparse_result *result)
{
    MPI_Request request;
    MPIX_Sparse_plan plan;
    MPI_Op op = ops[trial->o].op;
    if (form == 0)
        return MPIX_Sparse_allreduce_coo(index_of, value_of, nnz, MPI_INT32_T, trial->count, type, op, comm,
                                         result);
    int code = MPI_SUCCESS;
    if (form == 1) {
        code = MPIX_Isparse_allreduce_coo(index_of, value_of, nnz, MPI_INT32_T, trial->count, type, op, comm,
                                          result, &request);
        return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
    }
    code = MPIX_Sparse_allreduce_coo_init(MPI_INT32_T, trial->count, type, op, comm, MPI_INFO_NULL, &plan);
    for (int start = 0; start < 3 && code == MPI_SUCCESS; start++) {
        code = MPIX_Sparse_plan_start_coo(plan, index_of, value_of, nnz, result, &request);
        code = code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
        if (start == 2 || code != MPI_SUCCESS)
            MPIX_Sparse_plan_free(&plan);
    }
    return code;
}

static void compare(const struct trial *trial, MPIX_Sparse_result result)
{
    size_t bytes = element_size(trial);
    MPI_Count nnz, n = 0;
    const void *indices, *values;
    check_success(MPIX_Sparse_result_get(result, &nnz, &indices, &values), "MPIX_Sparse_result_get");
    for (MPI_Count i = 0; i < trial->count; i++) {
        if (!there[i])
            continue;
        check(n < nnz && ((const int32_t *)indices)[n] == i, "expected an element at %lld", (long long)i);
        check(memcmp((const char *)values + (size_t)n++ * bytes, expected + (size_t)i * bytes, bytes) == 0,
              "expected another value at %lld", (long long)i);
    }
    check(n == nnz, "expected %lld elements, found %lld", (long long)n, (long long)nnz);
    memset(found, 0x77, sizeof found);
    check_success(MPIX_Sparse_result_dense(result, found), "MPIX_Sparse_result_dense");
    check(memcmp(found, expected, (size_t)trial->count * bytes) == 0, "expected another dense vector");
}

/* Reduce this rank's elements as a dense vector, and compare with MPI. */
static void try_dense(const struct trial *trial, MPI_Datatype type, MPI_Comm comm)
{
    size_t bytes = element_size(trial);
    int n = draw(trial, rank), numbers = (int)((size_t)trial->count * trial->row);
    memset(mine, 0, sizeof mine);
    for (int i = 0; i < n; i++)
        memcpy(mine + (size_t)index_of[i] * bytes, value_of + (size_t)i * bytes, bytes);
    memset(expected, 0x77, sizeof expected);
    memset(found, 0x77, sizeof found);
    PMPI_Allreduce(mine, expected, numbers, types[trial->t].type, ops[trial->o].op, MPI_COMM_WORLD);
    check_success(MPIX_Sparse_allreduce(mine, found, trial->count, type, ops[trial->o].op, comm),
                  "MPIX_Sparse_allreduce");
    check(memcmp(found, expected, sizeof found) == 0, "expected the bytes of MPI_Allreduce");
}

static void check_undefined(int code)
{
    int class = MPI_SUCCESS;
    check(code != MPI_SUCCESS, "expected an error");
    MPI_Error_class(code, &class);
    check(class == MPI_ERR_OP, "expected class MPI_ERR_OP, found %d", class);
}

/* 1 if the program has an argument */
static int forms = 3;

static void try_trial(const struct trial *trial, int form, const char *how, MPI_Comm comm)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPI_Datatype type = element_type(trial);
    bool is_real = types[trial->t].group == 'R', defined = strchr(ops[trial->o].takes, types[trial->t].group);
    check_case("%s of %lld x %zu %s, %s, form %d", ops[trial->o].name, (long long)trial->count, trial->row,
               types[trial->t].name, how, form);
    if (defined && !is_real) {
        expect(trial);
        check_success(call(trial, form, draw(trial, rank), type, comm, &result), "the call");
        compare(trial, result);
        check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
        try_dense(trial, type, comm);
    } else if (!defined) {
        check_undefined(call(trial, form, draw(trial, rank), type, comm, &result));
    }
    if (trial->row != 1)
        MPI_Type_free(&type);
}

/* Run a share of all combinations; each configuration and number of ranks runs another share. */
static void try_all(const struct settings *settings, uint64_t number)
{
    static const MPI_Count counts[] = { MOST_COUNT, 1, 57, 0, 300, MOST_COUNT };
    static const size_t rows[] = { 1, 1, 3, 4, MOST_ROW, 1, 2 };
    uint64_t share = oversubscribed ? 6 : 3;
    MPI_Comm comm = settings_comm(settings);
    for (int i = 0; i < TYPES * OPS; i++) {
        uint64_t random_bits = mix(number * 1000 + (uint64_t)i + (uint64_t)ranks * 77);
        struct trial trial = { i / OPS, i % OPS, counts[random_bits / 8 % 6], rows[random_bits / 64 % 7],
                               random_bits / 512 };
        if (types[trial.t].type != MPI_DATATYPE_NULL && random_bits % share == 0)
            try_trial(&trial, (int)(random_bits / 4096 % (uint64_t)forms), settings_text(settings), comm);
    }
    MPI_Comm_free(&comm);
}

/* Bytes, and rows of three bytes. */
static void try_profile(MPI_Comm comm)
{
    enum { COUNT = 90 };
    signed char vector[3 * COUNT] = { 0 };
    MPIX_Sparse_profile_t profile;
    for (int i = 0; i < 3 * COUNT; i += 9)
        vector[i] = -1;
    for (size_t row = 1; row <= 3; row += 2) {
        struct trial trial = { 0, SUM, 3 * COUNT / (MPI_Count)row, row, 0 };
        MPI_Datatype type = element_type(&trial);
        check_case("profile of rows of %zu", row);
        check_success(MPIX_Sparse_profile(vector, trial.count, type, comm, &profile), "MPIX_Sparse_profile");
        check(profile.density > 0.11 * (double)row && profile.density < 0.112 * (double)row,
              "expected one in %zu, found %g", 9 / row, profile.density);
        if (row != 1)
            MPI_Type_free(&type);
    }
}

/* Interpreted as 16-bit floats they have four ops. Without the setting they are integers. */
static void try_float16(void)
{
    uint16_t values[] = { 0x3f80, 0x4000 }; /* 1 and 2 as bfloat16 */
    const int32_t indices[] = { 3, 3 };
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPI_Count nnz;
    const void *sum;
    setenv("MPIX_SPARSE_ELEMENT", "bf16", 1);
    MPI_Comm comm = settings_comm(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
    try_profile(comm);
    unsetenv("MPIX_SPARSE_ELEMENT");
    check_case("integers that stand for 16-bit floats");
    check_success(MPIX_Sparse_allreduce_coo(indices, values, rank == 0 ? 2 : 0, MPI_INT32_T, 5, MPI_SHORT,
                                            MPI_SUM, comm, &result),
                  "MPIX_Sparse_allreduce_coo");
    check_success(MPIX_Sparse_result_get(result, &nnz, NULL, &sum), "MPIX_Sparse_result_get");
    check(nnz == 1 && *(const uint16_t *)sum == 0x4040, "expected 3 as bfloat16");
    check_undefined(
        MPIX_Sparse_allreduce_coo(indices, values, 1, MPI_INT32_T, 5, MPI_SHORT, MPI_BOR, comm, &result));
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    uint16_t bits = (uint16_t)(1 << rank % 16), all = 0;
    check_success(MPIX_Sparse_allreduce(&bits, &all, 1, MPI_UINT16_T, MPI_BOR, comm),
                  "MPIX_Sparse_allreduce");
    check(all == (ranks < 16 ? (1 << ranks) - 1 : 0xffff), "expected all ranks' bits, found %x", all);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    static const char *const schemes[] = { "dense", EVERY_SPARSE_SCHEME, "auto" };
    static const char *const wires[] = { NULL, EVERY_WIRE };
    enum { SCHEMES = sizeof schemes / sizeof schemes[0], WIRES = sizeof wires / sizeof wires[0] };
    setenv("MPIX_SPARSE_LOG_FILE", "/dev/null", 1); /* hundreds of errors without a text */
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    forms = argc > 1 ? 1 : forms;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* MPI_Wait uses this handler */
    for (uint64_t i = 0; i < SCHEMES; i++)
        try_all(&(struct settings){ schemes[i], NULL, NULL, NULL, NULL }, i);
    for (uint64_t i = 0; i < WIRES; i++) {
        try_all(&(struct settings){ "balanced", wires[i], NULL, i % 2 == 0 ? "4" : NULL,
                                    i % 3 == 0 ? "200" : NULL },
                100 + i);
        try_all(&(struct settings){ schemes[1 + (i + (uint64_t)ranks) % (SCHEMES - 2)], wires[i], NULL, NULL,
                                    NULL },
                200 + i);
    }
    try_float16();
    return check_end("integers");
}
