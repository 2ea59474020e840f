/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the trace: the file's name, its contents with many threads and more spans than memory keeps, and
 * files that cannot be written. Without a trace hook nothing is recorded; with one, the hook receives all
 * events. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/trace.h"
#include "temp_dir.h"

enum { THREADS = 4, SPANS = 700, NAME = 512, LINE = 1024 };

/* Redirect warnings to a file. */
static int begin_all(void **state)
{
    char path[NAME];
    if (temp_dir_make(state) != 0)
        return -1;
    snprintf(path, sizeof path, "%s/log", temp_dir);
    return setenv("MPIX_SPARSE_LOG_FILE", path, 1);
}

static void begin(const char *name)
{
    char path[NAME];
    snprintf(path, sizeof path, "%s/%s", temp_dir, name);
    setenv("MPIX_SPARSE_TRACE", path, 1);
    sar_log_open(3);
    sar_trace_open(3);
}

/* The warnings since begin. */
static const char *end(void)
{
    sar_trace_close();
    sar_log_close();
    unsetenv("MPIX_SPARSE_TRACE");
    return temp_dir_read("log");
}

static void make_span(const char *name, int lane, int stage)
{
    struct sar_span span = sar_span_begin(name, 10, 20);
    sar_span_end(&span, &(struct sar_span_context){ lane, 7, stage, stage, 15, 28 });
    sar_span_end(&span, &(struct sar_span_context){ lane, 8, stage, stage, 0, 0 });
}

static void test_events(void **state)
{
    (void)state;
    begin("events");
    make_span("agree", 2, -1);
    make_span("wait", 2, 1);
    assert_string_equal(end(), "");
    const char *text = temp_dir_read("events.3");
    assert_non_null(strstr(text, "{\"name\": \"agree\", \"ph\": \"X\", \"ts\": "));
    assert_non_null(strstr(text, "\"pid\": 3, \"tid\": 2, \"args\": {\"call\": 7, \"bytes_sent\": 5, "
                                 "\"bytes_received\": 8}},\n"));
    assert_non_null(
        strstr(text, "{\"call\": 7, \"stage\": 1, \"bytes_sent\": 5, \"bytes_received\": 8}}\n]\n"));
    assert_null(strstr(text, "\"call\": 8"));
}

static void test_names(void **state)
{
    char host[256], name[300];
    (void)state;
    assert_int_equal(gethostname(host, sizeof host), 0);
    begin("%h-%p");
    end();
    snprintf(name, sizeof name, "%s-%ld", host, (long)getpid());
    assert_non_null(strstr(temp_dir_read(name), "\"rank 3\""));
    begin("rank%r.json");
    end();
    assert_non_null(strstr(temp_dir_read("rank3.json"), "\"rank 3\""));
}

/* A second open keeps the first file. */
static void test_twice(void **state)
{
    (void)state;
    begin("first");
    begin("second");
    make_span("agree", 0, -1);
    end();
    assert_non_null(strstr(temp_dir_read("first.3"), "\"agree\""));
}

static void test_off(void **state)
{
    (void)state;
    setenv("MPIX_SPARSE_TRACE", "none", 1);
    sar_log_open(3);
    sar_trace_open(3);
    assert_false(sar_trace_wanted());
    struct sar_span span = sar_span_begin("agree", 0, 0);
    assert_int_equal(span.start_ns, 0);
    make_span("agree", 0, -1);
    assert_string_equal(end(), "");
}

static void test_unwritable(void **state)
{
    (void)state;
    begin("missing/trace");
    assert_false(sar_trace_wanted());
    make_span("agree", 0, -1);
    assert_non_null(strstr(end(), "WARN base: cannot write the trace to "));
}

/* A full disk is reported once, at the end. */
static void test_full(void **state)
{
    char path[NAME];
    (void)state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    snprintf(path, sizeof path, "%s/full.3", temp_dir);
    assert_int_equal(symlink("/dev/full", path), 0);
    begin("full");
    for (int i = 0; i < THREADS * SPANS; i++)
        make_span("agree", 0, -1);
    const char *text = end(), *told = strstr(text, "WARN base: cannot write all of the trace\n");
    assert_non_null(told);
    assert_null(strstr(told + 1, "WARN"));
    unlink(path);
}

static void *make_many(void *lane)
{
    for (int i = 0; i < SPANS; i++)
        make_span("many", *(int *)lane, i);
    return NULL;
}

/* The spans of each track are in order. */
static void check_lanes(const char *text)
{
    int next[THREADS] = { 0 }, lane, stage;
    for (const char *at = strstr(text, "\"tid\""); at != NULL; at = strstr(at + 1, "\"tid\"")) {
        assert_int_equal(sscanf(at, "\"tid\": %d, \"args\": {\"call\": 7, \"stage\": %d,", &lane, &stage), 2);
        assert_in_range(lane, 0, THREADS - 1);
        assert_int_equal(next[lane]++, stage);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(next[i], SPANS);
}

/* Every span is complete, and present once. */
static void test_threads(void **state)
{
    pthread_t threads[THREADS];
    int lanes[THREADS];
    (void)state;
    begin("threads");
    for (int i = 0; i < THREADS; i++) {
        lanes[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, make_many, &lanes[i]), 0);
    }
    sar_trace_flush();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_string_equal(end(), "");
    const char *text = temp_dir_read("threads.3");
    check_lanes(text);
    assert_string_equal(text + strlen(text) - 5, "}}\n]\n");
}

