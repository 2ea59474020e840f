/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests calls on streams that are being captured into a graph. Each call is refused before it queues work, so
 * the graph stays empty and usable, and no other rank hangs. Calls on other streams work and do not
 * invalidate the capture. */

#include <cuda_runtime_api.h>
#include <math.h>
#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>

#include "aware_mpi.h"
#include "capture.h"
#include "check.h"

enum { COUNT = 6000, FEW = 40, NNZ = 5, STARTS = 6 };

/* Results on ranks whose streams are not captured. AGREED: the same error. STEADY: an error that another rank
 * failed. UNSEEN: no error, and an undefined result, since the call has no consistency check. ALONE: no
 * error, and the right result. */
enum effect { AGREED, STEADY, UNSEEN, ALONE };

struct call_case {
    const char *name;
    int (*call)(void);
    enum effect effect;
    bool on_default; /* in the default stream, while a stream that waits for it is captured */
};

static MPI_Comm comm, unseen, forced, handed; /* passes to MPI */
static cudaStream_t stream, blocking;
static float *vector, *other, *values;
static int32_t *indices, *chosen;
static MPIX_Sparse_plan plan, coo_plan, small[2], dense, handed_plan;
static MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;

static int finish(int code, MPI_Request *requests, int n)
{
    for (int i = 0; i < n && code == MPI_SUCCESS; i++) {
        code = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS && i + 1 < n)
            MPI_Wait(&requests[i + 1], MPI_STATUS_IGNORE);
    }
    return code;
}

static int reduce_floats(MPI_Count count, MPI_Comm where, bool later)
{
    MPI_Request request;
    if (!later)
        return MPIX_Sparse_allreduce(MPI_IN_PLACE, vector, count, MPI_FLOAT, MPI_SUM, where);
    int code = MPIX_Isparse_allreduce(MPI_IN_PLACE, vector, count, MPI_FLOAT, MPI_SUM, where, &request);
    return finish(code, &request, 1);
}

static int reduce(void)
{
    return reduce_floats(COUNT, comm, false);
}

static int reduce_later(void)
{
    return reduce_floats(COUNT, comm, true);
}

static int reduce_coo(void)
{
    return MPIX_Sparse_allreduce_coo(indices, values, NNZ, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm,
                                     &result);
}

static int reduce_coo_later(void)
{
    MPI_Request request;
    int code = MPIX_Isparse_allreduce_coo(indices, values, NNZ, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm,
                                          &result, &request);
    return finish(code, &request, 1);
}

static int reduce_unseen(void)
{
    return reduce_floats(FEW, unseen, false);
}

static int reduce_unseen_later(void)
{
    return reduce_floats(FEW, unseen, true);
}

static int reduce_handed(void)
{
    return reduce_floats(FEW, handed, false);
}

static int reduce_handed_later(void)
{
    return reduce_floats(FEW, handed, true);
}

static int reduce_complex(void)
{
    return MPIX_Sparse_allreduce(MPI_IN_PLACE, vector, COUNT / 2, MPI_C_FLOAT_COMPLEX, MPI_SUM, unseen);
}

static int start(MPIX_Sparse_plan started)
{
    MPI_Request request;
    return finish(MPIX_Sparse_plan_start(started, &request), &request, 1);
}

static int start_plan(void)
{
    return start(plan);
}

static int start_dense_plan(void)
{
    return start(dense);
}

static int start_handed_plan(void)
{
    return start(handed_plan);
}

static int start_coo_plan(void)
{
    MPI_Request request;
    return finish(MPIX_Sparse_plan_start_coo(coo_plan, indices, values, NNZ, &result, &request), &request, 1);
}

static int start_together(void)
{
    MPI_Request requests[2];
    return finish(MPIX_Sparse_plan_start_all(2, small, requests), requests, 2);
}

static int find_threshold(void)
{
    double threshold;
    return MPIX_Sparse_topk_threshold(vector, COUNT, MPI_FLOAT, 0.1, 1, 0, comm, &threshold);
}

static int select_largest(void)
{
    MPI_Count nnz;
    return MPIX_Sparse_topk_select(vector, COUNT, MPI_FLOAT, 1, comm, MPI_INT32_T, COUNT, chosen, other,
                                   &nnz);
}

