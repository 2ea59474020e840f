/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests nontemporal stores. Ranks on different sockets write data that all ranks read past the caches; other
 * ranks do not. Results have the same bits for all element lengths and alignments. If only one rank considers
 * its node oversubscribed, no rank measures cache lines, and none waits. Ranks that move to another socket
 * are detected.
 *
 * Link with -Wl,--wrap=sar_spvec_copy_nt, and with the library's objects. */

#include <math.h>
#include <mpix_sparse.h>
#include <stdlib.h>

#include "check.h"
#include "comm/shm/numa_distance.h"
#include "vector/reduce.h"

enum { COUNT = 60000, MOST = 5000, ROW_MOST = 67 };

void __real_sar_spvec_copy_nt(const struct sar_vec_desc *shape, const struct sar_spvec *from,
                              struct sar_spvec *to);
void __wrap_sar_spvec_copy_nt(const struct sar_vec_desc *shape, const struct sar_spvec *from,
                              struct sar_spvec *to);

static long streamed; /* elements written past the caches */

void __wrap_sar_spvec_copy_nt(const struct sar_vec_desc *shape, const struct sar_spvec *from,
                              struct sar_spvec *to)
{
    streamed += (long)from->nnz;
    __real_sar_spvec_copy_nt(shape, from, to);
}

struct tensor {
    int nnz, row;
    bool sorted;
    int32_t indices[MOST];
    float values[MOST * ROW_MOST];
};

/* A third of the elements is common to all ranks. */
static void make(struct tensor *t, int nnz, int row, bool sorted)
{
    int step = COUNT / nnz;
    t->nnz = nnz;
    t->row = row;
    for (int i = 0; i < nnz; i++) {
        int at = sorted ? i : (int)((long)i * 17 % nnz);
        t->indices[i] =
            at * step + (at % 3 == 0 ? 0 : (int)(mix((uint64_t)(rank * MOST + at)) % (uint64_t)step));
        for (int k = 0; k < row; k++)
            t->values[i * row + k] = (float)(1 + (at + k + rank) % 9);
    }
}

static long nnz_out;

static uint64_t hash_of(MPIX_Sparse_result result, int row)
{
    MPI_Count nnz = 0;
    const void *indices, *values;
    check_success(MPIX_Sparse_result_get(result, &nnz, &indices, &values), "MPIX_Sparse_result_get");
    nnz_out = (long)nnz;
    uint64_t hash = hash_bytes(indices, (size_t)nnz * sizeof(int32_t), (uint64_t)nnz);
    return hash_bytes(values, (size_t)nnz * (size_t)row * sizeof(float), hash);
}

/* Reduce twice with equal results; the second result reuses the memory of the first. */
static uint64_t reduce(MPI_Comm comm, const struct tensor *t)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPI_Datatype element = MPI_FLOAT;
    uint64_t hash = 0;
    if (t->row > 1) {
        MPI_Type_contiguous(t->row, MPI_FLOAT, &element);
        MPI_Type_commit(&element);
    }
    for (int i = 0; i < 2; i++) {
        check_success(MPIX_Sparse_allreduce_coo(t->indices, t->values, t->nnz, MPI_INT32_T, COUNT, element,
                                                MPI_SUM, comm, &result),
                      "MPIX_Sparse_allreduce_coo");
        hash = hash_of(result, t->row) + 31 * hash;
    }
    check_equal_on_ranks(hash, "the result");
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    if (t->row > 1)
        MPI_Type_free(&element);
    return hash;
}

static MPI_Comm open_comm(const char *scheme, double far)
{
    sar_numa_distance_remote_seconds = far;
    return settings_comm(&(struct settings){ .scheme = scheme });
}

/* All inputs, and the result if a part fits a cache, are written past the caches in both calls. For parts
 * near the cache size the exact cut decides. */
static void check_streamed(const struct tensor *t)
{
    long contributed = 2 * ranks * (long)t->nnz, expected = contributed + 2 * nnz_out;
    int sharers = ranks % 2 == 0 ? ranks : ranks / 2; /* on one node, or on the smaller of two */
    bool fits = nnz_out * (1 + t->row) * (long)sizeof(float) / sharers < 900000;
    MPI_Allreduce(MPI_IN_PLACE, &streamed, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (ranks % 2 == 0 && fits)
        check(streamed == expected, "expected %ld elements past the caches, found %ld", expected, streamed);
    else
        check(streamed >= (ranks % 2 == 0 ? contributed : fits),
              "expected what is contributed past the caches, found %ld", streamed);
}

static void compare(const char *scheme)
{
    static const int sizes[] = { 200, 1001, MOST }, rows[] = { 1, 3, 16, ROW_MOST };
    static struct tensor t;
    uint64_t first = sar_numa_distance_first_call;
    /* A communicator does not measure the distance while another one's ranks are taken to be remote. */
    sar_numa_distance_first_call = sar_numa_distance_call_interval;
    MPI_Comm plain = open_comm("recursive_doubling", INFINITY), near = open_comm(scheme, INFINITY),
             far = open_comm(scheme, -1);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
            make(&t, sizes[i], rows[k], k % 2 == 0);
            check_case("%s, %d elements of %d floats", scheme, t.nnz, t.row);
            uint64_t expected = reduce(plain, &t);
            streamed = 0;
            check(reduce(near, &t) == expected, "expected the result of recursive_doubling, near");
            check(streamed == 0, "expected nothing past the caches, found %ld elements", streamed);
            check(reduce(far, &t) == expected, "expected the result of recursive_doubling, far");
            check_streamed(&t);
        }
    }
    MPI_Comm_free(&plain);
    MPI_Comm_free(&near);
    MPI_Comm_free(&far);
    sar_numa_distance_first_call = first;
}

