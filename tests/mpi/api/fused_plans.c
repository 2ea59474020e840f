/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests plans started together: layers of many sizes, types and ops, some empty, and one rank without
 * elements. Results equal those of plans started one by one, bit for bit, for every way to wait. A start that
 * fails names the plan, and starts no plan. If starts are checked, it fails on all ranks. */

#include <mpix_sparse.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "layers.h"

enum { FEW = 6, TIMEOUT = 120 /* seconds */ };

/* In ring, hybrid and dense, the order of additions depends on an element's position. */
static void try_layers(MPI_Comm comm, const char *scheme, const char *fuse, unsigned rounds)
{
    static const char *const moving[] = { "ring", "hybrid", "dense", "auto" };
    bool exact = false;
    check_case("layers, scheme %s, fuse %s", scheme, fuse);
    for (size_t i = 0; i < sizeof moving / sizeof moving[0]; i++)
        exact |= strcmp(scheme, moving[i]) == 0;
    struct layer *layers = make_layers(LAYERS, LAYERS, comm, scheme, fuse);
    for (unsigned round = 0; round < rounds; round++) {
        check_alarm(TIMEOUT);
        fill_layers(layers, LAYERS, round, exact);
        start_together(layers, LAYERS, round);
        start_one_by_one(layers, LAYERS);
        check_layers(layers, LAYERS);
        if (round == 0 && exact)
            check_against_mpi(layers, LAYERS);
    }
    free_layers(layers, LAYERS);
}

static void expect_error(int code, int n, const MPI_Request *requests, const char *says)
{
    check_error(code, says, -1);
    for (int i = 0; i < n; i++)
        check(requests[i] == MPI_REQUEST_NULL, "expected request %d untouched", i);
}

/* If one plan cannot start, no plan starts. */
static void try_refusals(MPI_Comm comm)
{
    MPIX_Sparse_plan plans[FEW], coordinates;
    MPI_Request requests[FEW] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL,
                                  MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL };
    check_case("plans that cannot start");
    struct layer *layers = make_layers(FEW, FEW, comm, "auto", "100000");
    check_success(MPIX_Sparse_allreduce_coo_init(MPI_INT32_T, 10, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL,
                                                 &coordinates),
                  "MPIX_Sparse_allreduce_coo_init");
    name_plans(layers, FEW, plans);
    check_error(MPIX_Sparse_plan_start_all(1, NULL, requests), "argument plans", -1);
    check_error(MPIX_Sparse_plan_start_all(1, plans, NULL), "argument requests", -1);
    check_success(MPIX_Sparse_plan_start_all(0, NULL, NULL), "starting no plan");
    plans[4] = MPIX_SPARSE_PLAN_NULL;
    expect_error(MPIX_Sparse_plan_start_all(FEW, plans, requests), FEW, requests, "plans[4]: argument plan");
    plans[4] = coordinates;
    expect_error(MPIX_Sparse_plan_start_all(FEW, plans, requests), FEW, requests, "plans[4]: argument plan");
    plans[4] = plans[1];
    expect_error(MPIX_Sparse_plan_start_all(FEW, plans, requests), FEW, requests,
                 "plans[4]: argument plan is in use");
    fill_layers(layers, FEW, 0, true);
    start_together(layers, FEW, 0);
    check_against_mpi(layers, FEW);
    check_success(MPIX_Sparse_plan_free(&coordinates), "MPIX_Sparse_plan_free");
    free_layers(layers, FEW);
}

enum wrong { NULL_PLAN, COORDINATES, TWICE, FREED_COMM, NULL_REQUESTS, OTHER_COMM, WRONGS };

/* One plan is wrong on one rank, or on all. The others are fused, or have calls of their own, on two
 * communicators. */
