/* SPDX-License-Identifier: BSD-3-Clause */
/* Spans in the format of Chrome's trace viewer and of Perfetto: an array of complete events in JSON, one a
 * line. A process is a rank, a thread a communicator, whose calls follow each other and so nest. The array is
 * closed behind each batch of events and opened again for the next, so that the file is whole in between. */

#include "base/trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/config.h"

enum { KEPT = 1024 /* events in memory */, NANO = 1000000000 };

struct event {
    struct sar_span span;
    struct sar_scene scene;
    int64_t until;
};

atomic_bool sar_trace_on;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *file;
static const struct sar_follower *follower;
static int own_rank;
static int64_t epoch; /* of the clock that never jumps, since 1970 */
static struct event kept[KEPT];
static int events;

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * NANO + now.tv_nsec;
}

static void print_work(const struct sar_work *work)
{
    if (work->kind == NULL)
        return;
    fprintf(file, ", \"work\": \"%s\"", work->kind);
    if (work->format != NULL)
        fprintf(file, ", \"format\": \"%s\"", work->format);
    fprintf(file, ", \"elements\": %llu, \"value_bytes\": %llu, \"slots\": %llu",
            (unsigned long long)work->elements, (unsigned long long)work->bytes,
            (unsigned long long)work->slots);
}

static void print_event(const struct event *e)
{
    const struct sar_scene *s = &e->scene;
    long long from = (long long)(epoch + e->span.from), lasted = (long long)(e->until - e->span.from);
    fprintf(file,
            ",\n{\"name\": \"%s\", \"ph\": \"X\", \"ts\": %lld.%03lld, \"dur\": %lld.%03lld, \"pid\": %d, "
            "\"tid\": %d, \"args\": {\"call\": %lu",
            e->span.name, from / 1000, from % 1000, lasted / 1000, lasted % 1000, own_rank, s->lane,
            (unsigned long)s->call);
    if (s->stage >= 0)
        fprintf(file, ", \"stage\": %d", s->stage);
    print_work(&e->span.work);
    fprintf(file, ", \"bytes_sent\": %llu, \"bytes_received\": %llu}}",
            (unsigned long long)(s->sent - e->span.sent),
            (unsigned long long)(s->received - e->span.received));
}

static void write_kept(void)
{
    static const char end[] = "\n]\n";
    if (file == NULL)
        return;
    for (int i = 0; i < events; i++)
        print_event(&kept[i]);
    events = 0;
    fputs(end, file);
    fflush(file);
    fseek(file, -(long)(sizeof end - 1), SEEK_CUR);
}

int64_t sar_span_clock(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

static void keep(const struct event *event)
{
    pthread_mutex_lock(&lock);
    if (events == KEPT)
        write_kept();
    if (file != NULL)
        kept[events++] = *event;
    pthread_mutex_unlock(&lock);
}

static void tell(const struct event *e)
{
    const struct sar_scene *s = &e->scene;
    char stage[32] = "";
    if (s->stage >= 0)
        snprintf(stage, sizeof stage, ", stage %d", s->stage);
    SAR_LOG(TRACE, PLAN, "call %lu%s: %s took %.1f us, sent %llu B, received %llu B", (unsigned long)s->call,
            stage, e->span.name, (double)(e->until - e->span.from) * 1e-3,
            (unsigned long long)(s->sent - e->span.sent),
            (unsigned long long)(s->received - e->span.received));
}

void sar_span_keep(const struct sar_span *span, const struct sar_scene *scene)
{
    if (span->work.kind != NULL && follower != NULL && follower->work != NULL)
        follower->work(follower->data, span, sar_span_clock());
    struct event event = { *span, *scene, sar_span_clock() };
    keep(&event);
    tell(&event);
    if (follower != NULL && follower->span != NULL)
        follower->span(follower->data, span, scene, event.until);
}

void sar_passage_keep(const struct sar_passage *passage)
{
    if (follower != NULL && follower->message != NULL)
        follower->message(follower->data, passage);
}

/* Under the lock. */
static void look_who_follows(void)
{
    atomic_store(&sar_trace_on, file != NULL || follower != NULL);
}

void sar_trace_follow(const struct sar_follower *one)
{
    pthread_mutex_lock(&lock);
    follower = one;
    look_who_follows();
    pthread_mutex_unlock(&lock);
}

/* Ranks do not write to one file. */
static bool name_file(const char *pattern, char path[SAR_KNOB_PATH])
{
    char own[SAR_KNOB_PATH];
    bool alone = strstr(pattern, "%r") != NULL || strstr(pattern, "%p") != NULL;
    int n = snprintf(own, sizeof own, "%s%s", pattern, alone ? "" : ".%r");
    return n < SAR_KNOB_PATH && sar_log_path(own, path, SAR_KNOB_PATH);
}

static void begin_file(int rank)
{
    own_rank = rank;
    epoch = read_clock(CLOCK_REALTIME) - read_clock(CLOCK_MONOTONIC);
    fprintf(file,
            "[\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %d, \"args\": {\"name\": \"rank %d\"}}",
            rank, rank);
    events = 0;
    write_kept();
    look_who_follows();
}

void sar_trace_open(int rank)
{
    char path[SAR_KNOB_PATH];
    const char *pattern = sar_environment("TRACE", NULL);
    if (pattern == NULL || strcmp(pattern, "none") == 0)
        return;
    pthread_mutex_lock(&lock);
    errno = ENAMETOOLONG;
    bool open = file != NULL;
    if (!open && name_file(pattern, path))
        file = fopen(path, "w");
    if (file == NULL)
        SAR_LOG(WARN, BASE, "cannot write the trace to %s: %s", pattern, strerror(errno));
    else if (!open)
        begin_file(rank);
    pthread_mutex_unlock(&lock);
}

void sar_trace_flush(void)
{
    pthread_mutex_lock(&lock);
    write_kept();
    pthread_mutex_unlock(&lock);
}

void sar_trace_close(void)
{
    sar_trace_flush();
    pthread_mutex_lock(&lock);
    bool failed = file != NULL && (ferror(file) != 0) + (fclose(file) != 0) > 0;
    file = NULL;
    look_who_follows();
    pthread_mutex_unlock(&lock);
    if (failed)
        SAR_LOG(WARN, BASE, "cannot write all of the trace");
}
