/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that ranks of a node map each other's new memory in time. A small call skips the final barrier after
 * all memory was mapped and read. Memory that a rank without elements made in a large call must be mapped in
 * the next small call, because the rank may free it afterwards. If a mapping fails in a small call, all ranks
 * learn of it. Kept results hold mappings, but not all that a process may have.
 *
 * Link with -Wl,--wrap=sar_shm_region_map, and with the library's objects. */

#include <mpix_sparse.h>
#include <string.h>

#include "check.h"
#include "comm/shm/region.h"
#include "comm/shm/result.h"

enum { COUNT = 1000000, MANY = 20000, FEW = 10 };

enum sar_status __real_sar_shm_region_map(const struct sar_shm_handle *name, struct sar_shm_region *segment);
enum sar_status __wrap_sar_shm_region_map(const struct sar_shm_handle *name, struct sar_shm_region *segment);

static long mapped;
static bool fails;

enum sar_status __wrap_sar_shm_region_map(const struct sar_shm_handle *name, struct sar_shm_region *segment)
{
    mapped++;
    if (fails)
        return SAR_NO_MEMORY;
    return __real_sar_shm_region_map(name, segment);
}

/* Element i of each rank is at i times STEP, after the element of the previous rank. */
static int reduce(MPI_Comm comm, int nnz, MPIX_Sparse_result *result)
{
    enum { STEP = COUNT / MANY };
    static int32_t indices[MANY];
    static float values[MANY];
    for (int i = 0; i < nnz; i++) {
        indices[i] = i * STEP + rank;
        values[i] = 1;
    }
    return MPIX_Sparse_allreduce_coo(indices, values, nnz, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm,
                                     result);
}

static void expect(MPI_Comm comm, int nnz, MPI_Count expected)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    const void *indices, *values;
    MPI_Count found = -1;
    check_success(reduce(comm, nnz, &result), "MPIX_Sparse_allreduce_coo");
    check_success(MPIX_Sparse_result_get(result, &found, &indices, &values), "MPIX_Sparse_result_get");
    check(found == expected, "expected %lld elements, found %lld", (long long)expected, (long long)found);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
}

static MPI_Comm open_comm(void)
{
    MPI_Comm comm;
    MPI_Info info;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_scheme", "shared");
    check_success(MPIX_Sparse_comm_set_info(comm, info), "MPIX_Sparse_comm_set_info");
    MPI_Info_free(&info);
    return comm;
}

static void check_empty(void)
{
    MPI_Comm comm = open_comm();
    check_case("nothing in a large call");
    expect(comm, rank == ranks - 1 ? 0 : MANY, (ranks - 1) * MANY);
    long before = mapped;
    check(before != 0, "expected memory of others to be mapped");
    check_case("something in a small one");
    expect(comm, FEW, ranks * FEW);
    check(mapped == before, "expected all of it to be mapped before, found %ld more", mapped - before);
    MPI_Comm_free(&comm);
}

/* A call with a consistency check opens the group, which maps without this function. Memory not mapped in a
 * large call must be mapped in the small call after it. */
static void check_failure(void)
{
    MPI_Comm comm = open_comm();
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    expect(comm, 0, 0);
    fails = rank == 0;
    for (int call = 0; call < 2; call++) {
        check_case("memory that one rank cannot map in a %s call", call == 0 ? "large" : "small");
        check_error(reduce(comm, call == 0 ? MANY : FEW, &result),
                    rank == 0 ? "out of memory" : "another rank", -1);
    }
    fails = false;
    expect(comm, FEW, ranks * FEW);
    MPI_Comm_free(&comm);
}

static bool ran_shared(MPI_Comm comm)
{
    MPIX_Sparse_report_t report;
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    return strcmp(report.scheme, "shared") == 0;
}

static MPI_Count count_wrong(MPIX_Sparse_result result)
{
    MPI_Count nnz = 0, wrong = 0;
    const void *indices, *values;
    check_success(MPIX_Sparse_result_get(result, &nnz, &indices, &values), "MPIX_Sparse_result_get");
    for (MPI_Count i = 0; i < nnz; i++)
        wrong += ((const float *)values)[i] != 1;
    return nnz == ranks * MANY ? wrong : ranks * MANY;
}

/* Ranks that keep different numbers of results disable shared memory together. */
static void check_kept(void)
{
    enum { KEPT = 24, MOST = 8, APART = 64 };
    MPIX_Sparse_result kept[KEPT] = { MPIX_SPARSE_RESULT_NULL };
    int shared = 0, before = sar_shm_result_limit;
    MPI_Comm comm = open_comm();
    sar_shm_result_limit = rank == 0 ? MOST + 4 : MOST;
    for (int i = 0; i < KEPT; i++) {
        check_case("result %d that is kept", i);
        check_success(reduce(comm, MANY, &kept[i]), "MPIX_Sparse_allreduce_coo");
        shared += ran_shared(comm);
    }
    check(shared == MOST, "expected %d results in memory that ranks share, found %d", MOST, shared);
    for (int i = 0; i < KEPT; i++) {
        check(count_wrong(kept[i]) == 0, "expected result %d to be right", i);
        check_success(MPIX_Sparse_result_free(&kept[i]), "MPIX_Sparse_result_free");
    }
    check_case("results once there are fewer");
    for (int i = 0; i < APART; i++)
        expect(comm, MANY, ranks * MANY);
    check(ran_shared(comm), "expected memory to be shared again");
    sar_shm_result_limit = before;
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    check_alarm(60);
    if (ranks % 2 != 0)
        return check_skip("late_mapping", "ranks do not share memory");
    check_empty();
    check_failure();
    check_kept();
    return check_end("late_mapping");
}
