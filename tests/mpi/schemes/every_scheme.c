/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests every scheme with every format and partition on a table of vectors, against MPI_Allreduce, bit for
 * bit. The share of combinations decreases with the number of ranks; each number of ranks runs another
 * share. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "patterns.h"
#include "tensors.h"

static const char *const schemes[] = { "dense", EVERY_SPARSE_SCHEME, "auto" };
static const char *const wires[] = { NULL, "smallest", "coo/hash_bitmap", EVERY_WIRE };
static const char *const grains[] = { "1", "4", "64", "256" };

enum {
    SCHEMES = sizeof schemes / sizeof schemes[0],
    WIRES = sizeof wires / sizeof wires[0],
    GRAINS = sizeof grains / sizeof grains[0],
    MOST_CONFIGS = 512,
    APIS = 3 /* coordinates, dense, dense in place */
};

struct config {
    struct settings settings;
    int nodes; /* 0: default */
    MPI_Comm comm;
    MPIX_Sparse_result result; /* reused by later calls */
    const struct index_type *index_type;
};

/* With many ranks, few processors, or an argument, only a share of all combinations runs. */
static bool few;

/* Factor by which each case is slower, and fewer run: SAR_TEST_SLOWNESS. */
static uint64_t slowness = 1;

static struct config configs[MOST_CONFIGS];
static size_t config_count;
static int nodes; /* nodes of the configurations added next */

static void add_config(const char *scheme, const char *wire, const char *partition, const char *grain,
                       const char *segment)
{
    struct settings settings = { scheme, wire, partition, grain, segment };
    check(config_count < MOST_CONFIGS, "too many configurations for the table");
    nodes_set(nodes);
    configs[config_count] =
        (struct config){ settings, nodes, settings_comm(&settings), MPIX_SPARSE_RESULT_NULL,
                         &index_types[config_count % INDEX_TYPES] };
    config_count++;
}

/* The first use of a communicator takes long, so with many ranks each format and each partition runs only
 * once. */
static void add_balanced(void)
{
    for (size_t w = 0; w < WIRES; w++) {
        for (size_t g = 0; g < GRAINS; g++) {
            if (few && w % GRAINS != g)
                continue;
            add_config("balanced", wires[w], "hash", grains[g], g % 2 == 0 ? NULL : "200");
            add_config("balanced", wires[(w + 1) % WIRES], "cyclic", grains[g], g % 2 == 0 ? "40" : NULL);
        }
        if (!few || w % 3 == 0)
            add_config("balanced", wires[w], "range", NULL, NULL);
        if (!few || w % 3 == 1)
            add_config("balanced", wires[w], "hierarchical", w % 2 == 0 ? NULL : "4",
                       w % 4 < 2 ? NULL : "200");
    }
}

/* Each rank may be a node of its own only if the test runs on one node. */
static void add_two_level(void)
{
    static const char *const partitions[] = { "hash", "cyclic", "range", "hierarchical" };
    for (nodes = 1; nodes <= 3 && (nodes == 1 || nodes < ranks); nodes++)
        for (size_t w = few ? (size_t)nodes % 3 : 0; w < WIRES; w += few ? 3 : 1)
            add_config("two_level", wires[w], partitions[(w + (size_t)nodes) % 4], grains[w % GRAINS],
                       w % 2 == 0 ? NULL : "200");
    nodes = 0;
}

static void make_configs(void)
{
    add_config("dense", NULL, NULL, NULL, NULL);
    for (size_t s = 0; s < SCHEMES; s++) {
        if (strcmp(schemes[s], "dense") == 0)
            continue;
        for (size_t w = few ? s % 3 : 0; w < WIRES; w += few ? 3 : 1)
            add_config(schemes[s], wires[w], NULL, NULL, NULL);
    }
    add_balanced();
    add_two_level();
}

static void free_configs(void)
{
    for (size_t i = 0; i < config_count; i++) {
        check_success(MPIX_Sparse_result_free(&configs[i].result), "MPIX_Sparse_result_free");
        MPI_Comm_free(&configs[i].comm);
    }
}

static bool is_forced(const struct config *c)
{
    return strcmp(c->settings.scheme, "auto") != 0;
}

/* Some MAX and MIN are not delegated to MPI: see src/scheme/dense.c. Vectors may have such an op. */
static bool gives_way(const struct config *c, const struct tensor_desc *desc, bool coordinates)
{
    bool is_signed = desc->base == INT32 || desc->base == INT64;
    bool is_unsigned = desc->base == UINT32 || desc->base == UINT64;
    if (desc->op != MAX && desc->op != MIN)
        return false;
    return coordinates ? strcmp(c->settings.scheme, "dense") == 0 && !is_signed : is_unsigned;
}

