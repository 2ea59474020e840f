/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests calls on device memory: placement of results, combinations of host and device memory, nonblocking
 * calls, and plans that allocate nothing. The programs of tests/mpi, redirected by on_device.c, check all
 * values. */

#include <cuda_runtime_api.h>
#include <mpix_sparse.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "device_memory.h"

enum { COUNT = 20000, STEP = 97 };

static MPI_Comm comm;

static int place_of(const void *address)
{
    struct cudaPointerAttributes attributes;
    require(cudaPointerGetAttributes(&attributes, address));
    return attributes.type == cudaMemoryTypeDevice ? attributes.device : -1;
}

/* Every rank has `round` at multiples of STEP, and rank + 1 at its own index. */
static void fill(float *v, int round)
{
    memset(v, 0, COUNT * sizeof *v);
    for (int i = 0; i < COUNT; i += STEP)
        v[i] = (float)round;
    v[rank + 1] = (float)(rank + 1);
}

static void expect(const void *device, int round)
{
    static float found[COUNT];
    to_host(found, device, sizeof found);
    for (int i = 0; i < COUNT; i++) {
        float expected = i % STEP == 0 ? (float)(round * ranks) : i <= ranks ? (float)i : 0;
        check(found[i] == expected, "expected %g at index %d, found %g", (double)expected, i,
              (double)found[i]);
    }
}

static float *vector(int round)
{
    static float v[COUNT];
    fill(v, round);
    return to_device(v, sizeof v);
}

static void refresh(float *device, int round)
{
    static float v[COUNT];
    fill(v, round);
    fill_device(device, v, sizeof v);
}

