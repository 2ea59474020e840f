/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows whose columns several ranks own (MPIX_SPARSE_COLUMNS): every number of columns gives the result of
 * MPI_Allreduce, bit for bit, in all formats, and the bytes that the formats prescribe. Runs on any number of
 * ranks. A failure means that slices are cut, sent or joined wrongly. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "patterns.h"
#include "tensors.h"

enum { HEADER = 64, UNIT = 16, MOST_COLUMNS = 6 };

static const size_t rows[] = { 1, 2, 3, 7, 24, 64, 512 };
static const char *const names[] = {
    "empty",      "one element", "all on one rank", "identical", "disjoint",
    "random 0.1", "full",        "explicit zeros",  "shuffled",  "duplicates"
};

enum { ROWS = sizeof rows / sizeof rows[0], NAMES = sizeof names / sizeof names[0] };

/* Numbers of columns to try: NULL leaves the choice to the library. */
static const char *columns[MOST_COLUMNS];
static char all[16], most[16];

static MPI_Comm open_comm(const char *n_columns, const struct settings *settings)
{
    if (n_columns != NULL)
        setenv("MPIX_SPARSE_COLUMNS", n_columns, 1);
    MPI_Comm comm = settings_comm(settings);
    unsetenv("MPIX_SPARSE_COLUMNS");
    return comm;
}

static long most_slices(const struct tensor_desc *desc)
{
    size_t size = base_types[desc->base].size, unit = UNIT / size;
    long units = (long)((desc->row + unit - 1) / unit);
    return units < ranks ? units : ranks;
}

/* The report has the columns that were asked for, as far as the row has units and the job has ranks. */
static void check_columns(MPI_Comm comm, const struct tensor_desc *desc, const char *n_columns)
{
    MPIX_Sparse_report_t report;
    long asked = n_columns == NULL ? ranks : strtol(n_columns, NULL, 10), limit = most_slices(desc);
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check(strcmp(report.scheme, "balanced") == 0, "expected balanced to run, found %s", report.scheme);
    asked = asked < limit ? asked : limit;
    check(report.columns >= 1 && report.columns <= asked, "expected 1 to %ld columns, found %d", asked,
          report.columns);
    if (n_columns != NULL && ranks % asked == 0)
        check(report.columns == asked, "expected %ld columns, found %d", asked, report.columns);
    check_equal_on_ranks((uint64_t)report.columns, "the columns");
}

static void run(const struct tensor *t, const struct oracle *o, const struct settings *settings)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    uint64_t first = 0;
    for (size_t c = 0; c < MOST_COLUMNS && (c == 0 || columns[c] != NULL); c++) {
        const struct index_type *type = &index_types[c % INDEX_TYPES];
        MPI_Comm comm = open_comm(columns[c], settings);
        check_case("%s %s of %lld x %zu, columns %s, %s", base_types[t->desc.base].name,
                   op_types[t->desc.op].name, (long long)t->desc.count, t->desc.row,
                   columns[c] == NULL ? "auto" : columns[c], settings_text(settings));
        call_coo(t, o, &index_types[0], comm, &result);
        uint64_t hash = result_hash(result, &t->desc, &index_types[0]);
        first = c == 0 ? hash : first;
        check(hash == first, "expected the bits of columns auto, found others");
        check_equal_on_ranks(hash, "the result");
        check_columns(comm, &t->desc, columns[c]);
        call_coo(t, o, type, comm, &result);
        call_dense(o, c % 2 == 0, comm);
        check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
        MPI_Comm_free(&comm);
    }
}

static void run_pattern(const struct pattern *pattern, const struct tensor_desc *desc,
                        const struct settings *settings)
{
    struct tensor tensor;
    struct oracle oracle;
    tensor_draw(pattern, desc, 7 + desc->row, &tensor);
    oracle_make(&tensor, &oracle);
    run(&tensor, &oracle, settings);
    tensor_free(&tensor);
    oracle_free(&oracle);
}

/* Every pattern with one row, and one pattern with every row. */
static void run_patterns(void)
{
    static const char *const segments[] = { NULL, "300" };
    for (size_t p = 0; patterns[p].name != NULL; p++) {
        size_t n = 0;
        while (n < NAMES && strcmp(names[n], patterns[p].name) != 0)
            n++;
        for (size_t r = 0; r < ROWS; r++) {
            struct tensor_desc desc = { FLOAT32, SUM, rows[r], rows[r] > 64 ? 60 : 257 };
            if (n == NAMES && r != p % ROWS)
                continue;
            if (oversubscribed && (p + r) % 3 != 0)
                continue;
            run_pattern(&patterns[p], &desc,
                        &(struct settings){ "balanced", NULL, r % 2 == 0 ? "cyclic" : NULL, NULL,
                                            segments[(p + r) % 2] });
        }
    }
}

