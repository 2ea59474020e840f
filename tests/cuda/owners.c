/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the vectors of the table in device memory, reduced and encoded there, against calls on host memory,
 * bit for bit. Covers each format that devices write, one that they do not, and rows with several owners.
 * tests/cuda/on_device.c copies the vectors. */

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "patterns.h"

static const struct settings settings[] = {
    { "balanced", NULL, "hash", "1", NULL },
    { "balanced", "coo", "cyclic", "4", "200" },
    { "balanced", "elias_fano", "hash", "64", "40" },
    { "balanced", "hash_bitmap", "hash", "4", NULL },
    { "balanced", "coo/hash_bitmap", "hash", "1", "200" },
    { "balanced", "block/elias_fano", "hash", "1", NULL },
    { "balanced", NULL, "hierarchical", NULL, "200" },
};

/* Most slices of a row, for each of the settings; NULL leaves the choice to the library. */
static const char *const columns[] = { "1", NULL, "2", "3", "1024", "1024", NULL };

static const struct {
    int64_t count;
    size_t row;
} shapes[] = { { 1, 1 }, { 257, 1 }, { 5000, 1 }, { 100, 3 }, { 130, 24 } };

enum {
    SETTINGS = sizeof settings / sizeof settings[0],
    SHAPES = sizeof shapes / sizeof shapes[0],
    EVERY = 3 /* one combination of vector and setting in so many runs */
};

static MPI_Comm comms[SETTINGS];

static MPI_Comm open_comm(size_t s)
{
    if (columns[s] != NULL)
        setenv("MPIX_SPARSE_COLUMNS", columns[s], 1);
    MPI_Comm comm = settings_comm(&settings[s]);
    unsetenv("MPIX_SPARSE_COLUMNS");
    return comm;
}

/* Read a counter of fake_runtime.c; the real runtime has none. */
static long kernels(void)
{
    long (*count)(void) = (long (*)(void))dlsym(RTLD_DEFAULT, "fake_cuda_kernels");
    return count == NULL ? 0 : count();
}

