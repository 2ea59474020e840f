/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests ownership of elements in schemes that define it. omni assigns blocks one by one or in contiguous
 * ranges; oktopk recomputes boundaries after a number of calls. Bytes and imbalances must match the
 * definition. */

#include <mpix_sparse.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { COUNT = 10000, BLOCK = 256, HEADER = 64, PRESENCE = BLOCK / 8 };

/* True if rank r has element i; all ranks can compute it. Some blocks are full, others empty. */
static bool has(int r, int64_t i)
{
    return mix((uint64_t)i / 900 + 5) % 3 != 0 && mix((uint64_t)(i * 64 + r)) % 40 == 0;
}

/* Number of ranks that have an element. */
static int owners_of(int64_t i)
{
    int owners = 0;
    for (int r = 0; r < ranks; r++)
        owners += has(r, i);
    return owners;
}

enum { ALL = -1 }; /* in place of a rank: any rank */

/* A block's owner, and the block's number in the owner's part. */
struct block_pos {
    int owner;
    int64_t block;
};

static struct block_pos block_pos_of(bool contiguous, int64_t i)
{
    int64_t span = (COUNT + ranks - 1) / ranks, block = i / BLOCK;
    if (contiguous)
        return (struct block_pos){ (int)(i / span), i % span / BLOCK };
    return (struct block_pos){ (int)(block % ranks), block / ranks };
}

/* A rank's contribution to a part: elements, and blocks that are not empty. */
struct load {
    long long elements, blocks;
};

static struct load load_of(bool contiguous, int r, int owner)
{
    struct load load = { 0, 0 };
    int64_t last = -1;
    for (int64_t i = 0; i < COUNT; i++) {
        struct block_pos block_pos = block_pos_of(contiguous, i);
        if (block_pos.owner != owner || !(r == ALL ? owners_of(i) > 0 : has(r, i)))
            continue;
        load.elements++;
        load.blocks += block_pos.block != last;
        last = block_pos.block;
    }
    return load;
}

/* Elements of the fullest part over the mean. */
static double imbalance(bool contiguous, int r)
{
    long long most = 0, sum = 0;
    for (int owner = 0; owner < ranks; owner++) {
        long long here = load_of(contiguous, r, owner).elements;
        most = here > most ? here : most;
        sum += here;
    }
    return sum == 0 ? 1 : (double)(most * ranks) / (double)sum;
}

/* Each sum is the number of ranks that have the element. */
static void check_sums(MPIX_Sparse_result result)
{
    MPI_Count nnz = -1;
    const void *index, *value;
    long long k = 0;
    check_success(MPIX_Sparse_result_get(result, &nnz, &index, &value), "MPIX_Sparse_result_get");
    for (int64_t i = 0; i < COUNT; i++) {
        int owners = owners_of(i);
        if (owners == 0)
            continue;
        check(k < nnz && ((const int32_t *)index)[k] == i && ((const float *)value)[k] == (float)owners,
              "expected %d at %lld", owners, (long long)i);
        k++;
    }
    check(k == nnz, "expected %lld elements, found %lld", k, (long long)nnz);
}

static MPIX_Sparse_report_t reduce(MPI_Comm comm)
{
    static int32_t index[COUNT];
    static float value[COUNT];
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPIX_Sparse_report_t report;
    MPI_Count nnz = 0;
    for (int32_t i = 0; i < COUNT; i++)
        if (has(rank, i)) {
            value[nnz] = 1;
            index[nnz++] = i;
        }
    check_success(MPIX_Sparse_allreduce_coo(index, value, nnz, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm,
                                            &result),
                  "MPIX_Sparse_allreduce_coo");
    check_sums(result);
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    return report;
}

static void check_near(double found, double expected, const char *what)
{
    check(fabs(found - expected) <= 1e-9 * expected, "expected %s of %g, found %g", what, expected, found);
}

/* Blocks are sent whole, with their number and a bit for each slot. */
static void try_omni(const char *partition, bool contiguous)
{
    const long long block = BLOCK * (long long)sizeof(float) + (long long)sizeof(uint32_t) + PRESENCE;
    MPI_Comm comm = settings_comm(&(struct settings){ "omni", NULL, partition, NULL, NULL });
    long long blocks = (ranks - 1) * load_of(contiguous, ALL, rank).blocks;
    check_case("omni, partition %s", partition == NULL ? "not said" : partition);
    MPIX_Sparse_report_t report = reduce(comm);
    for (int owner = 0; owner < ranks; owner++)
        blocks += owner == rank ? 0 : load_of(contiguous, rank, owner).blocks;
    long long expected = blocks * block + 2 * (ranks - 1) * HEADER;
    check(report.bytes_sent == expected, "expected %lld bytes, found %lld", expected,
          (long long)report.bytes_sent);
    check(strcmp(report.partition, contiguous ? "range" : "cyclic") == 0,
          "expected cyclic or range, found '%s'", report.partition);
    check_near(report.push_imbalance, imbalance(contiguous, rank), "a push imbalance");
    check_near(report.pull_imbalance, imbalance(contiguous, ALL), "a pull imbalance");
    MPI_Comm_free(&comm);
}

enum { RANGE = 1000, SPACE = 100 * RANGE };
static const double EVEN = 1.1;

/* All ranks have one contiguous range of elements. */
static double imbalance_of_range(MPI_Comm comm, int32_t at, int32_t count)
{
    static int32_t index[RANGE];
    static float value[RANGE];
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPIX_Sparse_report_t report;
    for (int32_t i = 0; i < RANGE; i++)
        index[i] = at + i;
    check_success(MPIX_Sparse_allreduce_coo(index, value, RANGE, MPI_INT32_T, count, MPI_FLOAT, MPI_SUM, comm,
                                            &result),
                  "MPIX_Sparse_allreduce_coo");
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    check(strcmp(report.partition, "recomputed") == 0, "expected 'recomputed', found '%s'", report.partition);
    check_near(report.pull_imbalance, report.push_imbalance, "a pull imbalance");
    return report.push_imbalance;
}

/* The range moves in every call. When boundaries are computed, all ranks have equal shares of it; until the
 * next time one rank has all. Each tensor counts its own calls. */
static void try_oktopk(int recompute)
{
    char text[16];
    snprintf(text, sizeof text, "%d", recompute);
    setenv("MPIX_SPARSE_RECOMPUTE", text, 1);
    MPI_Comm comm = settings_comm(&(struct settings){ "oktopk", NULL, NULL, NULL, NULL });
    unsetenv("MPIX_SPARSE_RECOMPUTE");
    for (int call = 0; call < 9; call++) {
        int32_t at = (1 + 7 * call % 9) * (SPACE / 10);
        bool fresh = call % recompute == 0;
        check_case("oktopk, boundaries for %d calls, call %d", recompute, call);
        double found = imbalance_of_range(comm, at, SPACE);
        check(fresh ? found < EVEN : found == ranks, "expected an imbalance of %d, found %g",
              fresh ? 1 : ranks, found);
        found = call == 1 ? imbalance_of_range(comm, at, SPACE + 1) : 1;
        check(found < EVEN, "expected another tensor's imbalance to be 1, found %g", found);
    }
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    try_omni(NULL, false);
    try_omni("cyclic", false);
    try_omni("hash", false);
    try_omni("range", true);
    try_oktopk(1);
    try_oktopk(4);
    try_oktopk(1000);
    return check_end("ownership");
}
