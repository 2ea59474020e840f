/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests calls that send their first messages beside the consistency check: the log says that they do, results
 * are those of MPI_Allreduce, and whatever differs from the call before, on one rank or on all, gives the
 * result or the error that it gives without such messages. The next call succeeds. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { COUNT = 4000, FEW = 12, MANY = 2000, WARM = 4 };

static char log_path[] = "speculation-XXXXXX";
static bool odd; /* the last rank, which differs */

/* Returns how often this rank's log has a text. */
static int count_log(const char *text)
{
    static char line[4096];
    int n = 0;
    FILE *file = fopen(log_path, "r");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        n += strstr(line, text) != NULL;
    fclose(file);
    return n;
}

static int sent_before(void)
{
    return count_log("sent its first messages beside");
}

static int discarded(void)
{
    return count_log("discards messages");
}

/* A communicator whose ranks are nodes of their own, with a check of one round. */
static MPI_Comm open_comm(const char *scheme)
{
    char nodes[16];
    snprintf(nodes, sizeof nodes, "%d", ranks);
    setenv("MPIX_SPARSE_NODES", nodes, 1);
    setenv("MPIX_SPARSE_ALPHA", "1e-3", 1);
    setenv("MPIX_SPARSE_OVERHEAD", "1e-9", 1);
    setenv("MPIX_SPARSE_SCHEME", scheme, 1);
    return comm_duplicate();
}

/* Coordinates of a call. Rank r has n elements, r apart from those of rank 0. */
struct call {
    int n, count;
    MPI_Op op;
};

static int reduce(MPI_Comm comm, const struct call *c, MPIX_Sparse_result *result)
{
    static int32_t index[MANY];
    static float value[MANY];
    for (int i = 0; i < c->n; i++) {
        index[i] = i * (COUNT / MANY) + (i + rank) % 2;
        value[i] = (float)(1 + (i + rank) % 3);
    }
    return MPIX_Sparse_allreduce_coo(index, value, c->n, MPI_INT32_T, c->count, MPI_FLOAT, c->op, comm,
                                     result);
}

/* Compares a result with MPI_Allreduce of the same vectors. */
static void check_result(MPIX_Sparse_result result, int n)
{
    static float dense[COUNT], sum[COUNT];
    const void *index, *value;
    MPI_Count nnz;
    memset(dense, 0, sizeof dense);
    for (int i = 0; i < n; i++)
        dense[i * (COUNT / MANY) + (i + rank) % 2] = (float)(1 + (i + rank) % 3);
    MPI_Allreduce(dense, sum, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    check_success(MPIX_Sparse_result_get(result, &nnz, &index, &value), "MPIX_Sparse_result_get");
    for (MPI_Count i = 0; i < nnz; i++) {
        int32_t at = ((const int32_t *)index)[i];
        check(sum[at] == ((const float *)value)[i], "element %d: expected %g, found %g", (int)at,
              (double)sum[at], (double)((const float *)value)[i]);
        sum[at] = 0;
    }
    for (int i = 0; i < COUNT; i++)
        check(sum[i] == 0, "element %d is missing", i);
}

static void succeed(MPI_Comm comm, int n)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    check_success(reduce(comm, &(struct call){ n, COUNT, MPI_SUM }, &result), "MPIX_Sparse_allreduce_coo");
    check_result(result, n);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
}

/* Calls after which the next one speculates. */
static void warm(MPI_Comm comm)
{
    for (int i = 0; i < WARM; i++)
        succeed(comm, FEW);
}

static void try_steady(MPI_Comm comm, bool settled)
{
    int before = sent_before(), none = discarded();
    check_case("equal calls");
    warm(comm);
    for (int i = 0; i < WARM; i++)
        succeed(comm, FEW + i % 2);
    if (settled && ranks > 2)
        check(sent_before() - before >= WARM && discarded() == none,
              "expected %d calls that speculate and none that discard, found %d and %d", WARM,
              sent_before() - before, discarded() - none);
    if (settled) {
        MPIX_Sparse_report_t report;
        check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
        check(report.messages_sent == 2 * (ranks - 1), "expected %d messages, found %d", 2 * (ranks - 1),
              (int)report.messages_sent);
    }
}

static void try_growth(MPI_Comm comm, bool settled)
{
    check_case("more elements, on one rank and on all");
    for (int who = 0; who < 2; who++) {
        warm(comm);
        int before = discarded();
        succeed(comm, who == 0 && !odd ? FEW : MANY);
        if (settled && ranks > 2 && who == 0)
            check(discarded() == before + 1, "expected that messages are discarded");
        succeed(comm, FEW);
        for (int i = 0; i < 16; i++) /* a pause */
            succeed(comm, FEW);
    }
}

