/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank of a node brings nothing to a large call, and something to the small one behind it, in which ranks do not meet
 * again once they have read: by then its memory must be mapped everywhere, for it may go on to give that back.
 *
 * Link with -Wl,--wrap=sar_segment_map, and with the library's objects. */

#include <mpix_sparse.h>

#include "check.h"
#include "net/segment.h"

enum { COUNT = 1000000, MANY = 5000, FEW = 10 };

enum sar_status __real_sar_segment_map(const struct sar_segment_name *name, struct sar_segment *segment);
enum sar_status __wrap_sar_segment_map(const struct sar_segment_name *name, struct sar_segment *segment);

static long mapped;

enum sar_status __wrap_sar_segment_map(const struct sar_segment_name *name, struct sar_segment *segment)
{
    mapped++;
    return __real_sar_segment_map(name, segment);
}

/* Element i of each rank is at i times STEP, behind that of the rank before. */
static void reduce(MPI_Comm comm, int nnz, MPI_Count expected)
{
    static int32_t indices[MANY];
    static float values[MANY];
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    const void *at, *sums;
    MPI_Count found = -1;
    for (int i = 0; i < nnz; i++) {
        indices[i] = i * (COUNT / MANY) + rank;
        values[i] = 1;
    }
    check_success(MPIX_Sparse_allreduce_coo(indices, values, nnz, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM,
                                            comm, &result),
                  "MPIX_Sparse_allreduce_coo");
    check_success(MPIX_Sparse_result_get(result, &found, &at, &sums), "MPIX_Sparse_result_get");
    check(found == expected, "expected %lld elements, found %lld", (long long)expected, (long long)found);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    MPI_Info info;
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    check_alarm(60);
    if (ranks % 2 != 0)
        return check_skip("unmapped", "ranks do not share memory");
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_scheme", "shared");
    check_success(MPIX_Sparse_comm_set_info(comm, info), "MPIX_Sparse_comm_set_info");
    MPI_Info_free(&info);

    check_case("nothing in a large call");
    reduce(comm, rank == ranks - 1 ? 0 : MANY, (ranks - 1) * MANY);
    long before = mapped;
    check(before != 0, "expected memory of others to be mapped");
    check_case("something in a small one");
    reduce(comm, FEW, ranks * FEW);
    check(mapped == before, "expected all of it to be mapped before, found %ld more", mapped - before);
    MPI_Comm_free(&comm);
    return check_end("unmapped");
}
