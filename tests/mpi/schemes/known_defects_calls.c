/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests calls that other implementations of sparse allreduce get wrong: order, buffers, messages,
 * communicators, sizes, memory. Each test names the implementation and its defect, and runs every scheme.
 * known_defects.c covers defects of the vectors. */

#include <mpix_sparse.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "scheme/scheme.h"

enum { TIMEOUT = 280 /* seconds, for one scheme */ };

static const char *present_scheme;

static MPI_Comm make_comm(const char *wire, const char *segment)
{
    return settings_comm(&(struct settings){ present_scheme, wire, NULL, NULL, segment });
}

static void name_case(const char *test)
{
    check_case("%s, scheme %s", test, present_scheme);
}

static bool is(const char *scheme)
{
    return strcmp(present_scheme, scheme) == 0;
}

/* Delay one rank. */
static void delay(int target)
{
    if (rank == target % ranks)
        nanosleep(&(struct timespec){ .tv_nsec = 3000000 }, NULL);
}

/* Coordinates with `shared` elements common to all ranks, one index in `step`, and an element of each rank at
 * the end. The sums are known without communication. */
struct comb {
    int64_t count, shared, step;
    int64_t key; /* added to the values */
};

static void check_comb(const struct comb *c, int n, MPIX_Sparse_result result)
{
    MPI_Count nnz = -1;
    const void *index, *value;
    check_success(MPIX_Sparse_result_get(result, &nnz, &index, &value), "MPIX_Sparse_result_get");
    check(nnz == c->shared + n, "expected %lld elements, found %lld", (long long)(c->shared + n),
          (long long)nnz);
    for (int64_t k = 0; k < c->shared + n; k++) {
        int64_t own = k - c->shared, i = ((const int64_t *)index)[k], v = ((const int64_t *)value)[k];
        int64_t right = own < 0 ? n * (c->key + k) + (int64_t)n * (n + 1) / 2 : c->key;
        int64_t at = own < 0 ? k * c->step : c->count - n + own;
        check(i == at && v == right, "expected %lld at %lld, found %lld at %lld", (long long)right,
              (long long)at, (long long)v, (long long)i);
    }
}

/* Overwrite the caller's buffers as soon as the call has returned. */
static void reduce_comb(const struct comb *c, MPI_Comm comm, MPIX_Sparse_result *result)
{
    int r, n;
    MPI_Comm_rank(comm, &r);
    MPI_Comm_size(comm, &n);
    size_t nnz = (size_t)c->shared + 1, bytes = nnz * sizeof(int64_t);
    int64_t *index = get_memory(nnz, sizeof *index), *value = get_memory(nnz, sizeof *value);
    for (int64_t k = 0; k < c->shared; k++) {
        index[k] = k * c->step;
        value[k] = c->key + k + r + 1;
    }
    index[c->shared] = c->count - n + r;
    value[c->shared] = c->key;
    check_success(MPIX_Sparse_allreduce_coo(index, value, (MPI_Count)nnz, MPI_INT64_T, c->count, MPI_INT64_T,
                                            MPI_SUM, comm, result),
                  "MPIX_Sparse_allreduce_coo");
    memset(index, 0x7f, bytes);
    memset(value, 0x7f, bytes);
    check_comb(c, n, *result);
    free(index);
    free(value);
}

static void reduce_comb_once(const struct comb *c, MPI_Comm comm)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    reduce_comb(c, comm, &result);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
}

/* Floats whose sum depends on the order. */
static void draw_reals(float *reals, int n)
{
    for (int i = 0; i < n; i++) {
        uint64_t bits = mix((uint64_t)i * 1000 + (uint64_t)rank);
        reals[i] = bits % 3 == 0 ? 0 : ldexpf((float)(bits >> 40) + 1, (int)(bits % 40) - 40);
        reals[i] *= bits % 2 == 0 ? 1 : -1;
    }
}

/* SparCML adds in the order of arrival. Users of Open MPI (#11721) and NCCL (#855, #1497) request equal bits
 * on all ranks and in every run. */
static void order_of_additions(void)
{
    enum { COUNT = 3000, CALLS = 6 };
    static float reals[COUNT], sums[COUNT];
    uint64_t first = 0;
    MPI_Comm comm = make_comm(NULL, NULL);
    name_case("order of additions");
    draw_reals(reals, COUNT);
    for (int call = 0; call < CALLS && !is("dense"); call++) {
        delay(call);
        check_success(MPIX_Sparse_allreduce(reals, sums, COUNT, MPI_FLOAT, MPI_SUM, comm),
                      "MPIX_Sparse_allreduce");
        uint64_t hash = hash_bytes(sums, sizeof sums, 1);
        first = call == 0 ? hash : first;
        check_equal_on_ranks(hash, "the sums");
        check(hash == first, "expected call %d to give the bits of the first, found others", call);
    }
    MPI_Comm_free(&comm);
}