/* Errors of one rank, and differences between ranks. */
static void try_errors(MPI_Comm comm, bool settled)
{
    static const int32_t wrong[] = { COUNT };
    const float value = 1;
    float in[FEW] = { 1 }, out[FEW];
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    for (int kind = 0; kind < 6; kind++) {
        int code;
        check_case("error %d", kind);
        warm(comm);
        int before = discarded();
        if (kind == 0 && odd)
            code = MPIX_Sparse_allreduce_coo(wrong, &value, 1, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm,
                                             &result);
        else if (kind == 1 && odd)
            code = MPIX_Sparse_allreduce(in, out, FEW, MPI_FLOAT, MPI_SUM, comm);
        else if (kind == 2 && odd)
            code = MPIX_Sparse_bcast_coo(NULL, NULL, 0, MPI_INT32_T, COUNT, MPI_FLOAT, 0, comm, &result);
        else
            code = reduce(comm,
                          &(struct call){ FEW, COUNT + (kind == 3 && odd),
                                          kind == 4 && odd ? MPI_MAX : MPI_SUM },
                          &result);
        if (settled && ranks > 2 && kind == 0)
            check(discarded() == before + 1, "expected that messages are discarded");
        if (kind < 5 && (ranks > 1 || kind == 0))
            check(code != MPI_SUCCESS, "expected an error");
        else if (ranks > 1)
            check_success(code, "a call without an error");
        if (result != MPIX_SPARSE_RESULT_NULL)
            MPIX_Sparse_result_free(&result);
        succeed(comm, FEW);
    }
}

/* Two tensors, which one rank reduces in the other order. */
static void try_other_order(MPI_Comm comm)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    struct call calls[2] = { { FEW, COUNT, MPI_SUM }, { FEW, COUNT + 1, MPI_SUM } };
    check_case("another order");
    for (int i = 0; i < 2 * WARM; i++)
        check_success(reduce(comm, &calls[i % 2], &result), "MPIX_Sparse_allreduce_coo");
    for (int i = 0; i < 2; i++) {
        int code = reduce(comm, &calls[odd ? 1 - i : i], &result);
        if (ranks > 1)
            check_error(code, "argument count differs between ranks", -1);
    }
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    succeed(comm, FEW);
}

/* Several calls in flight, on dense buffers, of the same tensor. */
static void try_in_flight(MPI_Comm comm)
{
    enum { CALLS = 8 };
    static float in[COUNT], out[CALLS][COUNT];
    MPI_Request requests[CALLS];
    check_case("calls in flight");
    for (int i = 0; i < FEW; i++)
        in[i * 100 + rank % 7] = 1;
    for (int round = 0; round < WARM; round++) {
        for (int i = 0; i < CALLS; i++)
            check_success(MPIX_Isparse_allreduce(in, out[i], COUNT, MPI_FLOAT, MPI_SUM, comm, &requests[i]),
                          "MPIX_Isparse_allreduce");
        check_success(MPI_Waitall(CALLS, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
        for (int i = 0; i < CALLS; i++)
            for (int r = 0; r < 7; r++) {
                float expected = (float)((ranks - r + 6) / 7);
                check(out[i][r] == expected, "element %d: expected %g, found %g", r, (double)expected,
                      (double)out[i][r]);
            }
    }
}

static void try_scatter(MPI_Comm comm)
{
    const int32_t index[] = { 0, COUNT / 2 };
    const float value[] = { 1, 2 };
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPI_Count nnz, total = 0;
    const void *indices, *values;
    check_case("reduce_scatter");
    for (int i = 0; i < 2 * WARM; i++)
        check_success(MPIX_Sparse_reduce_scatter_coo(index, value, 2, MPI_INT32_T, COUNT, 1, MPI_FLOAT,
                                                     MPI_SUM, comm, &result),
                      "MPIX_Sparse_reduce_scatter_coo");
    check_success(MPIX_Sparse_result_get(result, &nnz, &indices, &values), "MPIX_Sparse_result_get");
    for (MPI_Count i = 0; i < nnz; i++)
        total += (MPI_Count)((const float *)values)[i];
    MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_COUNT, MPI_SUM, MPI_COMM_WORLD);
    check(total == 3 * ranks, "expected a sum of %d, found %d", 3 * ranks, (int)total);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
}

int main(int argc, char **argv)
{
    static const char *const schemes[] = { "balanced", "auto", "recursive_doubling" };
    int log = mkstemp(log_path);
    check(log >= 0 && setenv("MPIX_SPARSE_LOG_FILE", log_path, 1) == 0 &&
              setenv("MPIX_SPARSE_LOG", "debug:core", 1) == 0,
          "expected room for a log");
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    odd = rank == ranks - 1;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        check_case("scheme %s", schemes[i]);
        MPI_Comm comm = open_comm(schemes[i]);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        try_steady(comm, i == 0);
        try_growth(comm, i == 0);
        try_errors(comm, i == 0);
        try_other_order(comm);
        try_in_flight(comm);
        try_scatter(comm);
        MPI_Comm_free(&comm);
    }
    close(log);
    unlink(log_path);
    return check_end("speculation");
}