/* Events received by a trace hook. */
struct received_events {
    int spans, places, messages;
    uint64_t sent, received, elements;
    int64_t worked; /* end of the work */
};

static void on_span(void *data, const struct sar_span *span, const struct sar_span_context *context,
                    int64_t until)
{
    struct received_events *received_events = data;
    assert_string_equal(span->name, "wait");
    assert_true(until >= span->start_ns);
    received_events->spans++;
    received_events->places += context->stage_index;
}

static void on_message(void *data, const struct sar_message_event *event)
{
    struct received_events *received_events = data;
    assert_int_equal(event->peer, 2);
    received_events->messages++;
    *(event->sent ? &received_events->sent : &received_events->received) += event->bytes;
}

static void on_work(void *data, const struct sar_span *span, int64_t until)
{
    struct received_events *received_events = data;
    assert_string_equal(span->work.kind, "reduce");
    assert_string_equal(span->work.format, "none");
    assert_int_equal(span->work.bytes, 4 * span->work.elements);
    assert_true(until >= span->start_ns);
    assert_int_equal(received_events->spans, 0);
    received_events->elements += span->work.elements;
    received_events->worked = until;
    usleep(1000);
}

static void on_end(void *data, const struct sar_span *span, const struct sar_span_context *context,
                   int64_t until)
{
    struct received_events *received_events = data;
    (void)span;
    (void)context;
    received_events->spans++;
    if (received_events->worked != 0)
        assert_true(until - received_events->worked >= 1000000);
}

static void make_work(uint64_t elements)
{
    struct sar_span span = sar_span_begin("reduce", 0, 0);
    span.work = sar_span_work_make("reduce", elements, 4, 100);
    span.work.format = "none";
    sar_span_end(&span, &(struct sar_span_context){ 0, 7, 1, 1, 0, 0 });
}

/* The hook receives work before its span ends, so that the span includes the hook's own work. The file has it
 * too. */
static void test_work(void **state)
{
    struct received_events received_events = { 0 };
    const struct sar_trace_hook hook = { &received_events, on_end, NULL, on_work };
    (void)state;
    begin("work");
    sar_trace_set_hook(&hook);
    make_work(25);
    assert_int_equal(received_events.elements, 25);
    assert_int_equal(received_events.spans, 1);
    received_events = (struct received_events){ 0 };
    make_span("wait", 0, 3);
    assert_int_equal(received_events.spans, 1);
    assert_int_equal(received_events.elements, 0);
    sar_trace_set_hook(NULL);
    make_work(5);
    assert_int_equal(received_events.elements, 0);
    assert_string_equal(end(), "");
    const char *text = temp_dir_read("work.3");
    assert_non_null(strstr(text, "\"work\": \"reduce\", \"format\": \"none\", \"elements\": 25, "
                                 "\"value_bytes\": 100, \"slots\": 100"));
    assert_null(strstr(strstr(text, "\"wait\""), "\"elements\": 25"));
}

/* A trace hook receives spans and messages until it is removed, with or without a trace file. */
static void test_hook(void **state)
{
    struct received_events received_events = { 0 };
    const struct sar_trace_hook hook = { &received_events, on_span, on_message, NULL };
    (void)state;
    sar_trace_set_hook(&hook);
    assert_true(sar_trace_wanted());
    make_span("wait", 0, 3);
    begin("beside");
    make_span("wait", 0, 4);
    sar_trace_message(&(struct sar_message_event){ 1, 0, 2, true, 100 });
    sar_trace_message(&(struct sar_message_event){ 1, 1, 2, false, 30 });
    assert_string_equal(end(), "");
    assert_true(sar_trace_wanted());
    sar_trace_set_hook(NULL);
    assert_false(sar_trace_wanted());
    make_span("wait", 0, 5);
    sar_trace_message(&(struct sar_message_event){ 1, 0, 2, true, 1 });
    assert_int_equal(received_events.spans, 2);
    assert_int_equal(received_events.places, 7);
    assert_int_equal(received_events.messages, 2);
    assert_int_equal(received_events.sent, 100);
    assert_int_equal(received_events.received, 30);
    assert_non_null(strstr(temp_dir_read("beside.3"), "\"wait\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),     cmocka_unit_test(test_names), cmocka_unit_test(test_twice),
        cmocka_unit_test(test_off),        cmocka_unit_test(test_full),  cmocka_unit_test(test_threads),
        cmocka_unit_test(test_unwritable), cmocka_unit_test(test_hook),  cmocka_unit_test(test_work),
    };
    return cmocka_run_group_tests_name("trace", tests, begin_all, temp_dir_remove);
}
