/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests every MPI datatype with every MPI op on dense buffers, in all forms of the call. Pairs that MPI
 * defines give the bytes of MPI_Allreduce; undefined pairs give an error. Pairs that MPI leaves open, such as
 * logical ops on floats, follow MPI. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { MOST_COUNT = 700, MOST_SIZE = 32, BYTES = MOST_COUNT * MOST_SIZE };

/* Groups of MPI-4, section 6.9.2: integers of C and Fortran, addresses, reals, complex, logical, byte,
 * pairs. */
#define TYPE(group, type)  \
    {                      \
#type, group, type \
    }

static const struct {
    const char *name;
    char group;
    MPI_Datatype type;
} types[] = {
    TYPE('I', MPI_INT),
    TYPE('I', MPI_LONG),
    TYPE('I', MPI_SHORT),
    TYPE('I', MPI_UNSIGNED_SHORT),
    TYPE('I', MPI_UNSIGNED),
    TYPE('I', MPI_UNSIGNED_LONG),
    TYPE('I', MPI_LONG_LONG_INT),
    TYPE('I', MPI_LONG_LONG),
    TYPE('I', MPI_UNSIGNED_LONG_LONG),
    TYPE('I', MPI_SIGNED_CHAR),
    TYPE('I', MPI_UNSIGNED_CHAR),
    TYPE('I', MPI_INT8_T),
    TYPE('I', MPI_INT16_T),
    TYPE('I', MPI_INT32_T),
    TYPE('I', MPI_INT64_T),
    TYPE('I', MPI_UINT8_T),
    TYPE('I', MPI_UINT16_T),
    TYPE('I', MPI_UINT32_T),
    TYPE('I', MPI_UINT64_T),
    TYPE('F', MPI_INTEGER),
    TYPE('F', MPI_INTEGER1),
    TYPE('F', MPI_INTEGER2),
    TYPE('F', MPI_INTEGER4),
    TYPE('F', MPI_INTEGER8),
#ifdef MPI_INTEGER16
    TYPE('F', MPI_INTEGER16),
#endif
    TYPE('A', MPI_AINT),
    TYPE('A', MPI_OFFSET),
    TYPE('A', MPI_COUNT),
    TYPE('R', MPI_FLOAT),
    TYPE('R', MPI_DOUBLE),
    TYPE('R', MPI_LONG_DOUBLE),
    TYPE('R', MPI_REAL),
    TYPE('R', MPI_DOUBLE_PRECISION),
    TYPE('R', MPI_REAL4),
    TYPE('R', MPI_REAL8),
    TYPE('R', MPI_REAL16),
    TYPE('C', MPI_C_COMPLEX),
    TYPE('C', MPI_C_FLOAT_COMPLEX),
    TYPE('C', MPI_C_DOUBLE_COMPLEX),
    TYPE('C', MPI_C_LONG_DOUBLE_COMPLEX),
    TYPE('C', MPI_COMPLEX),
    TYPE('C', MPI_DOUBLE_COMPLEX),
    TYPE('C', MPI_COMPLEX8),
    TYPE('C', MPI_COMPLEX16),
    TYPE('C', MPI_COMPLEX32),
    TYPE('C', MPI_CXX_FLOAT_COMPLEX),
    TYPE('C', MPI_CXX_DOUBLE_COMPLEX),
    TYPE('C', MPI_CXX_LONG_DOUBLE_COMPLEX),
    TYPE('L', MPI_LOGICAL),
    TYPE('L', MPI_C_BOOL),
    TYPE('L', MPI_CXX_BOOL),
    TYPE('B', MPI_BYTE),
    TYPE('P', MPI_FLOAT_INT),
    TYPE('P', MPI_DOUBLE_INT),
    TYPE('P', MPI_LONG_INT),
    TYPE('P', MPI_2INT),
    TYPE('P', MPI_SHORT_INT),
    TYPE('P', MPI_LONG_DOUBLE_INT),
    TYPE('P', MPI_2REAL),
    TYPE('P', MPI_2DOUBLE_PRECISION),
    TYPE('P', MPI_2INTEGER),
};

static const struct {
    const char *name;
    MPI_Op op;
    const char *takes, *open;
} ops[] = {
    { "MPI_SUM", MPI_SUM, "IFARC", "" },   { "MPI_PROD", MPI_PROD, "IFARC", "" },
    { "MPI_MAX", MPI_MAX, "IFAR", "" },    { "MPI_MIN", MPI_MIN, "IFAR", "" },
    { "MPI_LAND", MPI_LAND, "IL", "FAR" }, { "MPI_LOR", MPI_LOR, "IL", "FAR" },
    { "MPI_LXOR", MPI_LXOR, "IL", "FAR" }, { "MPI_BAND", MPI_BAND, "IFAB", "" },
    { "MPI_BOR", MPI_BOR, "IFAB", "" },    { "MPI_BXOR", MPI_BXOR, "IFAB", "" },
    { "MPI_MINLOC", MPI_MINLOC, "P", "" }, { "MPI_MAXLOC", MPI_MAXLOC, "P", "" },
};

enum { TYPES = sizeof types / sizeof types[0], OPS = sizeof ops / sizeof ops[0] };

static unsigned char in[BYTES], out[BYTES], expected[BYTES];

