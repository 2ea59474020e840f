/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests reduce_scatter of dense buffers on a table of vectors, types, ops and lengths, bit for bit against
 * MPI_Reduce_scatter_block. Each case runs in a scheme, in MPI as a fallback, or in MPI in many pieces;
 * blocking, nonblocking or by a plan; in place or not. Also tests types and ops that only MPI has, the
 * report, and the bytes that each rank sends.
 *
 * Link with the library's objects: the length of a piece is a variable of the library. */

#include <mpix_sparse.h>
#include <stdlib.h>
#include <string.h>

#include "array_length.h"
#include "check.h"
#include "comm/dense_allreduce.h"
#include "patterns.h"
#include "tensors.h"

enum { HEADER = 64, AFTER = 64 /* bytes behind recvbuf that no call may change */ };

enum how { BLOCKING, NONBLOCKING, PLAN, HOWS };

static struct config {
    struct settings settings;
    int nodes;           /* 0: default */
    const char *forward; /* MPIX_SPARSE_FORWARD */
    bool in_pieces;      /* MPI gets each part in some calls */
    MPI_Comm comm;
} configs[] = {
    { .settings = { "auto", NULL, NULL, NULL, NULL }, .forward = "0" },
    { .settings = { "balanced", NULL, NULL, NULL, NULL }, .forward = "0" },
    { .settings = { "balanced", "coo", "hash", "4", "40" }, .nodes = 2, .forward = "63" },
    { .settings = { "balanced", "bitmap", NULL, NULL, "200" }, .nodes = 9, .forward = "0" },
    { .settings = { "dense", NULL, NULL, NULL, NULL }, .forward = "0" },
    { .settings = { "dense", NULL, NULL, NULL, NULL }, .forward = "63" },
    { .settings = { "dense", NULL, NULL, NULL, NULL }, .forward = "0", .in_pieces = true },
    { .settings = { "dense", NULL, NULL, NULL, NULL }, .forward = "63", .in_pieces = true },
    { .settings = { "recursive_halving", NULL, NULL, NULL, NULL }, .forward = "0" },
    { .settings = { "ring", NULL, NULL, NULL, NULL }, .forward = "0" },
};

static void make_configs(void)
{
    for (size_t i = 0; i < LENGTH(configs); i++) {
        nodes_set(configs[i].nodes < ranks ? configs[i].nodes : ranks);
        setenv("MPIX_SPARSE_FORWARD", configs[i].forward, 1);
        configs[i].comm = settings_comm(&configs[i].settings);
    }
    nodes_set(0);
}

/* Arguments of a call. */
struct arguments {
    const void *in;
    void *out;
    MPI_Count recvcount;
    MPI_Datatype datatype;
    MPI_Op op;
};

static void run_plan(const struct arguments *a, MPI_Comm comm)
{
    MPIX_Sparse_plan plan = MPIX_SPARSE_PLAN_NULL;
    MPI_Request request;
    check_success(MPIX_Sparse_reduce_scatter_init(a->in, a->out, a->recvcount, a->datatype, a->op, comm,
                                                  MPI_INFO_NULL, &plan),
                  "MPIX_Sparse_reduce_scatter_init");
    for (int start = 0; start < (a->in == MPI_IN_PLACE ? 1 : 2); start++) {
        check_success(MPIX_Sparse_plan_start(plan, &request), "MPIX_Sparse_plan_start");
        check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    }
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
}

static void run(enum how how, const struct arguments *a, MPI_Comm comm)
{
    MPI_Request request;
    if (how == PLAN) {
        run_plan(a, comm);
    } else if (how == NONBLOCKING) {
        check_success(MPIX_Isparse_reduce_scatter(a->in, a->out, a->recvcount, a->datatype, a->op, comm,
                                                  &request),
                      "MPIX_Isparse_reduce_scatter");
        check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    } else {
        check_success(MPIX_Sparse_reduce_scatter(a->in, a->out, a->recvcount, a->datatype, a->op, comm),
                      "MPIX_Sparse_reduce_scatter");
    }
}

