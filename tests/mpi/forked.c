/* SPDX-License-Identifier: BSD-3-Clause */
/* A child of fork() calls the library: each function returns an error, soon, and the parent goes on. */

#include <mpix_sparse.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { COUNT = 64, PATIENCE = 30 /* seconds */ };

static float in[COUNT] = { 1 }, out[COUNT];
static const int32_t indices[] = { 0, 5 };
static MPIX_Sparse_plan plan;
static MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;

static void call(MPI_Comm comm, int expected)
{
    check_success(MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm), "MPIX_Sparse_allreduce");
    check(out[0] == (float)expected, "expected %d, found %g", expected, (double)out[0]);
}

/* The parent's threads may have held locks of MPI. */
static bool refused(int code, bool quiet)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (!quiet)
        return code != MPI_SUCCESS;
    MPI_Error_string(code, text, &length);
    return strstr(text, "fork()") != NULL;
}

/* A number for the call that is not refused, or 0. The plan and the result are there when `used`; `quiet`:
 * nothing is in flight. */
static int try_all(bool used, bool quiet)
{
    MPI_Request request;
    MPI_Info info;
    MPI_Count nnz = 0;
    MPIX_Sparse_profile_t profile;
    MPIX_Sparse_report_t report;
    const int codes[] = {
        MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD),
        MPIX_Sparse_allreduce_coo(indices, in, 2, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                                  &result),
        MPIX_Isparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request),
        MPIX_Isparse_allreduce_coo(indices, in, 2, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF,
                                   &result, &request),
        MPIX_Sparse_profile(in, COUNT, MPI_FLOAT, MPI_COMM_WORLD, &profile),
        MPIX_Sparse_get_report(MPI_COMM_WORLD, &report),
        MPIX_Sparse_comm_set_info(MPI_COMM_WORLD, MPI_INFO_NULL),
        MPIX_Sparse_comm_get_info(MPI_COMM_WORLD, &info),
        quiet ? MPIX_Sparse_plan_start(plan, &request) : MPI_ERR_OTHER,
        quiet ? MPIX_Sparse_plan_start_all(1, &plan, &request) : MPI_ERR_OTHER,
    };
    for (int i = 0; i < (int)(sizeof codes / sizeof codes[0]); i++)
        if (!refused(codes[i], quiet))
            return i + 1;
    if (used && (MPIX_Sparse_result_get(result, &nnz, NULL, NULL) != MPI_SUCCESS || nnz != 2))
        return 20;
    if (quiet && MPIX_Sparse_plan_free(&plan) != MPI_SUCCESS)
        return 21;
    return MPIX_Sparse_result_free(&result) == MPI_SUCCESS ? 0 : 22;
}

static void try_child(bool used, bool quiet)
{
    int status;
    pid_t child = fork();
    check(child >= 0, "expected a child");
    if (child == 0) {
        alarm(PATIENCE);
        _exit(try_all(used, quiet));
    }
    check(waitpid(child, &status, 0) == child, "expected to wait for the child");
    check(!WIFSIGNALED(status), "expected that the child ends by itself, signal %d ended it",
          WTERMSIG(status));
    check(WEXITSTATUS(status) == 0, "expected that every call is refused, found that number %d was not",
          WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
    MPI_Request request;
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    check_case("a child before the first use");
    try_child(false, false);
    check_success(MPIX_Sparse_allreduce_coo(indices, in, 2, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM,
                                            MPI_COMM_WORLD, &result),
                  "MPIX_Sparse_allreduce_coo");
    check_success(MPIX_Sparse_allreduce_init(in, out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                                             MPI_INFO_NULL, &plan),
                  "MPIX_Sparse_allreduce_init");
    check_case("a child after it");
    try_child(true, true);
    call(MPI_COMM_WORLD, ranks);
    check_case("a child while a call is in flight");
    check_success(MPIX_Sparse_plan_start(plan, &request), "MPIX_Sparse_plan_start");
    try_child(true, false);
    check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    call(MPI_COMM_SELF, 1);
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    return check_end("forked");
}
