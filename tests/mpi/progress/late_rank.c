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
#include "comm/comm.h"

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
    words += tag == SAR_TAG_WATCHDOG;
    return __real_PMPI_Isend(buf, n, type, to, tag, comm, request);
}

int __wrap_PMPI_Recv(void *buf, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                     MPI_Status *status)
{
    words -= tag == SAR_TAG_WATCHDOG;
    return __real_PMPI_Recv(buf, n, type, from, tag, comm, status);
}

enum { TEXT = 1 << 14, COUNT = 1000, HOST = 64, PATIENCE = 1500 /* looks at a log, of 20 ms */ };

#define WAITED "MPIX_SPARSE WARN comm: waited "

static int count = COUNT;                       /* elements of a call */
static char path[] = "/tmp/mpix_sparse_XXXXXX"; /* this rank's log */
static char *paths;                             /* all ranks' */

static void nap(double seconds)
{
    struct timespec time = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
    nanosleep(&time, NULL);
}

/* What a rank has logged since its last look. */
static const char *read_log(int of)
{
    static char text[TEXT];
    const char *name = paths + (size_t)of * sizeof path;
    FILE *file = fopen(name, "r");
    check(file != NULL, "expected to open %s", name);
    size_t n = fread(text, 1, TEXT - 1, file);
    text[n] = '\0';
    fclose(file);
    return text;
}

/* On all ranks, before one of them looks at another's again. */
static void empty_logs(void)
{
    check(truncate(path, 0) == 0, "expected to empty %s", path);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void check_outcome(const float *out)
{
    for (int i = 0; i < count; i++)
        check(out[i] == (i < ranks ? 1.0f : 0.0f), "found %g at index %d", (double)out[i], i);
}

/* Whether a line of a log has both, the second one at its end. */
static bool has_line(const char *log, const char *where, const char *end)
{
    for (const char *next; (next = strchr(log, '\n')) != NULL; log = next + 1) {
        const char *at = strstr(log, where);
        if (at != NULL && at < next && (size_t)(next - log) >= strlen(end) &&
            strncmp(next - strlen(end), end, strlen(end)) == 0)
            return true;
    }
    return false;
}

/* The late rank stays away until all others have told of it, however slow they are. */
static void stay_away(const char *where, const char *end)
{
    for (int r = 0; r < ranks; r++)
        for (int looks = 0; r != rank && looks < PATIENCE && !has_line(read_log(r), where, end); looks++)
            nap(0.02);
}

static void check_told(int late, const char *where, const char *end)
{
    const char *log = read_log(rank);
    check(rank == late || has_line(log, where, end), "expected '%s' and '%s', found: %s", where, end, log);
    empty_logs();
}

/* How a line ends that names the late rank, which is on this host, and no other. */
static const char *alone(int late)
{
    static char end[2 * HOST];
    char host[HOST] = "";
    gethostname(host, sizeof host - 1);
    snprintf(end, sizeof end, "from rank %d on %s", late, host);
    return end;
}

/* The same, or it may name others before it. */
static const char *last(int late)
{
    return strchr(alone(late), ' ') + strlen(" rank");
}

static void call(MPI_Comm comm)
{
    float in[COUNT] = { 0 }, out[COUNT];
    in[rank] = 1;
    check_success(MPIX_Sparse_allreduce(in, out, count, MPI_FLOAT, MPI_SUM, comm), "MPIX_Sparse_allreduce");
    check_outcome(out);
}

static void try_late(MPI_Comm comm, int late)
{
    check_case("rank %d is late for a call", late);
    if (rank == late)
        stay_away("in the consistency check", alone(late));
    call(comm);
    check_told(late, "in the consistency check", alone(late));
    call(comm);
    check(oversubscribed || strlen(read_log(rank)) == 0, "expected a call that is not late to log nothing");
    empty_logs();
}

/* The late rank starts the call before all others, and then computes. Which of them get through the agreement
 * is MPI's affair: those name, rightly, also the ones that it keeps there, and these only the late one. */
static void try_idle(MPI_Comm comm, int late)
{
    float in[COUNT] = { 0 }, out[COUNT];
    MPI_Request request;
    int done = 0;
    check_case("rank %d leaves its call in flight alone", late);
    in[rank] = 1;
    if (MPIX_Isparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, &request) != MPI_SUCCESS)
        return; /* threads would move it */
    check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    if (rank != late)
        MPI_Barrier(MPI_COMM_WORLD);
    check_success(MPIX_Isparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, &request),
                  "MPIX_Isparse_allreduce");
    if (rank == late) {
        MPI_Barrier(MPI_COMM_WORLD);
        stay_away(WAITED, last(late));
    }
    while (!done)
        check_success(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    check_outcome(out);
    check_told(late, WAITED, last(late));
}