/* Runs a call whose results have so many bytes a rank. */
static void run_config(const struct config *c, enum how how, const struct arguments *a, size_t bytes)
{
    sar_dense_allreduce_chunk_bytes = c->in_pieces ? bytes / 3 + 1 : SAR_DENSE_ALLREDUCE_CHUNK_BYTES;
    run(how, a, c->comm);
    sar_dense_allreduce_chunk_bytes = SAR_DENSE_ALLREDUCE_CHUNK_BYTES;
}

/* Checks the bytes behind the result, which is all of the buffer unless the call is in place. */
static void check_after(const unsigned char *out, size_t bytes)
{
    for (size_t i = 0; i < AFTER; i++)
        check(out[bytes + i] == 0x77, "expected byte %zu behind recvbuf as it was", i);
}

/* MPI leaves the rest of a buffer in place to itself. */
static void run_case(struct config *c, enum how how, bool in_place, const struct tensor_desc *desc,
                     const unsigned char *mine)
{
    size_t bytes = element_bytes(desc), recvcount = (size_t)desc->count / (size_t)ranks;
    size_t whole = (size_t)desc->count * bytes, part = recvcount * bytes;
    unsigned char *out = get_memory(whole + AFTER, 1), *expected = get_memory(part + 1, 1);
    MPI_Datatype element = row_type(desc);
    struct arguments a = { in_place ? MPI_IN_PLACE : mine, out, (MPI_Count)recvcount, element,
                           op_types[desc->op].op };
    MPI_Reduce_scatter_block(mine, expected, (int)(recvcount * desc->row), base_types[desc->base].type,
                             op_types[desc->op].op, MPI_COMM_WORLD);
    memset(out, 0x77, whole + AFTER);
    if (in_place)
        memcpy(out, mine, whole);
    run_config(c, how, &a, part);
    check(equal_numbers(desc, out, expected, recvcount), "expected the result of MPI_Reduce_scatter_block");
    check_after(out, in_place ? whole : part);
    row_type_free(desc, &element);
    free(out);
    free(expected);
}

/* True if the share for this number of ranks contains the combination. */
static bool chosen(uint64_t combination)
{
    uint64_t share = ranks == 1 ? 8 : oversubscribed || ranks > 3 ? 256 : 48;
    return mix(combination * 64 + (uint64_t)ranks) % share == 0;
}

static void run_vector(const struct pattern *pattern, const struct tensor_desc *desc, uint64_t seed)
{
    struct tensor tensor;
    struct oracle oracle;
    tensor_draw(pattern, desc, seed, &tensor);
    oracle_make(&tensor, &oracle);
    for (size_t i = 0; i < LENGTH(configs) * HOWS * 2; i++) {
        struct config *c = &configs[i % LENGTH(configs)];
        enum how how = (enum how)(i / LENGTH(configs) % HOWS);
        bool in_place = i / LENGTH(configs) / HOWS != 0;
        if (!chosen(seed * LENGTH(configs) * HOWS * 2 + i))
            continue;
        check_case("%s, %s %s of %lld x %zu, how %d, in place %d, %s, forward %s, in pieces %d",
                   pattern->name, base_types[desc->base].name, op_types[desc->op].name,
                   (long long)desc->count, desc->row, (int)how, in_place, settings_text(&c->settings),
                   c->forward, c->in_pieces);
        run_case(c, how, in_place, desc, oracle.mine);
    }
    tensor_free(&tensor);
    oracle_free(&oracle);
}

