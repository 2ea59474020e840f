/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests 16-bit values on the wire, in every scheme and format. All ranks have the same bits. Errors stay
 * within the bound of doc/formats.md. There is no error if all values fit 16 bits, or the setting has no
 * effect. Messages have the documented number of bytes. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "scheme/scheme.h"
#include "tensors.h"

enum { HEADER = 64 };

static const struct format {
    const char *name;
    double unit, least; /* unit roundoff; smallest number */
} formats[] = { { "bf16", 0x1p-8, 0x1p-133 }, { "fp16", 0x1p-11, 0x1p-24 }, { "full", 0, 0 } };

enum { NARROW = 2, FORMATS = sizeof formats / sizeof formats[0] };

/* A scheme and settings, with their name in a case. */
struct config {
    const struct sar_scheme *scheme;
    const char *wire; /* NULL: automatic */
    const struct format *format;
    MPI_Comm comm;
};

static MPI_Comm comm_for(const struct config *c, const char *values, const char *segment)
{
    struct settings settings = { c->scheme->name, c->wire, NULL, NULL, segment };
    setenv("MPIX_SPARSE_WIRE_VALUES", values, 1);
    MPI_Comm comm = settings_comm(&settings);
    unsetenv("MPIX_SPARSE_WIRE_VALUES");
    return comm;
}

static void name_case(const struct config *c, const struct tensor_desc *desc, const char *what)
{
    check_case("%s, %s of %lld x %zu, %s, wire %s, %s", what, op_types[desc->op].name, (long long)desc->count,
               desc->row, c->scheme->name, c->wire == NULL ? "auto" : c->wire, c->format->name);
}

/* Maximum number of roundings of a contribution, alone and in a sum. */
static int roundings(const char *scheme)
{
    int power = 0;
    while (ranks >> (power + 1) != 0)
        power++;
    if (strcmp(scheme, "dense") == 0 || ranks == 1)
        return 0;
    if (strcmp(scheme, "allgather") == 0)
        return 1;
    if (strcmp(scheme, "recursive_doubling") == 0 || strcmp(scheme, "recursive_halving") == 0)
        return power + ((ranks & (ranks - 1)) != 0 ? 2 : 0);
    if (strcmp(scheme, "hybrid") == 0)
        return power + ((ranks & (ranks - 1)) != 0 ? 2 : 1);
    if (strcmp(scheme, "ring") == 0)
        return ranks;
    return 2;
}

/* Draw a float of this rank at an index; returns false for no element. */
typedef bool (*draw_fn)(uint64_t index, int at_rank, size_t k, float *value);

static uint64_t random_bits(uint64_t index, int at_rank, size_t k)
{
    return mix(index * 4096 + k * 64 + (uint64_t)at_rank);
}

/* Small integers, whose sums are small integers. */
static bool draw_whole(uint64_t index, int at_rank, size_t k, float *value)
{
    uint64_t bits = random_bits(index, at_rank, k);
    *value = (float)(1 + bits % 4) * (bits / 4 % 2 == 0 ? 1 : -1);
    return random_bits(index, at_rank, 60) % 3 != 0;
}

static bool draw_positive(uint64_t index, int at_rank, size_t k, float *value)
{
    *value = (float)(1 + random_bits(index, at_rank, k) % 4);
    return random_bits(index, at_rank, 60) % 3 != 0;
}

/* 24-bit numbers; no two ranks have the same element. */
static bool draw_disjoint(uint64_t index, int at_rank, size_t k, float *value)
{
    *value = 1 + (float)(1 + random_bits(index, at_rank, k) % 1000) * 0x1p-23f;
    return index % (uint64_t)ranks == (uint64_t)at_rank;
}

static bool draw_real(uint64_t index, int at_rank, size_t k, float *value)
{
    uint64_t bits = random_bits(index, at_rank, k);
    double x = ldexp((double)(bits >> 11), (int)(bits % 24) - 73);
    *value = (float)(bits / 32 % 2 == 0 ? x : -x);
    return random_bits(index, at_rank, 60) % 4 != 0;
}