/* 16-byte long doubles of x86 hold 10 bytes of number; the padding is undefined. */
static bool is_long(int t)
{
    static const char *const names[] = { "LONG_DOUBLE", "REAL16", "COMPLEX32" };
    bool any = false;
    for (int i = 0; i < 3; i++)
        any |= strstr(types[t].name, names[i]) != NULL;
    return any;
}

/* Fill with small integers as 4-byte words. Sums of them are exact in any type. */
static void fill(int t)
{
    memset(in, 0, BYTES);
    for (size_t i = 0; i < BYTES; i += is_long(t) ? 16 : 4) {
        uint64_t bits = mix((uint64_t)t * BYTES + i + (uint64_t)rank * 7919);
        uint32_t word = bits % 3 == 0 ? (uint32_t)(bits >> 40 & 1) : 0;
        long double number = word;
        memcpy(in + i, is_long(t) ? (const void *)&number : &word, is_long(t) ? 10 : sizeof word);
    }
}

static void clear_padding(unsigned char *buffer)
{
    for (size_t i = 0; i < BYTES; i += 16)
        memset(buffer + i + 10, 0, 6);
}

/* A form of the call, from `from` into `out`. */
struct form {
    const char *name;
    int (*call)(const void *from, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
};

static int block(const void *from, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    return MPIX_Sparse_allreduce(from, out, count, type, op, comm);
}

static int start(const void *from, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    MPI_Request request;
    int code = MPIX_Isparse_allreduce(from, out, count, type, op, comm, &request);
    return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

static int plan(const void *from, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    MPI_Request request;
    MPIX_Sparse_plan made;
    int code = MPIX_Sparse_allreduce_init(from, out, count, type, op, comm, MPI_INFO_NULL, &made);
    if (code != MPI_SUCCESS)
        return code;
    code = MPIX_Sparse_plan_start(made, &request);
    if (code == MPI_SUCCESS)
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPIX_Sparse_plan_free(&made);
    return code;
}

static const struct form forms[] = { { "blocking", block }, { "nonblocking", start }, { "a plan", plan } };
enum { FORMS = sizeof forms / sizeof forms[0] };

static bool are_equal(int t)
{
    if (is_long(t)) {
        clear_padding(out);
        clear_padding(expected);
    }
    return memcmp(out, expected, BYTES) == 0;
}

/* Pairs that MPI does not define, or that this MPI does not support. */
static void try_undefined(int t, int o, const struct form *form, int count, MPI_Comm comm)
{
    memcpy(out, expected, BYTES);
    int code = form->call(in, count, types[t].type, ops[o].op, comm), class;
    check(code != MPI_SUCCESS, "expected an error");
    MPI_Error_class(code, &class);
    check(class == MPI_ERR_OP, "expected class MPI_ERR_OP, found %d", class);
    check(memcmp(out, expected, BYTES) == 0, "expected recvbuf as it was");
}

static void try_defined(int t, int o, const struct form *form, int count, MPI_Comm comm)
{
    memset(expected, 0x77, BYTES);
    memset(out, 0x77, BYTES);
    if (PMPI_Allreduce(in, expected, count, types[t].type, ops[o].op, MPI_COMM_WORLD) != MPI_SUCCESS) {
        try_undefined(t, o, form, count, comm);
        return;
    }
    check_success(form->call(in, count, types[t].type, ops[o].op, comm), form->name);
    check(are_equal(t), "expected the bytes of MPI_Allreduce");
    memcpy(expected, in, BYTES);
    memcpy(out, in, BYTES);
    PMPI_Allreduce(MPI_IN_PLACE, expected, count, types[t].type, ops[o].op, MPI_COMM_WORLD);
    check_success(form->call(MPI_IN_PLACE, count, types[t].type, ops[o].op, comm), form->name);
    check(are_equal(t), "expected the bytes of MPI_Allreduce in place");
}

static void try_pair(int t, int o, const struct form *form, int count, MPI_Comm comm)
{
    check_case("%s of %d %s, %s", ops[o].name, count, types[t].name, form->name);
    if (strchr(ops[o].takes, types[t].group) != NULL)
        try_defined(t, o, form, count, comm);
    else if (strchr(ops[o].open, types[t].group) == NULL)
        try_undefined(t, o, form, count, comm);
}

static void try_all(const char *forward, const char *scheme)
{
    static const int counts[] = { 0, 13, MOST_COUNT };
    setenv("MPIX_SPARSE_FORWARD", forward, 1);
    MPI_Comm comm = settings_comm(&(struct settings){ scheme, NULL, NULL, NULL, NULL });
    for (int t = 0; t < TYPES; t++) {
        if (types[t].type == MPI_DATATYPE_NULL)
            continue;
        fill(t);
        for (int o = 0; o < OPS; o++)
            for (int f = 0; f < FORMS; f++)
                try_pair(t, o, &forms[f], counts[(t + o + f) % 3], comm);
    }
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    setenv("MPIX_SPARSE_LOG_FILE", "/dev/null", 1); /* thousands of errors without a text */
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* MPI_Wait uses this handler */
    try_all("63", NULL);
    try_all("0", NULL);
    try_all("0", "balanced");
    return check_end("every_type");
}