static void run_table(void)
{
    static const struct {
        int64_t recvcount;
        size_t row;
    } shapes[] = { { 0, 1 }, { 1, 1 }, { 3, 1 }, { 100, 1 }, { 1500, 1 }, { 100, 3 }, { 40, 64 } };
    for (size_t p = 0; patterns[p].name != NULL; p++)
        for (size_t s = 0; s < LENGTH(shapes); s++)
            run_vector(&patterns[p],
                       &(struct tensor_desc){ FLOAT32, SUM, shapes[s].row, shapes[s].recvcount * ranks },
                       p * LENGTH(shapes) + s);
    for (int i = 0; i < BASES * OPS; i++)
        for (int p = 0; p < 2; p++)
            run_vector(pattern_find(p == 0 ? "random 0.1" : "shuffled"),
                       &(struct tensor_desc){ (enum base)(i / OPS), (enum op)(i % OPS), 1 + (size_t)i % 2,
                                              129 * ranks },
                       1000 + (uint64_t)i * 2 + (uint64_t)p);
}

/* The value of the first rank: an op that does not commute. */
static void keep_first(void *from, void *to, int *n, MPI_Datatype *type)
{
    (void)type;
    memcpy(to, from, (size_t)*n * sizeof(int));
}

/* MPI reduces these; pieces must not change the result. */
static void run_others(void)
{
    enum { COUNT = 50, BYTES = 16 * COUNT };
    MPI_Op first;
    MPI_Op_create(keep_first, 0, &first);
    const struct {
        const char *name;
        MPI_Datatype type;
        MPI_Op op;
    } cases[] = { { "MPI_LXOR of MPI_INT", MPI_INT, MPI_LXOR },
                  { "MPI_BXOR of MPI_BYTE", MPI_BYTE, MPI_BXOR },
                  { "MPI_MAXLOC of MPI_2INT", MPI_2INT, MPI_MAXLOC },
                  { "a user-defined op", MPI_INT, first } };
    unsigned char *in = get_memory((size_t)ranks * BYTES, 1), *out = get_memory(BYTES, 1),
                  *expected = get_memory(BYTES, 1);
    for (size_t i = 0; i < (size_t)ranks * BYTES; i++)
        in[i] = (unsigned char)(mix(i * 64 + (uint64_t)rank) % 3);
    for (size_t i = 0; i < LENGTH(cases) * LENGTH(configs); i++) {
        struct config *c = &configs[i % LENGTH(configs)];
        size_t number = i / LENGTH(configs);
        enum how how = (enum how)((i + number) % HOWS);
        struct arguments a = { in, out, COUNT, cases[number].type, cases[number].op };
        check_case("%s, how %d, %s", cases[number].name, (int)how, settings_text(&c->settings));
        memset(out, 0x77, BYTES);
        memset(expected, 0x77, BYTES);
        check_success(MPI_Reduce_scatter_block(in, expected, COUNT, a.datatype, a.op, MPI_COMM_WORLD),
                      "MPI_Reduce_scatter_block");
        run_config(c, how, &a, BYTES / 4);
        check(memcmp(out, expected, BYTES) == 0, "expected the bytes of MPI_Reduce_scatter_block");
    }
    MPI_Op_free(&first);
    free(in);
    free(out);
    free(expected);
}

/* 2-byte integers that stand for bf16: 1 on each rank in every third element. */
static void run_bf16(void)
{
    static const char *const schemes[] = { "dense", "balanced", "recursive_halving" };
    enum { COUNT = 90, ONE = 0x3f80 };
    uint16_t *in = get_memory((size_t)ranks * COUNT, sizeof *in), out[COUNT];
    uint16_t sums[] = { 0, ONE, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0, 0x4100 };
    if (ranks >= (int)LENGTH(sums)) {
        free(in);
        return;
    }
    for (int i = 0; i < ranks * COUNT; i++)
        in[i] = i % 3 == 0 ? ONE : 0;
    setenv("MPIX_SPARSE_ELEMENT", "bf16", 1);
    for (size_t s = 0; s < LENGTH(schemes); s++) {
        MPI_Comm comm = settings_comm(&(struct settings){ schemes[s], NULL, NULL, NULL, NULL });
        check_case("bf16, %s", schemes[s]);
        run(BLOCKING, &(struct arguments){ in, out, COUNT, MPI_UINT16_T, MPI_SUM }, comm);
        for (int i = 0; i < COUNT; i++)
            check(out[i] == (i % 3 == 0 ? sums[ranks] : 0), "expected %d ones, found %#x", ranks, out[i]);
        MPI_Comm_free(&comm);
    }
    unsetenv("MPIX_SPARSE_ELEMENT");
    free(in);
}

