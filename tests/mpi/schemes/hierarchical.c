/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests partition=hierarchical: the bits of partition=hash with grain 1 on any number of threads, and the
 * report, for indices that are spread evenly and for indices of one owner, which overflow serial memory. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "hash/partition_map.h"

enum { COUNT = 400000, NNZ = 20000, KEY = 77 };

/* Element i of the input has indices[i]. */
static int32_t indices[NNZ];
static float values[NNZ];

/* Elements of stripes rank, rank + step … belong to one owner or to random ones. */
static void make_input(bool one_owner)
{
    const struct sar_partition_map map = { .kind = SAR_PARTITION_HASH,
                                           .parts = (uint32_t)ranks,
                                           .seed = (uint32_t)sar_mix64(KEY),
                                           .count = COUNT,
                                           .blocks_fit_32 = true };
    uint64_t stripes = COUNT / (uint64_t)ranks, nnz = stripes < NNZ ? stripes : NNZ;
    for (uint64_t i = 0; i < NNZ; i++) {
        uint64_t index = sar_partition_map_index(&map, (uint32_t)ranks / 2, i % nnz);
        indices[i] = (int32_t)(one_owner ? index : mix(i * 100 + (uint64_t)rank) % COUNT);
        values[i] = (float)(0.1 * (double)(1 + (i + (uint64_t)rank) % 50));
    }
}

static MPI_Comm open_comm(const char *scheme, const char *partition, const char *threads, const char *segment)
{
    setenv("MPIX_SPARSE_SEED", "77", 1);
    setenv("MPIX_SPARSE_THREADS", threads, 1);
    nodes_set(strcmp(scheme, "two_level") == 0 && ranks > 1 ? 2 : 0);
    MPI_Comm comm = settings_comm(&(struct settings){ scheme, NULL, partition, "1", segment });
    nodes_set(0);
    unsetenv("MPIX_SPARSE_THREADS");
    return comm;
}

/* Returns a hash of the result. */
static uint64_t call(MPI_Comm comm, MPIX_Sparse_report_t *report)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPI_Count nnz;
    const void *index, *sum;
    check_success(MPIX_Sparse_allreduce_coo(indices, values, NNZ, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM,
                                            comm, &result),
                  "MPIX_Sparse_allreduce_coo");
    check_success(MPIX_Sparse_result_get(result, &nnz, &index, &sum), "MPIX_Sparse_result_get");
    uint64_t hash = hash_bytes(sum, (size_t)nnz * sizeof(float),
                               hash_bytes(index, (size_t)nnz * sizeof(int32_t), (uint64_t)nnz));
    check_success(MPIX_Sparse_get_report(comm, report), "MPIX_Sparse_get_report");
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    return hash;
}

static uint64_t run(const char *scheme, const char *partition, const char *threads, const char *segment,
                    MPIX_Sparse_report_t *report)
{
    MPI_Comm comm = open_comm(scheme, partition, threads, segment);
    check_case("%s, %s, %s threads, segment %s", scheme, partition, threads, segment ? segment : "auto");
    uint64_t hash = call(comm, report);
    check(strcmp(report->partition, partition) == 0, "expected the partition %s, found %s", partition,
          report->partition);
    check(report->grain == 1, "expected grain 1, found %d", report->grain);
    check_equal_on_ranks(hash, "the result");
    MPI_Comm_free(&comm);
    return hash;
}

static void check_report(const MPIX_Sparse_report_t *report, bool overflows)
{
    check(report->serial_share > 0 && report->serial_share < 0.1, "expected few serial writes, found %g",
          report->serial_share);
    check((report->hash_reruns > 0) == overflows, "expected %s, found %lld reruns",
          overflows ? "reruns" : "no rerun", (long long)report->hash_reruns);
}

static void try_scheme(const char *scheme, bool one_owner)
{
    static const char *const threads[] = { "1", "2", "3" }, *const segments[] = { NULL, "20000" };
    MPIX_Sparse_report_t report;
    make_input(one_owner);
    for (int s = 0; s < 2; s++) {
        uint64_t expected = run(scheme, "hash", "1", segments[s], &report);
        check(report.serial_share == 0 && report.hash_reruns == 0, "expected no serial writes, found %g",
              report.serial_share);
        for (int t = 0; t < 3; t++) {
            uint64_t found = run(scheme, "hierarchical", threads[t], segments[s], &report);
            check(found == expected, "expected the bits of partition=hash, found others");
            check_report(&report, one_owner && ranks > 1);
        }
    }
}

/* Without a grain asked for it is 1, and auto is never hierarchical. */
static void try_defaults(void)
{
    MPIX_Sparse_report_t report;
    make_input(false);
    for (int hierarchical = 0; hierarchical < 2; hierarchical++) {
        MPI_Comm comm = settings_comm(
            &(struct settings){ "balanced", NULL, hierarchical ? "hierarchical" : "auto", NULL, NULL });
        check_case("defaults of %s", hierarchical ? "hierarchical" : "auto");
        call(comm, &report);
        check(strcmp(report.partition, hierarchical ? "hierarchical" : "hash") == 0,
              "expected hash or hierarchical, found %s", report.partition);
        check(!hierarchical || report.grain == 1, "expected grain 1, found %d", report.grain);
        MPI_Comm_free(&comm);
    }
}

/* As with hash, schemes with other maps keep theirs. */
static void try_others(void)
{
    static const char *const others[][2] = { { "omni", "cyclic" }, { "sparse_ps", "range" } };
    MPIX_Sparse_report_t report;
    make_input(false);
    for (int i = 0; i < 2; i++) {
        MPI_Comm comm = settings_comm(&(struct settings){ others[i][0], NULL, "hierarchical", NULL, NULL });
        check_case("%s", others[i][0]);
        call(comm, &report);
        check(strcmp(report.partition, others[i][1]) == 0 && report.serial_share == 0,
              "expected the partition %s, found %s", others[i][1], report.partition);
        MPI_Comm_free(&comm);
    }
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    try_scheme("balanced", false);
    try_scheme("balanced", true);
    for (int one_owner = 0; one_owner < 2 && ranks > 2; one_owner++)
        try_scheme("two_level", one_owner);
    try_defaults();
    try_others();
    return check_end("hierarchical");
}