static void run_types(void)
{
    const struct pattern *pattern = pattern_find("random 0.1");
    for (int i = 0; i < BASES * OPS; i++)
        run_pattern(pattern, &(struct tensor_desc){ (enum base)(i / OPS), (enum op)(i % OPS), 7, 100 },
                    &(struct settings){ "balanced", NULL, NULL, NULL, i % 2 == 0 ? NULL : "300" });
}

static void run_formats(void)
{
    static const char *const wires[] = { EVERY_WIRE };
    for (size_t w = 0; w < sizeof wires / sizeof wires[0]; w++)
        run_pattern(pattern_find("random 0.1"), &(struct tensor_desc){ FLOAT32, SUM, 24, 257 },
                    &(struct settings){ "balanced", wires[w], NULL, NULL, w % 2 == 0 ? NULL : "300" });
}

/* Returns the bytes of a row of `units` units that rank r owns; `slices` divides the ranks. */
static long long slice_bytes(long r, long slices, long units)
{
    long i = r % slices;
    return (units * (i + 1) / slices - units * i / slices) * UNIT;
}

/* With cyclic blocks of one row, row i belongs to group i mod groups. Each rank has all n rows, in coo, with
 * 4-byte indices: the rows of a group are n / groups. */
static void check_bytes(MPI_Comm comm, long slices, long n, long units)
{
    MPIX_Sparse_report_t report;
    long groups = ranks / slices, mine = rank / slices;
    long long sent = 0;
    for (long r = 0; r < ranks; r++) {
        if (r == rank)
            continue;
        long group = r / slices, owned = n / groups;
        bool list = group != mine && mine * slices + r % slices == rank;
        sent += HEADER + owned * (4 + slice_bytes(r, slices, units));
        sent += HEADER + owned * ((list || slices == 1 ? 4 : 0) + slice_bytes(rank, slices, units));
    }
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check((long long)report.bytes_sent == sent, "columns %ld: expected %lld bytes, found %lld", slices, sent,
          (long long)report.bytes_sent);
}

static void run_bytes(void)
{
    const long n = 12 * ranks, units = 13;
    struct tensor_desc desc = { FLOAT32, SUM, 4 * (size_t)units, n };
    struct tensor tensor;
    struct oracle oracle;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    tensor_draw(pattern_find("full"), &desc, 5, &tensor);
    oracle_make(&tensor, &oracle);
    for (long slices = 1; slices <= ranks && slices <= units; slices++) {
        char text[24];
        if (ranks % slices != 0)
            continue;
        snprintf(text, sizeof text, "%ld", slices);
        MPI_Comm comm = open_comm(text, &(struct settings){ "balanced", "coo", "cyclic", "1", NULL });
        check_case("bytes of %ld columns", slices);
        call_coo(&tensor, &oracle, &index_types[0], comm, &result);
        check_bytes(comm, slices, n, units);
        MPI_Comm_free(&comm);
    }
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    tensor_free(&tensor);
    oracle_free(&oracle);
}

/* A rank without elements may hand in null pointers. */
static void run_null_pointers(void)
{
    const struct settings settings = { "balanced", NULL, NULL, NULL, NULL };
    const struct tensor_desc desc = { FLOAT32, SUM, 24, 100 };
    MPI_Datatype type = row_type(&desc);
    MPI_Comm comm = open_comm(all, &settings);
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    const int index = 7;
    float value[24];
    for (int i = 0; i < 24; i++)
        value[i] = (float)i;
    check_case("null pointers on all ranks but the last");
    bool last = rank == ranks - 1;
    check_success(MPIX_Sparse_allreduce_coo(last ? &index : NULL, last ? value : NULL, last, MPI_INT, 100,
                                            type, MPI_SUM, comm, &result),
                  "MPIX_Sparse_allreduce_coo");
    MPI_Count nnz;
    const void *indices, *sums;
    check_success(MPIX_Sparse_result_get(result, &nnz, &indices, &sums), "MPIX_Sparse_result_get");
    check(nnz == 1 && memcmp(sums, value, sizeof value) == 0, "expected the last rank's row, found another");
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    MPI_Comm_free(&comm);
    row_type_free(&desc, &type);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    snprintf(all, sizeof all, "%d", ranks);
    snprintf(most, sizeof most, "%d", ranks + 7);
    const char *const tried[MOST_COLUMNS] = { NULL, "1", "2", "3", all, most };
    memcpy(columns, tried, sizeof columns);
    nodes_set(ranks);
    run_patterns();
    run_types();
    run_formats();
    run_bytes();
    run_null_pointers();
    return check_end("columns");
}
