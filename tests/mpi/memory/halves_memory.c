/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the memory of MPIX_Sparse_reduce_scatter_coo and MPIX_Sparse_allgather_coo, beyond inputs and
 * results, on all ranks together: at most LIMIT times the bytes of inputs and results, and PAIR_BYTES for
 * each pair of ranks, also where one rank has all elements or owns all. Counts all bytes allocated by malloc,
 * on ranks that share no memory.
 *
 * With the argument `all` the program prints the memory of each case; a second argument is the bytes of a
 * rank.
 *
 * Link with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free, and with the library's objects. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "malloc_count.h"

enum {
    BYTES = 4 << 20, /* approximate input of a rank */
    COUNT = 1 << 24,
    PAIR_BYTES = 1 << 20,
    CALLS = 2 /* the first call allocates, later ones reuse */
};

static const double LIMIT = 3;

enum where { ALL_IN_COMMON, NOTHING_IN_COMMON, ON_ONE_RANK, ONE_OWNER, WHERES };

static const char *const wheres[WHERES] = { "all in common", "nothing in common", "all on one rank",
                                            "all of one owner" };

static const struct element {
    const char *name;
    int row;
} elements[] = { { "floats", 1 }, { "rows of 3", 3 }, { "rows of 64", 64 } };

enum { ELEMENTS = sizeof elements / sizeof *elements };

static bool tells;
static size_t room = BYTES;

struct input {
    int32_t *index;
    float *value;
    size_t nnz;
    MPI_Datatype type;
    size_t each; /* bytes of an element and its index */
};

/* The k-th of nnz indices of this rank. */
static int32_t index_of(enum where where, size_t k, size_t nnz)
{
    size_t step = COUNT / nnz / (size_t)ranks * (size_t)ranks;
    return (int32_t)(where == NOTHING_IN_COMMON ? k * step + (size_t)rank
                     : where == ONE_OWNER       ? k * step / 2
                                                : k * step + k % (size_t)ranks);
}

static void fill(enum where where, const struct element *element, struct input *in)
{
    in->each = sizeof(int32_t) + (size_t)element->row * sizeof(float);
    size_t nnz = room / in->each;
    in->index = get_memory(nnz, sizeof(int32_t));
    in->value = get_memory(nnz, (size_t)element->row * sizeof(float));
    in->nnz = where == ON_ONE_RANK && rank != 0 ? 0 : nnz;
    for (size_t k = 0; k < nnz; k++)
        in->index[k] = index_of(where, k, nnz);
    MPI_Type_contiguous(element->row, MPI_FLOAT, &in->type);
    MPI_Type_commit(&in->type);
}

/* Rank 0 owns the lower half of the vector, or each rank an element in turn. */
static MPI_Count block_of(enum where where)
{
    return where == ONE_OWNER ? COUNT / 2 : 1;
}

static int scatter(const struct input *in, enum where where, MPI_Comm comm, MPIX_Sparse_result *result)
{
    return MPIX_Sparse_reduce_scatter_coo(in->index, in->value, (MPI_Count)in->nnz, MPI_INT32_T, COUNT,
                                          block_of(where), in->type, MPI_SUM, comm, result);
}

/* An allgather takes elements that no two ranks have. */
static int gather(const struct input *in, enum where where, MPI_Comm comm, MPIX_Sparse_result *result)
{
    (void)where;
    return MPIX_Sparse_allgather_coo(in->index, in->value, (MPI_Count)in->nnz, MPI_INT32_T, COUNT, in->type,
                                     comm, result);
}

static void try_case(const char *scheme, bool gathers, enum where where, const struct element *element)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPI_Comm comm = settings_comm(&(struct settings){ .scheme = scheme });
    struct input in;
    int64_t most = 0, sizes[2];
    fill(where, element, &in);
    for (int call = 0; call < CALLS; call++) {
        int64_t before = malloc_count_begin(), bytes;
        check_success((gathers ? gather : scatter)(&in, where, comm, &result), "the call");
        bytes = malloc_count_peak() - before;
        MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        most = bytes > most ? bytes : most;
    }
    MPI_Count nnz;
    check_success(MPIX_Sparse_result_get(result, &nnz, NULL, NULL), "MPIX_Sparse_result_get");
    sizes[0] = (int64_t)(in.nnz * in.each);
    sizes[1] = (int64_t)nnz * (int64_t)in.each;
    MPI_Allreduce(MPI_IN_PLACE, sizes, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    most -= sizes[1] + (int64_t)ranks * (ranks - 1) * PAIR_BYTES;
    double ratio = (double)most / (double)(sizes[0] + sizes[1]);
    if (tells && rank == 0)
        printf("%5.2f %s, %s, %s, %s\n", ratio, gathers ? "allgather" : "reduce_scatter", scheme,
               element->name, wheres[where]);
    check(tells || ratio <= LIMIT, "expected at most %g times inputs and results, found %.2f", LIMIT, ratio);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    MPI_Comm_free(&comm);
    MPI_Type_free(&in.type);
    free(in.index);
    free(in.value);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    check_alarm(300);
    tells = argc > 1 && strcmp(argv[1], "all") == 0;
    room = argc > 2 ? strtoull(argv[2], NULL, 10) : BYTES;
    nodes_set(ranks);
    for (int k = 0; k < WHERES * ELEMENTS; k++) {
        enum where where = (enum where)(k / ELEMENTS);
        const struct element *element = &elements[k % ELEMENTS];
        check_case("%s, %s", element->name, wheres[where]);
        try_case("balanced", false, where, element);
        try_case("recursive_halving", false, where, element);
        if (where == NOTHING_IN_COMMON || where == ON_ONE_RANK)
            try_case("balanced", true, where, element);
    }
    return check_end("halves_memory");
}
