/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests plans: repeated starts with and without the consistency check, values and elements that change
 * between starts, hints, errors in starts that skip the check, and the order of freeing. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "patterns.h"
#include "tensors.h"

enum { ROUNDS = 90, PLANS = 3 };

static void wait_for(MPI_Request *request)
{
    check_success(MPI_Wait(request, MPI_STATUS_IGNORE), "MPI_Wait");
}

/* Each round reduces another vector in the plan's buffer. */
static void try_dense(MPI_Comm comm, MPI_Info info, size_t row, bool in_place)
{
    struct tensor_desc desc = { FLOAT32, SUM, row, 3000 / (int64_t)row };
    MPI_Datatype type = row_type(&desc);
    size_t bytes = (size_t)desc.count * element_bytes(&desc);
    unsigned char *in = get_memory(bytes, 1), *out = get_memory(bytes, 1);
    MPIX_Sparse_plan plan = MPIX_SPARSE_PLAN_NULL;
    MPI_Request request;
    check_success(MPIX_Sparse_allreduce_init(in_place ? MPI_IN_PLACE : in, out, desc.count, type, MPI_SUM,
                                             comm, info, &plan),
                  "MPIX_Sparse_allreduce_init");
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct tensor tensor;
        struct oracle oracle;
        tensor_draw(&patterns[round / 4 % 7], &desc, round, &tensor);
        oracle_make(&tensor, &oracle);
        memcpy(in_place ? out : in, oracle.mine, bytes);
        check_success(MPIX_Sparse_plan_start(plan, &request), "MPIX_Sparse_plan_start");
        wait_for(&request);
        check(equal_numbers(&desc, out, oracle.dense, (size_t)desc.count),
              "expected the result of MPI_Allreduce in round %u", round);
        tensor_free(&tensor);
        oracle_free(&oracle);
    }
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    check(plan == MPIX_SPARSE_PLAN_NULL, "expected a null plan");
    row_type_free(&desc, &type);
    free(in);
    free(out);
}

static void try_coo(MPI_Comm comm, MPI_Info info, size_t row)
{
    struct tensor_desc desc = { INT64, SUM, row, 10000 / (int64_t)row };
    MPI_Datatype type = row_type(&desc);
    MPIX_Sparse_plan plan;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPI_Request request;
    check_success(MPIX_Sparse_allreduce_coo_init(MPI_UINT64_T, desc.count, type, MPI_SUM, comm, info, &plan),
                  "MPIX_Sparse_allreduce_coo_init");
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct tensor tensor;
        struct oracle oracle;
        tensor_draw(&patterns[round % 9], &desc, round, &tensor);
        oracle_make(&tensor, &oracle);
        void *indices = typed_indices(&tensor, &index_types[3]);
        check_success(MPIX_Sparse_plan_start_coo(plan, indices, tensor.value, (MPI_Count)tensor.nnz, &result,
                                                 &request),
                      "MPIX_Sparse_plan_start_coo");
        wait_for(&request);
        compare_result(&oracle, &index_types[3], result);
        free(indices);
        tensor_free(&tensor);
        oracle_free(&oracle);
    }
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    row_type_free(&desc, &type);
}

/* Rows whose columns several ranks own. */
static void try_columns(MPI_Comm comm)
{
    static const char *const schemes[] = { "balanced", "two_level" };
    char all[16];
    const char *const columns[] = { "2", "3", all };
    snprintf(all, sizeof all, "%d", ranks);
    for (size_t i = 0; i < 6; i++) {
        MPIX_Sparse_report_t report;
        MPI_Info info;
        check_case("plans of rows, %s with %s columns", schemes[i % 2], columns[i / 2]);
        MPI_Info_create(&info);
        MPI_Info_set(info, "mpix_sparse_scheme", schemes[i % 2]);
        MPI_Info_set(info, "mpix_sparse_columns", columns[i / 2]);
        try_dense(comm, info, 24, i % 2 == 0);
        try_coo(comm, info, 24);
        check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
        if (ranks > 1 && strcmp(report.scheme, "balanced") == 0)
            check(report.columns > 1, "expected several columns, found %d", report.columns);
        MPI_Info_free(&info);
    }
}

