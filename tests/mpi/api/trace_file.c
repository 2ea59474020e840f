/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the trace file. It is JSON, its spans nest, and the spans of a call cover the call. It has all calls
 * with their bytes, also more than memory keeps. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { COUNT = 20000, ROUNDS = 90, EVENTS = 16384, LINE = 512, FLIGHTS = 3, SMALL = 5 };

struct span {
    char name[64];
    long long from, until; /* nanoseconds */
    int lane, call;
    long long sent;
    char collective[32]; /* of a call; else empty */
};

static char path[] = "/tmp/mpix_sparse_XXXXXX";
static char own[64]; /* this rank's trace */
static struct span spans[EVENTS];
static int n;
static bool threads; /* nonblocking calls work on all MPI libraries */

static void read_span(const char *line)
{
    struct span *s = &spans[n];
    long long us, ns, lasted_us, lasted_ns;
    int pid;
    check(n < EVENTS, "expected fewer spans");
    int found = sscanf(line,
                       "{\"name\": \"%63[^\"]\", \"ph\": \"X\", \"ts\": %lld.%3lld, \"dur\": %lld.%3lld, "
                       "\"pid\": %d, \"tid\": %d, \"args\": {\"call\": %d",
                       s->name, &us, &ns, &lasted_us, &lasted_ns, &pid, &s->lane, &s->call);
    check(found == 8 && pid == rank, "expected a complete event of rank %d, found: %s", rank, line);
    s->from = us * 1000 + ns;
    s->until = s->from + lasted_us * 1000 + lasted_ns;
    const char *bytes = strstr(line, "\"bytes_sent\": ");
    check(bytes != NULL && sscanf(bytes, "\"bytes_sent\": %lld", &s->sent) == 1, "no bytes in: %s", line);
    const char *collective = strstr(line, "\"collective\": \"");
    s->collective[0] = 0;
    if (collective != NULL)
        sscanf(collective, "\"collective\": \"%31[^\"]\"", s->collective);
    n++;
}

/* Read the array of events, one event a line. */
static void read_trace(void)
{
    char line[LINE], last[LINE] = "";
    FILE *file = fopen(own, "r");
    check(file != NULL, "expected to open %s", own);
    check(fgets(line, LINE, file) != NULL && strcmp(line, "[\n") == 0, "expected an array");
    check(fgets(line, LINE, file) != NULL && strstr(line, "\"ph\": \"M\"") != NULL, "expected a name");
    for (n = 0; fgets(line, LINE, file) != NULL; strcpy(last, line))
        if (line[0] != ']')
            read_span(line);
    check(strcmp(last, "]\n") == 0, "expected the array to end, found: %s", last);
    fclose(file);
}

static void check_json(void)
{
    char command[256];
    snprintf(command, sizeof command, "python3 -c 'import json,sys; json.load(open(sys.argv[1]))' %s", own);
    if (rank == 0 && system("python3 -c 'import json' 2>/dev/null") == 0)
        check(system(command) == 0, "expected JSON in %s", own);
}

static bool holds(const struct span *outer, const struct span *inner)
{
    return outer->lane == inner->lane && outer->from <= inner->from && inner->until <= outer->until;
}

static void check_nesting(void)
{
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++) {
            const struct span *a = &spans[k], *b = &spans[i];
            check(a->lane != b->lane || a->until <= b->from || b->until <= a->from || holds(a, b) ||
                      holds(b, a),
                  "%s of call %d and %s of call %d overlap", a->name, a->call, b->name, b->call);
        }
    }
}

/* A phase is a span that only a call contains. */
static bool is_phase(const struct span *s)
{
    static const char *const inner[] = {
        "call",   "compute", "post", "meanwhile", "wait",     "encode",        "decode",        "partition",
        "reduce", "deliver", "copy", "densify",   "sparsify", "MPI_Allreduce", "MPI_Iallreduce"
    };
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++)
        if (strcmp(s->name, inner[i]) == 0)
            return false;
    return true;
}

static long long length(const struct span *s)
{
    return s->until - s->from;
}

