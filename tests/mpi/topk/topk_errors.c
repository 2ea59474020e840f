/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests errors of top-k sparsification: each argument wrong once, and each allocation of a step failing once.
 * All ranks get an error, and no data change. Linked like alloc_failure.c. */

#include <mpix_sparse.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "malloc_fail.h"

enum { COUNT = 200000, CAPACITY = 20000 };

/* A tensor, its DGC state and the selected elements, with a copy of all before the step. */
struct state {
    float gradient[COUNT], velocity[COUNT], residual[COUNT], values[COUNT];
    int32_t indices[COUNT];
    MPI_Count nnz;
};

static struct state now, before;

static void begin(void)
{
    for (int i = 0; i < COUNT; i++) {
        now.gradient[i] = (float)(mix((uint64_t)(i + rank)) % 1000);
        now.velocity[i] = (float)(i % 7);
        now.residual[i] = (float)(i % 5);
    }
    now.nnz = -1;
    before = now;
}

static void check_untouched(void)
{
    check(memcmp(&now, &before, sizeof now) == 0, "expected nothing to change in a call that fails");
}

/* All arguments of a step. */
struct arguments {
    void *gradient, *velocity, *residual, *indices, *values;
    MPI_Count count, capacity, *nnz;
    MPI_Datatype datatype, indextype;
    MPIX_Sparse_dgc_t how, *given;
};

static const char *const wrongs[] = {
    "argument gradient is null",
    "argument velocity is null",
    "argument residual is null",
    "argument residual is overlapping another array of the call",
    "argument velocity is overlapping another array of the call",
    "argument count is -1",
    "argument datatype is int32",
    "argument datatype is 2 x float",
    "argument datatype is an invalid handle",
    "argument how is null",
    "argument ratio is 0,",
    "argument ratio is 1.5",
    "argument ratio is nan",
    "argument sample is -1",
    "argument momentum is 1,",
    "argument scale is inf",
    "argument indextype is float",
    "argument capacity is -2",
    "argument indices is null",
    "argument values is null",
    "argument nnz is null",
    "argument indices is overlapping another array of the call",
    "argument values is overlapping another array of the call",
    "argument ratio is 0.03",
    "argument sample is 0.7",
};

enum { WRONGS = sizeof wrongs / sizeof wrongs[0] };

static MPI_Datatype pair;

static void make_wrong(struct arguments *a, int which)
{
    switch (which) {
    case 0: a->gradient = NULL; break;
    case 1: a->velocity = NULL; break;
    case 2: a->residual = NULL; break;
    case 3: a->residual = now.velocity + COUNT - 1; break;
    case 4: a->velocity = a->gradient; break;
    case 5: a->count = -1; break;
    case 6: a->datatype = MPI_INT32_T; break;
    case 7: a->datatype = pair; break;
    case 8: a->datatype = MPI_DATATYPE_NULL; break;
    case 9: a->given = NULL; break;
    case 10: a->how.ratio = 0; break;
    case 11: a->how.ratio = 1.5; break;
    case 12: a->how.ratio = (double)NAN; break;
    case 13: a->how.sample = -1; break;
    case 14: a->how.momentum = 1; break;
    case 15: a->how.scale = (double)INFINITY; break;
    case 16: a->indextype = MPI_FLOAT; break;
    case 17: a->capacity = -2; break;
    case 18: a->indices = NULL; break;
    case 19: a->values = NULL; break;
    case 20: a->nnz = NULL; break;
    case 21: a->indices = now.residual + 1; break;
    case 22: a->values = a->indices; break;
    case 23: a->how.ratio = 0.03; break;
    default: a->how.sample = 0.7; break;
    }
}