static void check_report(const struct config *c, const struct tensor_desc *desc, MPI_Count nnz_out)
{
    MPIX_Sparse_report_t report;
    check_success(MPIX_Sparse_get_report(c->comm, &report), "MPIX_Sparse_get_report");
    check(!is_forced(c) || gives_way(c, desc, nnz_out >= 0) || strcmp(report.scheme, c->settings.scheme) == 0,
          "expected scheme %s to run, found %s", c->settings.scheme, report.scheme);
    check(report.count == desc->count && report.row == (MPI_Count)desc->row && report.ranks == ranks,
          "expected %lld x %zu on %d ranks in the report, found %lld x %lld on %d", (long long)desc->count,
          desc->row, ranks, (long long)report.count, (long long)report.row, report.ranks);
    if (nnz_out >= 0)
        check(report.nnz_out == nnz_out, "expected %lld elements in the report, found %lld",
              (long long)nnz_out, (long long)report.nnz_out);
}

static void run(struct config *c, const struct tensor *t, const struct oracle *o, int api,
                const char *pattern)
{
    check_case("%s, %s %s of %lld x %zu, %s, %s, %d nodes", pattern, base_types[t->desc.base].name,
               op_types[t->desc.op].name, (long long)t->desc.count, t->desc.row,
               api == 0 ? c->index_type->name : "dense interface", settings_text(&c->settings), c->nodes);
    if (api == 0)
        call_coo(t, o, c->index_type, c->comm, &c->result);
    else
        call_dense(o, api == 2, c->comm);
    check_report(c, &t->desc, api == 0 ? (MPI_Count)o->nnz : -1);
}

/* True if the share for this number of ranks contains the combination. */
static bool chosen(size_t combination, int share)
{
    return mix(combination * 64 + (uint64_t)ranks) % ((uint64_t)share * slowness) == 0;
}

static const struct {
    int64_t count;
    size_t row;
} shapes[] = { { 0, 1 }, { 1, 1 }, { 3, 1 }, { 100, 1 }, { 257, 1 }, { 5000, 1 }, { 100, 3 }, { 40, 64 } };

enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void run_shape(const struct pattern *pattern, size_t number, size_t shape)
{
    struct tensor_desc desc = { FLOAT32, SUM, shapes[shape].row, shapes[shape].count };
    struct tensor tensor;
    struct oracle oracle;
    tensor_draw(pattern, &desc, number * SHAPES + shape, &tensor);
    oracle_make(&tensor, &oracle);
    for (size_t i = 0; i < config_count; i++) {
        size_t combination = (number * SHAPES + shape) * MOST_CONFIGS + i;
        if (!chosen(combination, few ? 2 + ranks / 3 : 1))
            continue;
        for (int api = 0; api < APIS; api++)
            if (!few || combination % APIS == (size_t)api)
                run(&configs[i], &tensor, &oracle, api, pattern->name);
        if (pattern->exact_bits && (!few || combination % APIS == 0))
            check_equal_on_ranks(result_hash(configs[i].result, &desc, configs[i].index_type), "the result");
    }
    tensor_free(&tensor);
    oracle_free(&oracle);
}

static void run_patterns(void)
{
    for (size_t p = 0; patterns[p].name != NULL; p++)
        for (size_t s = 0; s < SHAPES; s++)
            run_shape(&patterns[p], p, s);
}

/* Run the first configuration of each scheme with a type, an op and each index type. */
static void run_types(const struct pattern *pattern, const struct tensor_desc *desc)
{
    struct tensor tensor;
    struct oracle oracle;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    tensor_draw(pattern, desc, 99, &tensor);
    oracle_make(&tensor, &oracle);
    for (size_t i = 0; i < config_count; i++) {
        struct config c = configs[i];
        if (i > 0 && strcmp(c.settings.scheme, configs[i - 1].settings.scheme) == 0)
            continue;
        for (size_t j = 0; j < INDEX_TYPES; j++) {
            c.index_type = &index_types[j];
            c.result = result;
            if (chosen(i * INDEX_TYPES + j + 64 * desc->base + 512 * desc->op, few ? 4 : 1))
                run(&c, &tensor, &oracle, 0, pattern->name);
            result = c.result;
        }
        run(&c, &tensor, &oracle, 1 + (int)(i % 2), pattern->name);
    }
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    tensor_free(&tensor);
    oracle_free(&oracle);
}