/* Phases cover most of the time of most calls. The system may suspend the process between two phases of any
 * one call. */
static void check_cover(int calls)
{
    int seen = 0, covered = 0;
    for (int i = 0; i < n; i++) {
        if (strcmp(spans[i].name, "call") != 0)
            continue;
        long long within = 0;
        for (int k = 0; k < n; k++)
            if (is_phase(&spans[k]) && spans[k].call == spans[i].call && spans[k].lane == spans[i].lane) {
                check(holds(&spans[i], &spans[k]), "%s is not in its call", spans[k].name);
                within += length(&spans[k]);
            }
        check(within <= length(&spans[i]), "expected phases within %lld ns, found %lld", length(&spans[i]),
              within);
        seen++;
        covered += within * 2 >= length(&spans[i]);
    }
    check(seen == calls, "expected %d calls, found %d", calls, seen);
    check(covered * 2 >= calls, "expected phases to cover most calls, found %d of %d", covered, calls);
}

static int count_collective(const char *collective)
{
    int calls = 0;
    for (int i = 0; i < n; i++)
        calls += strcmp(spans[i].collective, collective) == 0;
    return calls;
}

/* Each call names its collective; no other span does. */
static void check_collectives(int calls)
{
    int scatters = count_collective("reduce_scatter"), gathers = count_collective("allgather"),
        broadcasts = count_collective("bcast"), reduces = count_collective("allreduce");
    check(scatters == 1 && gathers == 1 && broadcasts == 1 && reduces == calls - 3 &&
              count_collective("") == n - calls,
          "expected one call of each other collective, found %d, %d, %d and %d allreduces", scatters, gathers,
          broadcasts, reduces);
}

static long long sent_by(const char *name)
{
    long long sent = 0;
    for (int i = 0; i < n; i++)
        sent += strcmp(spans[i].name, name) == 0 ? spans[i].sent : 0;
    return sent;
}

static float in[COUNT], out[FLIGHTS][COUNT];

static void call_blocking(MPI_Comm comm)
{
    check_success(MPIX_Sparse_allreduce(in, out[0], COUNT, MPI_FLOAT, MPI_SUM, comm),
                  "MPIX_Sparse_allreduce");
}