/* A plan that skips the check sends the messages of its scheme, and no others. */
static void try_hints(MPI_Comm comm)
{
    float in[64] = { 1 }, out[64];
    MPI_Info info;
    MPIX_Sparse_plan plan;
    MPIX_Sparse_report_t report;
    MPI_Request request;
    char sentence[MPI_MAX_ERROR_STRING];
    int length;
    check_case("hints");
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_scheme", "ring");
    MPI_Info_set(info, "mpix_sparse_wire", "coo");
    MPI_Info_set(info, "another_library", "yes");
    check_success(MPIX_Sparse_allreduce_init(in, out, 64, MPI_FLOAT, MPI_SUM, comm, info, &plan),
                  "MPIX_Sparse_allreduce_init");
    for (int round = 0; round < 4; round++) {
        check_success(MPIX_Sparse_plan_start(plan, &request), "MPIX_Sparse_plan_start");
        wait_for(&request);
        check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
        check(strcmp(report.scheme, "ring") == 0, "expected ring, found %s", report.scheme);
        check(report.messages_sent == 2 * (ranks - 1), "expected %d messages, found %lld", 2 * (ranks - 1),
              (long long)report.messages_sent);
        check(out[0] == (float)ranks, "expected %d, found %g", ranks, (double)out[0]);
    }
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    if (rank == 0)
        MPI_Info_set(info, "mpix_sparse_scheme", "no_such_scheme");
    int code = MPIX_Sparse_allreduce_init(in, out, 64, MPI_FLOAT, MPI_SUM, comm, info, &plan);
    check_error(code, "no_such_scheme", -1);
    MPI_Error_string(code, sentence, &length);
    check_equal_on_ranks(hash_bytes(sentence, (size_t)length, 0), "sentence");
    MPI_Info_free(&info);
}

