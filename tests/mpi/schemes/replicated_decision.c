/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that ranks decide by their actual elements whether each of them reduces everything. Figures of the
 * consistency check may be old or estimated, and must not decide. Large results of coordinates lie in memory
 * that all ranks share. Clusters of elements that a sample misses are reduced correctly. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum {
    FEW = 100,         /* elements of a rank; if all other ranks have at most FEW_OTHERS, each rank */
    FEW_OTHERS = 1024, /* reduces all elements itself (src/scheme/shared.c) */
    MANY = 40000,
    STRIDE = 13,
    COUNT = MANY * STRIDE + STRIDE,
    SETTLED = 15,
    CLUSTER = 5000,
    LONG = 4 << 20
};

/* True if the memory is shared between the library's ranks. */
static bool is_shared(const void *memory)
{
    char line[512];
    bool shared = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx", &from, &to) == 2 && (unsigned long)memory >= from &&
            (unsigned long)memory < to)
            shared = strstr(line, "memfd:mpix_sparse") != NULL;
    }
    if (maps != NULL)
        fclose(maps);
    return shared;
}

static MPI_Comm comm; /* its ranks share memory */

static void start(MPIX_Sparse_plan plan, const int32_t *index, const float *value, MPI_Count nnz,
                  MPIX_Sparse_result *result)
{
    MPI_Request request;
    check_success(MPIX_Sparse_plan_start_coo(plan, index, value, nnz, result, &request), "plan_start_coo");
    check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
}

/* Make `calls` starts with nnz elements on each rank; returns the values of the result. */
static const void *result_of(MPIX_Sparse_plan plan, int calls, int nnz, MPIX_Sparse_result *result)
{
    int32_t *index = get_memory((size_t)nnz, sizeof *index);
    float *value = get_memory((size_t)nnz, sizeof *value);
    const void *found;
    MPI_Count n;
    for (int i = 0; i < nnz; i++) {
        index[i] = i * STRIDE + rank % STRIDE;
        value[i] = 1;
    }
    for (int i = 0; i < calls; i++)
        start(plan, index, value, nnz, result);
    MPIX_Sparse_result_get(*result, &n, NULL, &found);
    check(n == nnz * (ranks < STRIDE ? ranks : STRIDE), "expected all, found %lld elements", (long long)n);
    free(index);
    free(value);
    return found;
}

static void check_grown(void)
{
    MPIX_Sparse_plan plan;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPIX_Sparse_allreduce_coo_init(MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &plan);
    check_case("a plan of small calls");
    int others = ranks - 1;
    int few = FEW * others <= FEW_OTHERS ? FEW : FEW_OTHERS / others;
    const void *found = result_of(plan, SETTLED, few, &result);
    check(!is_shared(found), "expected a copy of each rank");
    check_case("the same with large calls");
    found = result_of(plan, 3, MANY, &result);
    check(is_shared(found), "expected one copy that ranks share");
    MPIX_Sparse_result_free(&result);
    MPIX_Sparse_plan_free(&plan);
}

/* Long enough that a sample misses the elements. */
static void check_clusters(void)
{
    float *in = get_memory(LONG, sizeof *in), *out = get_memory(LONG, sizeof *out);
    for (int at = LONG / 3, i = 0; i < 7; at += 10007, i++) {
        check_case("a cluster from %d on", at);
        memset(in, 0, LONG * sizeof *in);
        for (int k = 0; k < CLUSTER; k++)
            in[at + k] = 1;
        check_success(MPIX_Sparse_allreduce(in, out, LONG, MPI_FLOAT, MPI_SUM, comm), "allreduce");
        double sum = 0;
        for (int k = 0; k < LONG; k++)
            sum += out[k];
        check(sum == (double)CLUSTER * ranks && out[at] == (float)ranks, "expected all, found %g", sum);
    }
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE); /* as in plans.c */
    comm = settings_comm(&(struct settings){ .scheme = "shared" });
    MPIX_Sparse_report_t report;
    float one = 1;
    MPIX_Sparse_allreduce(MPI_IN_PLACE, &one, 1, MPI_FLOAT, MPI_SUM, comm);
    MPIX_Sparse_get_report(comm, &report);
    if (ranks == 1 || strcmp(report.scheme, "shared") != 0) {
        MPI_Comm_free(&comm);
        return check_skip("replicated_decision", "ranks do not share memory");
    }
    check_grown();
    check_clusters();
    MPI_Comm_free(&comm);
    return check_end("replicated_decision");
}
