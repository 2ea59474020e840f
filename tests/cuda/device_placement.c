/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests placement of arrays: all arrays of a call on one device, and calls and plans with coordinates there.
 * With the argument "unplugged", tests device memory without the plug-in. */

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <mpix_sparse.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "device_memory.h"

enum { COUNT = 3000, NNZ = 5, ROUNDS = 4 };

static MPI_Comm comm;

/* Read a counter of fake_runtime.c; the real runtime has none. */
static long told(const char *name, long otherwise)
{
    long (*tell)(void) = (long (*)(void))dlsym(RTLD_DEFAULT, name);
    return tell == NULL ? otherwise : tell();
}

/* An array of zeros on one of the devices. */
static void *on_place(int place, size_t bytes)
{
    static const char zeros[COUNT * sizeof(double)];
    require(cudaSetDevice(place));
    void *array = to_device(zeros, bytes);
    require(cudaSetDevice(0));
    return array;
}

/* A thread without a current device would create a context on the first one, even to free memory there. */
static void check_other_device(void)
{
    float *far = on_place(1, COUNT * sizeof *far);
    int32_t *indices = on_place(1, NNZ * sizeof *indices);
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    check_case("an array on a device that is not the thread's");
    long before = told("fake_cuda_strayed", 0);
    check_success(MPIX_Sparse_allreduce(MPI_IN_PLACE, far, COUNT / 2, MPI_C_FLOAT_COMPLEX, MPI_SUM, comm),
                  "MPIX_Sparse_allreduce");
    check(told("fake_cuda_pinned_on", 1) == 1, "expected memory to be pinned for device 1, found %ld",
          told("fake_cuda_pinned_on", 1));
    check_success(MPIX_Sparse_allreduce_coo(indices, far, NNZ, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm,
                                            &result),
                  "MPIX_Sparse_allreduce_coo");
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    check(told("fake_cuda_strayed", 0) == before, "expected nothing to be given back on another device");
    require(cudaFree(far));
    require(cudaFree(indices));
}

/* Rank 0's arrays are on two devices; all ranks get an error if the call has a consistency check. */
static void check_two_devices(void)
{
    static const char says[] = "is memory of another device than the call's other arrays";
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    float *near = on_place(0, COUNT * sizeof *near), *other = on_place(rank == 0, COUNT * sizeof *other);
    int32_t *indices = on_place(0, NNZ * sizeof *indices);
    check_case("arrays on two devices");
    check_error(MPIX_Sparse_allreduce(near, other, COUNT, MPI_FLOAT, MPI_SUM, comm), says, 0);
    check_error(MPIX_Sparse_allreduce_coo(indices, other, NNZ, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm,
                                          &result),
                says, 0);
    check_success(MPIX_Sparse_allreduce_coo(indices, near, NNZ, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm,
                                            &result),
                  "MPIX_Sparse_allreduce_coo");
    float *far = on_place(1, COUNT * sizeof *far);
    check_error(MPIX_Sparse_result_dense(result, far), "argument recvbuf is memory of another device", -1);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    require(cudaFree(near));
    require(cudaFree(other));
    require(cudaFree(far));
    require(cudaFree(indices));
}

/* Coordinates of one rank: unsorted, one index twice. */
struct elements {
    int32_t index[NNZ];
    double value[NNZ];
    void *there, *values_there;
};

static void draw(struct elements *e, int round)
{
    const int32_t index[NNZ] = { 2000 + rank, 7, 7, round, 1000 };
    for (int i = 0; i < NNZ; i++) {
        e->index[i] = index[i];
        e->value[i] = round + i + 1;
    }
    e->there = to_device(e->index, sizeof e->index);
    e->values_there = to_device(e->value, sizeof e->value);
}

static void drop(struct elements *e)
{
    require(cudaFree(e->there));
    require(cudaFree(e->values_there));
}

