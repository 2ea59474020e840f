/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests payloads that a CUDA-aware MPI sends and receives in device memory. Results have the bits of calls on
 * host memory, whichever ranks have an aware MPI or device memory. Almost nothing is copied, and repeated
 * calls allocate nothing. With corrupted messages or failing CUDA calls no rank hangs, and no wrong result is
 * returned as right. */

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <mpix_sparse.h>
#include <stdlib.h>
#include <string.h>

#include "aware_mpi.h"
#include "check.h"
#include "device_memory.h"

enum { COUNT = 20000, EVERY = 5, HEADER = 64 };

static MPI_Comm comm;
static float host_in[COUNT], host_out[COUNT], host_values[COUNT], found[COUNT];
static int32_t host_indices[COUNT];
static int nnz;
static float *in, *out, *values; /* in device memory */
static int32_t *indices;
static bool stands_in;

static void draw(void)
{
    for (int i = 0; i < COUNT; i++) {
        uint64_t bits = mix((uint64_t)i * 100 + (uint64_t)rank);
        host_in[i] = bits % EVERY == 0 ? (float)((double)(bits >> 11) / 4503599627370496.0 - 1) : 0;
        if (host_in[i] == 0)
            continue;
        host_indices[nnz] = i;
        host_values[nnz++] = host_in[i];
    }
    in = to_device(host_in, sizeof host_in);
    out = to_device(host_in, sizeof host_in);
    values = to_device(host_values, sizeof host_values);
    indices = to_device(host_indices, sizeof host_indices);
}

static int reduce(bool on_device)
{
    if (!on_device)
        return MPIX_Sparse_allreduce(host_in, host_out, COUNT, MPI_FLOAT, MPI_SUM, comm);
    memset(found, 0x7e, sizeof found);
    fill_device(out, found, sizeof found);
    int code = MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm);
    require(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
    return code;
}

static int reduce_coo(bool on_device, MPIX_Sparse_result *result)
{
    return MPIX_Sparse_allreduce_coo(on_device ? indices : host_indices, on_device ? values : host_values,
                                     nnz, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm, result);
}

static bool is_right(void)
{
    return memcmp(found, host_out, sizeof found) == 0;
}

static void check_coo(bool on_device)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    check_success(reduce_coo(on_device, &result), "a call on coordinates");
    if (on_device) {
        check_success(MPIX_Sparse_result_dense(result, out), "MPIX_Sparse_result_dense");
        to_host(found, out, sizeof found);
    } else {
        check_success(MPIX_Sparse_result_dense(result, found), "MPIX_Sparse_result_dense");
    }
    check(is_right(), "expected the bits that the host makes of coordinates");
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
}

static void open_comm(const char *wire, const char *segment)
{
    comm = settings_comm(
        &(struct settings){ .scheme = "balanced", .wire = wire, .partition = "hash", .segment = segment });
}

/* Only some ranks have a CUDA-aware MPI, and only some have device memory. */
static void check_mixture(const char *wire, const char *segment, int aware, int device)
{
    bool mine = device == 0 || rank % 2 == 0;
    aware_claimed = aware == 0 || rank == 0;
    check_case("%s, segments of %s, aware: %s, device memory: %s", wire,
               segment == NULL ? "any size" : segment, aware == 0 ? "all" : "rank 0",
               device == 0 ? "all" : "every second rank");
    open_comm(wire, segment);
    check_success(reduce(false), "a call on the host's memory");
    long before = aware_messages;
    check_success(reduce(mine), "a call");
    check(!mine || is_right(), "expected the bits that the host makes");
    check(!stands_in || ranks == 1 || (aware_messages > before) == (mine && aware_claimed),
          "expected payloads to leave from device memory where MPI takes that, %ld did",
          aware_messages - before);
    check_coo(mine);
    MPI_Comm_free(&comm);
    aware_claimed = true;
}

/* Only scalars are copied, such as numbers of elements. */
static void check_bytes(void)
{
    enum { NUMBERS = 1024, ROUNDS = 6, WARM = 3 };
    long allocations = 0;
    check_case("what is copied and allocated");
    open_comm("hash_bitmap", NULL);
    check_success(reduce(false), "a call on the host's memory");
    for (int round = 0; round < ROUNDS; round++) {
        long copied = count_of("fake_cuda_copied"), sent = aware_bytes;
        if (round == WARM)
            allocations = count_of("fake_cuda_allocations");
        check_success(reduce(true), "a call");
        copied = count_of("fake_cuda_copied") - copied;
        sent = aware_bytes - sent;
        check(round < WARM || copied <= NUMBERS, "expected some numbers to be copied, found %ld bytes",
              copied);
        check(!stands_in || ranks == 1 || sent > 8 * NUMBERS, "expected payloads to leave, found %ld bytes",
              sent);
        check(is_right(), "expected the bits that the host makes");
    }
    check(count_of("fake_cuda_allocations") == allocations, "expected no allocation later on, found %ld",
          count_of("fake_cuda_allocations") - allocations);
    MPI_Comm_free(&comm);
}

