/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests labels of calls: those that differ are an error that names two ranks, behind arguments that differ;
 * each holds for one allreduce. Reports leave out calls with negative labels. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

enum { COUNT = 100 };

enum call { DENSE, DENSE_STARTED, COO, COO_STARTED, CALLS };

static const char *const names[CALLS] = { "dense", "dense, nonblocking", "coordinates",
                                          "coordinates, nonblocking" };
static float in[COUNT] = { 1 }, out[COUNT];

static int finish(int code, MPI_Request *request)
{
    return code == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : code;
}

static int make_call(enum call call, MPI_Comm comm, MPI_Op op, MPIX_Sparse_result *result)
{
    int32_t index = rank;
    float value = 1;
    MPI_Request request = MPI_REQUEST_NULL;
    if (call == DENSE)
        return MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, op, comm);
    if (call == DENSE_STARTED)
        return finish(MPIX_Isparse_allreduce(in, out, COUNT, MPI_FLOAT, op, comm, &request), &request);
    if (call == COO)
        return MPIX_Sparse_allreduce_coo(&index, &value, 1, MPI_INT32_T, COUNT, MPI_FLOAT, op, comm, result);
    return finish(MPIX_Isparse_allreduce_coo(&index, &value, 1, MPI_INT32_T, COUNT, MPI_FLOAT, op, comm,
                                             result, &request),
                  &request);
}

/* The last rank has another label or another op. */
static int call_labelled(enum call call, MPI_Comm comm, bool other_label, bool other_op)
{
    bool last = rank == ranks - 1;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    check_success(MPIX_Sparse_comm_set_label(comm, last && other_label ? -7 : 2147483647), "a label");
    int code = make_call(call, comm, last && other_op ? MPI_MAX : MPI_SUM, &result);
    MPIX_Sparse_result_free(&result);
    return code;
}

static void try_call(enum call call)
{
    MPI_Comm comm = comm_duplicate();
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    char expected[128];
    check_case("labels of %s", names[call]);
    check_success(call_labelled(call, comm, false, false), "equal labels");
    if (ranks > 1) {
        snprintf(expected, sizeof expected,
                 "the label of the call differs between ranks: -7 on rank %d and 2147483647 on rank 0",
                 ranks - 1);
        check_error(call_labelled(call, comm, true, false), expected, -1);
        check_error(call_labelled(call, comm, true, true), "argument op differs between ranks", -1);
    }
    check_success(make_call(call, comm, MPI_SUM, &result), "a call after one with labels");
    MPIX_Sparse_result_free(&result);
    MPI_Comm_free(&comm);
}

/* A label holds for the next allreduce, not for a call that has a block in its place. */
static void try_reduce_scatter(void)
{
    MPI_Comm comm = comm_duplicate();
    int32_t index = rank;
    float value = 1;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    check_case("a reduce_scatter between label and allreduce");
    check_success(MPIX_Sparse_comm_set_label(comm, rank), "a label");
    check_success(MPIX_Sparse_reduce_scatter_coo(&index, &value, 1, MPI_INT32_T, COUNT, 1, MPI_FLOAT, MPI_SUM,
                                                 comm, &result),
                  "MPIX_Sparse_reduce_scatter_coo");
    if (ranks > 1)
        check_error(make_call(DENSE, comm, MPI_SUM, NULL), "the label of the call differs", -1);
    MPIX_Sparse_result_free(&result);
    MPI_Comm_free(&comm);
}

/* The label of a call that is passed to MPI unchecked is gone after it, also if the thread has cached the
 * call. */
static void try_forwarded(bool cached)
{
    MPI_Comm comm = comm_duplicate();
    MPI_Info info;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    check_case("a label and a call that is passed to MPI%s", cached ? ", cached" : "");
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_forward", "1000");
    check_success(MPIX_Sparse_comm_set_info(comm, info), "MPIX_Sparse_comm_set_info");
    MPI_Info_free(&info);
    if (cached)
        check_success(make_call(DENSE, comm, MPI_SUM, NULL), "a call to cache");
    check_success(MPIX_Sparse_comm_set_label(comm, rank), "a label");
    check_success(make_call(DENSE, comm, MPI_SUM, NULL), "a call that is passed to MPI");
    check_success(make_call(COO, comm, MPI_SUM, &result), "the next call");
    MPIX_Sparse_result_free(&result);
    MPI_Comm_free(&comm);
}

/* A call with a negative label is left out of the report. */
static void try_report(enum call call)
{
    MPI_Comm comm = comm_duplicate();
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPIX_Sparse_report_t report;
    check_case("the report after a negative label of %s", names[call]);
    check_success(MPIX_Sparse_comm_set_label(comm, -1), "a label");
    check_success(make_call(call, comm, MPI_SUM, &result), "a call with a negative label");
    check_error(MPIX_Sparse_get_report(comm, &report), "no completed call", -1);
    check_success(MPIX_Sparse_comm_set_label(comm, 5), "a label");
    check_success(make_call(call, comm, MPI_SUM, &result), "a call to report on");
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    MPIX_Sparse_result_free(&result);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE); /* Open MPI needs it for nonblocking calls */
    setenv("MPIX_SPARSE_FORWARD", "0", 1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* MPICH calls it for requests */
    for (int call = 0; call < CALLS; call++) {
        try_call((enum call)call);
        try_report((enum call)call);
    }
    try_reduce_scatter();
    try_forwarded(false);
    try_forwarded(true);
    check_error(MPIX_Sparse_comm_set_label(MPI_COMM_NULL, 1), "MPI_COMM_NULL", -1);
    return check_end("labels");
}
