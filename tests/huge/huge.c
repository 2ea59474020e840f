/* SPDX-License-Identifier: BSD-3-Clause */
/* More elements than an int counts, on few ranks of much memory: scripts/huge builds and runs it. */

#include <mpix_sparse.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARKS = 64 };

static const MPI_Count count = ((MPI_Count)1 << 31) + 7;
static int rank, ranks;

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "FAIL on rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void *get_vector(size_t size)
{
    void *vector = calloc((size_t)count, size);
    must(vector != NULL, "no memory");
    return vector;
}

/* Whole numbers that depend on rank and place. */
static int8_t number(MPI_Count i, int at_rank)
{
    return (int8_t)((i + i / 1000003 + 3 * at_rank) % 11 - 5);
}

/* The dense way: every element of a type that no scheme takes, by MPI_Allreduce in pieces. */
static void try_int8(void)
{
    int8_t *vector = get_vector(1);
    for (MPI_Count i = 0; i < count; i++)
        vector[i] = number(i, rank);
    int code = MPIX_Sparse_allreduce(MPI_IN_PLACE, vector, count, MPI_INT8_T, MPI_SUM, MPI_COMM_WORLD);
    must(code == MPI_SUCCESS, "MPIX_Sparse_allreduce of int8");
    for (MPI_Count i = 0; i < count; i++) {
        int sum = 0;
        for (int r = 0; r < ranks; r++)
            sum += number(i, r);
        must(vector[i] == (int8_t)sum, "a sum of int8 is wrong");
    }
    free(vector);
}

/* Places of elements that all ranks have: the ends, those around powers of two, and some between. */
static MPI_Count place(int mark)
{
    MPI_Count near = (MPI_Count)1 << (mark / 2);
    return mark < 62 ? (near - mark % 2) % count : count - 1 - mark % 2;
}

static bool is_mark(MPI_Count i)
{
    for (int mark = 0; mark < MARKS; mark++)
        if (place(mark) == i)
            return true;
    return false;
}

/* The sparse way through a dense buffer: ones of bfloat16 at a few places. */
static void try_bf16(void)
{
    static const uint16_t one = 0x3f80, sums[] = { 0, 0x3f80, 0x4000, 0x4040, 0x4080 };
    uint16_t *vector = get_vector(sizeof *vector);
    MPIX_Sparse_report_t report;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int mark = 0; mark < MARKS; mark++)
        vector[place(mark)] = one;
    int code = MPIX_Sparse_allreduce(MPI_IN_PLACE, vector, count, MPI_UINT16_T, MPI_SUM, comm);
    must(code == MPI_SUCCESS, "MPIX_Sparse_allreduce of bf16");
    MPIX_Sparse_get_report(comm, &report);
    must(strcmp(report.scheme, "balanced") == 0, "another scheme ran");
    for (int mark = 0; mark < MARKS; mark++)
        must(vector[place(mark)] == sums[ranks], "a sum of bf16 is wrong");
    for (MPI_Count i = 0; i < count; i++)
        must(vector[i] == 0 || is_mark(i), "a zero of bf16 is none");
    MPI_Comm_free(&comm);
    free(vector);
}

/* Coordinates, beyond 32 bits too. */
static void try_coo(MPI_Count length)
{
    int64_t indices[MARKS];
    double values[MARKS];
    MPI_Count nnz;
    const void *found, *sums;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    for (int mark = 0; mark < MARKS; mark++) {
        indices[mark] = length - 1 - 5 * (MPI_Count)mark - place(mark);
        values[mark] = rank + 1;
    }
    int code = MPIX_Sparse_allreduce_coo(indices, values, MARKS, MPI_INT64_T, length, MPI_DOUBLE, MPI_SUM,
                                         MPI_COMM_WORLD, &result);
    must(code == MPI_SUCCESS, "MPIX_Sparse_allreduce_coo");
    MPIX_Sparse_result_get(result, &nnz, &found, &sums);
    for (MPI_Count i = 0; i < nnz; i++) {
        double sum = 0, got = ((const double *)sums)[i];
        for (int mark = 0; mark < MARKS; mark++)
            sum += indices[mark] == ((const int64_t *)found)[i] ? ranks * (ranks + 1) / 2 : 0;
        must(sum > 0 && got == sum, "a sum of coordinates is wrong");
    }
    MPIX_Sparse_result_free(&result);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    must(ranks <= 4, "made for 4 ranks at most");
    setenv("MPIX_SPARSE_ELEMENT", "bf16", 1);
    setenv("MPIX_SPARSE_SCHEME", "balanced", 1);
    if (strcmp(what, "int8") == 0)
        try_int8();
    else if (strcmp(what, "bf16") == 0)
        try_bf16();
    else
        try_coo(2 * count + 9);
    if (rank == 0)
        printf("%s: right, %lld elements on %d ranks\n", what, (long long)count, ranks);
    MPI_Finalize();
    return 0;
}