static void try_wrong_list(MPIX_Sparse_plan *plans, int n, const MPIX_Sparse_plan *others, enum wrong wrong,
                           bool mine)
{
    static const char *const texts[WRONGS] = { "is null",
                                               "is of the other kind",
                                               "is in use",
                                               "is of a communicator",
                                               "argument requests is null",
                                               "is of the other kind" };
    MPI_Request requests[2 * FEW];
    int at = wrong == NULL_PLAN ? 0 : n - 1;
    MPIX_Sparse_plan right = plans[at];
    const MPIX_Sparse_plan bad[WRONGS] = {
        MPIX_SPARSE_PLAN_NULL, others[0], plans[1], others[1], right, others[2]
    };
    plans[at] = mine ? bad[wrong] : right;
    int code = MPIX_Sparse_plan_start_all(n, plans, mine && wrong == NULL_REQUESTS ? NULL : requests);
    if (mine)
        check_error(code, texts[wrong], -1);
    else
        check_success(code, "MPIX_Sparse_plan_start_all");
    for (int i = 0; i < n && !mine; i++) {
        code = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        check_error(code, texts[wrong], -1);
        if (wrong != NULL_REQUESTS)
            check_error(code, at == 0 ? "argument plans[0] is" : "argument plans[11] is", -1);
    }
    plans[at] = right;
}

/* Rank 0 and rank 1 have errors in plans of different communicators. */
static void try_two_faults(MPIX_Sparse_plan *plans, int n)
{
    MPI_Request requests[2 * FEW];
    MPIX_Sparse_plan right = MPIX_SPARSE_PLAN_NULL;
    if (rank < 2) {
        right = plans[rank];
        plans[rank] = MPIX_SPARSE_PLAN_NULL;
    }
    int code = MPIX_Sparse_plan_start_all(n, plans, requests);
    if (rank < 2) {
        check_error(code, "is null", -1);
        plans[rank] = right;
        return;
    }
    check_success(code, "MPIX_Sparse_plan_start_all");
    for (int i = 0; i < n; i++)
        check_error(MPI_Wait(&requests[i], MPI_STATUS_IGNORE), "is null", -1);
}

