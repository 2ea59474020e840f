/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the allgather of elements that ranks own: cyclic, contiguous, or in the blocks of the last
 * reduce_scatter on the communicator. A message has one bit for each slot of a part then, and otherwise one
 * for each element of the vector. One foreign element of one rank is enough for the latter. The result is the
 * same, also if later starts of a plan have other owners. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { COUNT = 7000, EVERY = 7, HEADER = 64, BITS = 8 };

static int64_t index_of[COUNT];
static double value_of[COUNT];
static MPI_Count nnz;

static void add(int64_t i)
{
    index_of[nnz] = i;
    value_of[nnz++] = (double)i;
}

static int owner(int64_t i, int64_t block)
{
    return (int)(i / block % ranks);
}

/* Every seventh element is present, on its owner. In `foreign` the last rank has an element of rank 0 too. */
static void choose(int64_t block, bool foreign)
{
    bool moved = false;
    nnz = 0;
    for (int64_t i = 0; i < COUNT; i += EVERY) {
        bool moves = foreign && !moved && owner(i, block) == 0;
        moved |= moves;
        if ((moves ? ranks - 1 : owner(i, block)) == rank)
            add(i);
    }
}

static void check_result(MPIX_Sparse_result result)
{
    MPI_Count n;
    const void *indices, *values;
    check_success(MPIX_Sparse_result_get(result, &n, &indices, &values), "MPIX_Sparse_result_get");
    check(n == COUNT / EVERY, "expected %d elements, found %lld", COUNT / EVERY, (long long)n);
    for (MPI_Count i = 0; i < n; i++)
        check(((const int64_t *)indices)[i] == i * EVERY && ((const double *)values)[i] == (double)i * EVERY,
              "expected element %lld at place %lld", (long long)i * EVERY, (long long)i);
}

/* Returns the slots of this rank's part: elements up to its last block's end. */
static long long part_slots(int64_t block)
{
    long long slots = 0;
    for (int64_t i = 0; i < COUNT; i++)
        slots += owner(i, block) == rank;
    return slots;
}

static void check_bytes(MPI_Comm comm, int64_t block, bool owned)
{
    MPIX_Sparse_report_t report;
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    long long slots = owned ? part_slots(block) : COUNT;
    long long message = HEADER + (long long)nnz * (long long)sizeof(double) + (slots + BITS - 1) / BITS;
    check(report.messages_sent == ranks - 1 && report.bytes_sent == (ranks - 1) * message,
          "expected %d messages of %lld bytes, found %lld bytes", ranks - 1, message,
          (long long)report.bytes_sent);
    const char *partition = !owned || ranks == 1 ? "none" : block * ranks >= COUNT ? "range" : "cyclic";
    check(strcmp(report.partition, partition) == 0, "expected partition %s, found %s", partition,
          report.partition);
}

static void gather(MPI_Comm comm, int64_t block, bool foreign, bool known)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    choose(block, foreign);
    check_case("block %lld%s%s", (long long)block, foreign ? ", a foreign element" : "",
               known ? ", known" : "");
    check_success(MPIX_Sparse_allgather_coo(index_of, value_of, nnz, MPI_INT64_T, COUNT, MPI_DOUBLE, comm,
                                            &result),
                  "MPIX_Sparse_allgather_coo");
    check_result(result);
    check_bytes(comm, block, known && ranks > 1);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
}

/* A block that is no candidate becomes one by a reduce_scatter, and stops to be one by the next. */
static void scatter(MPI_Comm comm, int64_t block)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    choose(block, false);
    check_success(MPIX_Sparse_reduce_scatter_coo(index_of, value_of, nnz, MPI_INT64_T, COUNT, block,
                                                 MPI_DOUBLE, MPI_SUM, comm, &result),
                  "MPIX_Sparse_reduce_scatter_coo");
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
}

static void check_candidates(MPI_Comm comm)
{
    int64_t contiguous = (COUNT + ranks - 1) / ranks;
    gather(comm, 1, false, true);
    gather(comm, 1, true, ranks == 1);
    gather(comm, contiguous, false, true);
    gather(comm, contiguous, true, ranks == 1);
    gather(comm, 14, false, false);
    scatter(comm, 14);
    gather(comm, 14, false, true);
    gather(comm, 64, false, false);
    scatter(comm, 64);
    gather(comm, 64, false, true);
    gather(comm, 14, false, false);
    gather(comm, 1, false, true);
}

/* Saved agreements say nothing about the owners of the next start's elements. */
static void check_plan(MPI_Comm comm)
{
    MPIX_Sparse_plan plan;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPI_Request request;
    check_success(MPIX_Sparse_allgather_coo_init(MPI_INT64_T, COUNT, MPI_DOUBLE, comm, MPI_INFO_NULL, &plan),
                  "MPIX_Sparse_allgather_coo_init");
    for (int start = 0; start < 6; start++) {
        check_case("start %d of a plan", start);
        choose(1, start % 3 == 2);
        check_success(MPIX_Sparse_plan_start_coo(plan, index_of, value_of, nnz, &result, &request),
                      "MPIX_Sparse_plan_start_coo");
        check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        check_result(result);
    }
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
}

int main(int argc, char **argv)
{
    const struct settings settings = { "balanced", "hash_bitmap", NULL, NULL, NULL };
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    nodes_set(ranks);
    MPI_Comm comm = settings_comm(&settings);
    check_candidates(comm);
    check_plan(comm);
    MPI_Comm_free(&comm);
    return check_end("known_owners");
}
