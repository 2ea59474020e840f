/* SPDX-License-Identifier: BSD-3-Clause */
/* The diagnosis of slow calls: the trace files of all ranks, one line of the table for each rank. A trace has
 * an event on each line; see src/base/trace.c. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/info/info.h"
#include "bench/lib/schema.h"

enum { LINE = 4096, SPAN_NAME = 32 };

static const double LONG_WAIT = 0.5;  /* of a call in `agree`, from which the rank waits for a late one */
static const double SHORT_WAIT = 0.5; /* of the longest wait, up to which the rank that waits least is late */
static const double LONG_PREPARE = 0.25; /* of a call without `agree` */

/* One rank. Microseconds are sums over calls while the file is read, then means. */
struct rank_times {
    long long rank, calls;
    double call, agree, prepare;
    double prepare_share; /* of a call without `agree` */
    double begin, end;    /* of all calls; 0 without one */
    bool is_late, prepares_long;
};

static void add_span(struct rank_times *times, const char *name, double start, double us)
{
    if (strcmp(name, "call") == 0) {
        times->begin = times->calls == 0 || start < times->begin ? start : times->begin;
        times->end = start + us > times->end ? start + us : times->end;
        times->calls++;
        times->call += us;
    } else if (strcmp(name, "agree") == 0) {
        times->agree += us;
    } else if (strcmp(name, "prepare") == 0) {
        times->prepare += us;
    }
}

static void take_means(struct rank_times *times)
{
    double rest = times->call - times->agree, calls = (double)times->calls;
    times->prepare_share = rest > 0 ? times->prepare / rest : 0;
    times->prepares_long = times->prepare_share >= LONG_PREPARE;
    times->call /= calls;
    times->agree /= calls;
    times->prepare /= calls;
}

/* Reads the spans of a file. Returns false, after a sentence, if it has no calls. */
static bool read_trace(const char *path, FILE *file, struct rank_times *times)
{
    char line[LINE], name[SPAN_NAME];
    double start, us;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "{\"name\": \"%31[^\"]\", \"ph\": \"X\", \"ts\": %lf, \"dur\": %lf", name, &start,
                   &us) == 3)
            add_span(times, name, start, us);
    if (times->calls == 0)
        return info_print_error("option --diagnose", "'%s' has no calls, except those passed to MPI", path);
    take_means(times);
    return true;
}

/* Writes the name of a rank's file, as src/base/trace.c does. */
static bool name_file(const char *pattern, int rank, char path[PERF_PATH_MAX])
{
    const char *field = strstr(pattern, "%r");
    int before = field != NULL ? (int)(field - pattern) : (int)strlen(pattern);
    int length = snprintf(path, PERF_PATH_MAX, "%.*s%s%d%s", before, pattern, field != NULL ? "" : ".", rank,
                          field != NULL ? field + 2 : "");
    return length < PERF_PATH_MAX;
}

/* Ranks of one run make calls at one time. */
static bool is_of_other_run(const struct rank_times *first, const struct rank_times *times)
{
    return times->begin > first->end || times->end < first->begin;
}

/* Reads the file of a rank into ranks[rank]. Sets *found to false if there is none, or one of another run,
 * which ends the list of files; rank 0 must have one. */
static bool read_rank(const char *pattern, int rank, struct rank_times **ranks, bool *found)
{
    char path[PERF_PATH_MAX];
    errno = ENAMETOOLONG;
    FILE *file = name_file(pattern, rank, path) ? fopen(path, "r") : NULL;
    *found = file != NULL;
    if (file == NULL && (rank == 0 || errno != ENOENT))
        return info_print_error("option --diagnose", "'%s' cannot be read: %s", path, strerror(errno));
    if (file == NULL)
        return true;
    struct rank_times *more = realloc(*ranks, ((size_t)rank + 1) * sizeof **ranks);
    bool ok = more != NULL || info_print_error("option --diagnose", "out of memory");
    if (more != NULL) {
        *ranks = more;
        more[rank] = (struct rank_times){ .rank = rank };
        ok = read_trace(path, file, &more[rank]);
    }
    fclose(file);
    if (ok && is_of_other_run(&more[0], &more[rank])) {
        fprintf(stderr,
                "mpix_sparse_info: '%s' is of another time than the file of rank 0, and left out with "
                "those of later ranks; remove files of earlier runs\n",
                path);
        *found = false;
    }
    return ok;
}

/* Sets is_late of the rank that waits least, if another one waits for long. */
static void find_late(struct rank_times *ranks, int n)
{
    int least = 0, most = 0;
    for (int r = 1; r < n; r++) {
        least = ranks[r].agree < ranks[least].agree ? r : least;
        most = ranks[r].agree > ranks[most].agree ? r : most;
    }
    ranks[least].is_late = ranks[most].agree > LONG_WAIT * ranks[most].call &&
                           ranks[least].agree < SHORT_WAIT * ranks[most].agree;
}

static void print_row(const struct rank_times *times)
{
    printf("%6lld %9lld %13.1f %13.1f %13.1f %9.2f", times->rank, times->calls, times->call, times->agree,
           times->prepare, times->prepare_share);
    if (times->is_late || times->prepares_long)
        printf("  <- %s%s%s", times->is_late ? "late: the others wait for it" : "",
               times->is_late && times->prepares_long ? "; " : "",
               times->prepares_long ? "prepares for long: unsorted coordinates?" : "");
    putchar('\n');
}

static void print_json(const struct rank_times *times)
{
    static const struct perf_field fields[] = {
        PERF_FIELD(rank_times, "rank", PERF_INTEGER, rank),
        PERF_FIELD(rank_times, "calls", PERF_INTEGER, calls),
        PERF_FIELD(rank_times, "call_us", PERF_REAL, call),
        PERF_FIELD(rank_times, "agree_us", PERF_REAL, agree),
        PERF_FIELD(rank_times, "prepare_us", PERF_REAL, prepare),
        PERF_FIELD(rank_times, "prepare_share", PERF_REAL, prepare_share),
        PERF_FIELD(rank_times, "late", PERF_BOOL, is_late),
        PERF_FIELD(rank_times, "prepares_long", PERF_BOOL, prepares_long),
    };
    static const struct perf_schema schema = PERF_SCHEMA(fields);
    perf_write_json(stdout, &schema, times);
}

bool info_print_diagnosis(const char *pattern, bool json)
{
    struct rank_times *ranks = NULL;
    int n = 0;
    bool found, ok = read_rank(pattern, 0, &ranks, &found);
    while (ok && found)
        ok = read_rank(pattern, ++n, &ranks, &found);
    if (ok) {
        find_late(ranks, n);
        if (!json)
            printf(
                "# means over calls; in nonblocking calls, call and agree include the program's computing\n"
                "# rank     calls      call(us)     agree(us)   prepare(us)     share\n");
        for (int r = 0; r < n; r++)
            (json ? print_json : print_row)(&ranks[r]);
    }
    free(ranks);
    return ok;
}
