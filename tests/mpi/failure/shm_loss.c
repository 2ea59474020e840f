/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests loss of shared memory in `two_level`, on one rank or on all. A rank that cannot write its elements
 * announces that in time to all nodes, and the call uses another scheme. A rank that cannot map memory, or
 * write the result, fails the call and announces that in the next call. This also holds for plans that skip
 * the consistency check. Later calls share memory again.
 *
 * If another rank has failed before the barrier of the node, the call fails on all ranks, and later failures
 * do not matter.
 *
 * Link with -Wl,--wrap= of memfd_create, open, sar_owner_split and sar_owner_begin, and with the library's
 * objects. */

#include <errno.h>
#include <fcntl.h>
#include <mpix_sparse.h>
#include <stdarg.h>
#include <string.h>

#include "check.h"
#include "overlap_vectors.h"
#include "scheme/engine/owner.h"

enum {
    COUNT = OVERLAP_COUNT,
    MANY = COUNT / OVERLAP_STEP,
    FEW = 10,
    APART = 64 /* calls without shared memory after a failure */
};

int __real_memfd_create(const char *name, unsigned flags);
int __real_open(const char *path, int flags, ...);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_open(const char *path, int flags, ...);

enum fault { NOTHING, FILES, WAYS_TO_MAP };

static enum fault fault;

int __wrap_memfd_create(const char *name, unsigned flags)
{
    errno = EMFILE;
    return fault == FILES ? -1 : __real_memfd_create(name, flags);
}

int __wrap_open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    int mode = (flags & O_CREAT) != 0 ? va_arg(rest, int) : 0;
    va_end(rest);
    errno = EACCES;
    return fault == WAYS_TO_MAP && strncmp(path, "/proc/", 6) == 0 ? -1 : __real_open(path, flags, mode);
}

enum sar_status __real_sar_owner_split(struct sar_task *request, uint32_t segment,
                                       const struct sar_spvec *memory, struct sar_spvec *parts);
enum sar_status __real_sar_owner_begin(struct sar_task *request);
enum sar_status __wrap_sar_owner_split(struct sar_task *request, uint32_t segment,
                                       const struct sar_spvec *memory, struct sar_spvec *parts);
enum sar_status __wrap_sar_owner_begin(struct sar_task *request);

enum moment { NEVER, BEFORE_THEY_MEET, LATER };

static enum moment breaks; /* breaks once */

static bool breaks_now(enum moment now)
{
    bool found = breaks == now;
    breaks = found ? NEVER : breaks;
    return found;
}

enum sar_status __wrap_sar_owner_split(struct sar_task *request, uint32_t segment,
                                       const struct sar_spvec *memory, struct sar_spvec *parts)
{
    return breaks_now(BEFORE_THEY_MEET) ? SAR_NO_MEMORY
                                        : __real_sar_owner_split(request, segment, memory, parts);
}

enum sar_status __wrap_sar_owner_begin(struct sar_task *request)
{
    return breaks_now(LATER) ? SAR_NO_MEMORY : __real_sar_owner_begin(request);
}

static float in[COUNT], out[COUNT];
static int32_t indices[MANY];
static float values[MANY];

static void fill(int nnz)
{
    memset(in, 0, sizeof in);
    for (int i = 0; i < nnz; i++) {
        indices[i] = overlap_index(i, rank);
        values[i] = in[indices[i]] = 1;
    }
}

static void reduce(MPI_Comm comm, bool dense, int nnz)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    fill(nnz);
    if (dense) {
        check_success(MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm),
                      "MPIX_Sparse_allreduce");
    } else {
        check_success(MPIX_Sparse_allreduce_coo(indices, values, nnz, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM,
                                                comm, &result),
                      "MPIX_Sparse_allreduce_coo");
        check_success(MPIX_Sparse_result_dense(result, out), "MPIX_Sparse_result_dense");
        check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    }
    overlap_check(out, nnz);
}

static void expect_shared(MPI_Comm comm, bool expected)
{
    MPIX_Sparse_report_t report;
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check((strcmp(report.scheme, "two_level") == 0) == expected, "expected memory %s",
          expected ? "to be shared" : "not to be shared");
}

static MPI_Comm open_comm(void)
{
    return settings_comm(&(struct settings){ .scheme = "two_level" });
}

static void check_afterwards(MPI_Comm comm)
{
    fault = NOTHING;
    for (int i = 0; i < APART; i++)
        reduce(comm, false, FEW);
    reduce(comm, false, MANY);
    expect_shared(comm, true);
    MPI_Comm_free(&comm);
}

static void try_call(int target, bool dense)
{
    check_case("no descriptors on rank %d, %s", target, dense ? "dense" : "coordinates");
    MPI_Comm comm = open_comm();
    reduce(comm, dense, FEW);
    expect_shared(comm, true);
    if (target < 0 || rank == target)
        fault = FILES;
    for (int i = 0; i < 3; i++) {
        reduce(comm, dense, MANY);
        expect_shared(comm, false);
    }
    check_afterwards(comm);
}

