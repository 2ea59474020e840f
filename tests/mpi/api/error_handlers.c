/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests users' error handlers. Each rank's handler runs once for an error, with the returned code and the
 * communicator of the call. Covers blocking calls, nonblocking calls and plans. tests/abort covers
 * MPI_ERRORS_ARE_FATAL. */

#include <mpix_sparse.h>

#include "check.h"

enum { COUNT = 50 };

/* Arguments and calls of the handler. */
static struct {
    int calls, code;
    MPI_Comm comm;
} seen;

static void handle(MPI_Comm *comm, int *code, ...)
{
    seen.calls++;
    seen.code = *code;
    seen.comm = *comm;
}

static float in[COUNT] = { 1 }, out[COUNT];

/* Expect one handler call on each rank that has the handler; the other ranks only return the code. */
static void check_seen(MPI_Comm comm, int code, const char *says, bool handles)
{
    int result = MPI_UNEQUAL;
    check_error(code, says, -1);
    check(seen.calls == (handles ? 1 : 0), "expected %d calls of the handler, found %d", handles ? 1 : 0,
          seen.calls);
    if (handles) {
        check(seen.code == code, "expected code %d in the handler, found %d", code, seen.code);
        MPI_Comm_compare(comm, seen.comm, &result);
        check(result == MPI_IDENT, "expected the handler to get the communicator of the call");
    }
    seen.calls = 0;
}

static void try_blocking(MPI_Comm comm, bool handles)
{
    const int32_t index = rank == ranks - 1 ? COUNT : 0;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPIX_Sparse_profile_t profile;
    check_seen(comm, MPIX_Sparse_allreduce(in, out, -1, MPI_FLOAT, MPI_SUM, comm), "count is -1", handles);
    check_seen(comm, MPIX_Sparse_allreduce(in, rank == 0 ? NULL : out, COUNT, MPI_FLOAT, MPI_SUM, comm),
               "recvbuf is null", handles);
    check_seen(comm,
               MPIX_Sparse_allreduce_coo(&index, in, 1, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm,
                                         &result),
               "indices holds 50", handles);
    check_seen(comm, MPIX_Sparse_profile(in, -1, MPI_FLOAT, comm, &profile), "count is -1", handles);
}

/* The handler runs when the call completes. MPI_Wait returns the code through MPI's own handler. */
static void try_in_flight(MPI_Comm comm, bool handles)
{
    MPI_Request request;
    MPIX_Sparse_plan plan;
    check_success(MPIX_Isparse_allreduce(in, rank == 0 ? NULL : out, COUNT, MPI_FLOAT, MPI_SUM, comm,
                                         &request),
                  "MPIX_Isparse_allreduce");
    check_seen(comm, MPI_Wait(&request, MPI_STATUS_IGNORE), "recvbuf is null", handles);
    check_seen(comm,
               MPIX_Sparse_allreduce_init(in, out, COUNT, MPI_FLOAT,
                                          rank == ranks - 1 ? MPI_OP_NULL : MPI_SUM, comm, MPI_INFO_NULL,
                                          &plan),
               "argument op", handles);
    check_success(MPIX_Sparse_allreduce_init(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &plan),
                  "MPIX_Sparse_allreduce_init");
    check_seen(comm, MPIX_Sparse_plan_start(plan, NULL), "request is null", handles);
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
}

static void try_local(MPI_Comm comm, bool handles)
{
    MPI_Info info;
    check_seen(comm, MPIX_Sparse_get_report(comm, NULL), "argument report is null", handles);
    check_seen(comm, MPIX_Sparse_comm_get_info(comm, NULL), "argument info_used is null", handles);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_scheme", "nonsense");
    check_seen(comm, MPIX_Sparse_comm_set_info(comm, info), "nonsense", handles);
    MPI_Info_free(&info);
}

/* The first `handlers` ranks have the handler, the others MPI_ERRORS_RETURN. */
static void try_all(int handlers)
{
    MPI_Comm comm;
    MPI_Errhandler handler;
    bool handles = rank < handlers;
    check_case("a handler on %d ranks", handlers);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(comm, handles ? handler : MPI_ERRORS_RETURN);
    try_blocking(comm, handles);
    try_in_flight(comm, handles);
    try_local(comm, handles);
    check_success(MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm), "a correct call");
    check(out[0] == (float)ranks && seen.calls == 0, "expected %d and no error, found %g", ranks,
          (double)out[0]);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* MPI_Wait uses this handler */
    try_all(0);
    try_all(1);
    try_all(ranks);
    return check_end("error_handlers");
}