/* Two calls on one communicator, and between them one on another. */
static void call_in_flight(MPI_Comm comm, MPI_Comm other)
{
    MPI_Request requests[FLIGHTS];
    for (int i = 0; i < FLIGHTS; i++)
        check_success(MPIX_Isparse_allreduce(in, out[i], COUNT, MPI_FLOAT, MPI_SUM, i == 1 ? other : comm,
                                             &requests[i]),
                      "MPIX_Isparse_allreduce");
    check_success(MPI_Waitall(FLIGHTS, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
}

static void call_others(MPI_Comm comm)
{
    const int32_t index = rank;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    check_success(MPIX_Sparse_reduce_scatter_coo(&index, in, 1, MPI_INT32_T, COUNT, 1, MPI_FLOAT, MPI_SUM,
                                                 comm, &result),
                  "MPIX_Sparse_reduce_scatter_coo");
    check_success(MPIX_Sparse_allgather_coo(&index, in, 1, MPI_INT32_T, COUNT, MPI_FLOAT, comm, &result),
                  "MPIX_Sparse_allgather_coo");
    check_success(MPIX_Sparse_bcast_coo(&index, in, 1, MPI_INT32_T, COUNT, MPI_FLOAT, 0, comm, &result),
                  "MPIX_Sparse_bcast_coo");
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
}

static void call_plan(MPIX_Sparse_plan plan)
{
    MPI_Request request;
    check_success(MPIX_Sparse_plan_start(plan, &request), "MPIX_Sparse_plan_start");
    check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
}

static void fill(int round)
{
    memset(in, 0, sizeof in);
    for (int k = 0; k < 100; k++)
        in[mix((uint64_t)(1000 * round + k)) % COUNT] = 1;
}

static long long sent_in_call(MPI_Comm comm)
{
    MPIX_Sparse_report_t report;
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    return (long long)report.bytes_sent;
}

/* Make calls of all sorts; returns their number. *sent is the known number of bytes sent by some of them. */
static int make_calls(MPI_Comm comm, MPI_Comm other, long long *sent)
{
    int calls = 0;
    MPIX_Sparse_plan plan;
    check_success(MPIX_Sparse_allreduce_init(in, out[0], COUNT, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL,
                                             &plan),
                  "MPIX_Sparse_allreduce_init");
    for (int round = 0; round < ROUNDS; round++) {
        int kind = threads ? round % 3 : 0;
        fill(round);
        if (kind == 0)
            call_blocking(comm);
        else if (kind == 1)
            call_in_flight(comm, other);
        else
            call_plan(plan);
        calls += kind == 1 ? FLIGHTS : 1;
        *sent += sent_in_call(comm);
    }
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    return calls;
}

/* Small calls, which pass to MPI. */
static void call_small(int calls)
{
    MPI_Request request;
    setenv("MPIX_SPARSE_FORWARD", "63", 1);
    MPI_Comm comm = settings_comm(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
    for (int i = 0; i < calls; i++) {
        check_success(MPIX_Sparse_allreduce(in, out[0], 3, MPI_FLOAT, MPI_SUM, comm),
                      "MPIX_Sparse_allreduce");
        check_success(MPIX_Isparse_allreduce(in, out[0], 3, MPI_FLOAT, MPI_SUM, comm, &request),
                      "MPIX_Isparse_allreduce");
        check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    }
    MPI_Comm_free(&comm);
    setenv("MPIX_SPARSE_FORWARD", "0", 1);
}

static void check_small(const char *name, int calls)
{
    int seen = 0;
    for (int i = 0; i < n; i++)
        seen += strcmp(spans[i].name, name) == 0;
    check(seen == calls, "expected %d spans of %s, found %d", calls, name, seen);
}

static void set_trace(void)
{
    int file = mkstemp(path);
    check(file >= 0, "expected to make %s", path);
    close(file);
    setenv("MPIX_SPARSE_TRACE", path, 1);
    snprintf(own, sizeof own, "%s.%d", path, rank);
}

int main(int argc, char **argv)
{
    const struct settings balanced = { "balanced", NULL, NULL, NULL, NULL };
    MPIX_Sparse_profile_t profile;
    long long sent = 0;
    threads = check_begin(&argc, &argv, MPI_THREAD_MULTIPLE) == MPI_THREAD_MULTIPLE;
    set_trace();
    MPI_Comm comm = settings_comm(&balanced);
    if (threads)
        setenv("MPIX_SPARSE_PROGRESS", "thread", 1);
    MPI_Comm other = settings_comm(&balanced);
    int calls = 5 + make_calls(comm, other, &sent);
    call_others(comm);
    check_success(MPIX_Sparse_profile(in, COUNT, MPI_FLOAT, comm, &profile), "MPIX_Sparse_profile");
    call_small(SMALL);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&other);
    check_case("a trace of %d calls", calls);
    read_trace();
    check_json();
    check_nesting();
    check_cover(calls);
    check_collectives(calls);
    check_small("MPI_Allreduce",
                1 + SMALL); /* the first use of a communicator makes a call without elements */
    check_small("MPI_Iallreduce", SMALL);
    check(n > 1024, "expected more spans than are kept, found %d", n);
    long long inner = sent_by("balanced") + sent_by("transfer"); /* the latter by the broadcast */
    check(sent_by("call") >= sent && inner == sent_by("call"),
          "expected %lld bytes, found %lld in calls and %lld in schemes", sent, sent_by("call"), inner);
    check((sent_by("transfer") > 0) == (rank == 0 && ranks > 1) || ranks > 2,
          "found %lld bytes of the broadcast", sent_by("transfer"));
    check(sent_by("post") <= sent_by("balanced"), "expected no more bytes in stages than in the scheme");
    unlink(own);
    unlink(path);
    return check_end("trace_file");
}