/* Each rank sends every other one the elements that it owns, once, as coordinates, and pulls nothing. */
static void check_volume(void)
{
    enum { COUNT = 1000 };
    MPIX_Sparse_report_t report;
    double *in = get_memory((size_t)ranks * COUNT, sizeof *in), out[COUNT];
    MPI_Comm comm = settings_comm(&(struct settings){ "balanced", "coo", NULL, NULL, NULL });
    long long pushed = 0;
    check_case("volume of balanced");
    for (int i = 0; i < ranks * COUNT; i++) {
        in[i] = mix((uint64_t)i * 64 + (uint64_t)rank) % 20 == 0;
        pushed += in[i] != 0 && i / COUNT != rank ? (int)sizeof *in + 4 : 0;
    }
    run(BLOCKING, &(struct arguments){ in, out, COUNT, MPI_DOUBLE, MPI_SUM }, comm);
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check(strcmp(report.scheme, "balanced") == 0 && strcmp(report.pull_wire, "none") == 0,
          "expected a push of balanced, found scheme %s with pull in %s", report.scheme, report.pull_wire);
    check(report.messages_sent == ranks - 1 && report.header_bytes_sent == (ranks - 1) * HEADER,
          "expected %d messages, found %lld", ranks - 1, (long long)report.messages_sent);
    check(report.bytes_sent - report.header_bytes_sent == pushed, "expected %lld bytes, found %lld", pushed,
          (long long)(report.bytes_sent - report.header_bytes_sent));
    check(report.count == (MPI_Count)ranks * COUNT, "expected the whole vector in the report, found %lld",
          (long long)report.count);
    MPI_Comm_free(&comm);
    free(in);
}

/* Where schemes are expensive, the first call runs MPI_Reduce_scatter_block as the scheme `dense`, and the
 * next ones are passed to it. The report names it. */
static void check_fallback(void)
{
    enum { COUNT = 4000, CALLS = 6 };
    MPIX_Sparse_report_t report;
    float *in = get_memory((size_t)ranks * COUNT, sizeof *in), *out = get_memory(COUNT, sizeof *out);
    int handed = 0;
    setenv("MPIX_SPARSE_FORWARD", "63", 1);
    setenv("MPIX_SPARSE_LEARN", "off", 1);
    setenv("MPIX_SPARSE_GAMMA", "1", 1);
    MPI_Comm comm = settings_comm(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
    unsetenv("MPIX_SPARSE_GAMMA");
    unsetenv("MPIX_SPARSE_LEARN");
    check_case("a second for each element of a scheme");
    for (int i = 0; i < ranks * COUNT; i++)
        in[i] = 1;
    for (int call = 0; call < CALLS; call++) {
        run(BLOCKING, &(struct arguments){ in, out, COUNT, MPI_FLOAT, MPI_SUM }, comm);
        check(out[COUNT - 1] == (float)ranks, "expected %d, found %g", ranks, (double)out[COUNT - 1]);
        check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
        check(strcmp(report.scheme, "dense") == 0, "expected dense, found %s", report.scheme);
        handed += strstr(report.reason, "MPI_Reduce_scatter_block") != NULL;
    }
    check(handed == CALLS - 2, "expected %d calls that went to MPI unseen, found %d", CALLS - 2, handed);
    MPI_Comm_free(&comm);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    make_configs();
    run_table();
    run_others();
    run_bf16();
    check_volume();
    check_fallback();
    for (size_t i = 0; i < LENGTH(configs); i++)
        MPI_Comm_free(&configs[i].comm);
    return check_end("reduce_scatter_dense");
}
