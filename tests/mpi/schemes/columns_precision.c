/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows whose columns several ranks own, with values of 16 bits on the wire (MPIX_SPARSE_WIRE_VALUES): every
 * number of columns gives the bits of one column, also of infinities, -0.0 and values that round to zero.
 * With dense buffers zeros may have another sign, where a row of a rank rounds to zero
 * (doc/scheme-design.md). Runs on any number of ranks. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "tensors.h"

enum { COUNT = 97, MOST_ROW = 100 };

static const size_t rows[] = { 7, 24, MOST_ROW };

/* Bits of floats: zeros, NaN, infinity, and numbers that round to zero, to a subnormal number, or up. */
static const uint32_t special[] = { 0x00000000, 0x80000000, 0x7fc00001, 0x7f800000, 0xff800000, 0x00000001,
                                    0x80000001, 0x33000000, 0xb3000001, 0x38ffffff, 0x477fe000, 0x3f808000 };

enum { SPECIALS = sizeof special / sizeof special[0], ROWS = sizeof rows / sizeof rows[0] };

/* One rank's vector, and results with one column and with several. */
static struct {
    size_t row;
    MPI_Count nnz;
    int32_t index[COUNT];
    float value[COUNT * MOST_ROW], dense[COUNT * MOST_ROW];
} vec;

static float coo[2][COUNT * MOST_ROW], dense[2][COUNT * MOST_ROW];
static int32_t index_of[2][COUNT];
static MPI_Count nnz_of[2];

static float draw_value(uint64_t key)
{
    uint64_t bits = mix(key);
    uint32_t word = special[bits / 8 % SPECIALS];
    float value;
    if (bits % 8 != 0)
        return (float)((double)(bits >> 11) / 4503599627370496.0 - 1) * (float)(1 << bits % 12);
    memcpy(&value, &word, sizeof value);
    return value;
}

/* Half of the rows; one in nine has only values that round to zero. */
static void draw(size_t row)
{
    memset(&vec, 0, sizeof vec);
    vec.row = row;
    for (int i = 0; i < COUNT; i++) {
        uint64_t key = (uint64_t)(i * ranks + rank) + 5000 * row;
        if (mix(key) % 2 == 0)
            continue;
        for (size_t k = 0; k < row; k++) {
            float tiny = k % 2 == 0 ? 1e-44f : -1e-44f;
            float value = i % 9 == 0 ? tiny : draw_value(key * 1000 + k);
            vec.value[(size_t)vec.nnz * row + k] = vec.dense[(size_t)i * row + k] = value;
        }
        vec.index[vec.nnz++] = i;
    }
}

static void call(MPI_Comm comm, bool several)
{
    struct tensor_desc desc = { FLOAT32, SUM, vec.row, COUNT };
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPI_Datatype type = row_type(&desc);
    const void *index, *value;
    size_t bytes = element_bytes(&desc);
    check_success(MPIX_Sparse_allreduce(vec.dense, dense[several], COUNT, type, MPI_SUM, comm),
                  "MPIX_Sparse_allreduce");
    check_success(MPIX_Sparse_allreduce_coo(vec.index, vec.value, vec.nnz, MPI_INT32_T, COUNT, type, MPI_SUM,
                                            comm, &result),
                  "MPIX_Sparse_allreduce_coo");
    check_success(MPIX_Sparse_result_get(result, &nnz_of[several], &index, &value), "MPIX_Sparse_result_get");
    memset(coo[several], 0, sizeof coo[several]);
    if (nnz_of[several] > 0) {
        memcpy(index_of[several], index, (size_t)nnz_of[several] * sizeof(int32_t));
        memcpy(coo[several], value, (size_t)nnz_of[several] * bytes);
    }
    check_equal_on_ranks(hash_bytes(coo[several], sizeof coo[several], 1), "the values of coordinates");
    check_equal_on_ranks(hash_bytes(dense[several], COUNT * bytes, 1), "the dense vector");
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    row_type_free(&desc, &type);
}

/* NaNs may differ in their bits: which of two a sum returns depends on the compiler. */
static bool same(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

/* Compares with one column. */
static void compare(void)
{
    size_t n = (size_t)nnz_of[0] * vec.row;
    check(nnz_of[0] == nnz_of[1] &&
              memcmp(index_of[0], index_of[1], (size_t)nnz_of[0] * sizeof(int32_t)) == 0,
          "expected the rows of one column, found others");
    for (size_t i = 0; i < n; i++)
        check(same(coo[0][i], coo[1][i]), "expected %a at %zu of the coordinates, found %a",
              (double)coo[0][i], i, (double)coo[1][i]);
    for (size_t i = 0; i < COUNT * vec.row; i++)
        check(same(dense[0][i], dense[1][i]) || (dense[0][i] == 0 && dense[1][i] == 0),
              "expected %a at %zu, found %a", (double)dense[0][i], i, (double)dense[1][i]);
}

/* All rows have as many slices as there are ranks, if so many are asked for. */
static void check_columns(MPI_Comm comm, const char *scheme)
{
    MPIX_Sparse_report_t report;
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check(strcmp(report.scheme, scheme) == 0, "expected %s to run, found %s", scheme, report.scheme);
    check(vec.row < MOST_ROW || report.columns == ranks, "expected %d columns, found %d", ranks,
          report.columns);
}

static MPI_Comm open_comm(const struct settings *settings, const char *precision, const char *columns)
{
    setenv("MPIX_SPARSE_WIRE_VALUES", precision, 1);
    setenv("MPIX_SPARSE_COLUMNS", columns, 1);
    MPI_Comm comm = settings_comm(settings);
    unsetenv("MPIX_SPARSE_COLUMNS");
    unsetenv("MPIX_SPARSE_WIRE_VALUES");
    return comm;
}

static void run(const struct settings *settings, const char *precision)
{
    static const char *const columns[] = { "1", "2", "4", "1024" };
    MPI_Comm comms[4];
    for (int c = 0; c < 4; c++)
        comms[c] = open_comm(settings, precision, columns[c]);
    for (size_t r = 0; r < ROWS; r++) {
        draw(rows[r]);
        for (int c = 0; c < 4; c++) {
            check_case("%d rows of %zu in %s, columns %s, %s", COUNT, rows[r], precision, columns[c],
                       settings_text(settings));
            call(comms[c], c > 0);
            if (c > 0)
                compare();
        }
        check_columns(comms[3], settings->scheme);
    }
    for (int c = 0; c < 4; c++)
        MPI_Comm_free(&comms[c]);
}

static void run_scheme(const char *scheme, int nodes)
{
    static const char *const wires[] = { NULL, "coo", "block", "dense", "bitmap" };
    nodes_set(nodes);
    for (size_t w = 0; w < sizeof wires / sizeof wires[0]; w++) {
        const char *segment = w % 2 == 0 ? NULL : "300";
        if (oversubscribed && (w + (size_t)nodes) % 2 != 0)
            continue;
        run(&(struct settings){ scheme, wires[w], NULL, NULL, segment }, "bf16");
        run(&(struct settings){ scheme, wires[w], "cyclic", "1", segment }, "fp16");
    }
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    run_scheme("balanced", ranks);
    for (int nodes = 2; nodes < ranks; nodes++)
        if (ranks % nodes == 0)
            run_scheme("two_level", nodes);
    return check_end("columns_precision");
}