/* SparCML never waits for its sends: send buffers are overwritten, and the communicator is freed, too
 * early. */
static void sends_that_nobody_waits_for(void)
{
    MPI_Comm comm = make_comm(NULL, NULL);
    const struct comb comb = { .count = 200000, .shared = 30000, .step = 5, .key = 3 };
    name_case("sends that nobody waits for");
    for (int i = 0; i < 3; i++) {
        delay(i);
        reduce_comb_once(&comb, comm);
    }
    MPI_Comm_free(&comm);
}

/* SparCML's tags are equal in every call: a fast rank's next message is taken for one of this call. */
static void calls_that_overtake(void)
{
    MPI_Comm comm = make_comm(NULL, NULL);
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    name_case("calls that overtake");
    for (int i = 0; i < 20; i++) {
        if (i % 5 == 0)
            delay(i / 5);
        reduce_comb(
            &(struct comb){ .count = 3000 + i % 2, .shared = 100 + 40 * (i % 3), .step = 7, .key = i }, comm,
            &result);
    }
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    MPI_Comm_free(&comm);
}

/* SparCML sends with small tags on the user's communicator: messages are mixed up with the user's, who
 * receives from any source or has sent before. */
static void messages_of_the_user(void)
{
    enum { TAGS = 4 };
    static const int tags[TAGS] = { 0, 1, 2, 32767 };
    MPI_Comm comm = make_comm(NULL, NULL);
    MPI_Request receive, sends[TAGS];
    int right = (rank + 1) % ranks, found = -1, arrived = 1;
    name_case("messages of the user");
    for (int i = 0; i < TAGS; i++)
        MPI_Isend(&tags[i], 1, MPI_INT, right, tags[i], comm, &sends[i]);
    MPI_Recv(&found, 1, MPI_INT, MPI_ANY_SOURCE, tags[1], comm, MPI_STATUS_IGNORE);
    check(found == tags[1], "expected %d, found %d", tags[1], found);
    reduce_comb_once(&(struct comb){ .count = 5000, .shared = 700, .step = 6, .key = 1 }, comm);
    for (int i = 0; i < TAGS; i++)
        if (i != 1)
            MPI_Recv(&found, 1, MPI_INT, MPI_ANY_SOURCE, tags[i], comm, MPI_STATUS_IGNORE);
    check(found == tags[TAGS - 1], "expected %d, found %d", tags[TAGS - 1], found);
    MPI_Irecv(&found, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &receive);
    reduce_comb_once(&(struct comb){ .count = 5000, .shared = 700, .step = 6, .key = 2 }, comm);
    MPI_Test(&receive, &arrived, MPI_STATUS_IGNORE);
    check(!arrived, "expected no message for the user, found one");
    MPI_Barrier(comm);
    MPI_Waitall(TAGS, sends, MPI_STATUSES_IGNORE);
    MPI_Isend(&right, 1, MPI_INT, right, 9, comm, &sends[0]);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    check(found == rank, "expected %d, found %d", rank, found);
    MPI_Wait(&sends[0], MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
}

/* SparCML works only on MPI_COMM_WORLD. Here two groups work at the same time, each on its own vectors, and
 * one has its ranks in reverse order. */
static void groups(void)
{
    MPI_Comm half;
    name_case("groups");
    settings_set(&(struct settings){ present_scheme, NULL, NULL, NULL, NULL });
    MPI_Comm_split(MPI_COMM_WORLD, rank % 3 == 1, rank % 3 == 1 ? -rank : rank, &half);
    for (int64_t i = 0; i < 4 + rank % 3 % 2; i++)
        reduce_comb_once(&(struct comb){ 2000 + i, 300 + 50 * (rank % 3 == 1), 4, i }, half);
    reduce_comb_once(&(struct comb){ 1000, 90, 4, 5 }, MPI_COMM_SELF);
    settings_set(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
    MPI_Comm_free(&half);
}

/* Zen's released code sizes its memory in the first call; oneCCL's caller had to allocate memory for a result
 * of unknown size. */
static void growing_calls(void)
{
    static const int64_t sizes[] = { 0, 1, 30, 1000, 20000, 10, 0, 3000 };
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    for (int segments = 0; segments < 2; segments++) {
        MPI_Comm comm = make_comm(NULL, segments ? "1000" : NULL);
        name_case(segments ? "growing calls, in segments" : "growing calls");
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            reduce_comb(&(struct comb){ 65000, sizes[i], 3, 1 }, comm, &result);
            reduce_comb(&(struct comb){ 3 * sizes[i] + ranks, sizes[i], 3, 2 }, comm, &result);
        }
        MPI_Comm_free(&comm);
    }
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
}

/* SparCML: int lengths and offsets overflow at 2 GiB. Schemes that send every element are left out. */
static void vast_vectors(void)
{
    for (int segments = 0; segments < 2 && ranks > 1 && !is("dense"); segments++) {
        MPI_Comm comm = make_comm("coo", segments ? "40" : NULL);
        name_case(segments ? "vast vectors, in segments" : "vast vectors");
        reduce_comb_once(&(struct comb){ (INT64_C(1) << 31) + 5, 40, 50000000, 1 }, comm);
        reduce_comb_once(&(struct comb){ (INT64_C(1) << 32) - 1, 40, 100000000, 1 }, comm);
        MPI_Comm_free(&comm);
    }
}

/* Check the balance for indices `at` + i `step` on all ranks. */
static void check_balance(MPI_Comm comm, int32_t at, int32_t step, MPI_Count count)
{
    enum { NNZ = 20000 };
    static int32_t index[NNZ];
    static float value[NNZ];
    const double most = 1.15; /* the planner's limit is 1.1 */
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPIX_Sparse_report_t r;
    for (int i = 0; i < NNZ; i++)
        index[i] = at + i * step;
    check_success(MPIX_Sparse_allreduce_coo(index, value, NNZ, MPI_INT32_T, count, MPI_FLOAT, MPI_SUM, comm,
                                            &result),
                  "MPIX_Sparse_allreduce_coo");
    check_success(MPIX_Sparse_get_report(comm, &r), "MPIX_Sparse_get_report");
    check(r.push_imbalance <= most && r.pull_imbalance <= most,
          "expected imbalances up to %g, found %g and %g", most, r.push_imbalance, r.pull_imbalance);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
}

/* Sparse PS: contiguous elements go to one server. Ok-Topk: an imbalance of 1.4 to 5.1 if elements moved
 * since boundaries were computed. Cyclic parts: one part gets all indices that are multiples of the number of
 * ranks. The schemes named after these have the defect on purpose. */
static void balance(void)
{
    MPI_Comm comm = make_comm(NULL, NULL);
    name_case("balance");
    if (is("balanced")) {
        for (int32_t move = 0; move < 15; move += 7)
            check_balance(comm, move * 20000, 1, 320000);
        check_balance(comm, 0, 256 * ranks, INT64_C(5120000) * ranks);
        check_balance(comm, 77, 3 * ranks, 100000 * ranks);
    }
    MPI_Comm_free(&comm);
}

/* Horovod (#433), NCCL (#754), RCCL (#1661): the user cannot select an algorithm, nor query which one ran. */
static void scheme_asked_for(void)
{
    MPI_Comm comm = make_comm(NULL, NULL);
    MPIX_Sparse_report_t report;
    name_case("scheme asked for");
    reduce_comb_once(&(struct comb){ 999, 100, 3, 1 }, comm);
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check(strcmp(report.scheme, present_scheme) == 0 && strstr(report.reason, "asked for") == report.reason,
          "expected %s since asked for, found %s: %s", present_scheme, report.scheme, report.reason);
    MPI_Comm_free(&comm);
}

/* MPICH 4.0.2 as Debian builds it crashes at a count of -1. */
static void negative_counts(void)
{
    MPI_Comm comm = make_comm(NULL, NULL);
    float in = 1, out = 2;
    name_case("negative counts");
    check_error(MPIX_Sparse_allreduce(&in, &out, rank == ranks - 1 ? -1 : 1, MPI_FLOAT, MPI_SUM, comm), "-1",
                ranks - 1);
    check(out == 2, "expected recvbuf as it was, found %g", (double)out);
    reduce_comb_once(&(struct comb){ 999, 100, 3, 1 }, comm);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    static void (*const tests[])(void) = {
        order_of_additions,
        sends_that_nobody_waits_for,
        calls_that_overtake,
        messages_of_the_user,
        groups,
        growing_calls,
        vast_vectors,
        balance,
        scheme_asked_for,
        negative_counts,
    };
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    for (size_t s = 0; sar_schemes[s] != NULL; s++) {
        if (!sar_scheme_serves(sar_schemes[s], SAR_ALLREDUCE))
            continue;
        present_scheme = sar_schemes[s]->name;
        check_alarm(TIMEOUT);
        for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
            tests[i]();
    }
    return check_end("known_defects_calls");
}
