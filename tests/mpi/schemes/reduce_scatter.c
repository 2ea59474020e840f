/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests reduce_scatter on a table of vectors, types, ops and blocks, bit for bit against
 * MPI_Reduce_scatter_block of dense vectors; then allgather of its results against the whole vector. Each
 * case runs in several formats, segments and numbers of nodes, blocking, nonblocking or by a plan. Also tests
 * the bytes that each rank sends, exactly, and vectors too long for a dense buffer. */

#include <mpix_sparse.h>
#include <stdlib.h>
#include <string.h>

#include "array_length.h"
#include "check.h"
#include "patterns.h"
#include "tensors.h"

enum { HEADER = 64, MOST_BLOCKS = 8, MANY = 1200 /* elements: enough for quantiles */ };

/* How a call is made. */
enum how { BLOCKING, NONBLOCKING, PLAN, HOWS };

static struct config {
    struct settings settings;
    int nodes; /* 0: default */
    MPI_Comm comm;
    MPIX_Sparse_result owned, all; /* reused by later calls */
} configs[] = {
    { .settings = { "balanced", NULL, NULL, NULL, NULL } },
    { .settings = { "balanced", "coo", "hash", "4", "40" } },
    { .settings = { "balanced", "elias_fano", "range", NULL, "200" }, .nodes = 2 },
    { .settings = { "balanced", "hash_bitmap", NULL, NULL, "40" }, .nodes = 9 },
    { .settings = { "balanced", "bitmap", NULL, NULL, "200" }, .nodes = 9 },
    { .settings = { "balanced", "block", NULL, NULL, "40" } },
    { .settings = { "balanced", "dense", NULL, NULL, NULL } },
    { .settings = { "dense", NULL, NULL, NULL, NULL } },
    { .settings = { "two_level", NULL, NULL, NULL, "40" }, .nodes = 2 },
    { .settings = { "recursive_halving", NULL, NULL, NULL, NULL } },
    { .settings = { "recursive_halving", "coo", NULL, NULL, NULL }, .nodes = 2 },
    { .settings = { "recursive_halving", "dense", NULL, NULL, NULL }, .nodes = 9 },
    { .settings = { "allgather", "smallest", NULL, NULL, "40" } },
    { .settings = { "auto", NULL, NULL, NULL, NULL } },
};

static void make_configs(void)
{
    for (size_t i = 0; i < LENGTH(configs); i++) {
        nodes_set(configs[i].nodes < ranks ? configs[i].nodes : ranks);
        configs[i].comm = settings_comm(&configs[i].settings);
    }
    nodes_set(0);
}

static void free_configs(void)
{
    for (size_t i = 0; i < LENGTH(configs); i++) {
        check_success(MPIX_Sparse_result_free(&configs[i].owned), "MPIX_Sparse_result_free");
        check_success(MPIX_Sparse_result_free(&configs[i].all), "MPIX_Sparse_result_free");
        MPI_Comm_free(&configs[i].comm);
    }
}

/* Position of an element among those of its owner. */
static uint64_t slot_of(uint64_t index, int64_t block)
{
    uint64_t number = index / (uint64_t)block;
    return number / (uint64_t)ranks * (uint64_t)block + index % (uint64_t)block;
}

/* Replaces the values by those that MPI_Reduce_scatter_block computes. Absent elements are identities. */
static void reduce_by_mpi(const struct tensor *t, int64_t block, struct oracle *part)
{
    const struct tensor_desc *k = &t->desc;
    size_t bytes = element_bytes(k), slots = 0;
    for (uint64_t i = 0; i < (uint64_t)k->count; i++)
        slots = slot_of(i, block) >= slots ? slot_of(i, block) + 1 : slots;
    unsigned char *in = get_memory(slots * (size_t)ranks, bytes), *out = get_memory(slots, bytes);
    put_identity(k->base, k->op, in, slots * (size_t)ranks * k->row);
    for (size_t i = 0; i < t->nnz; i++) {
        size_t at = (size_t)owner_of(t->index[i], block) * slots + slot_of(t->index[i], block);
        reduce_numbers(k->base, k->op, in + at * bytes, t->value + i * bytes, k->row);
    }
    MPI_Reduce_scatter_block(in, out, (int)(slots * k->row), base_types[k->base].type, op_types[k->op].op,
                             MPI_COMM_WORLD);
    for (size_t i = 0; i < part->nnz; i++)
        memcpy(part->value + i * bytes, out + slot_of(part->index[i], block) * bytes, bytes);
    free(in);
    free(out);
}

