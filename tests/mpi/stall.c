/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank is late: the others say so, by its number and host, in their logs, while they wait; then it comes,
 * the outcome is right, and what the ranks told each other has all been received in the end.
 *
 * Link with -Wl,--wrap=PMPI_Isend,--wrap=PMPI_Recv, and with the library's objects. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "net/net.h"

int __real_PMPI_Isend(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                      MPI_Request *request);
int __wrap_PMPI_Isend(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                      MPI_Request *request);
int __real_PMPI_Recv(void *buf, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                     MPI_Status *status);
int __wrap_PMPI_Recv(void *buf, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                     MPI_Status *status);

static long long words; /* sent less received */

int __wrap_PMPI_Isend(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                      MPI_Request *request)
{
    words += tag == SAR_TAG_ROLL;
    return __real_PMPI_Isend(buf, n, type, to, tag, comm, request);
}

int __wrap_PMPI_Recv(void *buf, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                     MPI_Status *status)
{
    words -= tag == SAR_TAG_ROLL;
    return __real_PMPI_Recv(buf, n, type, from, tag, comm, status);
}

enum { TEXT = 1 << 14, COUNT = 1000, HOST = 64 };

static char path[] = "/tmp/mpix_sparse_XXXXXX"; /* this rank's log */

static void nap(double seconds)
{
    struct timespec time = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
    nanosleep(&time, NULL);
}

/* What this rank has logged since the last look. */
static const char *read_log(void)
{
    static char text[TEXT];
    FILE *file = fopen(path, "r");
    check(file != NULL, "expected to open %s", path);
    size_t n = fread(text, 1, TEXT - 1, file);
    text[n] = '\0';
    fclose(file);
    check(truncate(path, 0) == 0, "expected to empty %s", path);
    return text;
}

static void check_outcome(const float *out)
{
    for (int i = 0; i < COUNT; i++)
        check(out[i] == (i < ranks ? 1.0f : 0.0f), "found %g at index %d", (double)out[i], i);
}

/* A line must name the late rank, which is on this host, and no other. */
static void check_named(const char *where, int late)
{
    char host[HOST] = "", wanted[2 * HOST];
    const char *log = read_log();
    gethostname(host, sizeof host - 1);
    snprintf(wanted, sizeof wanted, "ranks %d on %s\n", late, host);
    if (rank == late)
        return;
    check(strstr(log, "MPIX_SPARSE WARN net: waited ") != NULL && strstr(log, where) != NULL &&
              strstr(log, wanted) != NULL,
          "expected '%s' and '%s', found: %s", where, wanted, log);
}

static void call(MPI_Comm comm)
{
    float in[COUNT] = { 0 }, out[COUNT];
    in[rank] = 1;
    check_success(MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm), "MPIX_Sparse_allreduce");
    check_outcome(out);
}

static void try_late(MPI_Comm comm, int late)
{
    check_case("rank %d is late for a call", late);
    if (rank == late)
        nap(1.8);
    call(comm);
    check_named("the agreement on a call", late);
    call(comm);
    check(crowded || strlen(read_log()) == 0, "expected a call that is not late to log nothing");
}

/* The late rank starts the call, and then computes. */
static void try_idle(MPI_Comm comm, int late)
{
    float in[COUNT] = { 0 }, out[COUNT];
    MPI_Request request;
    int done = 0;
    check_case("rank %d leaves its call in flight alone", late);
    in[rank] = 1;
    if (MPIX_Isparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, &request) != MPI_SUCCESS)
        return; /* threads would move it */
    if (rank == late)
        nap(1.8);
    while (!done)
        check_success(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    check_outcome(out);
    check_named("waited", late);
}

/* The first use of a communicator: no host is known yet. */
static void try_opening(int late)
{
    char wanted[64];
    MPI_Comm comm;
    check_case("rank %d is late for the first call", late);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm); /* ranks have other numbers in it */
    if (rank == late)
        nap(0.8);
    call(comm);
    snprintf(wanted, sizeof wanted, "%d ranks of a communicator; no call from ranks %d\n", ranks, late);
    const char *log = read_log();
    check(rank == late || strstr(log, wanted) != NULL, "expected '%s', found: %s", wanted, log);
    MPI_Comm_free(&comm);
}

/* A plan that agrees on nothing any more, in the middle of a scheme that MPI carries out or one of ours. */
static void try_plan(const char *scheme, const char *where, int late)
{
    float in[COUNT] = { 0 }, out[COUNT];
    MPIX_Sparse_plan plan;
    MPI_Request request;
    MPI_Comm comm = knobs_comm(&(struct knobs){ scheme, NULL, NULL, NULL, NULL });
    check_case("rank %d is late for a plan of %s", late, scheme);
    in[rank] = 1;
    check_success(MPIX_Sparse_allreduce_init(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &plan),
                  "MPIX_Sparse_allreduce_init");
    for (int round = 0; round < 3; round++) {
        if (rank == late && round == 2)
            nap(1.8);
        if (MPIX_Sparse_plan_start(plan, &request) != MPI_SUCCESS)
            break; /* for lack of threads */
        check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        check_outcome(out);
        if (round < 2)
            read_log();
        else
            check_named(where, late);
    }
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    MPI_Comm_free(&comm);
}

static void check_words(void)
{
    long long all = 0;
    MPI_Allreduce(&words, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    check(all == 0, "expected that all words are received, %lld are not", all);
}

static void try_all(void)
{
    MPI_Comm comm = knobs_comm(&(struct knobs){ "balanced", NULL, NULL, NULL, NULL });
    read_log();
    try_late(comm, 0);
    try_late(comm, ranks - 1);
    try_idle(comm, ranks - 1);
    MPI_Comm_free(&comm);
    try_opening(0);
    try_opening(ranks - 1);
    try_plan("balanced", "in phase ", ranks - 1);
    try_plan("dense", "the dense allreduce", 0);
    check_words();
}

static void try_off(void)
{
    check_case("stalls are not watched");
    setenv("MPIX_SPARSE_STALL", "0", 1);
    MPI_Comm comm = knobs_comm(&(struct knobs){ "balanced", NULL, NULL, NULL, NULL });
    if (rank == 0)
        nap(0.6);
    call(comm);
    check(strlen(read_log()) == 0, "expected nothing to be logged");
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    check_alarm(120);
    int file = mkstemp(path);
    check(file >= 0, "expected to make %s", path);
    close(file);
    setenv("MPIX_SPARSE_LOG_FILE", path, 1);
    setenv("MPIX_SPARSE_LOG", "warn", 1);
    setenv("MPIX_SPARSE_STALL", "0.3", 1);
    if (ranks > 1)
        try_all();
    try_off();
    unlink(path);
    return check_end("stall");
}
