/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests enqueued calls in streams that are being captured into a graph. They are refused at once, also after
 * calls already queued in the stream. Calls on other streams work. */

#include <cuda_runtime_api.h>
#include <math.h>
#include <mpix_sparse.h>
#include <sched.h>
#include <stdlib.h>

#include "capture.h"
#include "check.h"

enum { COUNT = 6000, FEW = 40 };

static MPI_Comm comm, unseen;
static cudaStream_t stream;
static float *vector;

static void fill(void)
{
    static float v[2 * COUNT];
    for (int i = 0; i < 2 * COUNT; i++)
        v[i] = i % 50 == 0 ? (float)(rank + 1) : 0;
    fill_device(vector, v, sizeof v);
}

static float first_value(void)
{
    float first;
    to_host(&first, vector, sizeof first);
    return first;
}

static void wait_for(void *gate)
{
    while (!__atomic_load_n((bool *)gate, __ATOMIC_ACQUIRE))
        sched_yield();
}

static int enqueue(float *at, MPI_Comm where)
{
    return MPIX_Sparse_allreduce_enqueue(MPI_IN_PLACE, at, where == unseen ? FEW : COUNT, MPI_FLOAT, MPI_SUM,
                                         where, stream);
}

/* Start after a call that was queued earlier in the stream. */
static void check_enqueued(MPI_Comm where, bool all)
{
    char says[64];
    bool mine = all || rank == 0, gate = false;
    float expected = (float)(ranks * (ranks + 1) / 2), before;
    check_case("enqueued%s, captured on %s", where == unseen ? ", unseen" : "", all ? "all ranks" : "rank 0");
    snprintf(says, sizeof says, "stream 0x%llx", (unsigned long long)(uintptr_t)stream);
    fill();
    require(cudaLaunchHostFunc(stream, wait_for, &gate));
    check_success(enqueue(vector + COUNT, where), "a call before");
    if (mine)
        begin_capture(stream);
    __atomic_store_n(&gate, true, __ATOMIC_RELEASE);
    int code = enqueue(vector, where);
    if (mine)
        end_capture(stream);
    if (mine)
        expect_refusal(code, rank == 0 || where == unseen ? says : "", where == unseen ? -1 : 0);
    else
        check_success(code, "MPIX_Sparse_allreduce_enqueue");
    require(cudaStreamSynchronize(stream));
    to_host(&before, vector + COUNT, sizeof before);
    check(before == expected, "expected %g of the call before, found %g", (double)expected, (double)before);
    check(mine || isnan(first_value()), "expected no number, found %g", (double)first_value());
    fill();
    check_success(enqueue(vector, where), "a call behind");
    require(cudaStreamSynchronize(stream));
    check(first_value() == expected, "expected %g, found %g", (double)expected, (double)first_value());
}

/* Work and memory of a call on another stream are not added to the graph. */
static void check_beside(void)
{
    cudaStream_t beside;
    float expected = (float)(ranks * (ranks + 1) / 2);
    require(cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking));
    check_case("enqueued beside a stream that is captured");
    fill();
    begin_capture(beside);
    check_success(enqueue(vector, comm), "a call beside");
    end_capture(beside);
    require(cudaStreamSynchronize(stream));
    check(first_value() == expected, "expected %g, found %g", (double)expected, (double)first_value());
    require(cudaStreamDestroy(beside));
}

static MPI_Comm open_comm(const char *forward, const char *scheme)
{
    setenv("MPIX_SPARSE_FORWARD", forward, 1);
    return settings_comm(&(struct settings){ .scheme = scheme });
}

int main(int argc, char **argv)
{
    int level = check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    check_alarm(240);
    if (level != MPI_THREAD_MULTIPLE)
        return check_skip("captured_enqueued", "this MPI has no MPI_THREAD_MULTIPLE");
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    require(cudaMalloc((void **)&vector, 2 * COUNT * sizeof *vector));
    unseen = open_comm("63", NULL);
    comm = open_comm("0", "balanced");
    check_beside();
    for (int all = 0; all < 2; all++) {
        check_enqueued(comm, all != 0);
        check_enqueued(unseen, all != 0);
    }
    MPI_Comm_free(&comm);
    MPI_Comm_free(&unseen);
    require(cudaFree(vector));
    require(cudaStreamDestroy(stream));
    return check_end("captured_enqueued");
}