/* Arguments of a call; the block of an allgather is 0. */
struct arguments {
    const void *indices, *values;
    MPI_Count nnz, count, block;
    MPI_Datatype indextype, datatype;
    MPI_Op op;
};

static void run_plan(const struct arguments *a, MPI_Comm comm, MPIX_Sparse_result *result)
{
    MPIX_Sparse_plan plan = MPIX_SPARSE_PLAN_NULL;
    MPI_Request request;
    check_success(a->block > 0
                      ? MPIX_Sparse_reduce_scatter_coo_init(a->indextype, a->count, a->block, a->datatype,
                                                            a->op, comm, MPI_INFO_NULL, &plan)
                      : MPIX_Sparse_allgather_coo_init(a->indextype, a->count, a->datatype, comm,
                                                       MPI_INFO_NULL, &plan),
                  "MPIX_Sparse_*_coo_init");
    for (int start = 0; start < 2; start++) {
        check_success(MPIX_Sparse_plan_start_coo(plan, a->indices, a->values, a->nnz, result, &request),
                      "MPIX_Sparse_plan_start_coo");
        check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    }
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
}

static void run_nonblocking(const struct arguments *a, MPI_Comm comm, MPIX_Sparse_result *result)
{
    MPI_Request request;
    check_success(a->block > 0
                      ? MPIX_Isparse_reduce_scatter_coo(a->indices, a->values, a->nnz, a->indextype, a->count,
                                                        a->block, a->datatype, a->op, comm, result, &request)
                      : MPIX_Isparse_allgather_coo(a->indices, a->values, a->nnz, a->indextype, a->count,
                                                   a->datatype, comm, result, &request),
                  "MPIX_Isparse_*_coo");
    check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
}

static void run_blocking(const struct arguments *a, MPI_Comm comm, MPIX_Sparse_result *result)
{
    check_success(a->block > 0
                      ? MPIX_Sparse_reduce_scatter_coo(a->indices, a->values, a->nnz, a->indextype, a->count,
                                                       a->block, a->datatype, a->op, comm, result)
                      : MPIX_Sparse_allgather_coo(a->indices, a->values, a->nnz, a->indextype, a->count,
                                                  a->datatype, comm, result),
                  "MPIX_Sparse_*_coo");
}

static void run(enum how how, const struct arguments *a, MPI_Comm comm, MPIX_Sparse_result *result)
{
    if (how == PLAN)
        run_plan(a, comm, result);
    else if (how == NONBLOCKING)
        run_nonblocking(a, comm, result);
    else
        run_blocking(a, comm, result);
}

/* True if `dense` takes coordinates for certain: identities are neutral, and parts are about equally long. */
static bool dense_serves(const struct tensor_desc *desc, int64_t block)
{
    bool orders = desc->op == MAX || desc->op == MIN, is_signed = desc->base == INT32 || desc->base == INT64;
    return (is_signed || !orders) && block <= (desc->count + ranks - 1) / ranks;
}

/* The scheme that serves the collective runs, whatever the settings say. An allgather has block 0. */
static const char *serving_scheme(const struct config *c, const struct tensor_desc *desc, int64_t block)
{
    if (strcmp(c->settings.scheme, "dense") == 0)
        return block > 0 && dense_serves(desc, block) ? "dense" : "auto";
    if (strcmp(c->settings.scheme, "two_level") == 0)
        return block > 0 && ranks > c->nodes ? "two_level" : "auto";
    const char *other = block > 0 ? "allgather" : "recursive_halving"; /* of the other half */
    return strcmp(c->settings.scheme, other) == 0 ? "auto" : c->settings.scheme;
}

