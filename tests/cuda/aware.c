/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests when MPI receives device memory. This program intercepts the library's MPI calls. It acts as a
 * CUDA-aware MPI, as one that is not aware, or as one that claims awareness and loses messages. */

#include <cuda_runtime_api.h>
#include <mpix_sparse.h>
#include <stdlib.h>

#include "check.h"
#include "device_memory.h"

enum { COUNT = 500 /* few enough to pass to MPI */ };

static int says_so, on_device;
static bool loses;

static bool is_on_device(const void *address)
{
    struct cudaPointerAttributes attributes;
    require(cudaPointerGetAttributes(&attributes, address));
    return attributes.type == cudaMemoryTypeDevice;
}

int MPIX_Query_cuda_support(void);
int MPIX_Query_cuda_support(void)
{
    return says_so;
}

int PMPI_Sendrecv(const void *from, int count, MPI_Datatype type, int to_rank, int tag, void *to,
                  int to_count, MPI_Datatype to_type, int from_rank, int to_tag, MPI_Comm comm,
                  MPI_Status *status)
{
    if (!is_on_device(from))
        return MPI_Sendrecv(from, count, type, to_rank, tag, to, to_count, to_type, from_rank, to_tag, comm,
                            status);
    if (!loses)
        require(cudaMemcpy(to, from, (size_t)count, cudaMemcpyDeviceToDevice));
    return MPI_SUCCESS;
}

int PMPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int size;
    if (!is_on_device(recvbuf))
        return MPI_Allreduce(sendbuf, recvbuf, count, type, op, comm);
    on_device++;
    MPI_Type_size(type, &size);
    size_t bytes = (size_t)count * (size_t)size;
    void *copy = malloc(bytes);
    require(cudaMemcpy(copy, sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, bytes, cudaMemcpyDeviceToHost));
    int code = MPI_Allreduce(MPI_IN_PLACE, copy, count, type, op, comm);
    fill_device(recvbuf, copy, bytes);
    free(copy);
    return code;
}

/* Executed at once, in device memory. */
int PMPI_Iallreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm, MPI_Request *request)
{
    if (!is_on_device(recvbuf))
        return MPI_Iallreduce(sendbuf, recvbuf, count, type, op, comm, request);
    *request = MPI_REQUEST_NULL;
    return PMPI_Allreduce(sendbuf, recvbuf, count, type, op, comm);
}

/* Vectors this short go to MPI_Allreduce, with or without a consistency check. */
static void expect_of(int wanted, const char *setting, const char *forward)
{
    static float v[COUNT];
    MPI_Comm comm;
    float *device;
    setenv("MPIX_SPARSE_CUDA_AWARE", setting, 1);
    setenv("MPIX_SPARSE_FORWARD", forward, 1);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < COUNT; i++)
        v[i] = (float)i;
    require(cudaMalloc((void **)&device, sizeof v));
    fill_device(device, v, sizeof v);
    on_device = 0;
    check_success(MPIX_Sparse_allreduce(MPI_IN_PLACE, device, COUNT, MPI_FLOAT, MPI_SUM, comm),
                  "the first call");
    check_success(MPIX_Sparse_allreduce(MPI_IN_PLACE, device, COUNT, MPI_FLOAT, MPI_MAX, comm),
                  "the second call");
    check(on_device == wanted, "expected %d calls of MPI on device memory, found %d", wanted, on_device);
    require(cudaMemcpy(v, device, sizeof v, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++)
        check(v[i] == (float)(i * ranks), "expected %d at index %d, found %g", i * ranks, i, (double)v[i]);
    require(cudaFree(device));
    MPI_Comm_free(&comm);
}

/* A plan has a host copy once it was started together with others, and no longer after a separate start. */
static void expect_plan(int wanted)
{
    static float v[COUNT];
    MPIX_Sparse_plan plan;
    MPI_Request request;
    float *device;
    require(cudaMalloc((void **)&device, sizeof v));
    check_success(MPIX_Sparse_allreduce_init(MPI_IN_PLACE, device, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                                             MPI_INFO_NULL, &plan),
                  "MPIX_Sparse_allreduce_init");
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < COUNT; i++)
            v[i] = (float)(i + round);
        fill_device(device, v, sizeof v);
        on_device = 0;
        check_success(round % 2 == 0 ? MPIX_Sparse_plan_start_all(1, &plan, &request)
                                     : MPIX_Sparse_plan_start(plan, &request),
                      "the start of a plan");
        check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        check(round % 2 == 0 || on_device == wanted, "expected %d calls of MPI on device memory, found %d",
              wanted, on_device);
        require(cudaMemcpy(v, device, sizeof v, cudaMemcpyDeviceToHost));
        for (int i = 0; i < COUNT; i++)
            check(v[i] == (float)((i + round) * ranks), "expected %d at index %d, found %g",
                  (i + round) * ranks, i, (double)v[i]);
    }
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    require(cudaFree(device));
}

/* The library does not reduce pairs. An MPI that takes device memory may fail to unpack pairs there. */
static void expect_pairs_on_host(void)
{
    int pair[2] = { rank, rank }, *device = to_device(pair, sizeof pair);
    MPI_Comm comm;
    setenv("MPIX_SPARSE_FORWARD", "63", 1);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    check_case("pairs of an MPI that is aware");
    on_device = 0;
    for (int later = 0; later < 2; later++) {
        MPI_Request request = MPI_REQUEST_NULL;
        fill_device(device, pair, sizeof pair);
        check_success(later ? MPIX_Isparse_allreduce(MPI_IN_PLACE, device, 1, MPI_2INT, MPI_MAXLOC, comm,
                                                     &request)
                            : MPIX_Sparse_allreduce(MPI_IN_PLACE, device, 1, MPI_2INT, MPI_MAXLOC, comm),
                      "a call on pairs");
        check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        int found[2];
        to_host(found, device, sizeof found);
        check(found[0] == ranks - 1 && found[1] == ranks - 1, "expected %d twice, found %d and %d", ranks - 1,
              found[0], found[1]);
    }
    check(on_device == 0, "expected no call of MPI on device memory, found %d", on_device);
    require(cudaFree(device));
    MPI_Comm_free(&comm);
}

static void expect(int wanted, const char *setting)
{
    expect_of(wanted, setting, "63");
    expect_of(wanted, setting, "0");
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    setenv("MPIX_SPARSE_SCHEME", "dense", 1);
    check_case("an MPI that is not aware");
    expect(0, "auto");
    check_case("an MPI that is aware");
    says_so = 1;
    expect(2, "auto");
    check_case("an MPI that is aware, and shall not be handed device memory");
    expect(0, "no");
    check_case("an MPI that loses messages");
    loses = true;
    expect(0, "auto");
    check_case("an MPI that loses messages of one rank");
    loses = rank == 0;
    expect(rank == 0 ? 0 : 2, "auto");
    check_case("an MPI that is aware, whatever it says");
    expect(2, "yes");
    check_case("a plan");
    expect_plan(1);
    expect_pairs_on_host();
    return check_end("aware");
}
