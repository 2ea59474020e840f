/* SPDX-License-Identifier: BSD-3-Clause */
/* The trace file has the format of Chrome's trace viewer and Perfetto: a JSON array of complete events, one
 * event a line. A process of the trace is a rank. A thread of the trace is a communicator, whose spans nest;
 * or a thread of loops, from SAR_TRACE_THREADS on.
 * Each flush closes the array, and the next one overwrites the closing bracket, so that the file is always
 * valid JSON. */

#include "base/trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/env.h"

enum { EVENTS_MAX = 1024 /* events in memory before a flush */, NANO = 1000000000 };

struct event {
    struct sar_span span;
    struct sar_span_context context;
    int64_t end_ns;
};

atomic_bool sar_trace_on;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *file;
static const struct sar_trace_hook *hook;
static int own_rank;
static int64_t epoch; /* nanoseconds from 1970 to the zero of the monotonic clock */
static struct event event_buffer[EVENTS_MAX];
static int events;

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * NANO + now.tv_nsec;
}

static void print_work(const struct sar_span_work *work)
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
    const struct sar_span_context *s = &e->context;
    long long start = (long long)(epoch + e->span.start_ns),
              duration = (long long)(e->end_ns - e->span.start_ns);
    fprintf(file,
            ",\n{\"name\": \"%s\", \"ph\": \"X\", \"ts\": %lld.%03lld, \"dur\": %lld.%03lld, \"pid\": %d, "
            "\"tid\": %d, \"args\": {\"call\": %lu",
            e->span.name, start / 1000, start % 1000, duration / 1000, duration % 1000, own_rank, s->track,
            (unsigned long)s->call);
    if (s->stage >= 0)
        fprintf(file, ", \"stage\": %d", s->stage);
    if (e->span.collective != NULL)
        fprintf(file, ", \"collective\": \"%s\"", e->span.collective);
    print_work(&e->span.work);
    fprintf(file, ", \"bytes_sent\": %llu, \"bytes_received\": %llu}}",
            (unsigned long long)(s->sent - e->span.sent),
            (unsigned long long)(s->received - e->span.received));
}

static void flush_events(void)
{
    static const char end[] = "\n]\n";
    if (file == NULL)
        return;
    for (int i = 0; i < events; i++)
        print_event(&event_buffer[i]);
    events = 0;
    fputs(end, file);
    fflush(file);
    fseek(file, -(long)(sizeof end - 1), SEEK_CUR);
}

int64_t sar_span_clock(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static void log_event(const struct event *e)
{
    const struct sar_span_context *s = &e->context;
    char stage[32] = "";
    if (s->stage >= 0)
        snprintf(stage, sizeof stage, ", stage %d", s->stage);
    SAR_LOG(TRACE, CORE, "call %lu%s: %s took %.1f us, sent %llu B, received %llu B", (unsigned long)s->call,
            stage, e->span.name, (double)(e->end_ns - e->span.start_ns) * 1e-3,
            (unsigned long long)(s->sent - e->span.sent),
            (unsigned long long)(s->received - e->span.received));
}

static void keep_event(const struct event *event)
{
    pthread_mutex_lock(&lock);
    if (events == EVENTS_MAX)
        flush_events();
    if (file != NULL)
        event_buffer[events++] = *event;
    pthread_mutex_unlock(&lock);
}

void sar_trace_record_loop(int thread, int64_t start_ns)
{
    struct event event = { { "loop", start_ns, 0, 0, { 0 }, NULL },
                           { SAR_TRACE_THREADS + thread, 0, -1, -1, 0, 0 },
                           sar_span_clock() };
    keep_event(&event);
}

void sar_span_record(const struct sar_span *span, const struct sar_span_context *context)
{
    if (span->work.kind != NULL && hook != NULL && hook->work != NULL)
        hook->work(hook->data, span, sar_span_clock());
    struct event event = { *span, *context, sar_span_clock() };
    keep_event(&event);
    log_event(&event);
    if (hook != NULL && hook->span != NULL)
        hook->span(hook->data, span, context, event.end_ns);
}

void sar_trace_record_message(const struct sar_message_event *msg)
{
    if (hook != NULL && hook->message != NULL)
        hook->message(hook->data, msg);
}

/* The caller holds the lock. */
static void update_trace_on(void)
{
    atomic_store(&sar_trace_on, file != NULL || hook != NULL);
}

void sar_trace_set_hook(const struct sar_trace_hook *new_hook)
{
    pthread_mutex_lock(&lock);
    hook = new_hook;
    update_trace_on();
    pthread_mutex_unlock(&lock);
}

/* Adds the rank to a pattern that would name one file for all ranks. */
static bool name_file(const char *pattern, char path[SAR_SETTING_PATH])
{
    char full[SAR_SETTING_PATH];
    bool is_unique = strstr(pattern, "%r") != NULL || strstr(pattern, "%p") != NULL;
    int n = snprintf(full, sizeof full, "%s%s", pattern, is_unique ? "" : ".%r");
    return n < SAR_SETTING_PATH && sar_log_path(full, path, SAR_SETTING_PATH);
}

static void begin_file(int rank)
{
    own_rank = rank;
    epoch = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
    fprintf(file,
            "[\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %d, \"args\": {\"name\": \"rank %d\"}}",
            rank, rank);
    events = 0;
    flush_events();
    update_trace_on();
}

void sar_trace_open(int rank)
{
    char path[SAR_SETTING_PATH];
    const char *pattern = sar_env_setting("TRACE", NULL);
    if (pattern == NULL || strcmp(pattern, "none") == 0)
        return;
    pthread_mutex_lock(&lock);
    errno = ENAMETOOLONG;
    bool was_open = file != NULL;
    if (!was_open && name_file(pattern, path))
        file = fopen(path, "w");
    if (file == NULL)
        SAR_LOG(WARN, BASE, "cannot write the trace to %s: %s", pattern, strerror(errno));
    else if (!was_open)
        begin_file(rank);
    pthread_mutex_unlock(&lock);
}

void sar_trace_flush(void)
{
    pthread_mutex_lock(&lock);
    flush_events();
    pthread_mutex_unlock(&lock);
}

void sar_trace_close(void)
{
    sar_trace_flush();
    pthread_mutex_lock(&lock);
    bool failed = file != NULL && (ferror(file) != 0) + (fclose(file) != 0) > 0;
    file = NULL;
    update_trace_on();
    pthread_mutex_unlock(&lock);
    if (failed)
        SAR_LOG(WARN, BASE, "cannot write all of the trace");
}
