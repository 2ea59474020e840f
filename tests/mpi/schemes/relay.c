/* SPDX-License-Identifier: BSD-3-Clause */
/* Relayed pulls (MPIX_SPARSE_RELAY=on): the result is that of MPI_Allreduce, bit for bit, in all formats,
 * with segments and with sliced rows; the bytes are those that the routes prescribe, if one rank owns
 * everything. Runs on any number of ranks; with fewer than 4 the pull is direct. A failure means that a
 * message was relayed to a wrong rank, twice, or not at all. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "patterns.h"
#include "tensors.h"

enum { HEADER = 64, INDEX = 4, MIN_RELAY_RANKS = 4, CLEAR_GAIN_RANKS = 8 };

static long relayed; /* messages of all calls on all ranks */

static MPI_Comm open_comm(const char *relay, const char *columns, const struct settings *settings)
{
    setenv("MPIX_SPARSE_RELAY", relay, 1);
    setenv("MPIX_SPARSE_COLUMNS", columns, 1);
    MPI_Comm comm = settings_comm(settings);
    unsetenv("MPIX_SPARSE_COLUMNS");
    unsetenv("MPIX_SPARSE_RELAY");
    return comm;
}

static MPIX_Sparse_report_t report_of(MPI_Comm comm)
{
    MPIX_Sparse_report_t report;
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check(strcmp(report.scheme, "balanced") == 0, "expected balanced to run, found %s", report.scheme);
    return report;
}

