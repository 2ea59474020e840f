/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests 2-byte integers that represent 16-bit floats, by a setting or a plan's hint, in every scheme. A
 * scheme with one reduction, or few contributions to an element, gives sums in rank order rounded once. Other
 * results stay within the bound of mpix_sparse_environment(7). All ranks have the same bits. Without the
 * setting, the values are integers. */

#include <math.h>
#include <mpix_sparse.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "float16.h"

enum { COUNT = 3000, OPS = 4 };

static const struct format {
    const char *name;
    enum sar_dtype base;
    double unit;
} formats[] = { { "bf16", SAR_BF16, 0x1p-8 }, { "fp16", SAR_FP16, 0x1p-11 } };

static const struct {
    const char *name;
    MPI_Op op;
} ops[OPS] = {
    { "MPI_SUM", MPI_SUM }, { "MPI_MAX", MPI_MAX }, { "MPI_MIN", MPI_MIN }, { "MPI_PROD", MPI_PROD }
};

static uint16_t in[COUNT], out[COUNT];
static const struct format *format;
static int op;

static uint64_t random_bits(size_t i, int at_rank)
{
    return mix(i * 64 + (size_t)at_rank);
}

/* An element on one or two ranks, with any 16 bits except signalling NaNs. */
static uint16_t draw_two(size_t i, int at_rank)
{
    size_t first = mix(i) % (size_t)ranks, second = (first + 1) % (size_t)ranks;
    uint16_t bits = (uint16_t)random_bits(i, at_rank);
    bool has = (size_t)at_rank == first || ((size_t)at_rank == second && i % 3 != 0);
    if (!has)
        return 0;
    return i % 5 == 0 ? 0 : isnan(float16_value(format->base, bits)) ? 0x7fff : bits;
}

/* Numbers around 1 of both signs on most ranks. */
static uint16_t draw_many(size_t i, int at_rank)
{
    uint64_t bits = random_bits(i, at_rank);
    double number = ldexp(1 + (double)(bits >> 12) * 0x1p-52, (int)(bits % 8) - 4);
    return bits / 16 % 4 == 0 ? 0 : float16_of(format->base, bits / 8 % 2 == 0 ? number : -number);
}

static void fill(uint16_t (*draw)(size_t i, int at_rank))
{
    for (size_t i = 0; i < COUNT; i++)
        in[i] = draw(i, rank);
    memset(out, 0x77, sizeof out);
}

/* Reference reduction in rank order. */
static float fold(float a, float b)
{
    switch (op) {
    case 0: return a + b;
    case 1: return a > b ? a : b;
    case 2: return a < b ? a : b;
    default: return a * b;
    }
}

static bool is_zero(uint16_t bits)
{
    return (bits & 0x7fff) == 0;
}

/* MAX and MIN leave open which of two zeros they return, and the result for a NaN. */
static bool agrees(uint16_t found, uint16_t expected, bool nan)
{
    if (found == expected || (op != 0 && op != 3 && nan))
        return true;
    if (op == 1 || op == 2)
        return is_zero(found) && is_zero(expected);
    return isnan(float16_value(format->base, found)) && isnan(float16_value(format->base, expected));
}

/* If `absent`, elements of zero bits do not take part. */
static void check_two(bool absent)
{
    for (size_t i = 0; i < COUNT; i++) {
        float sum = 0;
        bool any = false, nan = false;
        for (int r = 0; r < ranks; r++) {
            uint16_t bits = draw_two(i, r);
            float value = float16_value(format->base, bits);
            if (absent && bits == 0)
                continue;
            sum = any ? float16_value(format->base, float16_of(format->base, fold(sum, value))) : value;
            any = true;
            nan |= isnan(value);
        }
        uint16_t expected = any ? float16_of(format->base, sum) : 0;
        check(agrees(out[i], expected, nan), "expected %04x at %zu, found %04x", expected, i, out[i]);
    }
}

/* Number of roundings of a contribution, alone or in a sum, in schemes with several reductions. */
static int roundings(const char *scheme)
{
    static const char *const once[] = { "allgather", "shared", EVERY_OWNER_SCHEME };
    int steps = 0;
    for (size_t i = 0; i < sizeof once / sizeof once[0]; i++)
        if (strcmp(scheme, once[i]) == 0)
            return 1;
    while (1 << steps < ranks)
        steps++;
    if (strcmp(scheme, "two_level") == 0)
        return 2;
    return strcmp(scheme, "recursive_doubling") == 0 || strcmp(scheme, "hybrid") == 0 ? steps : ranks - 1;
}

/* Floats, reduced in rank order. */
static void check_once(bool absent)
{
    for (size_t i = 0; i < COUNT; i++) {
        float sum = 0;
        bool any = false;
        for (int r = 0; r < ranks; r++) {
            uint16_t bits = draw_many(i, r);
            float value = float16_value(format->base, bits);
            if (absent && bits == 0)
                continue;
            sum = any ? fold(sum, value) : value;
            any = true;
        }
        uint16_t expected = float16_of(format->base, sum);
        check(agrees(out[i], expected, false), "expected %04x at %zu, found %04x", expected, i, out[i]);
    }
}

