/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows whose columns several ranks own (MPIX_SPARSE_COLUMNS), in balanced, and in two_level on emulated
 * nodes. Every number of columns gives the result of MPI_Allreduce, bit for bit, in all formats, and the
 * bytes that the formats prescribe. Runs on any number of ranks. A failure means that slices are cut, sent or
 * joined wrongly. */

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

/* Argument "few": balanced alone, with one case in so many, for device memory, whose fake runtime is slow. */
enum { FEW = 5 };
static bool few;

/* The scheme of the current cases, and its nodes. */
static const char *scheme;
static int nodes;

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
    long units = (long)(desc->row / (UNIT / base_types[desc->base].size));
    return units < 1 ? 1 : units < ranks ? units : ranks;
}

/* Returns the columns of two_level: each rank of a node has a slice or more, and groups have equally many
 * nodes. */
static long node_columns(long limit)
{
    long groups = (ranks + limit - 1) / limit;
    if (ranks % nodes != 0)
        return 1;
    while (groups < nodes && nodes % groups != 0)
        groups++;
    return groups > nodes ? 1 : ranks / groups;
}

/* The report has the columns that were asked for, as far as the row has units and the job has ranks. */
static void check_columns(MPI_Comm comm, const struct tensor_desc *desc, const char *n_columns)
{
    MPIX_Sparse_report_t report;
    long asked = n_columns == NULL ? ranks : strtol(n_columns, NULL, 10), limit = most_slices(desc);
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check(strcmp(report.scheme, scheme) == 0, "expected %s to run, found %s", scheme, report.scheme);
    asked = asked < limit ? asked : limit;
    if (nodes < ranks && asked > 1)
        asked = node_columns(asked);
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
        check_case("%d nodes: %s %s of %lld x %zu, columns %s, %s", nodes, base_types[t->desc.base].name,
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
            if ((oversubscribed && (p + r) % 3 != 0) || (few && (p + r) % FEW != 0))
                continue;
            run_pattern(&patterns[p], &desc,
                        &(struct settings){ scheme, NULL, r % 2 == 0 ? "cyclic" : NULL, NULL,
                                            segments[(p + r) % 2] });
        }
    }
}

static void run_types(void)
{
    const struct pattern *pattern = pattern_find("random 0.1");
    for (int i = 0; i < BASES * OPS; i += few ? FEW : 1)
        run_pattern(pattern, &(struct tensor_desc){ (enum base)(i / OPS), (enum op)(i % OPS), 7, 100 },
                    &(struct settings){ scheme, NULL, NULL, NULL, i % 2 == 0 ? NULL : "300" });
}

static void run_formats(void)
{
    static const char *const wires[] = { EVERY_WIRE };
    for (size_t w = 0; w < sizeof wires / sizeof wires[0]; w++)
        run_pattern(pattern_find("random 0.1"), &(struct tensor_desc){ FLOAT32, SUM, 24, 257 },
                    &(struct settings){ scheme, wires[w], NULL, NULL, w % 2 == 0 ? NULL : "300" });
}

/* The group of a rank, the number of its slice in a row, and how many slices the rows of the group have. In
 * two_level a group has the slices of all its nodes' first ranks, then those of their second ranks, and so
 * on. In balanced, groups differ by one rank if the columns do not divide the ranks. */
struct place {
    long group, slice, slices;
};

static struct place place_of(long r, long n_columns)
{
    long node_ranks = ranks / nodes, of_group = n_columns / node_ranks, node = r / node_ranks, group = 0;
    if (nodes < ranks && n_columns > 1)
        return (struct place){ node / of_group, r % node_ranks * of_group + node % of_group, n_columns };
    long groups = (ranks + n_columns - 1) / n_columns;
    while (ranks * (group + 1) / groups <= r)
        group++;
    long first = ranks * group / groups;
    return (struct place){ group, r - first, ranks * (group + 1) / groups - first };
}