static void check_report(const struct config *c, const char *serves, bool scatters, size_t nnz_out)
{
    MPIX_Sparse_report_t report;
    check_success(MPIX_Sparse_get_report(c->comm, &report), "MPIX_Sparse_get_report");
    check(strcmp(serves, "auto") == 0 || strcmp(report.scheme, serves) == 0,
          "expected scheme %s to run, found %s", serves, report.scheme);
    check((size_t)report.nnz_out == nnz_out, "expected %zu elements in the report, found %lld", nnz_out,
          (long long)report.nnz_out);
    check(strcmp(scatters ? report.pull_wire : report.push_wire, "none") == 0 || !scatters ||
              strcmp(report.scheme, "balanced") != 0,
          "expected one half of an allreduce, found the other too");
}

static void run_case(struct config *c, enum how how, const struct tensor *t, const struct oracle *all,
                     const struct oracle *part, int64_t block, const struct index_type *type)
{
    void *indices = typed_indices(t, type);
    MPI_Datatype element = row_type(&t->desc);
    struct arguments a = { indices, t->value,   (MPI_Count)t->nnz, t->desc.count,
                           block,   type->type, element,           op_types[t->desc.op].op };
    run(how, &a, c->comm, &c->owned);
    compare_result(part, type, c->owned);
    check_report(c, serving_scheme(c, &t->desc, block), true, part->nnz);
    a.block = 0;
    check_success(MPIX_Sparse_result_get(c->owned, &a.nnz, &a.indices, &a.values), "MPIX_Sparse_result_get");
    run(how, &a, c->comm, &c->all);
    compare_result(all, type, c->all);
    check_report(c, serving_scheme(c, &t->desc, 0), false, all->nnz);
    row_type_free(&t->desc, &element);
    free(indices);
}

/* True if the share for this number of ranks contains the combination. */
static bool chosen(uint64_t combination)
{
    uint64_t share = ranks == 1 ? 16 : oversubscribed || ranks > 3 ? 256 : 64;
    return mix(combination * 64 + (uint64_t)ranks) % share == 0;
}

static size_t list_blocks(int64_t count, int64_t blocks[MOST_BLOCKS])
{
    int64_t even = (count + ranks - 1) / ranks;
    const int64_t list[] = { 1, 2, 7, 64, even / 2, even, count + 5, INT64_MAX };
    size_t n = 0;
    for (size_t i = 0; i < LENGTH(list); i++)
        if (list[i] > 0)
            blocks[n++] = list[i];
    return n;
}

static void run_block(const struct pattern *pattern, const struct tensor *t, const struct oracle *all,
                      int64_t block, size_t number)
{
    const struct tensor_desc *desc = &t->desc;
    struct config *c = &configs[number % LENGTH(configs)];
    enum how how = (enum how)(number / 2 % HOWS);
    struct oracle part = oracle_owned(all, block);
    check_case("%s, %s %s of %lld x %zu, block %lld, %s, how %d", pattern->name, base_types[desc->base].name,
               op_types[desc->op].name, (long long)desc->count, desc->row, (long long)block,
               settings_text(&c->settings), (int)how);
    reduce_by_mpi(t, block, &part);
    run_case(c, how, t, all, &part, block, &index_types[number % INDEX_TYPES]);
    oracle_free(&part);
}

static void run_vector(const struct pattern *pattern, const struct tensor_desc *desc, uint64_t seed)
{
    struct tensor tensor;
    struct oracle all;
    int64_t blocks[MOST_BLOCKS];
    size_t n = list_blocks(desc->count, blocks);
    tensor_draw(pattern, desc, seed, &tensor);
    oracle_make(&tensor, &all);
    for (size_t i = 0; i < n * LENGTH(configs); i++)
        if (chosen(seed * MOST_BLOCKS * LENGTH(configs) + i))
            run_block(pattern, &tensor, &all, blocks[i / LENGTH(configs)], i);
    tensor_free(&tensor);
    oracle_free(&all);
}

