/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that dense calls outside the library's types and ops return the bytes of MPI_Allreduce under every
 * scheme: user-defined ops, other builtin ops, other types, derived types with gaps. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { COUNT = 50, BYTES = 4096 };

static unsigned char in[BYTES], expected[BYTES], found[BYTES];

static void fill(uint64_t seed)
{
    for (size_t i = 0; i < BYTES; i++)
        in[i] = (unsigned char)(mix(seed * BYTES + i) ^ (uint64_t)rank);
    memset(expected, 0x77, BYTES);
    memset(found, 0x77, BYTES);
}

/* Compare every byte of recvbuf, including gaps and the bytes after its end. */
static void compare(MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    check_success(MPI_Allreduce(in, expected, (int)count, type, op, comm), "MPI_Allreduce");
    check_success(MPIX_Sparse_allreduce(in, found, count, type, op, comm), "MPIX_Sparse_allreduce");
    check(memcmp(expected, found, BYTES) == 0, "expected the bytes of MPI_Allreduce, found others");
    memcpy(found, in, BYTES);
    memcpy(expected, in, BYTES);
    check_success(MPI_Allreduce(MPI_IN_PLACE, expected, (int)count, type, op, comm), "MPI_Allreduce");
    check_success(MPIX_Sparse_allreduce(MPI_IN_PLACE, found, count, type, op, comm), "MPIX_Sparse_allreduce");
    check(memcmp(expected, found, BYTES) == 0, "expected the bytes of MPI_Allreduce in place, found others");
    MPIX_Sparse_report_t report;
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check(strcmp(report.scheme, "dense") == 0, "expected scheme dense, found %s", report.scheme);
}

static void try_types(MPI_Comm comm)
{
    const struct {
        const char *name;
        MPI_Datatype type;
        MPI_Op op;
    } cases[] = {
        { "MPI_LAND of MPI_INT", MPI_INT, MPI_LAND },
        { "MPI_LXOR of MPI_UINT64_T", MPI_UINT64_T, MPI_LXOR },
        { "MPI_LOR of MPI_INT", MPI_INT, MPI_LOR },
        { "MPI_LOR of MPI_SHORT", MPI_SHORT, MPI_LOR },
        { "MPI_LAND of MPI_INT8_T", MPI_INT8_T, MPI_LAND },
        { "MPI_LOR of MPI_C_BOOL", MPI_C_BOOL, MPI_LOR },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_case("%s", cases[i].name);
        fill(i);
        compare(COUNT, cases[i].type, cases[i].op, comm);
        compare(0, cases[i].type, cases[i].op, comm);
    }
}

/* Set all bytes of the struct, so that padding compares equal. */
static void try_pairs(MPI_Comm comm)
{
    struct {
        double value;
        int place;
    } pair;
    for (int op = 0; op < 2; op++) {
        check_case("%s of MPI_DOUBLE_INT", op == 0 ? "MPI_MAXLOC" : "MPI_MINLOC");
        fill(0);
        memset(in, 0x77, BYTES);
        for (int i = 0; i < COUNT; i++) {
            memset(&pair, 0x77, sizeof pair);
            pair.value = (double)(mix((uint64_t)(i * 100 + rank)) % 5);
            pair.place = rank * COUNT + i;
            memcpy(in + (size_t)i * sizeof pair, &pair, sizeof pair);
        }
        compare(COUNT, MPI_DOUBLE_INT, op == 0 ? MPI_MAXLOC : MPI_MINLOC, comm);
    }
}

/* Op: the float of largest magnitude. */
static void larger_magnitude(void *from, void *to, int *n, MPI_Datatype *type)
{
    const float *a = from;
    float *b = to;
    (void)type;
    for (int i = 0; i < *n; i++)
        if (a[i] * a[i] > b[i] * b[i])
            b[i] = a[i];
}

/* Op: the first rank's value. It is associative and not commutative. */
static void keep_first(void *from, void *to, int *n, MPI_Datatype *type)
{
    (void)type;
    memcpy(to, from, (size_t)*n * sizeof(int));
}

static void try_own_ops(MPI_Comm comm)
{
    MPI_Op magnitude, first;
    float numbers[COUNT];
    MPI_Op_create(larger_magnitude, 1, &magnitude);
    MPI_Op_create(keep_first, 0, &first);
    check_case("a commutative op of the user's");
    fill(3);
    for (int i = 0; i < COUNT; i++)
        numbers[i] = i % 3 == 0
                         ? 0
                         : (float)(int)(mix((uint64_t)(i * 50 + rank)) % 1000) - 500.25f * (float)(rank % 2);
    memcpy(in, numbers, sizeof numbers);
    compare(COUNT, MPI_FLOAT, magnitude, comm);
    check_case("an op of the user's that does not commute");
    fill(4);
    compare(COUNT, MPI_INT, first, comm);
    MPI_Op_free(&magnitude);
    MPI_Op_free(&first);
}

/* Two of three ints, with an extent of four. */
enum { USED = 2, EXTENT = 4 };

static void add_vectors(void *from, void *to, int *n, MPI_Datatype *type)
{
    const int *a = from;
    int *b = to;
    (void)type;
    for (int i = 0; i < *n; i++) {
        b[i * EXTENT] = (int)((unsigned)b[i * EXTENT] + (unsigned)a[i * EXTENT]);
        b[i * EXTENT + USED] = (int)((unsigned)b[i * EXTENT + USED] + (unsigned)a[i * EXTENT + USED]);
    }
}

static void try_derived(MPI_Comm comm)
{
    MPI_Datatype vector, spread;
    MPI_Op op;
    check_case("a derived type with gaps");
    MPI_Type_vector(2, 1, USED, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, EXTENT * sizeof(int), &spread);
    MPI_Type_commit(&spread);
    MPI_Op_create(add_vectors, 1, &op);
    fill(5);
    compare(COUNT, spread, op, comm);
    MPI_Op_free(&op);
    MPI_Type_free(&spread);
    MPI_Type_free(&vector);
}

/* Rows of rows and duplicates of rows are rows. The library reduces them itself, with the same result. */
static void try_rows(MPI_Comm comm)
{
    MPI_Datatype three, six, copy;
    double numbers[6 * COUNT], sums[6 * COUNT];
    check_case("rows of rows");
    MPI_Type_contiguous(3, MPI_DOUBLE, &three);
    MPI_Type_contiguous(2, three, &six);
    MPI_Type_dup(six, &copy);
    MPI_Type_commit(&copy);
    for (int i = 0; i < 6 * COUNT; i++)
        numbers[i] = i / 12 % 2 == 0 ? 0 : i;
    check_success(MPIX_Sparse_allreduce(numbers, sums, COUNT, copy, MPI_SUM, comm), "MPIX_Sparse_allreduce");
    for (int i = 0; i < 6 * COUNT; i++)
        check(sums[i] == numbers[i] * ranks, "expected %g, found %g", numbers[i] * ranks, sums[i]);
    MPIX_Sparse_report_t report;
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check(report.row == 6, "expected rows of 6, found %lld", (long long)report.row);
    MPI_Type_free(&copy);
    MPI_Type_free(&six);
    MPI_Type_free(&three);
}

int main(int argc, char **argv)
{
    static const char *const schemes[] = { "auto", "dense", "balanced", "recursive_doubling", "allgather" };
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        MPI_Comm comm = settings_comm(&(struct settings){ schemes[i], NULL, NULL, NULL, NULL });
        try_types(comm);
        try_pairs(comm);
        try_own_ops(comm);
        try_derived(comm);
        try_rows(comm);
        MPI_Comm_free(&comm);
    }
    return check_end("dense_fallback");
}