static void run_all_types(void)
{
    static const char *const names[] = { "identical", "random 0.1", "full", "explicit zeros", "shuffled" };
    enum { NAMES = sizeof names / sizeof names[0] };
    for (size_t p = 0; patterns[p].name != NULL; p++) {
        bool wanted = false;
        for (size_t i = 0; i < NAMES; i++)
            wanted |= strcmp(names[i], patterns[p].name) == 0;
        for (int i = 0; wanted && i < BASES * OPS; i++) {
            struct tensor_desc desc = { (enum base)(i / OPS), (enum op)(i % OPS), (size_t)(1 + i % 2), 257 };
            run_types(&patterns[p], &desc);
        }
    }
}

/* Floats whose sum depends on the order. */
static void draw_reals(const struct tensor_desc *desc, struct tensor *t)
{
    *t = (struct tensor){ .desc = *desc };
    for (int64_t i = 0; i < desc->count; i++) {
        uint64_t bits = mix((uint64_t)i * 1000 + (uint64_t)rank);
        double x = ldexp((double)(bits >> 11), (int)(bits % 20) - 60) * (bits % 2 == 0 ? 1 : -1);
        float single = (float)x;
        if (bits % 3 == 0)
            continue;
        void *at = tensor_add(t, (uint64_t)i);
        memcpy(at, desc->base == FLOAT32 ? (void *)&single : (void *)&x, base_types[desc->base].size);
    }
}

/* Replace MPI_Allreduce's result: sum in rank order within each of `groups` nodes, then sum these in node
 * order. */
static void sum_in_order(struct oracle *o, int groups)
{
    size_t count = (size_t)o->desc.count, bytes = element_bytes(&o->desc);
    unsigned char *all = get_memory(count * (size_t)ranks, bytes), zero[8] = { 0 };
    MPI_Allgather(o->mine, (int)(count * bytes), MPI_BYTE, all, (int)(count * bytes), MPI_BYTE,
                  MPI_COMM_WORLD);
    put_identity(o->desc.base, SUM, o->value, o->nnz);
    for (size_t i = 0; i < o->nnz; i++) {
        unsigned char *sum = o->value + i * bytes, part[8];
        put_identity(o->desc.base, SUM, part, 1);
        for (int r = 0; r < ranks; r++) {
            const unsigned char *in = all + ((size_t)r * count + o->index[i]) * bytes;
            if (memcmp(in, zero, bytes) != 0)
                reduce_numbers(o->desc.base, SUM, part, in, 1);
            if (r + 1 < ranks && (r + 1) * groups / ranks == r * groups / ranks)
                continue;
            reduce_numbers(o->desc.base, SUM, sum, part, 1);
            put_identity(o->desc.base, SUM, part, 1);
        }
        memcpy(o->dense + o->index[i] * bytes, sum, bytes);
    }
    free(all);
}

/* Number of groups in which a scheme sums, if it guarantees an order. */
static int groups_of(const struct config *c)
{
    bool in_order =
        strcmp(c->settings.scheme, "allgather") == 0 || strcmp(c->settings.scheme, "balanced") == 0;
    return in_order ? ranks : strcmp(c->settings.scheme, "two_level") == 0 ? c->nodes : 0;
}

static void run_disorderly(struct config *c, const struct oracle *o)
{
    unsigned char out[8 * 700] = { 0 };
    check_case("reals, %s", settings_text(&c->settings));
    check_success(MPIX_Sparse_allreduce(o->mine, out, o->desc.count, base_types[o->desc.base].type, MPI_SUM,
                                        c->comm),
                  "MPIX_Sparse_allreduce");
    if (strcmp(c->settings.scheme, "dense") != 0)
        check_equal_on_ranks(hash_bytes(out, sizeof out, 3), "the sums");
}

static void run_reals(enum base base)
{
    struct tensor_desc desc = { base, SUM, 1, 700 };
    struct tensor tensor;
    struct oracle oracle;
    draw_reals(&desc, &tensor);
    oracle_make(&tensor, &oracle);
    for (int groups = 0; groups <= ranks; groups++) {
        if (groups > 3 && groups != ranks)
            continue;
        if (groups > 0)
            sum_in_order(&oracle, groups);
        for (size_t i = 0; i < config_count; i++)
            if (groups_of(&configs[i]) != groups)
                continue;
            else if (groups == 0)
                run_disorderly(&configs[i], &oracle);
            else
                run(&configs[i], &tensor, &oracle, (int)i % APIS, "reals in their order");
    }
    tensor_free(&tensor);
    oracle_free(&oracle);
}

