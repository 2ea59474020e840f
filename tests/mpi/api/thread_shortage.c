/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that cannot have as many threads as MPIX_SPARSE_THREADS says, or a plan's hint, works on one.
 * OpenMP would end it. This file's pthread_create allows few threads at a time. */

#include <dlfcn.h>
#include <errno.h>
#include <mpix_sparse.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "check.h"

enum { COUNT = 3000000, STEP = 7, MOST = 4 };

typedef int create_thread(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static atomic_int alive;
static atomic_bool limited;

struct start {
    void *(*run)(void *);
    void *arg;
};

static void *run_counted(void *arg)
{
    struct start start = *(struct start *)arg;
    free(arg);
    void *result = start.run(start.arg);
    atomic_fetch_sub(&alive, 1);
    return result;
}

/* Threads from before the limit are not counted. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *arg)
{
    create_thread *create = (create_thread *)dlsym(RTLD_NEXT, "pthread_create");
    if (!atomic_load(&limited))
        return create(thread, attributes, run, arg);
    struct start *start = malloc(sizeof *start);
    if (start == NULL || atomic_fetch_add(&alive, 1) >= MOST) {
        atomic_fetch_sub(&alive, start != NULL);
        free(start);
        return EAGAIN;
    }
    *start = (struct start){ run, arg };
    int failed = create(thread, attributes, run_counted, start);
    if (failed != 0) {
        atomic_fetch_sub(&alive, 1);
        free(start);
    }
    nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL); /* a thread that has nothing to do ends */
    return failed;
}

static float *in, *out;

static MPI_Info make_hints(const char *threads)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_scheme", "balanced");
    MPI_Info_set(info, "mpix_sparse_threads", threads);
    return info;
}

static void check_sums(MPI_Comm comm, int threads)
{
    MPIX_Sparse_report_t report;
    for (int i = 0; i < COUNT; i++)
        check(out[i] == (i % STEP == 0 ? (float)ranks : 0), "found %g at index %d", (double)out[i], i);
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check(report.threads == threads, "a report of %d threads, not %d", report.threads, threads);
}

static void call(MPI_Comm comm, const char *asked, int threads)
{
    MPI_Info hints = make_hints(asked);
    check_success(MPIX_Sparse_comm_set_info(comm, hints), "MPIX_Sparse_comm_set_info");
    MPI_Info_free(&hints);
    check_success(MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm), "MPIX_Sparse_allreduce");
    check_sums(comm, threads);
}

static void start_plan(MPI_Comm comm, const char *asked, int threads)
{
    MPIX_Sparse_plan plan;
    MPI_Request request;
    MPI_Info hints = make_hints(asked);
    check_success(MPIX_Sparse_allreduce_init(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, hints, &plan),
                  "MPIX_Sparse_allreduce_init");
    MPI_Info_free(&hints);
    check_success(MPIX_Sparse_plan_start(plan, &request), "MPIX_Sparse_plan_start");
    check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    check_sums(comm, threads);
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
}

int main(int argc, char **argv)
{
    int two = 1;
#ifdef _OPENMP
    two = 2;
#endif
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE); /* plans need it with Open MPI */
    in = calloc(COUNT, sizeof *in);
    out = malloc(COUNT * sizeof *out);
    check(in != NULL && out != NULL, "expected memory");
    for (int i = 0; i < COUNT; i += STEP)
        in[i] = 1;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    atomic_store(&limited, true);
    check_case("as many threads as there can be");
    call(comm, "2", two);
    check_case("a plan with more");
    start_plan(comm, "8", 1);
    check_case("more threads than there can be");
    call(comm, "8", 1);
    check_case("fewer again");
    call(comm, "2", 1);
    MPI_Comm_free(&comm);
    free(in);
    free(out);
    return check_end("thread_shortage");
}