/* Returns the bytes of a row of `units` units in a rank's slice: slices differ by one value of 4 bytes. */
static long long slice_bytes(struct place p, long units)
{
    long values = units * UNIT / 4;
    return (values * (p.slice + 1) / p.slices - values * p.slice / p.slices) * 4;
}

/* Returns true if a rank sends its index list to r, of another group: ranks of a share take turns. */
static bool sends_list(struct place mine, struct place to, long r)
{
    long n = nodes == ranks ? mine.slices : mine.slices * nodes / ranks;
    long number = nodes == ranks ? r : to.slice;
    return mine.group != to.group && mine.slice % n == number % n;
}

/* With cyclic blocks of one row, row i belongs to group i mod groups. Each rank has all n rows, in coo, with
 * 4-byte indices. In two_level a rank exchanges messages with those of its position on other nodes. */
static void check_bytes(MPI_Comm comm, long n_columns, long n, long units)
{
    MPIX_Sparse_report_t report;
    long groups = (ranks + n_columns - 1) / n_columns, node_ranks = ranks / nodes;
    struct place mine = place_of(rank, n_columns);
    long long sent = 0;
    for (long r = rank % node_ranks; r < ranks; r += node_ranks) {
        struct place to = place_of(r, n_columns);
        long theirs = (n - to.group + groups - 1) / groups, owned = (n - mine.group + groups - 1) / groups;
        if (r == rank)
            continue;
        bool list = n_columns == 1 || sends_list(mine, to, r);
        sent += HEADER + theirs * (4 + slice_bytes(to, units));
        sent += HEADER + owned * ((list ? 4 : 0) + slice_bytes(mine, units));
    }
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check((long long)report.bytes_sent == sent, "columns %ld: expected %lld bytes, found %lld", n_columns,
          sent, (long long)report.bytes_sent);
}

static void run_bytes(void)
{
    const long n = 12 * ranks, units = 13;
    if (ranks % nodes != 0)
        return;
    struct tensor_desc desc = { FLOAT32, SUM, 4 * (size_t)units, n };
    struct tensor tensor;
    struct oracle oracle;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    tensor_draw(pattern_find("full"), &desc, 5, &tensor);
    oracle_make(&tensor, &oracle);
    for (long n_columns = 1; n_columns <= ranks && n_columns <= units; n_columns++) {
        char text[24];
        if (nodes < ranks && (ranks % n_columns != 0 || node_columns(n_columns) != n_columns))
            continue;
        snprintf(text, sizeof text, "%ld", n_columns);
        MPI_Comm comm = open_comm(text, &(struct settings){ scheme, "coo", "cyclic", "1", NULL });
        check_case("%s on %d nodes: bytes of %ld columns", scheme, nodes, n_columns);
        call_coo(&tensor, &oracle, &index_types[0], comm, &result);
        check_bytes(comm, n_columns, n, units);
        MPI_Comm_free(&comm);
    }
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    tensor_free(&tensor);
    oracle_free(&oracle);
}

/* A rank without elements may hand in null pointers. */
static void run_null_pointers(void)
{
    const struct settings settings = { scheme, NULL, NULL, NULL, NULL };
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

static void run_all(const char *name, int n)
{
    scheme = name;
    nodes = n;
    nodes_set(n);
    run_patterns();
    run_types();
    run_formats();
    run_bytes();
    run_null_pointers();
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    few = argc > 1 && strcmp(argv[1], "few") == 0;
    snprintf(all, sizeof all, "%d", ranks);
    snprintf(most, sizeof most, "%d", ranks + 7);
    const char *const tried[MOST_COLUMNS] = { NULL, "1", "2", "3", all, most };
    memcpy(columns, tried, sizeof columns);
    run_all("balanced", ranks);
    for (int n = 1; n < ranks && !few; n++)
        if (ranks % n == 0 || n == 2)
            run_all("two_level", n);
    return check_end("columns");
}