static long streamed_by_all(void)
{
    MPI_Allreduce(MPI_IN_PLACE, &streamed, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    long sum = streamed;
    streamed = 0;
    return sum;
}

/* Start without waiting. */
static void reduce_later(MPI_Comm comm, const struct tensor *t)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPI_Request request;
    check_success(MPIX_Isparse_allreduce_coo(t->indices, t->values, t->nnz, MPI_INT32_T, COUNT, MPI_FLOAT,
                                             MPI_SUM, comm, &result, &request),
                  "MPIX_Isparse_allreduce_coo");
    check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
}

/* The distance is measured in every fourth call in which all ranks wait, and in no other. settings_comm makes
 * the first call. */
static void check_moving(const char *scheme)
{
    static struct tensor t;
    uint64_t first = sar_numa_distance_first_call, every = sar_numa_distance_call_interval;
    check_case("ranks that move");
    make(&t, 1001, 1, true);
    sar_numa_distance_first_call = sar_numa_distance_call_interval = 4;
    streamed = 0;
    MPI_Comm comm = open_comm(scheme, INFINITY);
    uint64_t expected = reduce(comm, &t);
    check(streamed_by_all() == 0, "expected nothing past the caches of ranks that are near");
    sar_numa_distance_remote_seconds = -1;
    for (int i = 0; i < 4; i++)
        reduce_later(comm, &t);
    check(streamed_by_all() == 0, "expected no look at the distance while ranks do not wait");
    check(reduce(comm, &t) == expected && streamed_by_all() > 0, "expected elements past the caches");
    sar_numa_distance_remote_seconds = INFINITY;
    reduce(comm, &t);
    streamed_by_all();
    check(reduce(comm, &t) == expected && streamed_by_all() == 0, "expected nothing past the caches again");
    MPI_Comm_free(&comm);
    sar_numa_distance_first_call = first;
    sar_numa_distance_call_interval = every;
}

static bool streams(MPI_Comm comm, const struct tensor *t)
{
    reduce(comm, t);
    return streamed_by_all() > 0;
}

/* At first the distance is measured in the second, fourth, eighth ... call. settings_comm makes the first
 * call, and each reduce() two. */
static void check_moving_at_first(const char *scheme)
{
    static struct tensor t;
    static const bool far[] = { true, false, true, true, false, false, false, false };
    uint64_t first = sar_numa_distance_first_call;
    check_case("ranks that move at first");
    make(&t, 1001, 1, true);
    sar_numa_distance_first_call = 2;
    streamed = 0;
    MPI_Comm comm = open_comm(scheme, INFINITY);
    bool expected = false;
    for (uint64_t calls = 2, i = 0; i < sizeof far / sizeof far[0]; calls += 2, i++) {
        bool before = expected, looks = (calls & (calls - 1)) == 0;
        sar_numa_distance_remote_seconds = far[i] ? -1 : INFINITY;
        expected = looks ? far[i] : before;
        check(streams(comm, &t) == expected, "expected %s past the caches once %d calls are made",
              expected ? "elements" : "nothing", (int)calls);
    }
    MPI_Comm_free(&comm);
    sar_numa_distance_first_call = first;
}

/* The launcher may inform only one rank. */
static void check_disagreement(void)
{
    static const char *const names[] = { "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE" };
    static struct tensor t;
    check_case("one rank takes its node to be crowded");
    for (int i = 0; i < 2 && rank == 0; i++)
        setenv(names[i], "999", 1);
    MPI_Comm comm = open_comm("shared", INFINITY);
    make(&t, 1001, 1, true);
    reduce(comm, &t);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    check_alarm(120);
    if (ranks < 2 || ranks == 3)
        return check_skip("numa_remote", "no node has several ranks, or one rank is alone on its node");
    const char *scheme = ranks % 2 == 0 ? "shared" : "two_level";
    compare(scheme);
    check_moving(scheme);
    check_moving_at_first(scheme);
    check_disagreement();
    return check_end("numa_remote");
}