/* Values that overflow, underflow to zeros of both signs, or are NaN. */
static bool draw_extreme(uint64_t index, int at_rank, size_t k, float *value)
{
    static const float all[] = { 1e-20f,  -1e-20f,  1e-42f,   -1e-42f, -0.0f,    65504,  -65520,
                                 3.4e38f, -3.4e38f, INFINITY, NAN,     0x1p-24f, 1e-7f,  -6e-5f,
                                 1,       -1,       1e-20f,   -1e-20f, 1e-42f,   -1e-42f };
    uint64_t bits = random_bits(index, at_rank, k);
    *value = all[bits % (index % 2 == 0 ? 5 : sizeof all / sizeof all[0])];
    return random_bits(index, at_rank, 60) % 2 != 0;
}

static void draw(draw_fn value_at, const struct tensor_desc *desc, struct tensor *t)
{
    *t = (struct tensor){ .desc = *desc };
    for (uint64_t i = 0; i < (uint64_t)desc->count; i++) {
        float value;
        if (!value_at(i, rank, 0, &value))
            continue;
        void *at = tensor_add(t, i);
        for (size_t k = 0; k < desc->row; k++) {
            value_at(i, rank, k, &value);
            if (desc->base == FLOAT32)
                ((float *)at)[k] = value;
            else
                ((double *)at)[k] = value;
        }
    }
}

/* All values are exact, as call_coo and call_dense check. */
static void run_exact(const struct config *c, draw_fn value_at, const struct tensor_desc *desc,
                      const char *what)
{
    struct tensor t;
    struct oracle o;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    draw(value_at, desc, &t);
    oracle_make(&t, &o);
    name_case(c, desc, what);
    call_coo(&t, &o, &index_types[desc->count % INDEX_TYPES], c->comm, &result);
    call_dense(&o, false, c->comm);
    call_dense(&o, true, c->comm);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    tensor_free(&t);
    oracle_free(&o);
}

/* Compute the result of both interfaces, and check that all ranks have it. The caller frees it. */
static float *reduce_both(const struct config *c, const struct tensor *t, const struct oracle *o, bool dense)
{
    size_t count = (size_t)t->desc.count, bytes = element_bytes(&t->desc);
    float *out = get_memory(count, bytes);
    MPI_Datatype type = row_type(&t->desc);
    MPI_Op op = op_types[t->desc.op].op;
    if (dense) {
        check_success(MPIX_Sparse_allreduce(o->mine, out, t->desc.count, type, op, c->comm),
                      "MPIX_Sparse_allreduce");
    } else {
        MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
        void *indices = typed_indices(t, &index_types[0]);
        check_success(MPIX_Sparse_allreduce_coo(indices, t->value, (MPI_Count)t->nnz, index_types[0].type,
                                                t->desc.count, type, op, c->comm, &result),
                      "MPIX_Sparse_allreduce_coo");
        check_success(MPIX_Sparse_result_dense(result, out), "MPIX_Sparse_result_dense");
        check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
        free(indices);
    }
    row_type_free(&t->desc, &type);
    if (strcmp(c->scheme->name, "dense") != 0)
        check_equal_on_ranks(hash_bytes(out, count * bytes, 1), "the result");
    return out;
}

/* Compute the parts of a reduce_scatter in a scheme, and gather them as they are. The caller frees them. */
static float *reduce_scattered(const struct config *c, const struct tensor *t)
{
    enum { BLOCK = 7 };
    float *out = get_memory((size_t)t->desc.count, element_bytes(&t->desc));
    MPI_Datatype type = row_type(&t->desc);
    MPIX_Sparse_result part = MPIX_SPARSE_RESULT_NULL, all = MPIX_SPARSE_RESULT_NULL;
    const void *part_indices, *values;
    MPI_Count nnz;
    void *indices = typed_indices(t, &index_types[0]);
    check_success(MPIX_Sparse_reduce_scatter_coo(indices, t->value, (MPI_Count)t->nnz, index_types[0].type,
                                                 t->desc.count, BLOCK, type, op_types[t->desc.op].op, c->comm,
                                                 &part),
                  "MPIX_Sparse_reduce_scatter_coo");
    check_success(MPIX_Sparse_result_get(part, &nnz, &part_indices, &values), "MPIX_Sparse_result_get");
    check_success(MPIX_Sparse_allgather_coo(part_indices, values, nnz, index_types[0].type, t->desc.count,
                                            type, MPI_COMM_WORLD, &all),
                  "MPIX_Sparse_allgather_coo");
    check_success(MPIX_Sparse_result_dense(all, out), "MPIX_Sparse_result_dense");
    check_success(MPIX_Sparse_result_free(&part), "MPIX_Sparse_result_free");
    check_success(MPIX_Sparse_result_free(&all), "MPIX_Sparse_result_free");
    row_type_free(&t->desc, &type);
    free(indices);
    return out;
}