/* Compare with the same call on the host. The result is where the call's arrays are, on host or device. */
static void expect_like_host(const struct elements *e, MPIX_Sparse_result found)
{
    MPIX_Sparse_result host = MPIX_SPARSE_RESULT_NULL;
    MPI_Count nnz, nnz_found;
    const void *index, *value, *index_found, *value_found;
    int32_t indices[NNZ * 8];
    double values[NNZ * 8];
    check_success(MPIX_Sparse_allreduce_coo(e->index, e->value, NNZ, MPI_INT32_T, COUNT, MPI_DOUBLE, MPI_SUM,
                                            comm, &host),
                  "the call on the host");
    check_success(MPIX_Sparse_result_get(host, &nnz, &index, &value), "MPIX_Sparse_result_get");
    check_success(MPIX_Sparse_result_get(found, &nnz_found, &index_found, &value_found),
                  "MPIX_Sparse_result_get");
    check(nnz == nnz_found && nnz <= NNZ * 8, "expected %lld elements, found %lld", (long long)nnz,
          (long long)nnz_found);
    require(cudaMemcpy(indices, index_found, (size_t)nnz * sizeof *indices, cudaMemcpyDefault));
    require(cudaMemcpy(values, value_found, (size_t)nnz * sizeof *values, cudaMemcpyDefault));
    check(memcmp(indices, index, (size_t)nnz * sizeof *indices) == 0, "expected the host's indices");
    check(memcmp(values, value, (size_t)nnz * sizeof *values) == 0, "expected the host's values");
    check_success(MPIX_Sparse_result_free(&host), "MPIX_Sparse_result_free");
}

static void check_nonblocking(void)
{
    struct elements e[ROUNDS];
    MPIX_Sparse_result results[ROUNDS];
    MPI_Request requests[ROUNDS];
    check_case("nonblocking calls on coordinates");
    for (int i = 0; i < ROUNDS; i++) {
        draw(&e[i], i);
        results[i] = MPIX_SPARSE_RESULT_NULL;
        check_success(MPIX_Isparse_allreduce_coo(e[i].there, e[i].values_there, NNZ, MPI_INT32_T, COUNT,
                                                 MPI_DOUBLE, MPI_SUM, comm, &results[i], &requests[i]),
                      "MPIX_Isparse_allreduce_coo");
    }
    check_success(MPI_Waitall(ROUNDS, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
    for (int i = 0; i < ROUNDS; i++) {
        expect_like_host(&e[i], results[i]);
        check_success(MPIX_Sparse_result_free(&results[i]), "MPIX_Sparse_result_free");
        drop(&e[i]);
    }
}

/* Starts on device memory, with one on host memory in between. */
static void check_plan(void)
{
    MPIX_Sparse_plan plan;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPI_Request request;
    check_case("a plan of coordinates");
    check_success(MPIX_Sparse_allreduce_coo_init(MPI_INT32_T, COUNT, MPI_DOUBLE, MPI_SUM, comm, MPI_INFO_NULL,
                                                 &plan),
                  "MPIX_Sparse_allreduce_coo_init");
    for (int round = 0; round < 2 * ROUNDS; round++) {
        struct elements e;
        bool on_host = round == ROUNDS;
        draw(&e, round);
        check_success(MPIX_Sparse_plan_start_coo(plan, on_host ? e.index : e.there,
                                                 on_host ? e.value : e.values_there, NNZ, &result, &request),
                      "MPIX_Sparse_plan_start_coo");
        check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        expect_like_host(&e, result);
        drop(&e);
    }
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
}

/* Device memory is refused, on all ranks if there is a consistency check; all other calls work. */
static void check_unplugged(void)
{
    static const char says[] = "is device memory, and libmpix_sparse_cuda.so";
    static float host[COUNT];
    float *device = on_place(0, COUNT * sizeof *device), *mine = rank == 0 ? device : host;
    check_case("device memory without a plug-in");
    check_error(MPIX_Sparse_allreduce(MPI_IN_PLACE, mine, COUNT, MPI_FLOAT, MPI_SUM, comm), says, 0);
    check_error(MPIX_Sparse_allreduce(MPI_IN_PLACE, device, 10, MPI_FLOAT, MPI_SUM, comm), says, -1);
    host[rank] = 1;
    check_success(MPIX_Sparse_allreduce(MPI_IN_PLACE, host, COUNT, MPI_FLOAT, MPI_SUM, comm),
                  "a call on memory of the host");
    check(host[0] == 1 && host[ranks - 1] == 1, "expected 1 and 1, found %g and %g", (double)host[0],
          (double)host[ranks - 1]);
    require(cudaFree(device));
}

int main(int argc, char **argv)
{
    int devices;
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    check_alarm(240);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (argc > 1 && strcmp(argv[1], "unplugged") == 0) {
        check_unplugged();
    } else {
        require(cudaGetDeviceCount(&devices));
        if (devices > 1) {
            check_other_device();
            check_two_devices();
        }
        check_nonblocking();
        check_plan();
    }
    MPI_Comm_free(&comm);
    long before = told("fake_cuda_strayed", 0);
    int code = check_end("device_placement");
    if (told("fake_cuda_pools", 0) == 0 && told("fake_cuda_strayed", 0) == before)
        return code;
    puts("FAIL: pools of memory are left behind MPI_Finalize, or closed on another device");
    return 1;
}
