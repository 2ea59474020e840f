/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests nonblocking calls: many pending, on one and on several communicators, completed in any order. Also
 * tests their errors, and communicators that are freed during a call. */

#include <mpix_sparse.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "patterns.h"
#include "tensors.h"

enum { CALLS = 12, COMMS = 3 };

/* A call of one of the two interfaces. */
struct call {
    struct tensor tensor;
    struct oracle oracle;
    void *indices;
    unsigned char *out;
    MPIX_Sparse_result result;
    MPI_Datatype type;
    MPI_Request request;
    bool dense;
};

static size_t bytes_of(const struct tensor_desc *desc)
{
    return (size_t)desc->count * element_bytes(desc);
}

static void make(struct call *c, unsigned i)
{
    struct tensor_desc desc = { i % 2 == 0 ? FLOAT32 : INT64, SUM, 1 + i % 3, 100 + 977 * (int64_t)i };
    *c = (struct call){ .dense = i % 3 == 1, .request = MPI_REQUEST_NULL };
    tensor_draw(&patterns[i % 7], &desc, i, &c->tensor);
    oracle_make(&c->tensor, &c->oracle);
    c->indices = typed_indices(&c->tensor, &index_types[i % INDEX_TYPES]);
    c->out = get_memory(bytes_of(&desc), 1);
    c->type = row_type(&desc);
}

static void start(struct call *c, unsigned i, MPI_Comm comm)
{
    const struct tensor_desc *desc = &c->tensor.desc;
    int code = c->dense ? MPIX_Isparse_allreduce(c->oracle.mine, c->out, desc->count, c->type,
                                                 op_types[desc->op].op, comm, &c->request)
                        : MPIX_Isparse_allreduce_coo(c->indices, c->tensor.value, (MPI_Count)c->tensor.nnz,
                                                     index_types[i % INDEX_TYPES].type, desc->count, c->type,
                                                     op_types[desc->op].op, comm, &c->result, &c->request);
    check_success(code, "starting a call");
    check(c->request != MPI_REQUEST_NULL, "expected a request");
}

static void finish(struct call *c, unsigned i)
{
    check(c->request == MPI_REQUEST_NULL, "expected that the request is gone");
    if (c->dense)
        check(equal_numbers(&c->tensor.desc, c->out, c->oracle.dense, (size_t)c->tensor.desc.count),
              "expected the result of MPI_Allreduce in call %u", i);
    else
        compare_result(&c->oracle, &index_types[i % INDEX_TYPES], c->result);
    check_success(MPIX_Sparse_result_free(&c->result), "MPIX_Sparse_result_free");
    row_type_free(&c->tensor.desc, &c->type);
    free(c->indices);
    free(c->out);
    tensor_free(&c->tensor);
    oracle_free(&c->oracle);
}

/* Ways to wait for n requests; odd ranks wait in the opposite order. */
static void wait_in_turn(struct call *calls, int n)
{
    for (int i = 0; i < n; i++)
        check_success(MPI_Wait(&calls[rank % 2 == 0 ? i : n - 1 - i].request, MPI_STATUS_IGNORE), "MPI_Wait");
}

static void wait_for_all(struct call *calls, int n)
{
    MPI_Request requests[CALLS];
    MPI_Status statuses[CALLS];
    for (int i = 0; i < n; i++)
        requests[i] = calls[rank % 2 == 0 ? i : n - 1 - i].request;
    check_success(MPI_Waitall(n, requests, statuses), "MPI_Waitall");
    for (int i = 0; i < n; i++)
        calls[rank % 2 == 0 ? i : n - 1 - i].request = requests[i];
}

static void wait_for_any(struct call *calls, int n)
{
    MPI_Request requests[CALLS];
    for (int i = 0; i < n; i++)
        requests[i] = calls[i].request;
    for (int i = 0, which; i < n; i++) {
        check_success(MPI_Waitany(n, requests, &which, MPI_STATUS_IGNORE), "MPI_Waitany");
        calls[which].request = requests[which];
    }
}

