/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests a failing device on one rank, in calls without a consistency check: calls that pass to MPI, and
 * enqueued calls. No rank hangs. The rank with the failure returns an error; others return an error, or a
 * result that cannot be mistaken for a right one. */

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <math.h>
#include <mpix_sparse.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "device_memory.h"

enum { COUNT = 40, MANY = 15000, MOST = 40 /* CUDA calls that fail, one at a time */ };

static MPI_Comm comm;
static float *device;
static cudaStream_t stream;

static void fill(void)
{
    static float v[2 * MANY];
    for (int i = 0; i < 2 * MANY; i++)
        v[i] = (float)(i + rank);
    fill_device(device, v, sizeof v);
}

/* True if the first value is right; all others must match it. */
static bool is_right(void)
{
    static float v[COUNT];
    require(cudaMemcpy(v, device, sizeof v, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++) {
        float sum = (float)(ranks * i + ranks * (ranks - 1) / 2);
        check(isnan(v[0]) ? isnan(v[i]) != 0 : v[i] == sum, "expected %g at index %d, found %g", (double)sum,
              i, (double)v[i]);
    }
    return !isnan(v[0]);
}

static int reduce_unseen(void)
{
    return MPIX_Sparse_allreduce(MPI_IN_PLACE, device, COUNT, MPI_FLOAT, MPI_SUM, comm);
}

static int reduce_complex(void)
{
    return MPIX_Sparse_allreduce(MPI_IN_PLACE, device, MANY, MPI_C_FLOAT_COMPLEX, MPI_SUM, comm);
}

/* Enqueue two calls, which must run in order. */
static int enqueue(void)
{
    int first = MPIX_Sparse_allreduce_enqueue(MPI_IN_PLACE, device, COUNT, MPI_FLOAT, MPI_SUM, comm, stream);
    int second =
        MPIX_Sparse_allreduce_enqueue(MPI_IN_PLACE, device + MANY, MANY, MPI_FLOAT, MPI_SUM, comm, stream);
    tell_runtime("fake_cuda_refuse", 0);
    (void)cudaStreamSynchronize(stream);
    return first != MPI_SUCCESS ? first : second;
}

static void open_comm(const char *forward)
{
    setenv("MPIX_SPARSE_FORWARD", forward, 1);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
}

/* Each CUDA call fails once on rank 0. With a consistency check the others' results are undefined. */
static void check_refusals(const char *what, int (*reduce)(void), bool unseen)
{
    int failures = 0;
    open_comm(unseen ? "63" : "0");
    for (long n = 1; n <= MOST; n++) {
        check_case("%s, call %ld of CUDA fails", what, n);
        fill();
        tell_runtime("fake_cuda_refuse", rank == 0 ? n : 0);
        int failed = reduce() != MPI_SUCCESS;
        tell_runtime("fake_cuda_refuse", 0);
        MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
        bool right = (failed && (rank == 0 || !unseen)) || is_right();
        check(right || failed, "expected no NaN where no rank fails");
        failures += failed;
        fill();
        check_success(reduce(), "a call behind");
        check(is_right(), "expected no NaN behind a call that failed");
    }
    check(failures > 0, "expected some calls to fail");
    MPI_Comm_free(&comm);
}

/* Rank 0's device is unusable: even the question whether an address is the device's fails. */
static void check_broken(const char *what, int (*reduce)(void), bool unseen)
{
    open_comm(unseen ? "63" : "0");
    check_case("%s, a device is broken", what);
    fill();
    check_success(reduce(), "a call before");
    fill();
    tell_runtime("fake_cuda_break", rank == 0);
    int code = reduce();
    tell_runtime("fake_cuda_break", 0);
    check((code != MPI_SUCCESS) == (rank == 0 || !unseen), "expected %s, found code %d",
          unseen ? "one error" : "errors", code);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    int level = check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    check_alarm(240);
    if (dlsym(RTLD_DEFAULT, "fake_cuda_break") == NULL)
        return check_skip("device_failure", "no device can be asked to fail");
    require(cudaMalloc((void **)&device, 2 * MANY * sizeof *device));
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check_refusals("unseen", reduce_unseen, true);
    check_refusals("complex numbers", reduce_complex, true);
    for (int unseen = 0; unseen < 2 && level == MPI_THREAD_MULTIPLE; unseen++)
        check_refusals(unseen ? "enqueued, unseen" : "enqueued", enqueue, unseen);
    check_broken("unseen", reduce_unseen, true);
    check_broken("complex numbers", reduce_complex, true);
    check_broken("agreed on", reduce_unseen, false);
    require(cudaStreamDestroy(stream));
    require(cudaFree(device));
    return check_end("device_failure");
}