static void try_wrong(MPI_Comm comm, int which)
{
    begin();
    struct arguments a = { now.gradient,
                           now.velocity,
                           now.residual,
                           now.indices,
                           now.values,
                           COUNT,
                           COUNT,
                           &now.nnz,
                           MPI_FLOAT,
                           MPI_INT32_T,
                           { 0.01, 1, 0.9, 1, 0, 1 },
                           NULL };
    a.given = &a.how;
    bool relative = which > 22; /* valid by itself, but different from the other ranks */
    if (rank == ranks - 1)
        make_wrong(&a, which);
    check_case("%s", wrongs[which]);
    int code = MPIX_Sparse_dgc_step(a.gradient, a.velocity, a.residual, a.count, a.datatype, a.given, comm,
                                    a.indextype, a.capacity, a.indices, a.values, a.nnz);
    if (relative && ranks == 1)
        return;
    check_error(code, wrongs[which], ranks - 1);
    check_untouched();
}

static void try_wrong_on_one_rank(MPI_Comm comm)
{
    double threshold;
    float buf[2] = { 1, 2 };
    check_case("wrong, in the other functions");
    check_error(MPIX_Sparse_topk_threshold(NULL, 2, MPI_FLOAT, 0.5, 1, 0, comm, &threshold),
                "argument buf is null", 0);
    check_error(MPIX_Sparse_topk_threshold(buf, 2, MPI_FLOAT, 0.5, 1, 0, comm, NULL),
                "argument threshold is null", 0);
    check_error(MPIX_Sparse_topk_select(buf, 2, MPI_FLOAT, -1, comm, MPI_INT32_T, 2, now.indices, now.values,
                                        &now.nnz),
                "argument threshold is -1", -1);
    check_error(MPIX_Sparse_topk_select(buf, 2, MPI_FLOAT, (double)NAN, comm, MPI_INT32_T, 2, now.indices,
                                        now.values, &now.nnz),
                "argument threshold is nan", -1);
    check_error(MPIX_Sparse_topk_select(buf, 2, MPI_FLOAT, 1, comm, MPI_INT32_T, 2, now.indices, buf + 1,
                                        &now.nnz),
                "argument values is overlapping another array of the call", -1);
    check_error(MPIX_Sparse_topk_select(buf, 2, MPI_FLOAT, 1, MPI_COMM_NULL, MPI_INT32_T, 2, now.indices,
                                        now.values, &now.nnz),
                "argument comm is MPI_COMM_NULL", -1);
}

/* One allocation fails on one rank. If the step needs it, all ranks fail, and no data change. */
static void try_alloc_failures(MPI_Comm comm)
{
    MPIX_Sparse_dgc_t how = { 0.1, 1, 0.9, 1, 0, 1 };
    int refused = 1, failed = 0;
    double threshold;
    for (long which = 0; refused; which++) {
        MPI_Comm fresh;
        MPI_Comm_dup(comm, &fresh);
        begin();
        check_case("allocation %ld", which);
        check_success(MPIX_Sparse_topk_threshold(now.gradient, 1, MPI_FLOAT, 1, 1, 0, fresh, &threshold),
                      "the communicator's first use");
        malloc_fail_at = rank == ranks - 1 ? which : -1;
        malloc_fail_calls = 0;
        int code = MPIX_Sparse_dgc_step(now.gradient, now.velocity, now.residual, COUNT, MPI_FLOAT, &how,
                                        fresh, MPI_INT32_T, CAPACITY, now.indices, now.values, &now.nnz);
        refused = malloc_fail_at >= 0 && malloc_fail_calls > malloc_fail_at;
        malloc_fail_at = -1;
        MPI_Bcast(&refused, 1, MPI_INT, ranks - 1, comm);
        check(refused || code == MPI_SUCCESS, "expected success with enough memory everywhere");
        if (code != MPI_SUCCESS) {
            check_error(code, "out of memory", -1);
            check_untouched();
            failed++;
        }
        MPI_Comm_free(&fresh);
    }
    check(failed > 1, "expected several allocations to matter, found %d", failed);
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_contiguous(2, MPI_FLOAT, &pair);
    for (int i = 0; i < WRONGS; i++)
        try_wrong(comm, i);
    try_wrong_on_one_rank(comm);
    try_alloc_failures(comm);
    MPI_Type_free(&pair);
    MPI_Comm_free(&comm);
    return check_end("topk_errors");
}