static long sum_over_ranks(long number)
{
    long sum;
    MPI_Allreduce(&number, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static void run(const struct tensor *t, const struct oracle *o, const char *columns,
                const struct settings *settings)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    uint64_t direct = 0;
    for (int on = 0; on < 2; on++) {
        MPI_Comm comm = open_comm(on ? "on" : "off", columns, settings);
        check_case("%s %s of %lld x %zu, relay %s, columns %s, %s", base_types[t->desc.base].name,
                   op_types[t->desc.op].name, (long long)t->desc.count, t->desc.row, on ? "on" : "off",
                   columns, settings_text(settings));
        call_coo(t, o, &index_types[0], comm, &result);
        uint64_t hash = result_hash(result, &t->desc, &index_types[0]);
        direct = on ? direct : hash;
        check(hash == direct, "expected the bits of a direct pull, found others");
        check_equal_on_ranks(hash, "the result");
        long n = sum_over_ranks((long)report_of(comm).messages_relayed);
        check(on || n == 0, "expected a direct pull, found %ld relayed messages", n);
        relayed += n;
        call_dense(o, on == 0, comm);
        check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
        MPI_Comm_free(&comm);
    }
}

static void run_pattern(const struct pattern *pattern, const struct tensor_desc *desc, const char *columns,
                        const struct settings *settings)
{
    struct tensor tensor;
    struct oracle oracle;
    tensor_draw(pattern, desc, 11 + desc->row, &tensor);
    oracle_make(&tensor, &oracle);
    run(&tensor, &oracle, columns, settings);
    tensor_free(&tensor);
    oracle_free(&oracle);
}

static void run_patterns(void)
{
    static const char *const columns[] = { "1", "2", "3", "1000" };
    static const char *const segments[] = { NULL, "100", "3000" };
    static const char *const wires[] = { NULL, EVERY_WIRE };
    static const size_t rows[] = { 1, 7, 24 };
    for (size_t p = 0; patterns[p].name != NULL; p++)
        for (size_t r = 0; r < 3; r++) {
            if (oversubscribed && (p + r) % 3 != 0)
                continue;
            run_pattern(&patterns[p], &(struct tensor_desc){ FLOAT32, SUM, rows[r], 257 },
                        columns[(p + r) % 4],
                        &(struct settings){ "balanced", wires[(p + 3 * r) % 8], p % 2 == 0 ? "cyclic" : NULL,
                                            "1", segments[(p + r / 2) % 3] });
        }
}

static void run_types(void)
{
    for (int i = 0; i < BASES * OPS; i++)
        run_pattern(pattern_find("random 0.1"),
                    &(struct tensor_desc){ (enum base)(i / OPS), (enum op)(i % OPS), 3, 100 }, "1",
                    &(struct settings){ "balanced", NULL, NULL, "1", i % 2 == 0 ? NULL : "300" });
}

/* One row group: all parts are equal, and the pull is direct. The second vector has more rows than the
 * first one made likely. */
static void run_one_group(void)
{
    char all[16];
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    snprintf(all, sizeof all, "%d", ranks);
    MPI_Comm comm = open_comm("on", all, &(struct settings){ "balanced", NULL, NULL, NULL, "200" });
    for (int disjoint = 0; disjoint < 2; disjoint++) {
        struct tensor tensor;
        struct oracle oracle;
        tensor_draw(pattern_find(disjoint ? "disjoint" : "identical"),
                    &(struct tensor_desc){ FLOAT32, SUM, 64, 1500 }, 3, &tensor);
        oracle_make(&tensor, &oracle);
        check_case("%d columns of 64, %s", ranks, disjoint ? "disjoint" : "identical");
        call_coo(&tensor, &oracle, &index_types[0], comm, &result);
        call_dense(&oracle, false, comm);
        check(ranks > 16 || report_of(comm).messages_relayed == 0, "expected a direct pull, found relays");
        tensor_free(&tensor);
        oracle_free(&oracle);
    }
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    MPI_Comm_free(&comm);
}

/* Schemes of others pull directly. */
static void run_other_scheme(void)
{
    MPIX_Sparse_report_t report;
    struct tensor tensor;
    struct oracle oracle;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPI_Comm comm = open_comm("on", "1", &(struct settings){ "omni", NULL, NULL, NULL, NULL });
    tensor_draw(pattern_find("random 0.1"), &(struct tensor_desc){ FLOAT32, SUM, 8, 1500 }, 3, &tensor);
    oracle_make(&tensor, &oracle);
    check_case("omni");
    call_coo(&tensor, &oracle, &index_types[0], comm, &result);
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check(strcmp(report.scheme, "omni") == 0 && report.messages_relayed == 0,
          "expected a direct pull of omni, found %lld relayed messages of %s",
          (long long)report.messages_relayed, report.scheme);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    MPI_Comm_free(&comm);
    tensor_free(&tensor);
    oracle_free(&oracle);
}

/* With cyclic parts of one element, rank 0 owns all multiples of the number of ranks. */
static void make_one_owner(long n, struct tensor *t, struct oracle *o)
{
    *t = (struct tensor){ .desc = { FLOAT32, SUM, 1, n * ranks } };
    for (long i = 0; i < n; i++)
        *(float *)tensor_add(t, (uint64_t)(i * ranks)) = (float)(1 + (i + rank) % 5);
    oracle_make(t, o);
}

/* The owner sends its message to two thirds of the others, at least; the rest get deferrals, and then the
 * message from a relay. In that step each rank sends something to every other one. */
static void check_bytes(MPI_Comm comm, long n)
{
    MPIX_Sparse_report_t report = report_of(comm);
    long others = ranks - 1, deferred = ranks >= MIN_RELAY_RANKS ? others / 3 : 0,
         steps = ranks >= MIN_RELAY_RANKS ? 3 : 2, payload = n * (4 + INDEX);
    long sent = HEADER * steps * others;
    sent += rank == 0 ? (others - deferred) * payload : payload + report.messages_relayed * payload;
    check((long)report.bytes_sent == sent, "expected %ld bytes, found %lld", sent,
          (long long)report.bytes_sent);
    check((long)report.messages_sent == steps * others, "expected %ld messages, found %lld", steps * others,
          (long long)report.messages_sent);
    check(report.messages_relayed <= 1, "expected one relayed message at most, found %lld",
          (long long)report.messages_relayed);
    long all = sum_over_ranks((long)report.messages_relayed);
    check(all == deferred, "expected %ld relayed messages, found %ld", deferred, all);
}

static void run_bytes(void)
{
    const long n = 500;
    struct tensor tensor;
    struct oracle oracle;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPI_Comm comm = open_comm("on", "1", &(struct settings){ "balanced", "coo", "cyclic", "1", "1000000" });
    make_one_owner(n, &tensor, &oracle);
    check_case("bytes of one owner's elements");
    call_coo(&tensor, &oracle, &index_types[0], comm, &result);
    check_bytes(comm, n);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    MPI_Comm_free(&comm);
    tensor_free(&tensor);
    oracle_free(&oracle);
}

/* The first call pulls directly. Then it is known that one owner has everything, and relays are cheaper: on a
 * network on which only bytes cost time. */
static void run_auto(void)
{
    const long n = 500;
    struct tensor tensor;
    struct oracle oracle;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    setenv("MPIX_SPARSE_ALPHA", "1e-9", 1);
    setenv("MPIX_SPARSE_OVERHEAD", "1e-12", 1);
    setenv("MPIX_SPARSE_BETA", "1e-6", 1);
    MPI_Comm comm = open_comm("auto", "1", &(struct settings){ "balanced", "coo", "cyclic", "1", "1000000" });
    unsetenv("MPIX_SPARSE_ALPHA");
    unsetenv("MPIX_SPARSE_OVERHEAD");
    unsetenv("MPIX_SPARSE_BETA");
    make_one_owner(n, &tensor, &oracle);
    for (int i = 0; i < 3; i++) {
        check_case("call %d of one owner's elements", i);
        call_coo(&tensor, &oracle, &index_types[0], comm, &result);
        long relays = sum_over_ranks((long)report_of(comm).messages_relayed), some = (ranks - 1) / 3;
        check(relays == 0 || (i > 0 && relays == some), "expected 0 or %ld relayed messages, found %ld", some,
              relays);
        check(relays > 0 || i == 0 || ranks < CLEAR_GAIN_RANKS,
              "expected a relayed pull, found a direct one");
    }
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    MPI_Comm_free(&comm);
    tensor_free(&tensor);
    oracle_free(&oracle);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    nodes_set(ranks);
    run_patterns();
    run_types();
    run_one_group();
    run_other_scheme();
    run_bytes();
    run_auto();
    check_case("all");
    check(ranks < MIN_RELAY_RANKS || relayed > 20, "expected more messages to be relayed than %ld", relayed);
    return check_end("relay");
}
