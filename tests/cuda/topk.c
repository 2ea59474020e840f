/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests top-k sparsification of device tensors: elements, values and velocities equal those of host tensors,
 * bit for bit. */

#include <cuda_runtime_api.h>
#include <mpix_sparse.h>
#include <math.h>
#include <string.h>

#include "check.h"
#include "device_memory.h"

enum { COUNT = 20000 };

static MPI_Comm comm;

/* State of DGC. */
struct state {
    float *gradient, *velocity, *residual, *values;
    int64_t *indices;
    MPI_Count nnz;
};

static struct state state_on_device(const struct state *host)
{
    enum { BYTES = COUNT * sizeof(float) };
    return (struct state){ to_device(host->gradient, BYTES),
                           to_device(host->velocity, BYTES),
                           to_device(host->residual, BYTES),
                           to_device(host->values, BYTES),
                           to_device(host->indices, COUNT * sizeof(int64_t)),
                           0 };
}

static void expect_same(const void *host, const void *device, size_t bytes, const char *what)
{
    static char found[COUNT * sizeof(int64_t)];
    to_host(found, device, bytes);
    check(memcmp(host, found, bytes) == 0, "expected the host's %s", what);
}

static void take_step(struct state *s, int seed)
{
    MPIX_Sparse_dgc_t how = { 0.02, 0.3, 0.9, 0.7, seed, seed % 2 };
    check_success(MPIX_Sparse_dgc_step(s->gradient, s->velocity, s->residual, COUNT, MPI_FLOAT, &how, comm,
                                       MPI_INT64_T, COUNT / (seed == 2 ? 1000 : 10), s->indices, s->values,
                                       &s->nnz),
                  "MPIX_Sparse_dgc_step");
}

static void select_from(struct state *s, double *threshold)
{
    check_success(MPIX_Sparse_topk_threshold(s->residual, COUNT, MPI_FLOAT, 0.1, 1, 0, comm, threshold),
                  "MPIX_Sparse_topk_threshold");
    check_success(MPIX_Sparse_topk_select(s->residual, COUNT, MPI_FLOAT, *threshold, comm, MPI_INT64_T, COUNT,
                                          s->indices, s->values, &s->nnz),
                  "MPIX_Sparse_topk_select");
}

static void expect_selected(const struct state *host, const struct state *device)
{
    check(host->nnz == device->nnz, "expected %lld elements, found %lld", (long long)host->nnz,
          (long long)device->nnz);
    expect_same(host->indices, device->indices, (size_t)host->nnz * sizeof(int64_t), "indices");
    expect_same(host->values, device->values, (size_t)host->nnz * sizeof(float), "values");
    expect_same(host->residual, device->residual, COUNT * sizeof(float), "residual");
    expect_same(host->velocity, device->velocity, COUNT * sizeof(float), "velocity");
}

/* Run the same steps in host and device memory. */
static void check_topk(void)
{
    static float gradient[COUNT], velocity[COUNT], residual[COUNT], values[COUNT];
    static int64_t indices[COUNT];
    struct state host = { gradient, velocity, residual, values, indices, 0 };
    double threshold[2];
    check_case("top-k");
    for (int i = 0; i < COUNT; i++)
        gradient[i] = i % 3000 == 11 ? INFINITY : (float)((i + rank) * 7919 % 1000 - 500) / 300;
    struct state device = state_on_device(&host);
    for (int seed = 0; seed < 4; seed++) {
        take_step(&host, seed);
        take_step(&device, seed);
        expect_selected(&host, &device);
    }
    select_from(&host, &threshold[0]);
    select_from(&device, &threshold[1]);
    check(threshold[0] == threshold[1], "expected the threshold %g, found %g", threshold[0], threshold[1]);
    expect_selected(&host, &device);
    void *arrays[] = { device.gradient, device.velocity, device.residual, device.values, device.indices };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        require(cudaFree(arrays[i]));
}

/* All arrays of a call must be in host memory, or all in device memory. */
static void check_topk_mixtures(void)
{
    static float host[COUNT];
    static int32_t indices[COUNT];
    MPIX_Sparse_dgc_t how = { 0.1, 1, 0.5, 1, 0, 1 };
    float *device = to_device(host, sizeof host);
    MPI_Count nnz;
    check_case("top-k in memory of both kinds");
    check_error(MPIX_Sparse_topk_select(device, COUNT, MPI_FLOAT, 1, comm, MPI_INT32_T, COUNT, indices, host,
                                        &nnz),
                "indices is memory of the host", -1);
    check_error(MPIX_Sparse_dgc_step(host, device, rank == 0 ? device : host, COUNT, MPI_FLOAT, &how, comm,
                                     MPI_INT32_T, COUNT, indices, host, &nnz),
                "velocity is device memory", 0);
    require(cudaFree(device));
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    check_alarm(240);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    check_topk();
    check_topk_mixtures();
    MPI_Comm_free(&comm);
    return check_end("topk");
}
