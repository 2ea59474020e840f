/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that the library coexists with other libraries in one program: communicators are made and freed,
 * results outlive them, threads use several communicators at once, and PMPI tools intercept calls. */

#include <mpix_sparse.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "contexts.h"

enum { SLOTS = 64 };

/* Rank r of the communicator has 1 at index 0 and r + 1 at index r + 1. */
static void check_sums(MPI_Comm comm, MPIX_Sparse_result result, int round)
{
    MPI_Count nnz = -1;
    const void *found;
    float values[SLOTS];
    int n;
    MPI_Comm_size(comm, &n);
    check_success(MPIX_Sparse_result_get(result, &nnz, &found, NULL), "MPIX_Sparse_result_get");
    check(nnz == n + 1, "expected %d elements, found %lld", n + 1, (long long)nnz);
    for (int i = 0; i < (int)nnz; i++)
        check(((const int32_t *)found)[i] == i, "expected index %d, found %d", i,
              ((const int32_t *)found)[i]);
    check_success(MPIX_Sparse_result_dense(result, values), "MPIX_Sparse_result_dense");
    for (int i = 0; i < SLOTS; i++) {
        float expected = i > n ? 0.0f : (float)((i == 0 ? n : i) * round);
        check(values[i] == expected, "expected %g at index %d, found %g", (double)expected, i,
              (double)values[i]);
    }
}

static MPIX_Sparse_result reduce(MPI_Comm comm, int round)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    int r;
    MPI_Comm_rank(comm, &r);
    const int32_t indices[] = { 0, r + 1 };
    const float values[] = { (float)round, (float)((r + 1) * round) };
    check_success(MPIX_Sparse_allreduce_coo(indices, values, 2, MPI_INT32_T, SLOTS, MPI_FLOAT, MPI_SUM, comm,
                                            &result),
                  "MPIX_Sparse_allreduce_coo");
    return result;
}

static void use(MPI_Comm comm, int round)
{
    float in[SLOTS] = { 0 }, out[SLOTS];
    int r, n;
    MPIX_Sparse_result result = reduce(comm, round);
    check_sums(comm, result, round);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    check(result == MPIX_SPARSE_RESULT_NULL, "expected a null result after it was freed");
    MPI_Comm_rank(comm, &r);
    MPI_Comm_size(comm, &n);
    in[r] = 1;
    in[SLOTS - 1] = (float)round;
    check_success(MPIX_Sparse_allreduce(in, out, SLOTS, MPI_FLOAT, MPI_SUM, comm), "MPIX_Sparse_allreduce");
    check(out[r] == 1 && out[SLOTS - 1] == (float)(n * round), "expected 1 and %d, found %g and %g",
          n * round, (double)out[r], (double)out[SLOTS - 1]);
}

static void try_duplicate(void)
{
    MPI_Comm second;
    MPIX_Sparse_report_t report;
    check_case("a duplicate of a communicator in use");
    use(MPI_COMM_WORLD, 1);
    MPI_Comm copy = comm_duplicate();
    check_error(MPIX_Sparse_get_report(copy, &report), "no completed call", -1);
    use(copy, 2);
    MPI_Comm_dup(copy, &second);
    use(second, 3);
    MPI_Comm_free(&copy);
    use(second, 4);
    MPI_Comm_free(&second);
    use(MPI_COMM_WORLD, 5);
}

/* The two halves make different numbers of calls. MPI_Finalize releases the communicator. */
static void try_float16(void)
{
    MPI_Comm half, backwards;
    check_case("odd and even ranks");
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    for (int round = 1; round < 3 + rank % 2 * 3; round++)
        use(half, round);
    use(MPI_COMM_WORLD, 7);
    check_case("ranks in reverse");
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &backwards);
    use(backwards, 2);
    MPI_Comm_free(&backwards);
    check_case("one rank");
    use(MPI_COMM_SELF, 3);
}

static void try_result_only(void)
{
    MPI_Comm comm;
    int n;
    MPIX_Sparse_result result, other;
    check_case("a result that outlives its communicator");
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
    MPI_Comm_size(comm, &n);
    result = reduce(comm, 4);
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
    check_sums(comm, result, 4);
    other = result;
    const int32_t index = 9;
    const float value = 2;
    check_success(MPIX_Sparse_allreduce_coo(&index, &value, rank == 0, MPI_INT32_T, SLOTS, MPI_FLOAT, MPI_SUM,
                                            MPI_COMM_WORLD, &result),
                  "a call on another communicator that reuses the result");
    check(other == result, "expected the same result");
    MPI_Comm_free(&comm);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free of a null result");
}

