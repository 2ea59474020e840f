/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests library calls in a child of fork(). Each function returns an error within TIMEOUT, and the parent
 * continues. Results of parent and child stay valid until each process frees its own, in either order. */

#include <mpix_sparse.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum {
    COUNT = 64,
    TIMEOUT = 30, /* seconds */
    NNZ = 5000,   /* enough for shared memory */
    STEP = 7,
    CALLS = 4 /* after a fork */
};

static float in[COUNT] = { 1 }, out[COUNT];
static const int32_t indices[] = { 0, 5 };
static MPIX_Sparse_plan plan;
static MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;

static void call(MPI_Comm comm, int expected)
{
    check_success(MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm), "MPIX_Sparse_allreduce");
    check(out[0] == (float)expected, "expected %d, found %g", expected, (double)out[0]);
}

/* The parent's threads may hold locks of MPI. */
static bool refused(int code, bool quiet)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (!quiet)
        return code != MPI_SUCCESS;
    MPI_Error_string(code, text, &length);
    return strstr(text, "fork()") != NULL;
}

/* Returns the number of a call that was not refused, or 0. If `used`, the plan and the result exist. If
 * `quiet`, no call is in flight. */
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
        alarm(TIMEOUT);
        _exit(try_all(used, quiet));
    }
    check(waitpid(child, &status, 0) == child, "expected to wait for the child");
    check(!WIFSIGNALED(status), "expected that the child ends by itself, signal %d ended it",
          WTERMSIG(status));
    check(WEXITSTATUS(status) == 0, "expected that every call is refused, found that number %d was not",
          WEXITSTATUS(status));
}

static MPIX_Sparse_result reduce_many(MPI_Comm comm, float value)
{
    static int32_t many[NNZ];
    static float values[NNZ];
    MPIX_Sparse_result made = MPIX_SPARSE_RESULT_NULL;
    for (int i = 0; i < NNZ; i++) {
        many[i] = i * STEP;
        values[i] = value;
    }
    check_success(MPIX_Sparse_allreduce_coo(many, values, NNZ, MPI_INT32_T, NNZ * STEP, MPI_FLOAT, MPI_SUM,
                                            comm, &made),
                  "MPIX_Sparse_allreduce_coo");
    return made;
}

/* Count elements that differ from those of reduce_many. */
static int count_wrong(MPIX_Sparse_result from, float value)
{
    MPI_Count nnz = 0;
    const void *found, *values;
    int wrong = 0;
    if (MPIX_Sparse_result_get(from, &nnz, &found, &values) != MPI_SUCCESS || nnz != NNZ)
        return NNZ;
    for (int i = 0; i < NNZ; i++)
        wrong +=
            ((const int32_t *)found)[i] != i * STEP || ((const float *)values)[i] != value * (float)ranks;
    return wrong;
}

/* Make results that would overwrite one without an owner. */
static void reduce_others(MPI_Comm comm)
{
    MPIX_Sparse_result others[CALLS];
    for (int i = 0; i < CALLS; i++)
        others[i] = reduce_many(comm, (float)(1000 + i));
    for (int i = 0; i < CALLS; i++) {
        check(count_wrong(others[i], (float)(1000 + i)) == 0, "expected result %d to be right", i);
        check_success(MPIX_Sparse_result_free(&others[i]), "MPIX_Sparse_result_free");
    }
}

static void end_child(pid_t child)
{
    int status;
    check(waitpid(child, &status, 0) == child, "expected to wait for the child");
    check(status == 0, "expected the child to find its result whole, found status %d", status);
}

/* The child frees before the parent continues. */
static void free_in_child(MPI_Comm comm, bool some)
{
    MPIX_Sparse_result kept = reduce_many(comm, 1);
    pid_t child = some && rank != 0 ? -1 : fork();
    if (child == 0)
        _exit(MPIX_Sparse_result_free(&kept) != MPI_SUCCESS);
    if (child > 0)
        end_child(child);
    MPI_Barrier(comm);
    reduce_others(comm);
    int wrong = count_wrong(kept, 1);
    check(wrong == 0, "expected what the parent kept, found %d wrong elements", wrong);
    check_success(MPIX_Sparse_result_free(&kept), "MPIX_Sparse_result_free");
}

/* The child reads its result after the parent freed its own and made others. */
static void keep_in_child(MPI_Comm comm)
{
    MPIX_Sparse_result kept = reduce_many(comm, 1);
    int gate[2];
    char word = 0;
    check(pipe(gate) == 0, "expected a pipe");
    pid_t child = fork();
    if (child == 0) {
        alarm(TIMEOUT);
        bool good = read(gate[0], &word, 1) == 1 && count_wrong(kept, 1) == 0;
        _exit(!good || MPIX_Sparse_result_free(&kept) != MPI_SUCCESS);
    }
    check_success(MPIX_Sparse_result_free(&kept), "MPIX_Sparse_result_free");
    MPI_Barrier(comm);
    reduce_others(comm);
    check(write(gate[1], &word, 1) == 1, "expected to write to the child");
    end_child(child);
    close(gate[0]);
    close(gate[1]);
    MPI_Barrier(comm);
    reduce_others(comm);
}

/* Memory is reused after parent and child have freed the result. */
static void reuse_after(MPI_Comm comm)
{
    const void *before, *found;
    MPIX_Sparse_result kept = reduce_many(comm, 1);
    check_success(MPIX_Sparse_result_get(kept, NULL, &before, NULL), "MPIX_Sparse_result_get");
    pid_t child = fork();
    if (child == 0)
        _exit(MPIX_Sparse_result_free(&kept) != MPI_SUCCESS);
    end_child(child);
    check_success(MPIX_Sparse_result_free(&kept), "MPIX_Sparse_result_free");
    MPI_Barrier(comm);
    kept = reduce_many(comm, 2);
    check_success(MPIX_Sparse_result_get(kept, NULL, &found, NULL), "MPIX_Sparse_result_get");
    check(found == before, "expected the memory that was freed to be used again");
    check_success(MPIX_Sparse_result_free(&kept), "MPIX_Sparse_result_free");
}

/* Uses a communicator of its own, since children of earlier cases still hold memory. */
static void try_results(void)
{
    static const char *const schemes[] = { "shared", "balanced" };
    for (int i = 0; i < 2; i++) {
        nodes_set(1);
        MPI_Comm comm = settings_comm(&(struct settings){ .scheme = schemes[i] });
        check_case("a child that frees a result of %s", schemes[i]);
        free_in_child(comm, false);
        free_in_child(comm, true);
        check_case("a child that keeps a result of %s", schemes[i]);
        keep_in_child(comm);
        check_case("memory of a result of %s that both have freed", schemes[i]);
        if (i == 0)
            reuse_after(comm);
        MPI_Comm_free(&comm);
        nodes_set(0);
    }
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
    try_results();
    return check_end("fork_child");
}
