/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests calls in stream order, and the stream that a hint names. */

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <mpix_sparse.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "device_memory.h"

enum { COUNT = 30000, STEP = 83, CALLS = 5 };

static MPI_Comm comm;
static cudaStream_t stream;
static char log_file[] = "/tmp/mpix_sparse_streams.XXXXXX"; /* this rank's log */

static float *vector(int round)
{
    static float v[COUNT];
    void *device;
    for (int i = 0; i < COUNT; i++)
        v[i] = i % STEP == 0 ? (float)(round + rank) : 0;
    require(cudaMalloc(&device, sizeof v));
    fill_device(device, v, sizeof v);
    return device;
}

static void expect(const void *device, int round)
{
    static float found[COUNT];
    require(cudaMemcpy(found, device, sizeof found, cudaMemcpyDeviceToHost));
    float sum = (float)(ranks * round + ranks * (ranks - 1) / 2);
    for (int i = 0; i < COUNT; i++)
        check(found[i] == (i % STEP == 0 ? sum : 0), "expected %g at index %d, found %g",
              i % STEP == 0 ? (double)sum : 0, i, (double)found[i]);
}

static void wait_for(void *gate)
{
    while (!__atomic_load_n((bool *)gate, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void enqueue_all(float *in[], float *out[])
{
    for (int i = 0; i < CALLS; i++)
        check_success(MPIX_Sparse_allreduce_enqueue(i == 1 ? MPI_IN_PLACE : in[i], i == 1 ? in[i] : out[i],
                                                    COUNT, MPI_FLOAT, MPI_SUM, comm, stream),
                      "MPIX_Sparse_allreduce_enqueue");
}

/* The stream waits at a gate while calls are queued; a call that waited for the stream would hang. The first
 * calls may wait: CUDA may wait for the device when memory is pinned and when a kernel is loaded. */
static void check_order(void)
{
    static bool gate;
    float *in[CALLS], *out[CALLS];
    check_case("first calls");
    for (int i = 0; i < CALLS; i++) {
        in[i] = vector(0);
        out[i] = vector(0);
    }
    enqueue_all(in, out);
    require(cudaStreamSynchronize(stream));
    check_case("calls queued");
    for (int i = 0; i < CALLS; i++) {
        require(cudaFree(in[i]));
        in[i] = vector(i);
    }
    require(cudaLaunchHostFunc(stream, wait_for, &gate));
    enqueue_all(in, out);
    check(cudaStreamQuery(stream) == cudaErrorNotReady, "expected the stream to wait at the gate");
    __atomic_store_n(&gate, true, __ATOMIC_RELEASE);
    require(cudaStreamSynchronize(stream));
    for (int i = 0; i < CALLS; i++) {
        expect(i == 1 ? in[i] : out[i], i);
        require(cudaFree(in[i]));
        require(cudaFree(out[i]));
    }
}

/* The result of one call is the input of the next. */
static void check_chain(void)
{
    float *v = vector(0);
    check_case("calls on one vector");
    for (int i = 0; i < 3; i++)
        check_success(MPIX_Sparse_allreduce_enqueue(MPI_IN_PLACE, v, COUNT, MPI_FLOAT, MPI_MAX, comm, stream),
                      "MPIX_Sparse_allreduce_enqueue");
    check_success(MPIX_Sparse_allreduce_enqueue(MPI_IN_PLACE, v, COUNT, MPI_FLOAT, MPI_SUM, comm, stream),
                  "MPIX_Sparse_allreduce_enqueue");
    require(cudaStreamSynchronize(stream));
    float first;
    require(cudaMemcpy(&first, v, sizeof first, cudaMemcpyDeviceToHost));
    check(first == (float)((ranks - 1) * ranks), "expected %d, found %g", (ranks - 1) * ranks, (double)first);
    require(cudaFree(v));
}

static void check_refusals(void)
{
    static float host[COUNT];
    float *v = vector(0);
    check_case("refused");
    check_error(MPIX_Sparse_allreduce_enqueue(MPI_IN_PLACE, host, COUNT, MPI_FLOAT, MPI_SUM, comm, stream),
                "recvbuf is memory of the host", -1);
    check_error(MPIX_Sparse_allreduce_enqueue(host, v, COUNT, MPI_FLOAT, MPI_SUM, comm, stream),
                "sendbuf is memory of the host", -1);
    check_success(MPIX_Sparse_allreduce_enqueue(MPI_IN_PLACE, NULL, 0, MPI_FLOAT, MPI_SUM, comm, stream),
                  "a call of no elements");
    require(cudaFree(v));
}

/* Read the new lines of the log; returns their number and one of them. */
static int lines_of_log(char *line, int room)
{
    static long seen;
    int lines = 0;
    FILE *file = fopen(log_file, "r");
    check(file != NULL && fseek(file, seen, SEEK_SET) == 0, "expected a log");
    while (fgets(line, room, file) != NULL)
        lines++;
    seen = ftell(file);
    fclose(file);
    return lines;
}

/* Only the log reports an error during an enqueued call if the error handler does not. */
static void check_warning(void)
{
    char line[1024] = "";
    float *v = vector(0);
    check_case("calls that fail in their turn");
    lines_of_log(line, sizeof line);
    for (int round = 0; round < 2; round++) {
        int count = round == 0 && rank == 0 ? COUNT - 1 : COUNT, wanted = round == 0 && ranks > 1;
        check_success(MPIX_Sparse_allreduce_enqueue(MPI_IN_PLACE, v, count, MPI_FLOAT, MPI_SUM, comm, stream),
                      "MPIX_Sparse_allreduce_enqueue");
        require(cudaStreamSynchronize(stream));
        int found = lines_of_log(line, sizeof line);
        check(found == wanted, "expected %d lines in the log, found %d: %s", wanted, found, line);
        check(!wanted || (strstr(line, "WARN mpi: a call failed in its turn in a stream: "
                                       "MPIX_Sparse_allreduce_enqueue: argument count differs") != NULL &&
                          strstr(line, "29999 on rank 0 and 30000 on rank 1") != NULL),
              "expected a warning of counts, found %s", line);
    }
    require(cudaFree(v));
}

/* Test an MPI with less thread support. */
static void check_threads(void)
{
    float *v = vector(0);
    check_case("one thread");
    check_error(MPIX_Sparse_allreduce_enqueue(MPI_IN_PLACE, v, COUNT, MPI_FLOAT, MPI_SUM, comm, stream),
                "the call would run in another thread, which needs MPI_THREAD_MULTIPLE", 0);
    require(cudaFree(v));
}

static void expect_stream(cudaStream_t wanted, const char *what)
{
    void *(*last)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "fake_cuda_stream");
    check(last == NULL || last() == wanted, "expected %s in stream %p, found it in another", what,
          (void *)wanted);
}

static MPI_Info stream_info(const char *text)
{
    MPI_Info info;
    char address[32];
    snprintf(address, sizeof address, "%p", (void *)stream);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_stream", text == NULL ? address : text);
    return info;
}

/* Force a scheme that copies elements to the host, in streams that wait for the caller's. */
static void check_hint(void)
{
    float *v = vector(1); /* all ranks have elements */
    MPI_Comm hinted = settings_comm(&(struct settings){ .scheme = "recursive_doubling" });
    MPI_Info info = stream_info(NULL), bad = stream_info(rank == 0 ? "blue" : NULL);
    MPI_Request request;
    MPIX_Sparse_plan plan;
    check_case("the hint of a plan");
    check_success(MPIX_Sparse_allreduce_init(MPI_IN_PLACE, v, COUNT, MPI_FLOAT, MPI_MAX, hinted, info, &plan),
                  "MPIX_Sparse_allreduce_init");
    check_success(MPIX_Sparse_plan_start(plan, &request), "MPIX_Sparse_plan_start");
    check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    expect_stream(stream, "the plan");
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    check_error(MPIX_Sparse_allreduce_init(MPI_IN_PLACE, v, COUNT, MPI_FLOAT, MPI_MAX, hinted, bad, &plan),
                rank == 0 ? "configuration: mpix_sparse_stream is 'blue'"
                          : "configuration: mpix_sparse_stream is no address",
                0);
    int count = rank == ranks - 1 ? -1 : COUNT;
    check_error(MPIX_Sparse_allreduce_init(MPI_IN_PLACE, v, count, MPI_FLOAT, MPI_MAX, hinted, bad, &plan),
                "argument count is -1, which is negative", ranks - 1);
    check_case("the hint of a communicator");
    check_success(MPIX_Sparse_allreduce(MPI_IN_PLACE, v, COUNT, MPI_FLOAT, MPI_MAX, hinted),
                  "MPIX_Sparse_allreduce");
    expect_stream(NULL, "a call without a hint");
    check_success(MPIX_Sparse_comm_set_info(hinted, info), "MPIX_Sparse_comm_set_info");
    check_success(MPIX_Sparse_allreduce(MPI_IN_PLACE, v, COUNT, MPI_FLOAT, MPI_MAX, hinted),
                  "MPIX_Sparse_allreduce");
    expect_stream(stream, "a call with a hint");
    check_error(MPIX_Sparse_comm_set_info(hinted, bad), "mpix_sparse_stream is", -1);
    MPI_Info_free(&info);
    MPI_Info_free(&bad);
    MPI_Comm_free(&hinted);
    require(cudaFree(v));
}

/* An argument selects an MPI of one thread. */
int main(int argc, char **argv)
{
    int wanted = argc > 1 ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, log = mkstemp(log_file);
    check(log >= 0 && setenv("MPIX_SPARSE_LOG_FILE", log_file, 1) == 0, "expected room for a log");
    int level = check_begin(&argc, &argv, wanted);
    check_alarm(240);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (level == MPI_THREAD_MULTIPLE) {
        check_order();
        check_chain();
        check_refusals();
        check_warning();
        check_hint();
    } else
        check_threads();
    require(cudaStreamDestroy(stream));
    MPI_Comm_free(&comm);
    close(log);
    unlink(log_file);
    return check_end("streams");
}