/* A call so small that it would go to MPI, had nobody set MPIX_SPARSE_STALL. */
static void try_small(int late)
{
    MPIX_Sparse_report_t report;
    unsetenv("MPIX_SPARSE_FORWARD");
    MPI_Comm comm = knobs_comm(&(struct knobs){ NULL, NULL, NULL, NULL, NULL });
    setenv("MPIX_SPARSE_FORWARD", "63", 1);
    MPI_Comm unwatched = knobs_comm(&(struct knobs){ NULL, NULL, NULL, NULL, NULL });
    setenv("MPIX_SPARSE_FORWARD", "0", 1);
    count = ranks;
    try_late(comm, late);
    MPI_Comm_free(&comm);
    check_case("MPIX_SPARSE_FORWARD goes before");
    call(unwatched);
    check_success(MPIX_Sparse_get_report(unwatched, &report), "MPIX_Sparse_get_report");
    check(strstr(report.reason, "handed to MPI_Allreduce") != NULL, "expected a call of MPI's, found: %s",
          report.reason);
    count = COUNT;
    MPI_Comm_free(&unwatched);
}

/* The first use of a communicator: no host is known yet. */
static void try_opening(int late)
{
    char where[64], end[64];
    MPI_Comm comm;
    check_case("rank %d is late for the first call", late);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm); /* ranks have other numbers in it */
    snprintf(where, sizeof where, "%d ranks of a communicator", ranks);
    snprintf(end, sizeof end, "no call from rank %d", late);
    if (rank == late)
        stay_away(where, end);
    call(comm);
    check_told(late, where, end);
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
            stay_away(where, alone(late));
        if (MPIX_Sparse_plan_start(plan, &request) != MPI_SUCCESS)
            break; /* for lack of threads */
        check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        check_outcome(out);
        if (round < 2)
            empty_logs();
        else
            check_told(late, where, alone(late));
    }
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    MPI_Comm_free(&comm);
}

/* Whether the rank is on the second of two nodes. */
static bool is_behind(int of)
{
    return of >= (ranks + 1) / 2;
}

/* A plan that goes from node to node: whoever waits for the late rank itself names it, which are its
 * neighbours at the meeting, and on the other node the rank that its messages go to. */
static void try_nodes(int late)
{
    float in[COUNT] = { 0 }, out[COUNT];
    MPIX_Sparse_plan plan;
    MPI_Request request;
    MPI_Comm comm = knobs_comm(&(struct knobs){ "two_level", NULL, NULL, NULL, NULL });
    check_case("rank %d is late on another node", late);
    in[rank] = 1;
    check_success(MPIX_Sparse_allreduce_init(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &plan),
                  "MPIX_Sparse_allreduce_init");
    for (int round = 0; round < 3; round++) {
        if (rank == late && round == 2)
            stay_away(WAITED, "");
        if (MPIX_Sparse_plan_start(plan, &request) != MPI_SUCCESS)
            break; /* for lack of threads */
        check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        check_outcome(out);
        int found = round == 2 && has_line(read_log(rank), WAITED, alone(late));
        int beyond = found && is_behind(rank) != is_behind(late);
        MPI_Allreduce(MPI_IN_PLACE, &beyond, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        check(round < 2 || beyond, "expected rank %d to be named on the other node", late);
        check(round < 2 || found || rank == late || is_behind(rank) != is_behind(late),
              "expected rank %d to be named by its neighbours", late);
        empty_logs();
    }
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    MPI_Comm_free(&comm);
}

static void check_words(void)
{
    long long all = 1;
    float one = 1, sum;
    for (int i = 0; i < 100 && all != 0; i++) {
        MPI_Comm alone; /* what was put aside goes when another communicator is used */
        MPI_Comm_dup(MPI_COMM_SELF, &alone);
        MPIX_Sparse_allreduce(&one, &sum, 1, MPI_FLOAT, MPI_SUM, alone);
        MPI_Comm_free(&alone);
        MPI_Allreduce(&words, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    }
    check(all == 0, "expected that all words are received, %lld are not", all);
}

static void try_all(void)
{
    MPI_Comm comm = knobs_comm(&(struct knobs){ "balanced", NULL, NULL, NULL, NULL });
    empty_logs();
    try_late(comm, 0);
    try_late(comm, ranks - 1);
    try_idle(comm, ranks - 1);
    MPI_Comm_free(&comm);
    try_small(ranks - 1);
    try_opening(0);
    try_opening(ranks - 1);
    try_plan("balanced", "in phase ", ranks - 1);
    try_plan("dense", "the dense allreduce", 0);
    for (int i = 0; i < 2 && ranks > 2; i++)
        try_nodes(i * (ranks - 1));
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
    check(strlen(read_log(rank)) == 0, "expected nothing to be logged");
    MPI_Comm_free(&comm);
}

static void open_logs(void)
{
    int file = mkstemp(path);
    paths = malloc((size_t)ranks * sizeof path);
    check(file >= 0 && paths != NULL, "expected to make %s", path);
    close(file);
    MPI_Allgather(path, sizeof path, MPI_CHAR, paths, sizeof path, MPI_CHAR, MPI_COMM_WORLD);
    setenv("MPIX_SPARSE_LOG_FILE", path, 1);
    setenv("MPIX_SPARSE_LOG", "warn", 1);
    setenv("MPIX_SPARSE_STALL", "0.3", 1);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    check_alarm(120);
    open_logs();
    if (ranks > 1)
        try_all();
    try_off();
    unlink(path);
    free(paths);
    return check_end("late_rank");
}
