/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the log: levels and components, format of a line, destination, concurrent threads. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "temp_dir.h"

enum { THREADS = 4, LINES = 200 };

static char path[1024];

/* Open the log of rank 3 with these settings, in a file of its own. */
static void begin(const char *log, const char *name)
{
    snprintf(path, sizeof path, "%s/%s", temp_dir, name);
    setenv("MPIX_SPARSE_LOG_FILE", path, 1);
    setenv("MPIX_SPARSE_LOG", log, 1);
    sar_log_open(3);
    unsetenv("MPIX_SPARSE_LOG_FILE");
    unsetenv("MPIX_SPARSE_LOG");
}

/* Read the log file, and remove it. */
static const char *end(const char *name)
{
    sar_log_close();
    return temp_dir_read(name);
}

static void test_levels(void **state)
{
    enum sar_log_level levels[SAR_LOG_COMPONENTS];
    (void)state;
    assert_true(sar_log_parse("debug", levels));
    for (int i = 0; i < SAR_LOG_COMPONENTS; i++)
        assert_int_equal(levels[i], SAR_LOG_DEBUG);
    assert_true(sar_log_parse("trace:comm,mpi", levels));
    for (int i = 0; i < SAR_LOG_COMPONENTS; i++)
        assert_int_equal(levels[i],
                         i == SAR_COMPONENT_COMM || i == SAR_COMPONENT_MPI ? SAR_LOG_TRACE : SAR_LOG_WARN);
}

static void test_no_levels(void **state)
{
    static const char *const bad[] = { "",           "loud",       "Info",       "info:",
                                       "info:comm,", "info:,comm", "info:comms", ":comm" };
    enum sar_log_level levels[SAR_LOG_COMPONENTS] = { SAR_LOG_TRACE };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(sar_log_parse(bad[i], levels));
        assert_int_equal(levels[0], SAR_LOG_TRACE);
    }
}

static int count_looks(int *looks)
{
    return ++*looks;
}

static void test_line(void **state)
{
    char host[256], expected[1024];
    int looks = 0;
    (void)state;
    begin("info:core", "line");
    SAR_LOG(INFO, CORE, "%d is told", count_looks(&looks));
    SAR_LOG(DEBUG, CORE, "%d is not", count_looks(&looks));
    SAR_LOG(INFO, COMM, "nor is %d", count_looks(&looks));
    SAR_LOG(WARN, COMM, "%d always is", count_looks(&looks));
    assert_int_equal(gethostname(host, sizeof host), 0);
    snprintf(expected, sizeof expected,
             "%s:%ld:3 MPIX_SPARSE INFO core: 1 is told\n%s:%ld:3 MPIX_SPARSE WARN comm: 2 always is\n", host,
             (long)getpid(), host, (long)getpid());
    assert_string_equal(end("line"), expected);
    assert_false(sar_log_wanted(SAR_LOG_INFO, SAR_COMPONENT_CORE));
}

static void test_long_line(void **state)
{
    static char words[5000];
    (void)state;
    memset(words, 'x', sizeof words - 1);
    begin("warn", "long");
    SAR_LOG(WARN, BASE, "%s", words);
    SAR_LOG(WARN, BASE, "next");
    const char *text = end("long"), *cut = strchr(text, '\n');
    assert_non_null(cut);
    assert_int_equal(cut - text, 2046);
    assert_non_null(strstr(cut, "base: next\n"));
}

static void test_path(void **state)
{
    char text[600], expected[600], host[256];
    (void)state;
    begin("warn", "%r-%p");
    assert_int_equal(gethostname(host, sizeof host), 0);
    snprintf(expected, sizeof expected, "/a/%s.3.%ld%%x%%h%%y%%", host, (long)getpid());
    assert_true(sar_log_path("/a/%h.%r.%p%%x%%h%y%", text, sizeof text));
    assert_string_equal(text, expected);
    assert_false(sar_log_path("12345678", text, 8));
    assert_true(sar_log_path("1234567", text, 8));
    snprintf(text, sizeof text, "3-%ld", (long)getpid());
    assert_string_equal(end(text), "");
}

/* Redirect the standard error to a file; returns the old one. */
static int catch_stderr(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", temp_dir, name);
    int before = dup(STDERR_FILENO), file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_true(before >= 0 && file >= 0);
    assert_int_equal(dup2(file, STDERR_FILENO), STDERR_FILENO);
    close(file);
    return before;
}

static void release_stderr(int before)
{
    dup2(before, STDERR_FILENO);
    close(before);
}

/* Bad settings print a warning on the standard error, and the log goes there. */
static void check_bad(const char *log, const char *file, const char *warning)
{
    char expected[2048];
    int before = catch_stderr("stderr");
    setenv("MPIX_SPARSE_LOG", log, 1);
    setenv("MPIX_SPARSE_LOG_FILE", file, 1);
    sar_log_open(3);
    unsetenv("MPIX_SPARSE_LOG");
    unsetenv("MPIX_SPARSE_LOG_FILE");
    SAR_LOG(WARN, COMM, "it goes on");
    sar_log_close();
    release_stderr(before);
    const char *text = end("stderr");
    snprintf(expected, sizeof expected, ":3 MPIX_SPARSE WARN base: %s\n", warning);
    assert_non_null(strstr(text, expected));
    assert_non_null(strstr(text, "WARN comm: it goes on\n"));
}

static void check_unwritable(const char *file, int error)
{
    char warning[2048];
    snprintf(warning, sizeof warning, "cannot write the log to %s: %s", file, strerror(error));
    check_bad("info", file, warning);
}

static void test_bad(void **state)
{
    char vast[SAR_SETTING_PATH];
    (void)state;
    memset(vast, 'x', sizeof vast - 3);
    memcpy(vast + sizeof vast - 3, "%h", 3);
    check_unwritable("/no/such/folder/%h.%p", ENOENT);
    check_unwritable(temp_dir, EISDIR);
    check_unwritable(vast, ENAMETOOLONG);
    check_bad(
        "loud", "stderr",
        "MPIX_SPARSE_LOG is 'loud', not a level, nor level:component,component of " SAR_LOG_COMPONENT_NAMES);
}

static void *tell_many(void *number)
{
    for (int i = 0; i < LINES; i++)
        SAR_LOG(INFO, MPI, "<%d %d>", *(int *)number, i);
    return NULL;
}

/* Every line is complete, and present once. */
static void test_threads(void **state)
{
    pthread_t threads[THREADS];
    int numbers[THREADS], lines = 0, thread, line;
    (void)state;
    begin("info", "threads");
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, tell_many, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    int next[THREADS] = { 0 };
    for (const char *at = end("threads"); *at != '\0'; at = strchr(at, '\n') + 1, lines++) {
        const char *mark = strstr(at, " INFO mpi: <");
        assert_non_null(mark);
        assert_int_equal(sscanf(mark, " INFO mpi: <%d %d>\n", &thread, &line), 2);
        assert_in_range(thread, 0, THREADS - 1);
        assert_int_equal(next[thread]++, line);
    }
    assert_int_equal(lines, THREADS * LINES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),    cmocka_unit_test(test_no_levels), cmocka_unit_test(test_line),
        cmocka_unit_test(test_long_line), cmocka_unit_test(test_path),      cmocka_unit_test(test_bad),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests_name("log", tests, temp_dir_make, temp_dir_remove);
}