/* Compute the exact result, and the sum of the contributions' magnitudes, on all ranks. */
static void add_up(const struct oracle *o, double *exact, double *sizes, size_t n)
{
    const float *mine = (const float *)o->mine;
    for (size_t i = 0; i < n; i++) {
        exact[i] = mine[i];
        sizes[i] = fabs(exact[i]);
    }
    MPI_Allreduce(MPI_IN_PLACE, exact, (int)n, MPI_DOUBLE, op_types[o->desc.op].op, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, sizes, (int)n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void check_errors(const struct config *c, const struct oracle *o, const float *out)
{
    size_t n = (size_t)o->desc.count * o->desc.row;
    double *exact = get_memory(n, sizeof *exact), *sizes = get_memory(n, sizeof *sizes);
    int times = roundings(c->scheme->name);
    double share = pow(1 + c->format->unit, times) - 1 + ranks * 0x1p-24;
    add_up(o, exact, sizes, n);
    for (size_t i = 0; i < n; i++) {
        double bound = share * sizes[i] + times * ranks * c->format->least / 2;
        if (o->desc.op != SUM)
            bound = times == 0 ? 0 : c->format->unit * fabs(exact[i]) + c->format->least / 2;
        check(fabs(out[i] - exact[i]) <= bound, "expected %.9g within %.3g, found %.9g", exact[i], bound,
              (double)out[i]);
    }
    free(exact);
    free(sizes);
}

static void run_inexact(const struct config *c, draw_fn value_at, const struct tensor_desc *desc, bool dense,
                        bool bounded)
{
    struct tensor t;
    struct oracle o;
    draw(value_at, desc, &t);
    oracle_make(&t, &o);
    name_case(c, desc, bounded ? "reals" : "extremes");
    float *out = reduce_both(c, &t, &o, dense);
    if (bounded && (dense || desc->op == SUM))
        check_errors(c, &o, out);
    free(out);
    tensor_free(&t);
    oracle_free(&o);
}

static void run_scatter(const struct config *c, size_t row)
{
    const struct tensor_desc desc = { FLOAT32, SUM, row, 300 };
    struct tensor t;
    struct oracle o;
    draw(draw_real, &desc, &t);
    oracle_make(&t, &o);
    name_case(c, &desc, "reduce_scatter");
    float *out = reduce_scattered(c, &t);
    check_errors(c, &o, out);
    free(out);
    tensor_free(&t);
    oracle_free(&o);
}

static void run_extremes(const struct config *c)
{
    for (enum op op = SUM; op <= MIN; op++) {
        run_inexact(c, draw_extreme, &(struct tensor_desc){ FLOAT32, op, 1, 300 }, true, false);
        run_inexact(c, draw_extreme, &(struct tensor_desc){ FLOAT32, op, 3, 300 }, true, false);
        run_inexact(c, draw_extreme, &(struct tensor_desc){ FLOAT32, op, 1, 300 }, false, false);
    }
}

static void run_config(const struct config *c)
{
    static const struct {
        int64_t count;
        size_t row;
    } shapes[] = { { 300, 1 }, { 40, 3 }, { 2000, 1 } };
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (enum op op = SUM; op <= MIN; op++) {
            struct tensor_desc desc = { FLOAT32, op, shapes[s].row, shapes[s].count };
            bool dense = (s + op) % 2 == 0;
            run_exact(c, draw_whole, &desc, "whole numbers");
            run_inexact(c, draw_real, &desc, dense, true);
            run_inexact(c, draw_real, &desc, !dense, true);
        }
    }
    run_exact(c, draw_disjoint, &(struct tensor_desc){ FLOAT32, PROD, 1, 100 }, "products");
    run_exact(c, draw_disjoint, &(struct tensor_desc){ FLOAT64, SUM, 1, 100 }, "doubles");
}

/* Bytes of all ranks without headers, in a call whose numbers and sums are all positive. */
static long long payload(const struct config *c, const char *values)
{
    struct tensor_desc desc = { FLOAT32, SUM, 1, 3000 };
    struct tensor t;
    struct oracle o;
    MPIX_Sparse_report_t report;
    MPI_Comm comm = comm_for(c, values, NULL);
    draw(draw_positive, &desc, &t);
    oracle_make(&t, &o);
    name_case(c, &desc, "bytes");
    call_dense(&o, false, comm);
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    int64_t sums[] = { (int64_t)report.bytes_received, (int64_t)report.header_bytes_sent };
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    tensor_free(&t);
    oracle_free(&o);
    MPI_Comm_free(&comm);
    return sums[0] - sums[1];
}

/* An 8-byte element takes 6 bytes in coo, and 2 fewer in all formats that send each value once. */
static void run_bytes(struct config c, bool few)
{
    c.wire = "coo";
    long long full = payload(&c, "full"), narrow = payload(&c, c.format->name), elements = full / 8;
    check(full == 8 * elements && narrow == 6 * elements, "expected %lld and %lld bytes, found %lld and %lld",
          8 * elements, 6 * elements, full, narrow);
    for (size_t w = 0; sar_wires[w] != NULL; w++) {
        if (few && (w + (size_t)ranks) % 3 != 0)
            continue;
        c.wire = sar_wires[w]->name;
        full = payload(&c, "full");
        narrow = payload(&c, c.format->name);
        long long expected = full - 2 * elements;
        if (sar_wires[w] == &sar_wire_dense)
            expected = full / 2;
        if (sar_wires[w] == &sar_wire_block)
            expected = full / (256 * 4 + 4) * (256 * 2 + 4);
        check(narrow == expected, "expected %lld bytes of %lld, found %lld", expected, full, narrow);
    }
}

/* Run each format, or a share of them if `few`; each number of ranks runs another share. */
static void run_wires(size_t s, size_t f, bool few)
{
    struct config c = { .scheme = sar_schemes[s], .format = &formats[f] };
    for (size_t w = 0; w == 0 || sar_wires[w - 1] != NULL; w++) {
        if (few && (w + s + f + (size_t)ranks) % 4 != 0)
            continue;
        c.wire = w == 0 ? NULL : sar_wires[w - 1]->name;
        c.comm = comm_for(&c, c.format->name, (w + s) % 2 == 0 ? "200" : NULL);
        if (f < NARROW && sar_scheme_serves(c.scheme, SAR_REDUCE_SCATTER) && !c.scheme->on_dense_buffers)
            run_scatter(&c, 1 + w % 3);
        if (f < NARROW && sar_scheme_serves(c.scheme, SAR_ALLREDUCE))
            run_config(&c);
        if (sar_scheme_serves(c.scheme, SAR_ALLREDUCE))
            run_extremes(&c);
        MPI_Comm_free(&c.comm);
    }
}

/* Reduce reals under a hash seed; the caller frees the result. */
static float *seeded(struct config c, const char *seed, const struct tensor *t)
{
    setenv("MPIX_SPARSE_SEED", seed, 1);
    c.comm = comm_for(&c, c.format->name, "200");
    float *out = reduce_both(&c, t, NULL, false);
    MPI_Comm_free(&c.comm);
    return out;
}

/* An element's bits do not depend on its owner. */
static void run_seeds(const struct config *c)
{
    const char *before = getenv("MPIX_SPARSE_SEED");
    char *old = before == NULL ? NULL : strcpy(get_memory(strlen(before) + 1, 1), before);
    const struct tensor_desc desc = { FLOAT32, SUM, 1, 2000 };
    struct tensor t;
    draw(draw_real, &desc, &t);
    name_case(c, &desc, "two seeds");
    float *one = seeded(*c, "1", &t), *other = seeded(*c, "2", &t);
    check(memcmp(one, other, (size_t)desc.count * sizeof *one) == 0, "expected equal bits for seeds 1 and 2");
    free(one);
    free(other);
    tensor_free(&t);
    if (old != NULL)
        setenv("MPIX_SPARSE_SEED", old, 1);
    else
        unsetenv("MPIX_SPARSE_SEED");
    free(old);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    bool few = oversubscribed || ranks > 4 || ranks == 1;
    for (size_t s = 0; sar_schemes[s] != NULL; s++) {
        for (size_t f = 0; f < FORMATS; f++)
            run_wires(s, f, few);
        if (!sar_scheme_serves(sar_schemes[s], SAR_ALLREDUCE))
            continue;
        run_seeds(&(struct config){ .scheme = sar_schemes[s], .format = &formats[s % NARROW] });
        if (sar_schemes[s] != &sar_scheme_dense)
            run_bytes((struct config){ .scheme = sar_schemes[s], .format = &formats[s % NARROW] }, few);
    }
    return check_end("wire_precision");
}