static void try_many(void)
{
    const double limit = 3; /* seconds */
    int before = contexts_left(), made = 0, more = 1;
    double start = MPI_Wtime();
    check_case("many communicators");
    for (; more; made++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        if (made % 3 == 0)
            use(comm, made);
        MPI_Comm_free(&comm);
        more = made < 1000 && MPI_Wtime() - start < limit;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    int after = contexts_left_again(before);
    check(after >= before, "expected room for %d communicators after %d were used, found %d", before, made,
          after);
}

/* A failed first use leaves no state on the communicator. */
static void try_failed_first_use(void)
{
    int before = contexts_left();
    check_case("failed first uses");
    for (int i = 0; i < 20; i++) {
        const float value = 1;
        float sum;
        MPI_Comm comm = comm_duplicate();
        settings_set(&(struct settings){ "nonsense", NULL, NULL, NULL, NULL });
        check_error(MPIX_Sparse_allreduce(&value, &sum, 1, MPI_FLOAT, MPI_SUM, comm), "nonsense", -1);
        settings_set(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
        MPI_Comm_free(&comm);
    }
    int after = contexts_left_again(before);
    check(after >= before, "expected room for %d communicators, found %d", before, after);
}

/* MPI_Comm_free does not synchronize, so ranks may free communicators at different times. */
static void try_free_in_turn(void)
{
    MPI_Comm comm[2];
    int token = 0;
    check_case("a rank that frees communicators before it sends what others wait for");
    check_alarm(120);
    for (int i = 0; i < 2; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
        use(comm[i], i + 1);
    }
    if (rank > 0)
        MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2; i++)
        MPI_Comm_free(&comm[rank % 2 == 0 ? i : 1 - i]);
    use(MPI_COMM_SELF, 1);
    if (rank < ranks - 1)
        MPI_Send(&token, 1, MPI_INT, rank + 1, 0, MPI_COMM_WORLD);
    use(MPI_COMM_WORLD, 2);
    check_alarm(0);
}

static void *use_often(void *comm)
{
    for (int round = 1; round < 40; round++)
        use(*(MPI_Comm *)comm, round);
    return NULL;
}

/* Runs if MPI supports threads. tests/mpi/api/threads reports the case without support. */
static void try_threads(int provided)
{
    enum { THREADS = 2 };
    pthread_t threads[THREADS];
    MPI_Comm comms[THREADS];
    check_case("threads with a communicator each");
    if (provided < MPI_THREAD_MULTIPLE)
        return;
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < THREADS; i++)
        check(pthread_create(&threads[i], NULL, use_often, &comms[i]) == 0, "expected a thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&comms[i]);
}

/* A tool's function replaces the library's, and calls it under its PMPIX name. */
static int intercepted;

int MPIX_Sparse_get_version(int *version)
{
    intercepted++;
    return PMPIX_Sparse_get_version(version);
}

static void try_names(void)
{
    int version = 0;
    float in = 2, out = 0;
    const int32_t index = 0;
    MPI_Count nnz = 0;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPIX_Sparse_profile_t profile;
    MPIX_Sparse_report_t report;
    check_case("PMPIX names");
    check_success(MPIX_Sparse_get_version(&version), "MPIX_Sparse_get_version");
    check(intercepted == 1 && version == MPIX_SPARSE_VERSION, "expected version %x through a tool, found %x",
          MPIX_SPARSE_VERSION, version);
    check_success(PMPIX_Sparse_allreduce(&in, &out, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD),
                  "PMPIX allreduce");
    check(out == 2.0f * (float)ranks, "expected %d, found %g", 2 * ranks, (double)out);
    check_success(PMPIX_Sparse_allreduce_coo(&index, &in, 1, MPI_INT32_T, 1, MPI_FLOAT, MPI_SUM,
                                             MPI_COMM_WORLD, &result),
                  "PMPIX allreduce_coo");
    check_success(PMPIX_Sparse_result_get(result, &nnz, NULL, NULL), "PMPIX result_get");
    check_success(PMPIX_Sparse_result_dense(result, &in), "PMPIX result_dense");
    check(nnz == 1 && in == out, "expected 1 element, %g, found %lld, %g", (double)out, (long long)nnz,
          (double)in);
    check_success(PMPIX_Sparse_result_free(&result), "PMPIX result_free");
    check_success(PMPIX_Sparse_profile(&in, 1, MPI_FLOAT, MPI_COMM_WORLD, &profile), "PMPIX profile");
    check_success(PMPIX_Sparse_get_report(MPI_COMM_WORLD, &report), "PMPIX get_report");
    check(profile.density == 1 && report.ranks == ranks, "expected density 1 on %d ranks, found %g on %d",
          ranks, profile.density, report.ranks);
}

int main(int argc, char **argv)
{
    int provided = check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    try_duplicate();
    try_float16();
    try_result_only();
    try_many();
    try_failed_first_use();
    try_free_in_turn();
    try_threads(provided);
    try_names();
    return check_end("coexistence");
}