/* Returns true for equal bits, or two float32 NaN, of which a device makes others than the host. */
static bool equals(const struct tensor_desc *desc, const void *host, const void *device, size_t bytes)
{
    const float *a = host, *b = device;
    if (desc->base != FLOAT32)
        return memcmp(host, device, bytes) == 0;
    for (size_t i = 0; i < bytes / sizeof *a; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0 && !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

/* The call on host memory is first, so it is the one that is profiled. */
static void compare(const struct oracle *o, bool in_place, MPI_Comm comm)
{
    const struct tensor_desc *desc = &o->desc;
    size_t bytes = (size_t)desc->count * element_bytes(desc);
    unsigned char *host = malloc(bytes), *device = malloc(bytes);
    MPI_Datatype type = row_type(desc);
    MPI_Op op = op_types[desc->op].op;
    memset(host, 1, bytes);
    memcpy(device, o->mine, bytes);
    check_success(PMPIX_Sparse_allreduce(o->mine, host, desc->count, type, op, comm), "a call on the host's");
    check_success(MPIX_Sparse_allreduce(in_place ? MPI_IN_PLACE : o->mine, device, desc->count, type, op,
                                        comm),
                  "a call on the device's");
    check(equals(desc, host, device, bytes), "expected the bits that the host makes");
    row_type_free(desc, &type);
    free(host);
    free(device);
}

/* Results are reused. Arrays of the host call, and copies of the device's, lie in host memory. */
static void compare_results(MPIX_Sparse_result host, MPIX_Sparse_result device,
                            const struct tensor_desc *desc, size_t index_bytes)
{
    MPI_Count n, found;
    const void *index[2], *value[2];
    size_t bytes = (size_t)desc->count * element_bytes(desc);
    unsigned char *dense = malloc(2 * bytes + 1);
    check_success(PMPIX_Sparse_result_get(host, &n, &index[0], &value[0]), "the host's result");
    check_success(MPIX_Sparse_result_get(device, &found, &index[1], &value[1]), "the device's result");
    check(n == found, "expected %lld elements, found %lld", (long long)n, (long long)found);
    check(n == 0 || memcmp(index[0], index[1], (size_t)n * index_bytes) == 0, "expected the host's indices");
    check(n == 0 || equals(desc, value[0], value[1], (size_t)n * element_bytes(desc)),
          "expected the bits of the host's values");
    check_success(PMPIX_Sparse_result_dense(host, dense), "the host's result as a vector");
    check_success(MPIX_Sparse_result_dense(device, dense + bytes), "the device's");
    check(equals(desc, dense, dense + bytes, bytes), "expected the host's vector");
    free(dense);
}

/* Coordinates with both index widths, in the order drawn. */
static void compare_coordinates(const struct tensor *t, MPI_Comm comm)
{
    static MPIX_Sparse_result host = MPIX_SPARSE_RESULT_NULL, device = MPIX_SPARSE_RESULT_NULL;
    const struct tensor_desc *desc = &t->desc;
    MPI_Datatype type = row_type(desc);
    MPI_Op op = op_types[desc->op].op;
    for (int i = 0; i < 4; i += 2) {
        MPI_Datatype index_type = index_types[i].type;
        int index_bytes;
        void *indices = typed_indices(t, &index_types[i]);
        MPI_Type_size(index_type, &index_bytes);
        check_success(PMPIX_Sparse_allreduce_coo(indices, t->value, (MPI_Count)t->nnz, index_type,
                                                 desc->count, type, op, comm, &host),
                      "a call on the host's coordinates");
        check_success(MPIX_Sparse_allreduce_coo(indices, t->value, (MPI_Count)t->nnz, index_type, desc->count,
                                                type, op, comm, &device),
                      "a call on the device's coordinates");
        compare_results(host, device, desc, (size_t)index_bytes);
        free(indices);
    }
    row_type_free(desc, &type);
    check_success(MPIX_Sparse_result_free(&host), "MPIX_Sparse_result_free");
    check_success(MPIX_Sparse_result_free(&device), "MPIX_Sparse_result_free");
}

static void run(const struct pattern *pattern, const struct tensor_desc *desc, size_t key)
{
    struct tensor tensor;
    struct oracle oracle;
    tensor_draw(pattern, desc, key, &tensor);
    oracle_make(&tensor, &oracle);
    for (size_t s = 0; s < SETTINGS; s++) {
        if (mix(key * SETTINGS + s) % EVERY != 0)
            continue;
        check_case("%s, %s %s of %lld x %zu, %s", pattern->name, base_types[desc->base].name,
                   op_types[desc->op].name, (long long)desc->count, desc->row, settings_text(&settings[s]));
        compare(&oracle, s % 2 == 0, comms[s]);
        compare_coordinates(&tensor, comms[s]);
    }
    tensor_free(&tensor);
    oracle_free(&oracle);
}

static void run_patterns(void)
{
    for (size_t p = 0; patterns[p].name != NULL; p++)
        for (size_t s = 0; s < SHAPES; s++)
            run(&patterns[p], &(struct tensor_desc){ FLOAT32, SUM, shapes[s].row, shapes[s].count },
                p * SHAPES + s);
}

static const struct pattern *pattern_of(const char *name)
{
    size_t p = 0;
    while (strcmp(patterns[p].name, name) != 0)
        p++;
    return &patterns[p];
}

static void run_types(void)
{
    const struct pattern *random = pattern_of("random 0.1");
    for (int i = 0; i < BASES * OPS; i++)
        run(random,
            &(struct tensor_desc){ (enum base)(i / OPS), (enum op)(i % OPS), (size_t)(1 + i % 2), 257 },
            1000 + (size_t)i);
}

/* Reals of all magnitudes, whose sums depend on the order of additions. */
static void run_reals(size_t setting)
{
    enum { COUNT = 3000 };
    struct tensor_desc desc = { FLOAT32, SUM, 1, COUNT };
    static float mine[COUNT];
    struct oracle oracle = { .desc = desc, .mine = (unsigned char *)mine };
    check_case("reals, %s", settings_text(&settings[setting]));
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t bits = mix(i * 1000 + (uint64_t)rank);
        float magnitude = (float)(1 << bits % 20);
        mine[i] = bits % 3 == 0 ? (float)((double)(bits >> 11) / 4503599627370496.0 - 1) * magnitude : 0;
    }
    compare(&oracle, false, comms[setting]);
}

/* Number of kernels in device calls on a vector, or on coordinates. */
static long kernels_of(const struct tensor *tensor, const struct oracle *oracle, MPI_Comm comm)
{
    long before = kernels();
    if (oracle != NULL)
        compare(oracle, false, comm);
    else
        compare_coordinates(tensor, comm);
    return kernels() - before;
}

/* Messages with fewer elements than the limit need fewer kernels. */
static void check_least(size_t setting, size_t row)
{
    struct tensor tensor;
    struct oracle oracle;
    setenv("MPIX_SPARSE_CUDA_LEAST", "1000000", 1);
    MPI_Comm comm = open_comm(setting);
    tensor_draw(pattern_of("random 0.1"), &(struct tensor_desc){ FLOAT32, SUM, row, 4000 }, 1, &tensor);
    oracle_make(&tensor, &oracle);
    for (int api = 0; api < 2; api++) {
        const struct oracle *dense = api == 0 ? &oracle : NULL;
        check_case("messages of %zu values too small for a device, interface %d", row, api);
        long without = kernels_of(&tensor, dense, comm), with = kernels_of(&tensor, dense, comms[setting]);
        check(ranks == 1 || kernels() == 0 || with > without, "expected more than %ld kernels, found %ld",
              without, with);
    }
    tensor_free(&tensor);
    oracle_free(&oracle);
    MPI_Comm_free(&comm);
}

/* A call on the device's memory with sliced rows has its pull in values alone, but for ranks of other
 * groups. */
static void check_sliced(size_t setting, const char *wire)
{
    MPIX_Sparse_report_t report;
    struct tensor tensor;
    struct oracle oracle;
    check_case("the report of sliced rows, %s", settings_text(&settings[setting]));
    tensor_draw(pattern_of("random 0.1"), &(struct tensor_desc){ FLOAT64, SUM, 24, 400 }, 1, &tensor);
    oracle_make(&tensor, &oracle);
    compare(&oracle, true, comms[setting]);
    compare_coordinates(&tensor, comms[setting]);
    check_success(MPIX_Sparse_get_report(comms[setting], &report), "MPIX_Sparse_get_report");
    check(ranks == 1 || report.columns > 1, "expected several columns, found %d", report.columns);
    check(ranks == 1 || wire == NULL || strcmp(report.pull_wire, wire) == 0,
          "expected the pull in another format, found %s", report.pull_wire);
    tensor_free(&tensor);
    oracle_free(&oracle);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    setenv("MPIX_SPARSE_CUDA_LEAST", "0", 1);
    for (size_t s = 0; s < SETTINGS; s++)
        comms[s] = open_comm(s);
    run_patterns();
    run_types();
    for (size_t s = 0; s < SETTINGS; s++)
        run_reals(s);
    check_sliced(2, NULL);
    check_sliced(3, "values");
    check_sliced(4, "values");
    check_least(0, 1);
    check_least(4, 24);
    check_least(6, 1); /* hierarchical hashing */
    for (size_t s = 0; s < SETTINGS; s++)
        MPI_Comm_free(&comms[s]);
    return check_end("owners");
}