static int step(void)
{
    MPIX_Sparse_dgc_t how = { 0.02, 0.3, 0.9, 0.7, 1, 0 };
    MPI_Count nnz;
    float *at = vector;
    return MPIX_Sparse_dgc_step(at, at + COUNT, at + 2 * COUNT, COUNT, MPI_FLOAT, &how, comm, MPI_INT32_T,
                                COUNT, chosen, other, &nnz);
}

static int profile(void)
{
    MPIX_Sparse_profile_t profile;
    return MPIX_Sparse_profile(vector, COUNT, MPI_FLOAT, comm, &profile);
}

static int write_result(void)
{
    return MPIX_Sparse_result_dense(result, other);
}

/* Call in a stream that the library does not know. */
static int reduce_in_default(void)
{
    return reduce_floats(COUNT, forced, false);
}

static const struct call_case call_cases[] = {
    { "a blocking call", reduce, AGREED, false },
    { "a nonblocking call", reduce_later, AGREED, false },
    { "a call on coordinates", reduce_coo, AGREED, false },
    { "a nonblocking call on coordinates", reduce_coo_later, AGREED, false },
    { "a call unseen", reduce_unseen, UNSEEN, false },
    { "a small nonblocking call", reduce_unseen_later, AGREED, false },
    { "a call unseen, device memory handed over", reduce_handed, UNSEEN, false },
    { "a nonblocking call, device memory handed over", reduce_handed_later, UNSEEN, false },
    { "complex numbers", reduce_complex, UNSEEN, false },
    { "the start of a plan", start_plan, STEADY, false },
    { "the start of a plan of coordinates", start_coo_plan, STEADY, false },
    { "the start of a plan for MPI_Allreduce", start_dense_plan, STEADY, false },
    { "the start of a plan, device memory handed over", start_handed_plan, STEADY, false },
    { "plans started together", start_together, STEADY, false },
    { "a threshold", find_threshold, AGREED, false },
    { "a selection", select_largest, ALONE, false },
    { "a step of DGC", step, AGREED, false },
    { "a profile", profile, AGREED, false },
    { "a result", write_result, ALONE, true },
    { "the default stream", reduce_in_default, AGREED, true },
};

/* Fill a sparse vector; its first element shows whether the result is valid. */
static void fill(void)
{
    static float v[3 * COUNT];
    int32_t index[NNZ] = { 3, 9, 40 + rank, 77, COUNT - 1 };
    for (int i = 0; i < 3 * COUNT; i++)
        v[i] = i % 50 == 0 ? (float)(rank + 1) : 0;
    fill_device(vector, v, sizeof v);
    fill_device(values, v, NNZ * sizeof *v);
    fill_device(indices, index, sizeof index);
}

static float first_value(void)
{
    float first;
    to_host(&first, vector, sizeof first);
    return first;
}

/* Name of the call on the rank with the captured stream. */
static const char *name_of(bool on_default)
{
    static char name[64];
    if (on_default)
        return "the default stream, or one that waits for it,";
    snprintf(name, sizeof name, "stream 0x%llx", (unsigned long long)(uintptr_t)stream);
    return name;
}

/* Capture the stream of rank 0, or of all ranks. */
static void check_call_case(const struct call_case *call_case, bool all)
{
    cudaStream_t captured = call_case->on_default ? blocking : stream;
    bool mine = all || rank == 0;
    for (int i = 0; i < STARTS; i++) {
        fill();
        check_success(call_case->call(), "a call before");
    }
    check_case("%s, captured on %s", call_case->name, all ? "all ranks" : "rank 0");
    fill();
    if (mine)
        begin_capture(captured);
    int code = call_case->call();
    if (mine)
        end_capture(captured);
    if (mine)
        expect_refusal(code, rank == 0 || call_case->effect != AGREED ? name_of(call_case->on_default) : "",
                       call_case->effect == AGREED ? 0 : -1);
    else if (call_case->effect == AGREED)
        expect_refusal(code, "", 0);
    else if (call_case->effect == STEADY)
        check(code != MPI_SUCCESS, "expected an error, as rank 0 has failed");
    else
        check_success(code, call_case->name);
    if (!mine && call_case->effect == UNSEEN)
        check(isnan(first_value()), "expected no number, found %g", (double)first_value());
    fill();
    check_success(call_case->call(), "a call behind");
}

