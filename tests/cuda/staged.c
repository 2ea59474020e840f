/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests device arrays that pass through pinned blocks far smaller than the arrays. Results are right and
 * little memory is pinned. If a CUDA call fails on one rank, no rank hangs, no wrong result is returned as
 * right, and the next call works. Also tests elements that stay on the device. */

#include <cuda_runtime_api.h>
#include <mpix_sparse.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "device_memory.h"

enum { COUNT = 5000, STEP = 3, BLOCK = 4096, ROUNDS_BETWEEN = 8 };

static const char *const schemes[] = { "balanced", "dense", "recursive_doubling", "shared", "two_level" };
enum { SCHEMES = sizeof schemes / sizeof schemes[0] };

static MPI_Comm comm;
static const char *least =
    "10000000"; /* minimum number of elements of a message that a device reduces and encodes */
static float *in, *out;
static int32_t *indices;

static float value_at(int i, int from)
{
    return i % STEP == from % STEP ? (float)(i + from + 1) : 0;
}

static float sum_at(int i)
{
    float sum = 0;
    for (int r = 0; r < ranks; r++)
        sum += value_at(i, r);
    return sum;
}

static void fill(void)
{
    static float v[COUNT];
    for (int i = 0; i < COUNT; i++)
        v[i] = value_at(i, rank);
    fill_device(in, v, sizeof v);
    memset(v, 0xff, sizeof v);
    fill_device(out, v, sizeof v);
}

static void expect_sums(const float *device)
{
    static float v[COUNT];
    require(cudaMemcpy(v, device, sizeof v, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++)
        check(v[i] == sum_at(i), "expected %g at index %d, found %g", (double)sum_at(i), i, (double)v[i]);
}

static int reduce_to_other(void)
{
    return MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm);
}

static int reduce_in_place(void)
{
    return MPIX_Sparse_allreduce(MPI_IN_PLACE, in, COUNT, MPI_FLOAT, MPI_SUM, comm);
}

/* Reduce all elements as coordinates, also zeros, and expand the result to a vector. */
static int reduce_coordinates(void)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    int code =
        MPIX_Sparse_allreduce_coo(indices, in, COUNT, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm, &result);
    if (code == MPI_SUCCESS)
        code = MPIX_Sparse_result_dense(result, out);
    MPIX_Sparse_result_free(&result);
    return code;
}

static void open_comm(const char *scheme)
{
    setenv("MPIX_SPARSE_STAGING", "4096", 1);
    setenv("MPIX_SPARSE_CUDA_LEAST", least, 1);
    comm = settings_comm(&(struct settings){ .scheme = scheme, .segment = "2000" });
}

/* No array is copied from or to pageable memory; only flags and numbers of elements are. */
static void reduce_staged(int (*reduce)(void))
{
    enum { MOST = 1024 };
    fill();
    long before = count_of("fake_cuda_pageable");
    check_success(reduce(), "a call");
    long pageable = count_of("fake_cuda_pageable") - before;
    check(pageable <= MOST, "expected at most %d bytes of pageable memory to be copied, found %ld", (int)MOST,
          pageable);
}

static void check_results(const char *scheme)
{
    check_case("%s, results", scheme);
    open_comm(scheme);
    long before = 0;
    for (int round = 0; round < 6; round++) {
        before = round < 4 ? count_of("fake_cuda_allocations") : before;
        reduce_staged(round % 2 == 0 ? reduce_to_other : reduce_in_place);
        expect_sums(round % 2 == 0 ? out : in);
    }
    check(count_of("fake_cuda_allocations") == before, "expected no allocation later on, found %ld",
          count_of("fake_cuda_allocations") - before);
    reduce_staged(reduce_coordinates);
    expect_sums(out);
    MPI_Comm_free(&comm);
}

/* Repeat a call with each of its CUDA calls failing once, on one rank at a time. */
static void check_refusals(const char *scheme, int (*reduce)(void), const float *expected_result)
{
    long calls = 0, most, failures = 0;
    open_comm(scheme);
    for (int round = 0; round < 2; round++) {
        fill();
        calls = count_of("fake_cuda_calls");
        check_success(reduce(), "a call before");
        calls = count_of("fake_cuda_calls") - calls;
    }
    MPI_Allreduce(&calls, &most, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    for (long n = 1; n <= most; n++) {
        check_case("%s, call %ld of CUDA fails", scheme, n);
        fill();
        tell_runtime("fake_cuda_refuse", n % ranks == rank ? n : 0);
        int code = reduce();
        tell_runtime("fake_cuda_refuse", 0);
        failures += code != MPI_SUCCESS;
        if (code == MPI_SUCCESS)
            expect_sums(expected_result);
        if (n % ROUNDS_BETWEEN != 0 && n != most)
            continue;
        fill();
        check_success(reduce(), "a call behind");
        expect_sums(expected_result);
    }
    check(most == 0 || failures > 0, "expected some of %ld calls to fail, found none", most);
    MPI_Comm_free(&comm);
}

/* A vector a thousand times as large as its few blocks. */
static void check_pinned(void)
{
    enum { LARGE = 1 << 20, MOST = 64 * BLOCK, MOST_OF_MESSAGES = 64 * BLOCK };
    float *large;
    static const char *const sparse[] = { "balanced", "dense", "recursive_doubling" };
    check_case("how much is pinned");
    require(cudaMalloc((void **)&large, LARGE * sizeof *large));
    float *zeros = get_memory(LARGE, sizeof *zeros);
    for (int i = 0; i < LARGE; i += 7)
        zeros[i] = 1;
    for (int i = 0; i < 4; i++) {
        long most = i < 3 ? MOST : MOST + MOST_OF_MESSAGES;
        least = i < 3 ? "10000000" : "0";
        fill_device(large, zeros, LARGE * sizeof *large);
        open_comm(sparse[i % 3]);
        long before = count_of("fake_cuda_pinned");
        check_success(MPIX_Sparse_allreduce(MPI_IN_PLACE, large, LARGE, MPI_FLOAT, MPI_SUM, comm),
                      "MPIX_Sparse_allreduce");
        check(ranks == 1 || count_of("fake_cuda_pinned") - before <= most,
              "expected at most %ld bytes to be pinned, found %ld", most,
              count_of("fake_cuda_pinned") - before);
        MPI_Comm_free(&comm);
    }
    free(zeros);
    require(cudaFree(large));
}

static void make_arrays(void)
{
    static int32_t each[COUNT];
    for (int i = 0; i < COUNT; i++)
        each[i] = i;
    require(cudaMalloc((void **)&in, COUNT * sizeof *in));
    require(cudaMalloc((void **)&out, COUNT * sizeof *out));
    require(cudaMalloc((void **)&indices, sizeof each));
    fill_device(indices, each, sizeof each);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    check_alarm(240);
    make_arrays();
    for (int s = 0; s < SCHEMES; s++) {
        check_results(schemes[s]);
        check_refusals(schemes[s], reduce_to_other, out);
    }
    check_refusals("balanced", reduce_coordinates, out);
    least = "0";
    check_results("balanced");
    check_refusals("balanced", reduce_to_other, out);
    check_refusals("balanced", reduce_coordinates, out);
    check_pinned();
    require(cudaFree(in));
    require(cudaFree(out));
    require(cudaFree(indices));
    return check_end("staged");
}