static struct {
    int piece; /* counted from the next one */
    bool cut, header;
    size_t bit;
    bool done;
    void *copy;
} corruption = { .piece = -1 };

static const void *corrupt(const void *piece, int *bytes, bool from_device)
{
    size_t bits = 8 * (size_t)(corruption.header ? HEADER : *bytes);
    bool headless = !from_device && *bytes < HEADER;
    if (from_device == corruption.header || headless || corruption.piece < 0 || corruption.piece-- != 0)
        return piece;
    corruption.copy = malloc((size_t)*bytes + 1);
    memcpy(corruption.copy, piece, (size_t)*bytes);
    if (corruption.cut)
        *bytes -= 8;
    else
        ((unsigned char *)corruption.copy)[corruption.bit % bits / 8] ^=
            (unsigned char)(1u << corruption.bit % 8);
    corruption.done = true;
    return corruption.copy;
}

/* Corrupt one piece of rank 0: flip a bit of a header or a payload, or truncate a payload. */
static void check_corruption(const char *wire)
{
    static const struct {
        bool cut, header;
        size_t bit;
    } ways[] = { { false, true, 3 },   { false, true, 50 },  { false, true, 444 },   { false, false, 0 },
                 { false, false, 77 }, { false, false, 20 }, { false, false, 5000 }, { true, false, 0 } };
    open_comm(wire, NULL);
    check_success(reduce(false), "a call on the host's memory");
    check_success(reduce(true), "a call before");
    aware_corrupt = corrupt;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (int piece = 0; piece < 2 * (ranks - 1); piece++) {
            check_case("%s, piece %d is damaged in way %zu", wire, piece, w);
            corruption.cut = ways[w].cut;
            corruption.header = ways[w].header;
            corruption.bit = ways[w].bit;
            corruption.done = false;
            corruption.piece = rank == 0 ? piece : -1;
            int code = reduce(true), failed = code != MPI_SUCCESS, done = corruption.done;
            corruption.piece = -1;
            MPI_Bcast(&done, 1, MPI_INT, 0, MPI_COMM_WORLD);
            MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
            bool told = ways[w].cut || ways[w].header;
            check(!done || !told || failed, "expected an error of who gets that");
            check(done || !failed, "expected no error, as nothing was damaged");
            check(failed || !told || is_right(), "expected the bits that the host makes");
            check_success(reduce(true), "a call behind");
            check(is_right(), "expected the bits that the host makes, behind");
            free(corruption.copy);
            corruption.copy = NULL;
        }
    aware_corrupt = NULL;
    MPI_Comm_free(&comm);
}

static void check_refusals(void)
{
    long calls = 0, failures = 0;
    open_comm("elias_fano", NULL);
    check_success(reduce(false), "a call on the host's memory");
    for (int round = 0; round < 2; round++) {
        calls = count_of("fake_cuda_calls");
        check_success(reduce(true), "a call before");
        calls = count_of("fake_cuda_calls") - calls;
    }
    MPI_Allreduce(MPI_IN_PLACE, &calls, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    for (long n = 3; n + 3 <= calls; n++) {
        check_case("call %ld of CUDA fails", n);
        require(cudaMemcpy(out, in, sizeof found, cudaMemcpyDeviceToDevice));
        tell_runtime("fake_cuda_refuse", n % ranks == rank ? n : 0);
        int code = MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm);
        tell_runtime("fake_cuda_refuse", 0);
        to_host(found, out, sizeof found);
        failures += code != MPI_SUCCESS;
        check(code != MPI_SUCCESS || is_right(), "expected an error or the right result");
        check_success(reduce(true), "a call behind");
        check(is_right(), "expected the bits that the host makes, behind");
    }
    check(!stands_in || failures > 0, "expected some calls to fail");
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    static const char *const wires[] = { "coo", "elias_fano", "hash_bitmap" };
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    check_alarm(240);
    stands_in = dlsym(RTLD_DEFAULT, "fake_cuda_reach") != NULL;
    draw();
    for (int w = 0; w < 3; w++)
        for (int aware = 0; aware < 2; aware++)
            for (int device = 0; device < 2; device++)
                check_mixture(wires[w], w == 0 ? "500" : NULL, aware, device);
    check_bytes();
    for (int w = 0; w < 3; w++)
        check_corruption(wires[w]);
    check_refusals();
    require(cudaFree(in));
    require(cudaFree(out));
    require(cudaFree(values));
    require(cudaFree(indices));
    return check_end("direct");
}