static void try_many(MPI_Comm comm)
{
    float in[PLANS][40], out[PLANS][40];
    MPIX_Sparse_plan plans[PLANS];
    MPI_Request requests[PLANS];
    check_case("many plans at once");
    for (int i = 0; i < PLANS; i++)
        check_success(MPIX_Sparse_allreduce_init(in[i], out[i], 40, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL,
                                                 &plans[i]),
                      "MPIX_Sparse_allreduce_init");
    for (int round = 0; round < 50; round++) {
        memset(in, 0, sizeof in);
        for (int i = 0; i < PLANS; i++)
            in[i][i] = in[i][20 + rank % 20] = (float)(round + i);
        check_success(MPIX_Sparse_plan_start_all(PLANS, plans, requests), "MPIX_Sparse_plan_start_all");
        check_success(MPI_Waitall(PLANS, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
        for (int i = 0; i < PLANS; i++)
            check(out[i][i] == (float)(ranks * (round + i)), "expected %d, found %g", ranks * (round + i),
                  (double)out[i][i]);
    }
    for (int i = 0; i < PLANS; i++)
        check_success(MPIX_Sparse_plan_free(&plans[i]), "MPIX_Sparse_plan_free");
}

/* A wrong index in a start that skips the consistency check: its rank reports the index, the others a failed
 * rank. The next start succeeds. */
static void try_steady_errors(MPI_Comm comm)
{
    const float value = 1;
    MPIX_Sparse_plan plan;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPI_Request request;
    MPI_Info info;
    check_case("a wrong index in a steady plan");
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_scheme", "balanced");
    check_success(MPIX_Sparse_allreduce_coo_init(MPI_INT32_T, 10, MPI_FLOAT, MPI_SUM, comm, info, &plan),
                  "MPIX_Sparse_allreduce_coo_init");
    for (int round = 0; round < 6; round++) {
        bool wrong = round == 3;
        const int32_t index = wrong && rank == ranks - 1 ? 10 : 4;
        check_success(MPIX_Sparse_plan_start_coo(plan, &index, &value, 1, &result, &request),
                      "MPIX_Sparse_plan_start_coo");
        int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (!wrong)
            check_success(code, "MPI_Wait");
        else
            check_error(code, rank == ranks - 1 ? "argument indices holds 10" : "another rank", -1);
    }
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    MPI_Info_free(&info);
}

static void try_misuse(MPI_Comm parent)
{
    float in[4] = { 0 }, out[4];
    MPI_Comm comm;
    MPIX_Sparse_plan plan = MPIX_SPARSE_PLAN_NULL;
    MPI_Request request;
    check_case("misuse of plans");
    MPI_Comm_dup(parent, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    check_error(MPIX_Sparse_plan_start(plan, &request), "argument plan is null", -1);
    check_error(MPIX_Sparse_plan_start_all(-1, &plan, &request), "argument n is -1", -1);
    check_success(MPIX_Sparse_plan_free(&plan), "freeing no plan");
    check_error(MPIX_Sparse_plan_free(NULL), "argument plan is null", -1);
    check_error(MPIX_Sparse_allreduce_init(in, rank == 0 ? NULL : out, 4, MPI_FLOAT, MPI_SUM, comm,
                                           MPI_INFO_NULL, &plan),
                "argument recvbuf is null", 0);
    check_error(MPIX_Sparse_allreduce_init(in, out, 4, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL,
                                           rank == ranks - 1 ? NULL : &plan),
                "argument plan is null", ranks - 1);
    check_success(MPIX_Sparse_allreduce_init(in, out, 4, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &plan),
                  "MPIX_Sparse_allreduce_init");
    check_error(MPIX_Sparse_plan_start_coo(plan, NULL, NULL, 0, NULL, &request), "plan is of the other kind",
                -1);
    MPI_Comm_free(&comm);
    check_error(MPIX_Sparse_plan_start(plan, &request), "communicator that was freed", -1);
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
}

/* All ranks but the last make a plan, start one or call. The last rank does something else, which the error
 * must name. */
static void try_mismatches(MPI_Comm comm)
{
    float in[4] = { 0 }, out[4];
    MPIX_Sparse_plan plan, none;
    MPI_Request request;
    bool last = rank == ranks - 1;
    int code;
    check_case("plans that do not match");
    memset(&none, 0x41, sizeof none);
    code = MPIX_Sparse_allreduce_init(in, out, last ? 3 : 4, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &none);
    check(none == MPIX_SPARSE_PLAN_NULL, "expected no plan after an error");
    check_error(code, "count differs between ranks: 3 on rank", ranks - 1);
    code = last ? MPIX_Sparse_allreduce(in, out, 4, MPI_FLOAT, MPI_SUM, comm)
                : MPIX_Sparse_allreduce_init(in, out, 4, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &none);
    check_error(code, "MPIX_Sparse_allreduce_init on rank 0", ranks - 1);
    check_success(MPIX_Sparse_allreduce_init(in, out, 4, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &plan),
                  "MPIX_Sparse_allreduce_init");
    if (last) {
        code = MPIX_Sparse_allreduce(in, out, 4, MPI_FLOAT, MPI_SUM, comm);
    } else {
        check_success(MPIX_Sparse_plan_start(plan, &request), "MPIX_Sparse_plan_start");
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    check_error(code, "MPIX_Sparse_plan_start on rank 0", ranks - 1);
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
}

enum { DENSE, COO, REDUCE_SCATTER, ALLGATHER, KINDS };

static int init(int kind, const float *in, float *out, MPI_Comm comm, MPIX_Sparse_plan *plan)
{
    switch (kind) {
    case DENSE: return MPIX_Sparse_allreduce_init(in, out, 4, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, plan);
    case COO:
        return MPIX_Sparse_allreduce_coo_init(MPI_INT32_T, 4, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, plan);
    case REDUCE_SCATTER:
        return MPIX_Sparse_reduce_scatter_coo_init(MPI_INT32_T, 4, 1, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL,
                                                   plan);
    default: return MPIX_Sparse_allgather_coo_init(MPI_INT32_T, 4, MPI_FLOAT, comm, MPI_INFO_NULL, plan);
    }
}

/* The last rank starts the other of two plans with equal arguments. */
static void try_crossed_plans(MPI_Comm comm)
{
    MPI_Request request;
    MPIX_Sparse_plan plans[2], *started = &plans[rank == ranks - 1];
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    float in[4] = { 0 }, out[4];
    for (int kind = DENSE; kind < KINDS; kind++) {
        check_case("two plans of kind %d, started in different orders", kind);
        for (int i = 0; i < 2; i++)
            check_success(init(kind, in, out, comm, &plans[i]), "init");
        check_success(kind == DENSE ? MPIX_Sparse_plan_start(*started, &request)
                                    : MPIX_Sparse_plan_start_coo(*started, NULL, NULL, 0, &result, &request),
                      "start");
        check_error(MPI_Wait(&request, MPI_STATUS_IGNORE), "ranks start different plans: number", ranks - 1);
        for (int i = 0; i < 2; i++)
            check_success(MPIX_Sparse_plan_free(&plans[i]), "MPIX_Sparse_plan_free");
    }
}

enum { TO_SETTLE = 12 /* starts after which the choice of a named scheme is settled */ };

struct unchecked {
    MPIX_Sparse_plan plan;
    int count;
    float *in, *out;
};

static void free_unchecked(struct unchecked *p)
{
    check_success(MPIX_Sparse_plan_free(&p->plan), "MPIX_Sparse_plan_free");
    free(p->in);
    free(p->out);
}

/* Starts a plan of ones, and returns the error code of its request. */
static int start(MPIX_Sparse_plan plan)
{
    MPI_Request request;
    check_success(MPIX_Sparse_plan_start(plan, &request), "MPIX_Sparse_plan_start");
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* The last rank starts the other of two plans when their choices are settled. Messages tell the plans apart
 * also without a check. */
static void try_crossed_settled_plans(MPI_Comm comm, const char *scheme, bool checks)
{
    MPIX_Sparse_plan plans[2];
    MPIX_Sparse_report_t report;
    MPI_Info info;
    float in[40] = { 1, 0, 1 }, out[2][40];
    check_case("settled plans of %s, started in different orders, %s checks", scheme,
               checks ? "with" : "without");
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_scheme", scheme);
    MPI_Info_set(info, "mpix_sparse_check_starts", checks ? "on" : "off");
    for (int i = 0; i < 2; i++)
        check_success(MPIX_Sparse_allreduce_init(in, out[i], 40, MPI_FLOAT, MPI_SUM, comm, info, &plans[i]),
                      "MPIX_Sparse_allreduce_init");
    for (int i = 0; i < 2 * TO_SETTLE; i++)
        check_success(start(plans[i % 2]), "MPI_Wait");
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    int code = start(plans[rank == ranks - 1]);
    if (checks)
        check_error(code, "ranks start different plans: number", ranks - 1);
    else if (strcmp(report.scheme, "dense") != 0) /* which runs if ranks share no memory */
        check(code != MPI_SUCCESS, "expected an error");
    for (int i = 0; i < 2; i++) {
        out[i][2] = 0;
        check_success(start(plans[i]), "MPI_Wait");
        check(out[i][2] == (float)ranks, "expected %d, found %g", ranks, (double)out[i][2]);
        check_success(MPIX_Sparse_plan_free(&plans[i]), "MPIX_Sparse_plan_free");
    }
    MPI_Info_free(&info);
}

/* Makes a plan that makes no consistency check once its choice is settled. */
static void make_unchecked(const char *scheme, struct unchecked *p, int count, MPI_Comm comm)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_scheme", scheme);
    MPI_Info_set(info, "mpix_sparse_check_starts", "off");
    p->in = get_memory((size_t)count, sizeof *p->in);
    p->out = get_memory((size_t)count, sizeof *p->out);
    p->count = count;
    for (int i = 0; i < count; i++)
        p->in[i] = 1;
    check_success(MPIX_Sparse_allreduce_init(p->in, p->out, count, MPI_FLOAT, MPI_SUM, comm, info, &p->plan),
                  "MPIX_Sparse_allreduce_init");
    MPI_Info_free(&info);
}

static void expect_sum(const struct unchecked *p)
{
    memset(p->out, 0, (size_t)p->count * sizeof *p->out);
    check_success(start(p->plan), "MPI_Wait");
    for (int i = 0; i < p->count; i++)
        check(p->out[i] == (float)ranks, "expected %d, found %g", ranks, (double)p->out[i]);
}

/* The last rank starts a plan whose start makes a check, the others one that is settled and makes none. In
 * shared memory the messages of both meet. Several communicators follow each other, since the messages hold
 * the numbers of their memory. */
static void try_settled_beside_new(const char *scheme, int count)
{
    enum { COMMS = 6 };
    MPIX_Sparse_report_t report;
    check_case("a settled plan of %s beside a new one, %d numbers", scheme, count);
    nodes_set(1);
    for (int i = 0; i < COMMS; i++) {
        struct unchecked settled, other;
        MPI_Comm comm = settings_comm(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
        make_unchecked(scheme, &settled, count, comm);
        make_unchecked(scheme, &other, 4, comm);
        for (int j = 0; j < TO_SETTLE; j++)
            expect_sum(&settled);
        check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
        bool shares = strcmp(report.scheme, scheme) == 0;
        for (int j = 0; j < 3 && shares; j++) {
            check_error(start(rank == ranks - 1 ? other.plan : settled.plan), "truncated or inconsistent",
                        -1);
            expect_sum(&settled);
            expect_sum(&other);
        }
        free_unchecked(&settled);
        free_unchecked(&other);
        MPI_Comm_free(&comm);
    }
    nodes_set(0);
}

int main(int argc, char **argv)
{
    static const char *const schemes[] = { EVERY_SPARSE_SCHEME, "dense", "auto" };
    check_begin(
        &argc, &argv,
        MPI_THREAD_MULTIPLE); /* MPI libraries without generalized request polling need the progress thread */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    setenv("MPIX_SPARSE_PROFILE_EVERY", "40", 1);
    MPI_Comm comm = settings_comm(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        MPI_Info info;
        check_case("plans of %s", schemes[i]);
        MPI_Info_create(&info);
        MPI_Info_set(info, "mpix_sparse_scheme", schemes[i]);
        try_dense(comm, info, 1, i % 2 == 1);
        try_coo(comm, info, 2);
        MPI_Info_free(&info);
    }
    try_columns(comm);
    try_hints(comm);
    try_many(comm);
    try_steady_errors(comm);
    try_misuse(comm);
    if (ranks > 1) {
        try_mismatches(comm);
        try_crossed_plans(comm);
        for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
            try_crossed_settled_plans(comm, schemes[i], true);
            if (strcmp(schemes[i], "dense") != 0 && strcmp(schemes[i], "auto") != 0) /* which may be dense */
                try_crossed_settled_plans(comm, schemes[i], false);
        }
        try_settled_beside_new("shared", 40);
        try_settled_beside_new("shared", 20000);
        try_settled_beside_new("two_level", 20000);
    }
    MPI_Comm_free(&comm);
    return check_end("plans");
}