static void check_bound(const char *scheme)
{
    double share = pow(1 + format->unit, roundings(scheme)) * pow(1 + 0x1p-24, ranks - 1) - 1;
    for (size_t i = 0; i < COUNT; i++) {
        double exact = 0, sizes = 0;
        for (int r = 0; r < ranks; r++) {
            double value = float16_value(format->base, draw_many(i, r));
            exact += value;
            sizes += fabs(value);
        }
        double found = float16_value(format->base, out[i]);
        check(fabs(found - exact) <= share * sizes, "expected %g within %g at %zu, found %g", exact,
              share * sizes, i, found);
    }
}

static void call_dense(MPI_Comm comm)
{
    check_success(MPIX_Sparse_allreduce(in, out, COUNT, MPI_UINT16_T, ops[op].op, comm),
                  "MPIX_Sparse_allreduce");
}

static void call_in_place(MPI_Comm comm)
{
    MPI_Request request;
    memcpy(out, in, sizeof out);
    check_success(MPIX_Isparse_allreduce(MPI_IN_PLACE, out, COUNT, MPI_SHORT, ops[op].op, comm, &request),
                  "MPIX_Isparse_allreduce");
    check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
}

static void call_coo(MPI_Comm comm)
{
    static int32_t indices[COUNT];
    static uint16_t values[COUNT];
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPI_Count nnz = 0;
    for (int i = 0; i < COUNT; i++) {
        if (in[i] == 0)
            continue;
        indices[nnz] = i;
        values[nnz++] = in[i];
    }
    check_success(MPIX_Sparse_allreduce_coo(indices, values, nnz, MPI_INT32_T, COUNT, MPI_INT16_T, ops[op].op,
                                            comm, &result),
                  "MPIX_Sparse_allreduce_coo");
    check_success(MPIX_Sparse_result_dense(result, out), "MPIX_Sparse_result_dense");
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
}

static void check_many(const char *scheme, bool absent)
{
    if (roundings(scheme) == 1 && (absent || op == 0))
        check_once(absent);
    if (op == 0)
        check_bound(scheme);
}

static void try_calls(const char *scheme, MPI_Comm comm)
{
    bool same = strcmp(scheme, "dense") != 0 && strcmp(scheme, "auto") != 0; /* otherwise MPI decides */
    static void (*const calls[])(MPI_Comm comm) = { call_dense, call_in_place, call_coo };
    for (op = 0; op < OPS; op++) {
        for (int c = 0; c < 3; c++) {
            check_case("%s of %s, %s, form %d", ops[op].name, format->name, scheme, c);
            fill(draw_two);
            calls[c](comm);
            if (c == 2 || op == 0 || ranks == 2)
                check_two(c == 2);
            if (same)
                check_equal_on_ranks(hash_bytes(out, sizeof out, 1), "the result");
            fill(draw_many);
            calls[c](comm);
            if (same)
                check_equal_on_ranks(hash_bytes(out, sizeof out, 1), "the sums");
            check_many(scheme, c == 2);
        }
    }
    op = 0;
}

static void try_plan(const char *scheme, MPI_Comm comm)
{
    MPI_Info info;
    MPIX_Sparse_plan plan;
    MPI_Request request;
    check_case("a plan of %s, %s", format->name, scheme);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_element", format->name);
    MPI_Info_set(info, "mpix_sparse_scheme", scheme);
    check_success(MPIX_Sparse_allreduce_init(in, out, COUNT, MPI_UINT16_T, MPI_SUM, comm, info, &plan),
                  "MPIX_Sparse_allreduce_init");
    for (int round = 0; round < 12; round++) {
        fill(draw_two);
        check_success(MPIX_Sparse_plan_start(plan, &request), "MPIX_Sparse_plan_start");
        check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        check_two(false);
    }
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    MPI_Info_free(&info);
}

/* Without the setting MPI's rules apply. Coordinates wrap around; in Open MPI 4.1 they do not. */
static void try_integers(MPI_Comm comm)
{
    static uint16_t expected[COUNT];
    static uint32_t wide[COUNT];
    check_case("integers");
    format = &formats[0];
    for (int c = 0; c < 2; c++) {
        fill(draw_two);
        PMPI_Allreduce(in, expected, COUNT, MPI_UINT16_T, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < COUNT; i++)
            wide[i] = in[i];
        PMPI_Allreduce(MPI_IN_PLACE, wide, COUNT, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; c == 1 && i < COUNT; i++)
            expected[i] = (uint16_t)wide[i];
        if (c == 0)
            call_dense(comm);
        else
            call_coo(comm);
        check(memcmp(out, expected, sizeof out) == 0, "expected the integers of MPI_Allreduce");
    }
}

int main(int argc, char **argv)
{
    static const char *const schemes[] = { EVERY_SPARSE_SCHEME, "dense", "auto" };
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* MPI_Wait uses this handler */
    MPI_Comm plain = settings_comm(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        format = &formats[(i + (size_t)ranks) % 2];
        setenv("MPIX_SPARSE_ELEMENT", format->name, 1);
        MPI_Comm comm =
            settings_comm(&(struct settings){ schemes[i], NULL, NULL, NULL, i % 3 == 0 ? "100" : NULL });
        unsetenv("MPIX_SPARSE_ELEMENT");
        try_calls(schemes[i], comm);
        try_plan(schemes[i], plain);
        MPI_Comm_free(&comm);
    }
    try_integers(plain);
    MPI_Comm_free(&plain);
    return check_end("float16_ops");
}