static void check_in_flight(void)
{
    enum { CALLS = 4 };
    float *in[CALLS], *out[CALLS];
    MPI_Request requests[CALLS];
    check_case("several calls in flight");
    for (int i = 0; i < CALLS; i++) {
        in[i] = vector(i + 1);
        out[i] = vector(0);
        check_success(MPIX_Isparse_allreduce(i == 2 ? MPI_IN_PLACE : in[i], i == 2 ? in[i] : out[i], COUNT,
                                             MPI_FLOAT, MPI_SUM, comm, &requests[i]),
                      "MPIX_Isparse_allreduce");
    }
    check_success(MPI_Waitall(CALLS, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
    for (int i = 0; i < CALLS; i++) {
        expect(i == 2 ? in[i] : out[i], i + 1);
        require(cudaFree(in[i]));
        require(cudaFree(out[i]));
    }
}

static long allocations(void)
{
    return count_of("fake_cuda_allocations");
}

static void start_and_wait(MPIX_Sparse_plan plan)
{
    MPI_Request request;
    check_success(MPIX_Sparse_plan_start(plan, &request), "MPIX_Sparse_plan_start");
    check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
}

/* Forces a scheme, since automatic selection may try another one at any time. */
static void check_plan(void)
{
    float *in = vector(1), *out = vector(0);
    MPI_Info info;
    MPIX_Sparse_plan plan;
    check_case("a plan");
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_scheme", "recursive_doubling");
    check_success(MPIX_Sparse_allreduce_init(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, info, &plan),
                  "MPIX_Sparse_allreduce_init");
    MPI_Info_free(&info);
    long before = 0;
    for (int round = 1; round < 12; round++) {
        before = round <= 4 ? allocations() : before;
        refresh(in, round);
        start_and_wait(plan);
        expect(out, round);
    }
    check(allocations() == before, "expected no allocation later on, found %ld", allocations() - before);
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    require(cudaFree(in));
    require(cudaFree(out));
}

/* Runtime calls of a plan's start. */
struct asked {
    long allocations, stops, waits;
};

static struct asked asked(void)
{
    return (struct asked){ allocations(), count_of("fake_cuda_stops"), count_of("fake_cuda_waits") };
}

/* A repeated start allocates only from pools, and waits only for streams. It waits for the number of
 * elements, for the parts, and twice for the ring that carries elements to the host and the result back. If
 * the device reduces there is no ring, and each segment's sums and messages are waited for. */
static void check_steady(const char *least, long most)
{
    float *in = vector(1), *out = vector(0);
    MPI_Info info;
    MPIX_Sparse_plan plan;
    struct asked before, after;
    check_case("a steady plan, devices from %s elements on", least);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_scheme", "balanced");
    MPI_Info_set(info, "mpix_sparse_segment", "100");
    MPI_Info_set(info, "mpix_sparse_cuda_least", least);
    check_success(MPIX_Sparse_allreduce_init(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, info, &plan),
                  "MPIX_Sparse_allreduce_init");
    for (int round = 1; round < 8; round++) {
        refresh(in, round);
        before = asked();
        start_and_wait(plan);
        after = asked();
        expect(out, round);
        check(round < 4 || (after.allocations == before.allocations && after.stops == before.stops),
              "expected no allocation and no wait for all of a device, found %ld and %ld",
              after.allocations - before.allocations, after.stops - before.stops);
        check(round < 4 || after.waits - before.waits <= most, "expected at most %ld waits, found %ld", most,
              after.waits - before.waits);
    }
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    MPI_Info_free(&info);
    require(cudaFree(in));
    require(cudaFree(out));
}

/* One element in STEP is copied to the host, and copied back as an index and a value. The first call reads
 * its elements in addition. */
static void check_traffic(void)
{
    enum { MOST = 5 * (COUNT / STEP + 64) * (sizeof(int32_t) + sizeof(float)) };
    float *v = vector(1);
    MPI_Info info;
    MPIX_Sparse_plan plan;
    check_case("only elements travel");
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_scheme", "balanced");
    check_success(MPIX_Sparse_allreduce_init(MPI_IN_PLACE, v, COUNT, MPI_FLOAT, MPI_SUM, comm, info, &plan),
                  "MPIX_Sparse_allreduce_init");
    long before = count_of("fake_cuda_copied");
    start_and_wait(plan);
    long copied = count_of("fake_cuda_copied") - before;
    check(ranks == 1 || copied <= (long)MOST, "expected at most %d bytes to be copied, found %ld", (int)MOST,
          copied);
    expect(v, 1);
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    MPI_Info_free(&info);
    require(cudaFree(v));
}

/* The device partitions the vector into many segments. The first call reads the vector and does not. */
static void check_segments(void)
{
    static const char *const grains[] = { "1", "4", "64" };
    check_case("parts of segments");
    for (int g = 0; g < 3; g++) {
        float *in = vector(1), *out = vector(0);
        MPI_Info info;
        MPIX_Sparse_plan plan;
        MPI_Info_create(&info);
        MPI_Info_set(info, "mpix_sparse_scheme", "balanced");
        MPI_Info_set(info, "mpix_sparse_grain", grains[g]);
        MPI_Info_set(info, "mpix_sparse_segment", "1000");
        check_success(MPIX_Sparse_allreduce_init(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, info, &plan),
                      "MPIX_Sparse_allreduce_init");
        for (int round = 1; round < 5; round++) {
            refresh(in, round);
            start_and_wait(plan);
            expect(out, round);
        }
        check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
        MPI_Info_free(&info);
        require(cudaFree(in));
        require(cudaFree(out));
    }
}

/* Fused plans, and one started alone. */
static void check_group(void)
{
    enum { PLANS = 3 };
    float *in[PLANS];
    MPIX_Sparse_plan plans[PLANS];
    MPI_Request requests[PLANS];
    MPI_Info info;
    check_case("plans started together");
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_fuse", "1000000");
    for (int i = 0; i < PLANS; i++) {
        in[i] = vector(i + 1);
        check_success(MPIX_Sparse_allreduce_init(MPI_IN_PLACE, in[i], COUNT, MPI_FLOAT, MPI_SUM, comm,
                                                 i == 1 ? MPI_INFO_NULL : info, &plans[i]),
                      "MPIX_Sparse_allreduce_init");
    }
    MPI_Info_free(&info);
    check_success(MPIX_Sparse_plan_start_all(PLANS, plans, requests), "MPIX_Sparse_plan_start_all");
    check_success(MPI_Waitall(PLANS, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
    for (int i = 0; i < PLANS; i++) {
        expect(in[i], i + 1);
        check_success(MPIX_Sparse_plan_free(&plans[i]), "MPIX_Sparse_plan_free");
        require(cudaFree(in[i]));
    }
}

/* Unsorted coordinates, with index 7 twice. The last rank has none; unless `given` it passes no arrays from
 * which the library could tell the device. */
static int call_coo(int place, bool given, MPIX_Sparse_result *result)
{
    const int32_t indices[] = { rank + 10, 7, 7 };
    const double values[] = { rank, 0.25, 0.75 };
    bool empty = ranks > 1 && rank == ranks - 1;
    require(cudaSetDevice(place));
    void *i = empty && !given ? NULL : to_device(indices, sizeof indices);
    void *v = empty && !given ? NULL : to_device(values, sizeof values);
    require(cudaSetDevice(0));
    int code =
        MPIX_Sparse_allreduce_coo(i, v, empty ? 0 : 3, MPI_INT32_T, 1000, MPI_DOUBLE, MPI_SUM, comm, result);
    require(cudaFree(i));
    require(cudaFree(v));
    return code;
}

static void expect_result(MPIX_Sparse_result result, int place, bool given)
{
    int32_t index[64];
    double value[64], dense[1000];
    const void *indices, *values;
    MPI_Count nnz;
    int present = ranks > 1 ? ranks - 1 : 1;
    check_success(MPIX_Sparse_result_get(result, &nnz, &indices, &values), "MPIX_Sparse_result_get");
    check(nnz == present + 1, "expected %d elements, found %lld", present + 1, (long long)nnz);
    if (ranks > 1 && rank == ranks - 1 && !given)
        return;
    check(place_of(indices) == place && place_of(values) == place,
          "expected the result on device %d, found it on %d and %d", place, place_of(indices),
          place_of(values));
    to_host(index, indices, (size_t)nnz * sizeof *index);
    to_host(value, values, (size_t)nnz * sizeof *value);
    for (int i = 0; i <= present; i++)
        check(index[i] == (i == 0 ? 7 : i + 9) && value[i] == (i == 0 ? present : i - 1),
              "expected another element at place %d than %g at %d", i, value[i], (int)index[i]);
    require(cudaSetDevice(place));
    double *device = to_device(dense, sizeof dense);
    require(cudaSetDevice(0));
    check_error(MPIX_Sparse_result_dense(result, dense), "recvbuf is memory of the host", -1);
    check_success(MPIX_Sparse_result_dense(result, device), "MPIX_Sparse_result_dense");
    to_host(dense, device, sizeof dense);
    check(dense[7] == present && dense[8] == 0, "expected %d and 0, found %g and %g", present, dense[7],
          dense[8]);
    require(cudaFree(device));
}

static void check_result(void)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    int devices;
    check_case("results of coordinates");
    require(cudaGetDeviceCount(&devices));
    for (int round = 0; round < 6; round++) {
        int place = round / 3 % devices;
        long before = allocations();
        check_success(call_coo(place, false, &result), "MPIX_Sparse_allreduce_coo");
        bool settled = round % 3 == 2 && !(ranks > 1 && rank == ranks - 1);
        check(!settled || allocations() <= before + 2, "expected no allocation but of the arrays, found %ld",
              allocations() - before);
        expect_result(result, place, false);
    }
    for (int fresh = 0; fresh < 2; fresh++) {
        check_success(call_coo(0, true, &result), "MPIX_Sparse_allreduce_coo");
        expect_result(result, 0, true);
        check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    }
}

static void check_profile(void)
{
    MPIX_Sparse_profile_t profile;
    float *in = vector(1);
    check_case("a profile");
    check_success(MPIX_Sparse_profile(in, COUNT, MPI_FLOAT, comm, &profile), "MPIX_Sparse_profile");
    check(profile.density > 1.0 / STEP && profile.density < 1.1 / STEP,
          "expected a density near %g, found %g", 1.0 / STEP, profile.density);
    require(cudaFree(in));
}

/* One rank mixes host and device memory; all ranks get an error. */
static void check_mixtures(void)
{
    static float host[COUNT];
    const int32_t indices[] = { 1, 2 };
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    float *device = vector(1), *other = vector(1);
    int32_t *on_device = to_device(indices, sizeof indices);
    check_case("memory of both kinds");
    check_error(MPIX_Sparse_allreduce(rank == 0 ? host : other, device, COUNT, MPI_FLOAT, MPI_SUM, comm),
                "sendbuf is memory of the host", 0);
    check_error(MPIX_Sparse_allreduce(rank == 0 ? other : host, rank == 0 ? host : device, COUNT, MPI_FLOAT,
                                      MPI_SUM, comm),
                rank == 0 ? "sendbuf is " : "sendbuf is ", 0);
    check_error(MPIX_Sparse_allreduce_coo(on_device, rank == 0 ? host : device, 2, MPI_INT32_T, COUNT,
                                          MPI_FLOAT, MPI_SUM, comm, &result),
                "values is memory of the host", 0);
    require(cudaFree(device));
    require(cudaFree(other));
    require(cudaFree(on_device));
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    check_alarm(240);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    check_mixtures();
    check_in_flight();
    check_plan();
    check_steady("0", 120);
    check_steady("1000000", 6);
    check_traffic();
    check_segments();
    check_group();
    check_result();
    check_profile();
    MPI_Comm_free(&comm);
    return check_end("arrays");
}