static void test_in_turn(struct call *calls, int n)
{
    for (int left = n, i = 0; left > 0; i++) {
        struct call *c = &calls[rank % 2 == 0 ? i % n : n - 1 - i % n];
        int done = 0;
        if (c->request == MPI_REQUEST_NULL)
            continue;
        check_success(MPI_Test(&c->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        left -= done;
    }
}

static void (*const ways[])(struct call *calls, int n) = { wait_in_turn, wait_for_all, wait_for_any,
                                                           test_in_turn };
static const char *const names[] = { "in turn", "for all", "for any", "testing" };
enum { WAYS = sizeof ways / sizeof ways[0] };

static void try_many(const MPI_Comm comms[], int n, int way)
{
    static struct call calls[CALLS];
    check_case("%d calls on %d communicators, waiting %s", CALLS, n, names[way]);
    for (unsigned i = 0; i < CALLS; i++)
        make(&calls[i], i);
    for (unsigned i = 0; i < CALLS; i++)
        start(&calls[i], i, comms[(int)i % n]);
    ways[way](calls, CALLS);
    for (unsigned i = 0; i < CALLS; i++)
        finish(&calls[i], i);
}

/* Ranks start calls on two communicators in opposite orders, then wait for the first that they started. */
static void try_crossed(const MPI_Comm comms[])
{
    struct call calls[2];
    check_case("two communicators in opposite orders");
    for (unsigned i = 0; i < 2; i++)
        make(&calls[i], i);
    for (int i = 0; i < 2; i++) {
        int which = (i + rank) % 2;
        start(&calls[which], (unsigned)which, comms[which]);
    }
    for (int i = 0; i < 2; i++)
        check_success(MPI_Wait(&calls[(i + rank) % 2].request, MPI_STATUS_IGNORE), "MPI_Wait");
    for (unsigned i = 0; i < 2; i++)
        finish(&calls[i], i);
}

/* A blocking call after pending calls, on their communicator and on another. */
static void try_blocking(const MPI_Comm comms[])
{
    struct call calls[2];
    float one = 1, sum[2];
    check_case("blocking calls while others are in flight");
    for (unsigned i = 0; i < 2; i++) {
        make(&calls[i], i + 3);
        start(&calls[i], i + 3, comms[0]);
        check_success(MPIX_Sparse_allreduce(&one, &sum[i], 1, MPI_FLOAT, MPI_SUM, comms[i]),
                      "a blocking call");
        check(sum[i] == (float)ranks, "expected %d, found %g", ranks, (double)sum[i]);
    }
    for (unsigned i = 0; i < 2; i++)
        check_success(MPI_Wait(&calls[i].request, MPI_STATUS_IGNORE), "MPI_Wait");
    for (unsigned i = 0; i < 2; i++)
        finish(&calls[i], i + 3);
}

/* On the first rank a call on another communicator is complete when it starts a blocking call; on the others
 * it is pending. All ranks must call the same MPI function. */
static void try_uneven(const MPI_Comm comms[], MPI_Comm dense)
{
    struct call call;
    float one = 1, sum = 0;
    check_case("a blocking dense call that some ranks begin with another in flight");
    make(&call, 4);
    start(&call, 4, comms[0]);
    if (rank == 0)
        check_success(MPI_Wait(&call.request, MPI_STATUS_IGNORE), "MPI_Wait");
    check_success(MPIX_Sparse_allreduce(&one, &sum, 1, MPI_FLOAT, MPI_SUM, dense), "a blocking call");
    check(sum == (float)ranks, "expected %d, found %g", ranks, (double)sum);
    if (rank != 0)
        check_success(MPI_Wait(&call.request, MPI_STATUS_IGNORE), "MPI_Wait");
    finish(&call, 4);
}

/* MPI_Comm_free completes pending calls. */
static void try_free(MPI_Comm parent)
{
    struct call call;
    MPI_Comm comm;
    check_case("a communicator freed under a call");
    MPI_Comm_dup(parent, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    make(&call, 5);
    start(&call, 5, comm);
    MPI_Comm_free(&comm);
    check_success(MPI_Wait(&call.request, MPI_STATUS_IGNORE), "MPI_Wait");
    finish(&call, 5);
}

/* Nobody waits for a freed request; a later call on the communicator is completed. */
static void try_request_free(MPI_Comm comm)
{
    float one = 1, sum = 0, later = 0;
    MPI_Request request;
    MPIX_Sparse_plan plan;
    check_case("a request that is freed before its end");
    check_success(MPIX_Sparse_allreduce_init(&one, &sum, 1, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &plan),
                  "MPIX_Sparse_allreduce_init");
    for (int i = 0; i < 4; i++) {
        sum = 0;
        check_success(i % 2 == 0 ? MPIX_Isparse_allreduce(&one, &sum, 1, MPI_FLOAT, MPI_SUM, comm, &request)
                                 : MPIX_Sparse_plan_start(plan, &request),
                      "starting a call");
        check_success(MPI_Request_free(&request), "MPI_Request_free");
        check_success(MPIX_Sparse_allreduce(&one, &later, 1, MPI_FLOAT, MPI_SUM, comm), "a later call");
        check(sum == (float)ranks && later == sum, "expected %d twice, found %g and %g", ranks, (double)sum,
              (double)later);
    }
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
}

static void try_errors(MPI_Comm comm)
{
    const float value = 1;
    const int32_t index = 0, wrong = rank == ranks - 1 ? 7 : 0;
    MPI_Request request;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    check_case("a wrong index on the last rank");
    check_success(MPIX_Isparse_allreduce_coo(&wrong, &value, 1, MPI_INT32_T, 5, MPI_FLOAT, MPI_SUM, comm,
                                             &result, &request),
                  "starting a call that is wrong");
    check_error(MPI_Wait(&request, MPI_STATUS_IGNORE), "argument indices holds 7", ranks - 1);
    check(result == MPIX_SPARSE_RESULT_NULL, "expected no result");
    check_case("no place for the request on the last rank");
    int code = MPIX_Isparse_allreduce_coo(&index, &value, 1, MPI_INT32_T, 5, MPI_FLOAT, MPI_SUM, comm,
                                          &result, rank == ranks - 1 ? NULL : &request);
    if (rank < ranks - 1) {
        check_success(code, "starting a call");
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    check_error(code, "argument request is null", ranks - 1);
}

/* The last rank starts late, so the first call is pending on all others when they start the second. */
static void try_result_in_use(MPI_Comm comm)
{
    const float value = 1;
    const int32_t index = 0;
    MPI_Request requests[2];
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    check_case("a result that is in use");
    check_success(MPIX_Sparse_allreduce_coo(&index, &value, 1, MPI_INT32_T, 5, MPI_FLOAT, MPI_SUM, comm,
                                            &result),
                  "a blocking call");
    if (rank == ranks - 1)
        MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++)
        check_success(MPIX_Isparse_allreduce_coo(&index, &value, 1, MPI_INT32_T, 5, MPI_FLOAT, MPI_SUM, comm,
                                                 &result, &requests[i]),
                      "starting a call");
    if (rank < ranks - 1) {
        check(MPIX_Sparse_result_free(&result) != MPI_SUCCESS, "expected that a result in use is not freed");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    check_success(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), "MPI_Wait");
    int code = MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    if (ranks > 1)
        check_error(code, "argument result is in use", -1);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
}

static void try_all(const char *progress)
{
    MPI_Comm comms[COMMS], dense;
    setenv("MPIX_SPARSE_PROGRESS", progress, 1);
    for (int i = 0; i < COMMS; i++)
        comms[i] = settings_comm(
            &(struct settings){ i == 1 ? "balanced" : NULL, NULL, NULL, NULL, i == 2 ? "40" : NULL });
    dense = settings_comm(&(struct settings){ "dense", NULL, NULL, NULL, NULL });
    for (int way = 0; way < WAYS; way++)
        for (int n = 1; n <= COMMS; n += COMMS - 1)
            try_many(comms, n, way);
    try_crossed(comms);
    try_blocking(comms);
    for (int i = 0; i < 20; i++)
        try_uneven(comms, dense);
    try_free(comms[0]);
    try_request_free(comms[0]);
    try_errors(comms[0]);
    if (strcmp(progress, "wait") == 0) /* the program and the thread would use the result without a lock */
        try_result_in_use(comms[0]);
    MPI_Comm_free(&dense);
    for (int i = 0; i < COMMS; i++)
        MPI_Comm_free(&comms[i]);
}

/* A call with loops of two threads, which the progress thread ends in a loop of one unless MPI_Wait does. */
static void try_large(void)
{
    enum { COUNT = 1000000, STEP = 7, PAUSE_NS = 50000000 };
    MPI_Comm comm;
    MPI_Info info;
    MPI_Request request;
    float *in = get_memory(COUNT * sizeof *in, sizeof *in),
          *out = get_memory(COUNT * sizeof *out, sizeof *out);
    check_case("a large call that the progress thread ends");
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_threads", "2");
    MPI_Info_set(info, "mpix_sparse_scheme", "balanced");
    check_success(MPIX_Sparse_comm_set_info(comm, info), "MPIX_Sparse_comm_set_info");
    MPI_Info_free(&info);
    for (int i = 0; i < COUNT; i++)
        in[i] = i % STEP == 0 ? (float)(rank + i % 5) : 0;
    check_success(MPIX_Isparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, &request),
                  "MPIX_Isparse_allreduce");
    nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
    check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    for (int i = 0; i < COUNT; i++) {
        float expected = i % STEP == 0 ? (float)(ranks * (ranks - 1) / 2 + ranks * (i % 5)) : 0;
        check(out[i] == expected, "found %g at index %d", (double)out[i], i);
    }
    MPI_Comm_free(&comm);
    free(in);
    free(out);
}

/* The test with the progress thread is last, since the thread progresses all calls. */
int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* MPI_Wait uses this handler */
    try_all("wait");
    try_all("thread");
    try_large();
    return check_end("nonblocking");
}