/* Calls on other streams allocate and wait, even in first use, and add nothing to the graph. */
static void check_beside(void)
{
    cudaStream_t beside;
    float expected = (float)(ranks * (ranks + 1) / 2);
    require(cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking));
    check_case("a call beside a stream that is captured");
    fill();
    begin_capture(beside);
    check_success(reduce(), "a blocking call");
    end_capture(beside);
    check(first_value() == expected, "expected %g, found %g", (double)expected, (double)first_value());
    fill();
    begin_capture(beside);
    check_success(start_together(), "plans");
    check_success(reduce_coo(), "a call on coordinates");
    end_capture(beside);
    require(cudaStreamDestroy(beside));
}

static MPI_Comm open_comm(const char *forward, const char *scheme, MPI_Info info)
{
    setenv("MPIX_SPARSE_FORWARD", forward, 1);
    MPI_Comm made = settings_comm(&(struct settings){ .scheme = scheme });
    check_success(MPIX_Sparse_comm_set_info(made, info), "MPIX_Sparse_comm_set_info");
    return made;
}

static MPIX_Sparse_plan make_plan(float *at, MPI_Count count, MPI_Comm where, MPI_Info info)
{
    MPIX_Sparse_plan made;
    check_success(MPIX_Sparse_allreduce_init(MPI_IN_PLACE, at, count, MPI_FLOAT, MPI_SUM, where, info, &made),
                  "MPIX_Sparse_allreduce_init");
    return made;
}

static void begin(void)
{
    MPI_Info info, none;
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    require(cudaStreamCreateWithFlags(&blocking, cudaStreamDefault));
    require(cudaMalloc((void **)&vector, 3 * COUNT * sizeof *vector));
    require(cudaMalloc((void **)&other, COUNT * sizeof *other));
    require(cudaMalloc((void **)&values, NNZ * sizeof *values));
    require(cudaMalloc((void **)&indices, NNZ * sizeof *indices));
    require(cudaMalloc((void **)&chosen, COUNT * sizeof *chosen));
    info = stream_info(stream);
    MPI_Info_create(&none);
    setenv("MPIX_SPARSE_CUDA_AWARE", "no", 1);
    unseen = open_comm("63", NULL, info);
    setenv("MPIX_SPARSE_CUDA_AWARE", MPIX_Query_cuda_support() ? "yes" : "no", 1);
    handed = open_comm("63", "dense", info);
    setenv("MPIX_SPARSE_CUDA_AWARE", "no", 1);
    forced = open_comm("0", "dense", none);
    comm = open_comm("0", "balanced", info);
    plan = make_plan(vector, COUNT, comm, info);
    dense = make_plan(vector, COUNT, forced, info);
    handed_plan = make_plan(vector, COUNT, handed, info);
    for (int i = 0; i < 2; i++)
        small[i] = make_plan(vector + i * COUNT, FEW, forced, info);
    check_success(MPIX_Sparse_allreduce_coo_init(MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm, info,
                                                 &coo_plan),
                  "MPIX_Sparse_allreduce_coo_init");
    MPI_Info_free(&info);
    MPI_Info_free(&none);
}

static void end(void)
{
    MPIX_Sparse_plan plans[] = { plan, coo_plan, small[0], small[1], dense, handed_plan };
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        check_success(MPIX_Sparse_plan_free(&plans[i]), "MPIX_Sparse_plan_free");
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    MPI_Comm_free(&comm);
    MPI_Comm_free(&unseen);
    MPI_Comm_free(&forced);
    MPI_Comm_free(&handed);
    void *arrays[] = { vector, other, values, indices, chosen };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        require(cudaFree(arrays[i]));
    require(cudaStreamDestroy(stream));
    require(cudaStreamDestroy(blocking));
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    check_alarm(240);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* MPI_Wait uses this handler */
    begin();
    for (size_t i = 0; i < sizeof call_cases / sizeof *call_cases; i++)
        for (int all = 0; all < 2; all++)
            if (call_cases[i].call != reduce_handed_later || MPIX_Query_cuda_support())
                check_call_case(&call_cases[i], all != 0);
    check_beside();
    end();
    return check_end("captured");
}
