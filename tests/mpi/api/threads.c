/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests concurrent threads. Each makes and frees its own communicators, and uses blocking calls, nonblocking
 * calls, plans, profiles, reports and hints. */

#include <mpix_sparse.h>
#include <pthread.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 10, LIVES = 3, COUNT = 500 };

/* Data of one thread. */
struct work {
    MPI_Comm parent, comm;
    int number;
    float in[COUNT], out[COUNT];
    MPIX_Sparse_result result;
};

static void check_sums(const struct work *w, const float *sums, int round)
{
    check(sums[w->number] == (float)(ranks * round), "expected %d in thread %d, found %g", ranks * round,
          w->number, (double)sums[w->number]);
    check(sums[100 + rank] == (float)(rank + 1), "expected %d in thread %d, found %g", rank + 1, w->number,
          (double)sums[100 + rank]);
}

static void fill(struct work *w, int round)
{
    w->in[w->number] = (float)round;
    w->in[100 + rank] = (float)(rank + 1);
}

static void block(struct work *w, int round)
{
    const int32_t indices[] = { 100 + rank, w->number };
    const float values[] = { (float)(rank + 1), (float)round };
    float sums[COUNT];
    fill(w, round);
    check_success(MPIX_Sparse_allreduce(w->in, w->out, COUNT, MPI_FLOAT, MPI_SUM, w->comm),
                  "MPIX_Sparse_allreduce");
    check_sums(w, w->out, round);
    check_success(MPIX_Sparse_allreduce_coo(indices, values, 2, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM,
                                            w->comm, &w->result),
                  "MPIX_Sparse_allreduce_coo");
    check_success(MPIX_Sparse_result_dense(w->result, sums), "MPIX_Sparse_result_dense");
    check_sums(w, sums, round);
}

/* Two calls and a plan's start pending, followed by a blocking call. */
static void fly(struct work *w, MPIX_Sparse_plan plan, int round)
{
    float first[COUNT], second[COUNT], third[COUNT];
    MPI_Request requests[3];
    fill(w, round);
    check_success(MPIX_Isparse_allreduce(w->in, first, COUNT, MPI_FLOAT, MPI_SUM, w->comm, &requests[0]),
                  "MPIX_Isparse_allreduce");
    check_success(MPIX_Sparse_plan_start(plan, &requests[1]), "MPIX_Sparse_plan_start");
    check_success(MPIX_Isparse_allreduce(w->in, second, COUNT, MPI_FLOAT, MPI_SUM, w->comm, &requests[2]),
                  "MPIX_Isparse_allreduce");
    check_success(MPIX_Sparse_allreduce(w->in, third, COUNT, MPI_FLOAT, MPI_SUM, w->comm),
                  "MPIX_Sparse_allreduce");
    for (int i = 0; i < 3; i++)
        check_success(MPI_Wait(&requests[(i + rank) % 3], MPI_STATUS_IGNORE), "MPI_Wait");
    check_sums(w, first, round);
    check_sums(w, second, round);
    check_sums(w, third, round);
    check_sums(w, w->out, round);
}

static void look(struct work *w)
{
    MPIX_Sparse_profile_t profile;
    MPIX_Sparse_report_t report;
    check_success(MPIX_Sparse_profile(w->in, COUNT, MPI_FLOAT, w->comm, &profile), "MPIX_Sparse_profile");
    check(profile.ranks == ranks && profile.density_out > 0, "expected a profile of %d ranks", ranks);
    check_success(MPIX_Sparse_get_report(w->comm, &report), "MPIX_Sparse_get_report");
    check(report.count == COUNT, "expected a report of %d elements, found %lld", COUNT,
          (long long)report.count);
    check_error(MPIX_Sparse_allreduce(NULL, w->out, COUNT, MPI_FLOAT, MPI_SUM, w->comm), "sendbuf", 0);
}

static void live(struct work *w)
{
    MPIX_Sparse_plan plan;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_scheme", w->number % 2 == 0 ? "balanced" : "auto");
    MPI_Comm_dup(w->parent, &w->comm);
    MPI_Comm_set_errhandler(w->comm, MPI_ERRORS_RETURN);
    check_success(MPIX_Sparse_comm_set_info(w->comm, info), "MPIX_Sparse_comm_set_info");
    check_success(MPIX_Sparse_allreduce_init(w->in, w->out, COUNT, MPI_FLOAT, MPI_SUM, w->comm, MPI_INFO_NULL,
                                             &plan),
                  "MPIX_Sparse_allreduce_init");
    for (int round = 1; round <= ROUNDS; round++) {
        block(w, round);
        fly(w, plan, round);
        if (round % 4 == 0)
            look(w);
    }
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    MPI_Comm_free(&w->comm);
    MPI_Info_free(&info);
}

static void *work(void *arguments)
{
    struct work *w = arguments;
    for (int i = 0; i < LIVES; i++)
        live(w);
    check_success(MPIX_Sparse_result_free(&w->result), "MPIX_Sparse_result_free");
    return NULL;
}

int main(int argc, char **argv)
{
    static struct work works[THREADS];
    pthread_t threads[THREADS];
    if (check_begin(&argc, &argv, MPI_THREAD_MULTIPLE) < MPI_THREAD_MULTIPLE)
        return check_skip("threads", "this MPI has no MPI_THREAD_MULTIPLE");
    check_case("%d threads", THREADS);
    for (int i = 0; i < THREADS; i++) {
        works[i].number = i;
        MPI_Comm_dup(MPI_COMM_WORLD, &works[i].parent);
    }
    for (int i = 0; i < THREADS; i++)
        check(pthread_create(&threads[i], NULL, work, &works[i]) == 0, "expected a thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&works[i].parent);
    return check_end("threads");
}