static void run_table(void)
{
    static const struct {
        int64_t count;
        size_t row;
    } shapes[] = { { 0, 1 }, { 1, 1 }, { 3, 1 }, { 100, 1 }, { 5000, 1 }, { 100, 3 }, { 40, 64 } };
    for (size_t p = 0; patterns[p].name != NULL; p++)
        for (size_t s = 0; s < LENGTH(shapes); s++)
            run_vector(&patterns[p], &(struct tensor_desc){ FLOAT32, SUM, shapes[s].row, shapes[s].count },
                       p * LENGTH(shapes) + s);
    for (int i = 0; i < BASES * OPS; i++)
        for (int p = 0; p < 2; p++)
            run_vector(pattern_find(p == 0 ? "random 0.1" : "shuffled"),
                       &(struct tensor_desc){ (enum base)(i / OPS), (enum op)(i % OPS), 1 + (size_t)i % 2,
                                              257 },
                       1000 + (uint64_t)i);
}

/* Each rank sends every other one the elements that it owns, once, as coordinates; then its sums. */
static void check_volume(int64_t block)
{
    const struct tensor_desc desc = { FLOAT64, SUM, 3, 3000 };
    const long long element = (long long)element_bytes(&desc) + 4;
    struct settings settings = { "balanced", "coo", NULL, NULL, NULL };
    struct config c = { .settings = settings, .comm = settings_comm(&settings) };
    struct tensor t;
    struct oracle all;
    MPIX_Sparse_report_t report;
    long long pushed = 0;
    tensor_draw(pattern_find("random 0.1"), &desc, 5, &t);
    oracle_make(&t, &all);
    struct oracle part = oracle_owned(&all, block);
    for (size_t i = 0; i < t.nnz; i++)
        pushed += owner_of(t.index[i], block) != rank ? element : 0;
    void *indices = typed_indices(&t, &index_types[0]);
    MPI_Datatype datatype = row_type(&desc);
    struct arguments a = { indices, t.value,     (MPI_Count)t.nnz, desc.count,
                           block,   MPI_INT32_T, datatype,         MPI_SUM };
    for (int half = 0; half < 2; half++) {
        long long expected = half == 0 ? pushed : (ranks - 1) * (long long)part.nnz * element;
        check_case("volume of %s, block %lld", half == 0 ? "reduce_scatter" : "allgather", (long long)block);
        run(BLOCKING, &a, c.comm, half == 0 ? &c.owned : &c.all);
        check_success(MPIX_Sparse_get_report(c.comm, &report), "MPIX_Sparse_get_report");
        check(report.messages_sent == ranks - 1 && report.header_bytes_sent == (ranks - 1) * HEADER,
              "expected %d messages, found %lld", ranks - 1, (long long)report.messages_sent);
        check(report.bytes_sent - report.header_bytes_sent == expected, "expected %lld bytes, found %lld",
              expected, (long long)(report.bytes_sent - report.header_bytes_sent));
        a.block = 0;
        check_success(MPIX_Sparse_result_get(c.owned, &a.nnz, &a.indices, &a.values),
                      "MPIX_Sparse_result_get");
    }
    row_type_free(&desc, &datatype);
    free(indices);
    oracle_free(&part);
    check_success(MPIX_Sparse_result_free(&c.owned), "MPIX_Sparse_result_free");
    check_success(MPIX_Sparse_result_free(&c.all), "MPIX_Sparse_result_free");
    MPI_Comm_free(&c.comm);
    tensor_free(&t);
    oracle_free(&all);
}

/* The report tells how the caller's map divides the elements: here all are one rank's. The price of the next
 * call counts that. */
