/* SPDX-License-Identifier: BSD-3-Clause */
/* The threads of the process: none before the first large call, as many as MPIX_SPARSE_THREADS says after it,
 * none after MPI_Finalize. Results of large calls on one and on several threads have equal bits, also from
 * within a parallel region. The trace shows both threads at work at once. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "check.h"
#include "process_threads.h"

enum { COUNT = 3000000, STEP = 7, SMALL = 100, THREADS = 2 };

static float *in, *out, *expected;

/* Calls of the scheme balanced, whose loops are split. */
static void set_threads(MPI_Comm comm, const char *threads)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_threads", threads);
    MPI_Info_set(info, "mpix_sparse_scheme", "balanced");
    check_success(MPIX_Sparse_comm_set_info(comm, info), "MPIX_Sparse_comm_set_info");
    MPI_Info_free(&info);
}

/* Without OpenMP a loop has one thread. */
static void check_report(MPI_Comm comm, int threads)
{
    MPIX_Sparse_report_t report;
#ifndef _OPENMP
    threads = 1;
#endif
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check(report.threads == threads, "a report of %d threads, not %d", report.threads, threads);
}

static void call(int count, MPI_Comm comm)
{
    memset(out, 0xff, (size_t)count * sizeof *out);
    check_success(MPIX_Sparse_allreduce(in, out, count, MPI_FLOAT, MPI_SUM, comm), "MPIX_Sparse_allreduce");
}

static void check_equal(const char *where)
{
    check(memcmp(out, expected, COUNT * sizeof *out) == 0, "other bits than on one thread: %s", where);
}

static void call_in_region(MPI_Comm comm)
{
#ifdef _OPENMP
#pragma omp parallel num_threads(THREADS)
#endif
    {
#ifdef _OPENMP
        if (omp_get_thread_num() == 0)
#endif
            call(COUNT, comm);
    }
}

/* A child has none of its parent's threads, and OpenMP's library may wait for them. The parent goes on. The
 * thread sanitizer allows no threads in a child. */
static void fork_after_call(MPI_Comm comm)
{
    enum { TIMEOUT = 30 }; /* seconds */
    int status, found = 0;
    pid_t child = fork();
    check(child >= 0, "expected a child");
    if (child == 0) {
        alarm(TIMEOUT);
#if defined(_OPENMP) && !defined(__SANITIZE_THREAD__)
#pragma omp parallel num_threads(THREADS) reduction(+ : found)
#endif
        found += 1;
        _exit(found < 1);
    }
    check(waitpid(child, &status, 0) == child && status == 0, "a child with status %d", status);
    call(COUNT, comm);
    check_equal("after a fork");
}

/* Large calls by every scheme that splits its work, on several threads. */
static void call_schemes(MPI_Comm comm)
{
    static const char *const schemes[] = { "balanced", "allgather", "recursive_doubling",
                                           "ring",     "two_level", "shared" };
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, "mpix_sparse_scheme", schemes[i]);
        check_success(MPIX_Sparse_comm_set_info(comm, info), "MPIX_Sparse_comm_set_info");
        MPI_Info_free(&info);
        call(COUNT, comm);
        check_equal(schemes[i]);
    }
}

static void fill(void)
{
    in = calloc(COUNT, sizeof *in);
    out = malloc(COUNT * sizeof *out);
    expected = malloc(COUNT * sizeof *expected);
    check(in != NULL && out != NULL && expected != NULL, "no memory");
    for (size_t i = (size_t)rank; i < COUNT; i += STEP)
        in[i] = (float)(1 + (i + (size_t)rank) % 8);
}

static char trace[] = "/tmp/mpix_sparse_XXXXXX";

/* Each rank has a trace of its own. */
static void open_trace(void)
{
    int file = mkstemp(trace);
    check(file >= 0, "cannot make %s", trace);
    close(file);
    setenv("MPIX_SPARSE_TRACE", trace, 1);
}

/* Reads the loops of this rank's two threads from the trace. Returns the number of pairs, a loop of each
 * thread, whose times overlap. */
static int count_overlaps(void)
{
    enum { LOOPS = 4096 };
    static double begin[THREADS][LOOPS], end[THREADS][LOOPS];
    char path[64], line[512];
    int n[THREADS] = { 0 }, thread, overlaps = 0;
    double at, lasted;
    snprintf(path, sizeof path, "%s.%d", trace, rank);
    FILE *file = fopen(path, "r");
    check(file != NULL, "cannot open %s", path);
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line,
                   "{\"name\": \"loop\", \"ph\": \"X\", \"ts\": %lf, \"dur\": %lf, "
                   "\"pid\": %*d, \"tid\": 100000%d",
                   &at, &lasted, &thread) != 3)
            continue;
        check(thread < THREADS, "a loop on thread %d", thread);
        if (n[thread] < LOOPS) {
            begin[thread][n[thread]] = at;
            end[thread][n[thread]++] = at + lasted;
        }
    }
    fclose(file);
    for (int i = 0; i < n[0]; i++)
        for (int k = 0; k < n[1]; k++)
            overlaps += begin[0][i] < end[1][k] && begin[1][k] < end[0][i];
    return overlaps;
}

/* Calls on two threads until loops of both overlap on each rank. On a busy machine it may take several. */
static void call_until_overlap(void)
{
    enum { ATTEMPTS = 50 };
    int least = 0;
    for (int i = 0; i < ATTEMPTS && least == 0; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        set_threads(comm, "2");
        for (int k = 0; k <= i; k++)
            call(COUNT, comm);
        MPI_Comm_free(&comm); /* writes the trace */
        least = count_overlaps();
        PMPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    }
    check(least > 0, "no loop ran on both threads at once");
}

static void remove_trace(void)
{
    char path[64];
    snprintf(path, sizeof path, "%s.%d", trace, rank);
    unlink(path);
    unlink(trace);
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    bool splits = false;
#ifdef _OPENMP
    splits = true;
#endif
    int at_start = process_threads_at_start();
    check_begin(&argc, &argv, MPI_THREAD_FUNNELED);
    open_trace();
    fill();
    int before = process_threads_least();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    set_threads(comm, "1");
    call(COUNT, comm);
    memcpy(expected, out, COUNT * sizeof *expected);
    set_threads(comm, "2");
    call(SMALL, comm);
    check(process_threads_settled(before) == before, "%d threads, not %d, after a small call",
          process_threads(), before);
    set_threads(comm, "2");
    call(COUNT, comm);
    int wanted = splits && ranks > 1 ? before + THREADS - 1 : before;
    check(process_threads_settled(wanted) == wanted || ranks == 1, "%d threads, not %d, after a large call",
          process_threads(), wanted);
    check_report(comm, THREADS);
    check_equal("by default");
    fork_after_call(comm);
    check_report(comm, THREADS);
    call_schemes(comm);
    call_in_region(comm);
    check_report(comm, 1);
    check_equal("in a region");
    MPI_Comm_free(&comm);
    if (splits && ranks > 1)
        call_until_overlap();
    remove_trace();
    free(in);
    free(out);
    free(expected);
    int failed = check_end("openmp_threads");
    if (process_threads_settled(at_start) > at_start) {
        fprintf(stderr, "%d threads after MPI_Finalize, %d at the start\n", process_threads(), at_start);
        return 1;
    }
    return failed;
}