/* Unsigned numbers on both sides of the sign bit. */
static void run_unsigned(struct config *c, enum op op)
{
    uint32_t values[] = { UINT32_C(0x80000000) + (uint32_t)rank, 5 + (uint32_t)rank, 7 };
    uint32_t expected[] = { UINT32_C(0x80000000), 5, 7 };
    const uint32_t indices[] = { 10, 11, 11 };
    MPI_Count nnz;
    const void *sums;
    check_case("unsigned %s, %s", op_types[op].name, settings_text(&c->settings));
    if (op == MAX) {
        expected[0] += (uint32_t)ranks - 1;
        expected[1] = ranks - 1 + 5 > 7 ? (uint32_t)ranks - 1 + 5 : 7;
    }
    check_success(MPIX_Sparse_allreduce_coo(indices, values, 3, MPI_UINT32_T, 20, MPI_UINT32_T,
                                            op_types[op].op, c->comm, &c->result),
                  "MPIX_Sparse_allreduce_coo");
    check_success(MPIX_Sparse_result_get(c->result, &nnz, NULL, &sums), "MPIX_Sparse_result_get");
    check(nnz == 2 && memcmp(sums, expected, 2 * sizeof expected[0]) == 0, "expected %x %x, found %x %x",
          expected[0], expected[1], ((const uint32_t *)sums)[0], ((const uint32_t *)sums)[1]);
}

static void run_all_unsigned(void)
{
    for (size_t i = 0; i < config_count; i++) {
        run_unsigned(&configs[i], MAX);
        run_unsigned(&configs[i], MIN);
    }
}

/* Vectors too long for a dense buffer: no cost of a call may grow with count. */
static void run_vast(struct config *c, int64_t count, const struct index_type *type)
{
    uint64_t wide[] = { 0, (uint64_t)count / 2 + (uint64_t)rank, (uint64_t)count - 1 };
    uint32_t narrow[] = { 0, (uint32_t)wide[1], (uint32_t)wide[2] };
    int64_t values[] = { 1, rank, 3 };
    MPI_Count nnz = 0;
    const void *indices, *sums;
    check_case("%lld elements, %s, %s", (long long)count, type->name, settings_text(&c->settings));
    check_success(MPIX_Sparse_allreduce_coo(type->size == 4 ? (void *)narrow : (void *)wide, values, 3,
                                            type->type, count, MPI_INT64_T, MPI_SUM, c->comm, &c->result),
                  "MPIX_Sparse_allreduce_coo");
    check_success(MPIX_Sparse_result_get(c->result, &nnz, &indices, &sums), "MPIX_Sparse_result_get");
    check(nnz == 2 + ranks, "expected %d elements, found %lld", 2 + ranks, (long long)nnz);
    for (int i = 0; i < 2 + ranks; i++) {
        uint64_t index = type->size == 4 ? ((const uint32_t *)indices)[i] : ((const uint64_t *)indices)[i];
        uint64_t expected = i == 0 ? 0 : i == ranks + 1 ? (uint64_t)count - 1 : (uint64_t)(count / 2 + i - 1);
        int64_t sum = ((const int64_t *)sums)[i], right = i == 0 ? ranks : i == ranks + 1 ? 3 * ranks : i - 1;
        check(index == expected && sum == right, "expected %lld at index %llu, found %lld at %llu",
              (long long)right, (unsigned long long)expected, (long long)sum, (unsigned long long)index);
    }
}

/* Leaves out formats with a bit or a value for each element, MPI_Allreduce, and parts of more than 2^32
 * elements. */
static void run_all_vast(void)
{
    const int64_t edge = (int64_t)1 << 32;
    for (size_t i = 0; i < config_count; i++) {
        struct config *c = &configs[i];
        bool balanced =
            strcmp(c->settings.scheme, "balanced") == 0 || strcmp(c->settings.scheme, "two_level") == 0;
        if (strcmp(c->settings.scheme, "dense") == 0 || c->settings.wire == NULL ||
            strcmp(c->settings.wire, "coo") != 0)
            continue;
        if (!balanced || ranks > 1)
            run_vast(c, edge, &index_types[1]);
        run_vast(c, edge / 2, &index_types[0]);
        if (!balanced)
            run_vast(c, 1000 * edge, &index_types[2]);
        if (!balanced || ranks > 2)
            run_vast(c, edge + 1, &index_types[3]);
    }
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    few = oversubscribed || ranks > 4 || argc > 1;
    if (getenv("SAR_TEST_SLOWNESS") != NULL)
        slowness = strtoull(getenv("SAR_TEST_SLOWNESS"), NULL, 10);
    make_configs();
    run_patterns();
    run_all_types();
    run_reals(FLOAT32);
    run_reals(FLOAT64);
    run_all_unsigned();
    run_all_vast();
    free_configs();
    return check_end("every_scheme");
}