/* Where all starts are checked, a list that is wrong on one rank is an error on all, and no rank waits. */
static void try_wrong_lists(const char *fuse)
{
    MPIX_Sparse_plan plans[2 * FEW], others[3];
    float in = 1, out;
    setenv("MPIX_SPARSE_CHECK_STARTS", "on", 1);
    MPI_Comm comm[4];
    for (int i = 0; i < 4; i++)
        comm[i] = settings_comm(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
    unsetenv("MPIX_SPARSE_CHECK_STARTS");
    struct layer *here = make_layers(FEW, FEW, comm[0], "balanced", fuse);
    struct layer *there = make_layers(FEW, FEW, comm[1], "balanced", fuse);
    check_success(MPIX_Sparse_allreduce_coo_init(MPI_INT32_T, 10, MPI_FLOAT, MPI_SUM, comm[0], MPI_INFO_NULL,
                                                 &others[0]),
                  "MPIX_Sparse_allreduce_coo_init");
    check_success(MPIX_Sparse_allreduce_init(&in, &out, 1, MPI_FLOAT, MPI_SUM, comm[2], MPI_INFO_NULL,
                                             &others[1]),
                  "MPIX_Sparse_allreduce_init");
    MPI_Comm_free(&comm[2]);
    check_success(MPIX_Sparse_allreduce_coo_init(MPI_INT32_T, 10, MPI_FLOAT, MPI_SUM, comm[3], MPI_INFO_NULL,
                                                 &others[2]),
                  "MPIX_Sparse_allreduce_coo_init");
    for (int i = 0; i < FEW; i++) {
        plans[2 * i] = here[i].plan;
        plans[2 * i + 1] = there[i].plan;
    }
    for (int wrong = 0; wrong < WRONGS; wrong++) {
        for (int who = -1; who < ranks; who++) {
            check_case("fault %d in a list of plans on rank %d (-1: on all), fuse %s", wrong, who, fuse);
            check_alarm(TIMEOUT);
            try_wrong_list(plans, 2 * FEW, others, (enum wrong)wrong, who < 0 || who == rank);
            fill_layers(here, FEW, (unsigned)wrong, true);
            start_together(here, FEW, (unsigned)wrong);
            check_against_mpi(here, FEW);
        }
    }
    check_case("two ranks with faults in plans of different communicators, fuse %s", fuse);
    check_alarm(TIMEOUT);
    try_two_faults(plans, 2 * FEW);
    fill_layers(there, FEW, 0, true);
    start_together(there, FEW, 0);
    check_against_mpi(there, FEW);
    for (int i = 0; i < 3; i++)
        check_success(MPIX_Sparse_plan_free(&others[i]), "MPIX_Sparse_plan_free");
    free_layers(here, FEW);
    free_layers(there, FEW);
    MPI_Comm_free(&comm[0]);
    MPI_Comm_free(&comm[1]);
    MPI_Comm_free(&comm[3]);
}

/* Rank 0 lists two plans in another order. */
static void try_mismatch(MPI_Comm comm)
{
    MPIX_Sparse_plan plans[2];
    MPI_Request requests[2];
    check_case("different plans on different ranks");
    struct layer *layers = make_layers(2, 1, comm, "balanced", "100000");
    plans[rank == 0] = layers[0].plan;
    plans[rank != 0] = layers[1].plan;
    check_success(MPIX_Sparse_plan_start_all(2, plans, requests), "MPIX_Sparse_plan_start_all");
    for (int i = 0; i < 2; i++) {
        int code = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        if (ranks == 1)
            check_success(code, "MPI_Wait");
        else
            check_error(code, "plans[0] and 1 fused with it: ranks start different plans together: 2 of them",
                        -1);
    }
    fill_layers(layers, 2, 0, true);
    start_one_by_one(layers, 2);
    start_together(layers, 2, 0);
    check_layers(layers, 2);
    free_layers(layers, 2);
}

/* Plans of a freed communicator, and of two communicators. The first plan of a fused start is freed first. */
static void try_freeing(MPI_Comm comm)
{
    MPI_Comm other;
    MPIX_Sparse_plan plans[2 * FEW];
    MPI_Request requests[2 * FEW];
    check_case("plans that are freed");
    MPI_Comm_dup(comm, &other);
    MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
    struct layer *here = make_layers(FEW, ALIKE, comm, "balanced", "100000");
    struct layer *there = make_layers(FEW, ALIKE, other, "balanced", "100000");
    fill_layers(here, FEW, 0, true);
    fill_layers(there, FEW, 0, true);
    start_one_by_one(here, FEW);
    start_one_by_one(there, FEW);
    for (int i = 0; i < FEW; i++) {
        plans[2 * i] = here[i].plan;
        plans[2 * i + 1] = there[i].plan;
    }
    check_success(MPIX_Sparse_plan_start_all(2 * FEW, plans, requests), "MPIX_Sparse_plan_start_all");
    check_error(MPIX_Sparse_plan_free(&here[1].plan), "argument plan", -1);
    wait_somehow(2 * FEW, requests, 2);
    check_layers(here, FEW);
    check_layers(there, FEW);
    MPI_Comm_free(&other);
    check_error(MPIX_Sparse_plan_start_all(2, plans, requests),
                "plans[1]: argument plan is of a communicator", -1);
    free_layers(here, FEW);
    free_layers(there, FEW);
}

static void try_everything(void)
{
    MPI_Comm comm = settings_comm(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
    unsigned rounds = oversubscribed ? 2 : 5;
    try_layers(comm, "balanced", "12000", rounds);
    try_layers(comm, "recursive_doubling", "12000", rounds);
    try_layers(comm, "ring", "100000", 2);
    try_layers(comm, "dense", "12000", 2);
    try_layers(comm, "auto", "auto", rounds + 3);
    try_refusals(comm);
    try_wrong_lists("100000");
    try_wrong_lists("0");
    try_mismatch(comm);
    try_freeing(comm);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    int level = check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    try_everything();
    if (level == MPI_THREAD_MULTIPLE) {
        setenv("MPIX_SPARSE_PROGRESS", "thread", 1);
        try_everything();
    }
    return check_end("fused_plans");
}