/* Reduces to cyclic owners, and gathers the sums to check them. */
static void scatter(MPI_Comm comm, int nnz, bool expect_memory)
{
    MPIX_Sparse_result owned = MPIX_SPARSE_RESULT_NULL, all = MPIX_SPARSE_RESULT_NULL;
    MPI_Count n;
    const void *index, *value;
    fill(nnz);
    check_success(MPIX_Sparse_reduce_scatter_coo(indices, values, nnz, MPI_INT32_T, COUNT, 1, MPI_FLOAT,
                                                 MPI_SUM, comm, &owned),
                  "MPIX_Sparse_reduce_scatter_coo");
    expect_shared(comm, expect_memory);
    check_success(MPIX_Sparse_result_get(owned, &n, &index, &value), "MPIX_Sparse_result_get");
    check_success(MPIX_Sparse_allgather_coo(index, value, n, MPI_INT32_T, COUNT, MPI_FLOAT, comm, &all),
                  "MPIX_Sparse_allgather_coo");
    check_success(MPIX_Sparse_result_dense(all, out), "MPIX_Sparse_result_dense");
    overlap_check(out, nnz);
    check_success(MPIX_Sparse_result_free(&owned), "MPIX_Sparse_result_free");
    check_success(MPIX_Sparse_result_free(&all), "MPIX_Sparse_result_free");
}

/* The push is the only step that can announce the failure. */
static void try_scatter(int target)
{
    check_case("no descriptors on rank %d, reduce_scatter", target);
    MPI_Comm comm = open_comm();
    for (int i = 0; i < 3; i++)
        scatter(comm, FEW, true);
    if (target < 0 || rank == target)
        fault = FILES;
    for (int i = 0; i < 3; i++)
        scatter(comm, MANY, false);
    check_afterwards(comm);
}

static int run(MPIX_Sparse_plan plan, int nnz)
{
    MPI_Request request;
    fill(nnz);
    check_success(MPIX_Sparse_plan_start(plan, &request), "MPIX_Sparse_plan_start");
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void expect_run(MPIX_Sparse_plan plan, int nnz)
{
    check_success(run(plan, nnz), "MPI_Wait");
    overlap_check(out, nnz);
}

/* Some ranks may finish before they can receive the announcement. */
static void expect_failure(MPIX_Sparse_plan plan, int nnz)
{
    int failed = run(plan, nnz) != MPI_SUCCESS;
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(failed > 0, "expected a call that fails");
}

static void try_plan(int target, enum fault what, bool late)
{
    MPIX_Sparse_plan plan;
    check_case("no %s on rank %d for a plan", what == FILES ? "descriptors" : "way to map", target);
    MPI_Comm comm = open_comm();
    check_success(MPIX_Sparse_allreduce_init(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &plan),
                  "MPIX_Sparse_allreduce_init");
    expect_run(plan, FEW);
    expect_run(plan, FEW);
    if (target < 0 || rank == target)
        fault = what;
    if (late)
        expect_failure(plan, MANY);
    for (int i = 0; i < 3; i++) {
        expect_run(plan, MANY);
        expect_shared(comm, false);
    }
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    check_afterwards(comm);
}

/* Rank 0 cannot share memory, and another rank fails in the same call. */
static void try_both(int target, enum moment when)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    check_case("no descriptors on rank 0, and rank %d breaks %s", target, when == LATER ? "later" : "before");
    MPI_Comm comm = open_comm();
    reduce(comm, false, FEW);
    fault = rank == 0 ? FILES : NOTHING;
    breaks = rank == target ? when : NEVER;
    if (when == LATER) {
        reduce(comm, false, MANY);
        expect_shared(comm, false);
    } else {
        fill(MANY);
        check_error(MPIX_Sparse_allreduce_coo(indices, values, MANY, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM,
                                              comm, &result),
                    rank == target ? "out of memory" : "another rank", -1);
        check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
        reduce(comm, false, MANY);
    }
    check_afterwards(comm);
}

/* The only rank of a node writes no elements, but takes its part of the result at a later time. */
static bool is_alone(int target, int nodes)
{
    int n = 0;
    for (int r = 0; r < ranks; r++)
        n += target >= 0 && r * nodes / ranks == target * nodes / ranks;
    return n == 1;
}

static void try_rank(int target, int nodes)
{
    bool alone = is_alone(target, nodes);
    for (int dense = 0; dense < 2 && !alone; dense++)
        try_call(target, dense != 0);
    if (!alone)
        try_scatter(target);
    try_plan(target, FILES, alone);
    if (!alone)
        try_plan(target, WAYS_TO_MAP, true);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE); /* plans need it */
    check_alarm(280);
    if (ranks < 3)
        return check_skip("shm_loss", "no node of several ranks beside another one");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* MPI_Wait uses this handler */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    nodes_set(2);
    for (int target = 1; target < ranks; target++) {
        if (target * 2 / ranks > 0) /* its neighbours succeed */
            try_both(target, LATER);
        if (!is_alone(target, 2))
            try_both(target, BEFORE_THEY_MEET);
    }
    for (int nodes = 2; nodes <= 3 && nodes < ranks; nodes++) {
        nodes_set(nodes);
        for (int target = -1; target < ranks; target++)
            try_rank(target, nodes);
    }
    return check_end("shm_loss");
}
