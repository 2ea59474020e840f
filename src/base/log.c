/* SPDX-License-Identifier: BSD-3-Clause */
/* One write to a file opened for appending is one line, so that lines of threads, and of ranks that share the
 * file, do not mix. Writing allocates nothing, so that it can report a failed allocation. */

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"

enum { LINE = 2048, HOST = 256 };

static const char *const level_names[] = { "warn", "info", "debug", "trace" };
static const char *const level_labels[] = { "WARN", "INFO", "DEBUG", "TRACE" };
static const char *const component_names[] = { "base", "hash",   "vector", "device", "wire",
                                               "comm", "scheme", "core",   "mpi" };

atomic_int sar_log_levels[SAR_LOG_COMPONENTS];
static atomic_int output = STDERR_FILENO, own_rank = -1;

/* Returns i if names[i] equals the first `length` characters of word, or -1 if no name does. */
static int find_word(const char *word, size_t length, const char *const names[], int n)
{
    for (int i = 0; i < n; i++)
        if (strlen(names[i]) == length && strncmp(names[i], word, length) == 0)
            return i;
    return -1;
}

const char *sar_log_level_name(int level)
{
    return level <= SAR_LOG_TRACE ? level_names[level] : NULL;
}

bool sar_log_parse(const char *text, enum sar_log_level levels[SAR_LOG_COMPONENTS])
{
    enum sar_log_level found[SAR_LOG_COMPONENTS] = { SAR_LOG_WARN };
    size_t length = strcspn(text, ":");
    int level = find_word(text, length, level_names, SAR_LOG_TRACE + 1);
    if (level < 0)
        return false;
    for (int i = 0; text[length] == '\0' && i < SAR_LOG_COMPONENTS; i++)
        found[i] = (enum sar_log_level)level;
    for (text += length; *text != '\0'; text += length) {
        length = strcspn(++text, ",");
        int i = find_word(text, length, component_names, sizeof component_names / sizeof *component_names);
        if (i < 0)
            return false;
        found[i] = (enum sar_log_level)level;
    }
    memcpy(levels, found, sizeof found);
    return true;
}

void sar_log_host(char *host, size_t capacity)
{
    char whole[HOST] = "";
    if (gethostname(whole, HOST - 1) != 0)
        snprintf(whole, HOST, "unknown");
    snprintf(host, capacity, "%s", whole);
}

/* Prints the rank of sar_log_open, or "-" before it. Returns as snprintf. */
static int print_rank(char *text, size_t capacity)
{
    int rank = atomic_load(&own_rank);
    return rank < 0 ? snprintf(text, capacity, "-") : snprintf(text, capacity, "%d", rank);
}

/* A line longer than LINE bytes is cut. */
void sar_log_write(enum sar_log_level level, enum sar_log_component component, const char *format, ...)
{
    char line[LINE], host[HOST], rank[16];
    va_list arguments;
    sar_log_host(host, HOST);
    print_rank(rank, sizeof rank);
    size_t used = (size_t)snprintf(line, LINE, "%s:%ld:%s MPIX_SPARSE %s %s: ", host, (long)getpid(), rank,
                                   level_labels[level], component_names[component]);
    va_start(arguments, format);
    int more = vsnprintf(line + used, LINE - used - 1, format, arguments);
    va_end(arguments);
    used += more < 0 ? 0 : (size_t)more;
    used = used < LINE - 2 ? used : LINE - 2;
    line[used++] = '\n';
    ssize_t written = write(atomic_load(&output), line, used);
    (void)written; /* a failure of the log cannot be logged */
}

/* Prints the expansion of '%' and the letter. Returns as snprintf, or -1 if there is none. */
static int print_field(char letter, char *text, size_t capacity)
{
    char host[HOST];
    switch (letter) {
    case '%': return snprintf(text, capacity, "%%");
    case 'h': sar_log_host(host, HOST); return snprintf(text, capacity, "%s", host);
    case 'p': return snprintf(text, capacity, "%ld", (long)getpid());
    case 'r': return print_rank(text, capacity);
    default: return -1;
    }
}

bool sar_log_path(const char *pattern, char *text, size_t capacity)
{
    size_t used = 0;
    while (*pattern != '\0' && used < capacity) {
        int n = *pattern == '%' ? print_field(pattern[1], text + used, capacity - used) : -1;
        if (n < 0)
            text[used++] = *pattern++;
        else
            used += (size_t)n, pattern += 2;
    }
    if (used >= capacity)
        return false;
    text[used] = '\0';
    return true;
}

static void change_levels(const enum sar_log_level levels[SAR_LOG_COMPONENTS])
{
    for (int i = 0; i < SAR_LOG_COMPONENTS; i++)
        atomic_store(&sar_log_levels[i], (int)levels[i]);
}

static void change_file(const char *pattern)
{
    char path[SAR_SETTING_PATH];
    int file = -1;
    errno = ENAMETOOLONG;
    if (sar_log_path(pattern, path, sizeof path))
        file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0)
        SAR_LOG(WARN, BASE, "cannot write the log to %s: %s", pattern, strerror(errno));
    else
        atomic_store(&output, file);
}

/* The configuration has refused a bad MPIX_SPARSE_LOG of rank 0, but not one of another rank: warn of
 * that. */
void sar_log_open(int rank)
{
    enum sar_log_level levels[SAR_LOG_COMPONENTS];
    const char *wanted = sar_env_setting("LOG", NULL), *file = sar_env_setting("LOG_FILE", NULL);
    sar_log_close();
    atomic_store(&own_rank, rank);
    if (file != NULL && strcmp(file, "stderr") != 0)
        change_file(file);
    if (wanted != NULL && sar_log_parse(wanted, levels))
        change_levels(levels);
    else if (wanted != NULL)
        SAR_LOG(WARN, BASE,
                "MPIX_SPARSE_LOG is '%.60s', not a level, "
                "nor level:component,component of " SAR_LOG_COMPONENT_NAMES,
                wanted);
}

void sar_log_close(void)
{
    change_levels((enum sar_log_level[SAR_LOG_COMPONENTS]){ SAR_LOG_WARN });
    int file = atomic_exchange(&output, STDERR_FILENO);
    if (file != STDERR_FILENO)
        close(file);
}