static void check_skew(void)
{
    struct config *c = &configs[0];
    uint32_t index[] = { 0, (uint32_t)ranks, 2 * (uint32_t)ranks };
    float value[] = { 1, 2, 3 };
    struct arguments a = { index, value, 3, 997, 1, MPI_UINT32_T, MPI_FLOAT, MPI_SUM };
    MPIX_Sparse_report_t report;
    check_case("all elements of one owner");
    run(BLOCKING, &a, c->comm, &c->owned);
    check_success(MPIX_Sparse_get_report(c->comm, &report), "MPIX_Sparse_get_report");
    check(report.push_imbalance == ranks && report.pull_imbalance == 0,
          "expected imbalances %d and 0, found %g and %g", ranks, report.push_imbalance,
          report.pull_imbalance);
    double predicted = report.predicted_seconds;
    run(BLOCKING, &a, c->comm, &c->owned);
    check_success(MPIX_Sparse_get_report(c->comm, &report), "MPIX_Sparse_get_report");
    check(report.predicted_seconds > predicted || ranks == 1,
          "expected a longer time once the imbalance is known, found %g and %g s", predicted,
          report.predicted_seconds);
    check(report.grain == 1 && strcmp(report.partition, "cyclic") == 0, "expected cyclic parts, found %s",
          report.partition);
}

/* Vectors too long for a dense buffer: memory must not grow with count. All ranks have `low`
 * elements in the first sixty-fourth and the last one, and each rank has one of its own. */
static void run_vast(struct config *c, int64_t count, int64_t block, size_t low)
{
    size_t others = (size_t)ranks + 1;
    uint64_t *index = get_memory(low + 2, sizeof *index);
    uint64_t middle = (uint64_t)count / 2, step = (uint64_t)count / 64 / low;
    int64_t *value = get_memory(low + 2, sizeof *value);
    struct tensor_desc desc = { INT64, SUM, 1, count };
    struct oracle all = { .desc = desc, .nnz = low + others };
    all.index = get_memory(all.nnz, sizeof *all.index);
    int64_t *sums = get_memory(all.nnz, sizeof *sums);
    all.value = (unsigned char *)sums;
    for (size_t i = 0; i < low + others; i++) {
        all.index[i] = i < low ? i * step : i + 1 < low + others ? middle + i - low : (uint64_t)count - 1;
        sums[i] = i < low ? ranks : i + 1 < low + others ? (int64_t)(i - low) : 3 * ranks;
    }
    for (size_t i = 0; i < low + 2; i++) {
        index[i] = i < low ? i * step : i == low ? middle + (uint64_t)rank : (uint64_t)count - 1;
        value[i] = i < low ? 1 : i == low ? rank : 3;
    }
    struct oracle part = oracle_owned(&all, block);
    struct arguments a = {
        index, value, (MPI_Count)low + 2, count, block, MPI_UINT64_T, MPI_INT64_T, MPI_SUM
    };
    check_case("%lld elements, block %lld, %zu low ones, %s", (long long)count, (long long)block, low,
               settings_text(&c->settings));
    run(BLOCKING, &a, c->comm, &c->owned);
    compare_result(&part, &index_types[3], c->owned);
    a.block = 0;
    check_success(MPIX_Sparse_result_get(c->owned, &a.nnz, &a.indices, &a.values), "MPIX_Sparse_result_get");
    run(BLOCKING, &a, c->comm, &c->all);
    compare_result(&all, &index_types[3], c->all);
    free(index);
    free(value);
    free(all.index);
    free(sums);
    oracle_free(&part);
}

/* In the last cases 2^32 slots are no whole number of blocks, and segments with equally many elements would
 * have more slots. */
static void run_all_vast(void)
{
    const int64_t edge = (int64_t)1 << 32, long_block = 3000000000;
    const int64_t counts[] = { edge / 2, edge, edge + 1, 8 * edge };
    for (size_t i = 0; i < LENGTH(counts); i++)
        for (size_t c = 0; c < 2; c++) {
            run_vast(&configs[1], counts[i], c == 0 ? 1 : 1000003, 1);
            run_vast(&configs[1], counts[i], c == 0 ? counts[i] / ranks + 1 : counts[i], 1);
        }
    run_vast(&configs[0], 4 * ranks * long_block, long_block, 1);
    run_vast(&configs[2], 128 * edge, 1000003, MANY);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    make_configs();
    run_table();
    check_volume(1);
    check_volume(77);
    check_volume((3000 + ranks - 1) / ranks);
    check_skew();
    run_all_vast();
    free_configs();
    return check_end("reduce_scatter");
}
