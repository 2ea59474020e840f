/* SPDX-License-Identifier: BSD-3-Clause */
/* A line is one write to a file opened for appending, so that threads, and ranks that share a file, do not
 * mix theirs, and so that the news of a lack of memory needs none. */

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"

enum { LINE = 2048, HOST = 256 };

static const char *const level_names[] = { "warn", "info", "debug", "trace" };
static const char *const level_marks[] = { "WARN", "INFO", "DEBUG", "TRACE" };
static const char *const room_names[SAR_ROOMS] = { "base", "hash",   "tensor", "device", "wire",
                                                   "net",  "scheme", "plan",   "mpi" };

atomic_int sar_log_levels[SAR_ROOMS];
static atomic_int output = STDERR_FILENO, own_rank = -1;

/* Where a word of some length stands among n names, or -1. */
static int find_word(const char *word, size_t length, const char *const names[], int n)
{
    for (int i = 0; i < n; i++)
        if (strlen(names[i]) == length && strncmp(names[i], word, length) == 0)
            return i;
    return -1;
}

bool sar_log_parse(const char *text, enum sar_log_level levels[SAR_ROOMS])
{
    enum sar_log_level found[SAR_ROOMS] = { SAR_LOG_WARN };
    size_t length = strcspn(text, ":");
    int level = find_word(text, length, level_names, SAR_LOG_TRACE + 1);
    if (level < 0)
        return false;
    for (int i = 0; text[length] == '\0' && i < SAR_ROOMS; i++)
        found[i] = (enum sar_log_level)level;
    for (text += length; *text != '\0'; text += length) {
        length = strcspn(++text, ",");
        int room = find_word(text, length, room_names, SAR_ROOMS);
        if (room < 0)
            return false;
        found[room] = (enum sar_log_level)level;
    }
    memcpy(levels, found, sizeof found);
    return true;
}

void sar_log_host(char *host, size_t room)
{
    char whole[HOST] = "";
    if (gethostname(whole, HOST - 1) != 0)
        snprintf(whole, HOST, "unknown");
    snprintf(host, room, "%s", whole);
}

static int print_rank(char *text, size_t room)
{
    int rank = atomic_load(&own_rank);
    return rank < 0 ? snprintf(text, room, "-") : snprintf(text, room, "%d", rank);
}

/* The head of a line is cut if it must be, its text too. */
void sar_log_write(enum sar_log_level level, enum sar_room room, const char *format, ...)
{
    char line[LINE], host[HOST], rank[16];
    va_list arguments;
    sar_log_host(host, HOST);
    print_rank(rank, sizeof rank);
    size_t used = (size_t)snprintf(line, LINE, "%s:%ld:%s MPIX_SPARSE %s %s: ", host, (long)getpid(), rank,
                                   level_marks[level], room_names[room]);
    va_start(arguments, format);
    int more = vsnprintf(line + used, LINE - used - 1, format, arguments);
    va_end(arguments);
    used += more < 0 ? 0 : (size_t)more;
    used = used < LINE - 2 ? used : LINE - 2;
    line[used++] = '\n';
    ssize_t written = write(atomic_load(&output), line, used);
    (void)written; /* nobody is left to be told */
}

static int print_field(char letter, char *text, size_t room)
{
    char host[HOST];
    switch (letter) {
    case '%': return snprintf(text, room, "%%");
    case 'h': sar_log_host(host, HOST); return snprintf(text, room, "%s", host);
    case 'p': return snprintf(text, room, "%ld", (long)getpid());
    case 'r': return print_rank(text, room);
    default: return -1;
    }
}

bool sar_log_path(const char *pattern, char *text, size_t room)
{
    size_t used = 0;
    while (*pattern != '\0' && used < room) {
        int n = *pattern == '%' ? print_field(pattern[1], text + used, room - used) : -1;
        if (n < 0)
            text[used++] = *pattern++;
        else
            used += (size_t)n, pattern += 2;
    }
    if (used >= room)
        return false;
    text[used] = '\0';
    return true;
}

static void change_levels(const enum sar_log_level levels[SAR_ROOMS])
{
    for (int i = 0; i < SAR_ROOMS; i++)
        atomic_store(&sar_log_levels[i], (int)levels[i]);
}

static void change_file(const char *pattern)
{
    char path[SAR_KNOB_PATH];
    int file = -1;
    errno = ENAMETOOLONG;
    if (sar_log_path(pattern, path, sizeof path))
        file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0)
        SAR_LOG(WARN, BASE, "cannot write the log to %s: %s", pattern, strerror(errno));
    else
        atomic_store(&output, file);
}

/* Rank 0's settings have been refused with an error where they are bad; this may be another rank. */
void sar_log_open(int rank)
{
    enum sar_log_level levels[SAR_ROOMS];
    const char *wanted = sar_environment("LOG", NULL), *file = sar_environment("LOG_FILE", NULL);
    sar_log_close();
    atomic_store(&own_rank, rank);
    if (file != NULL && strcmp(file, "stderr") != 0)
        change_file(file);
    if (wanted != NULL && sar_log_parse(wanted, levels))
        change_levels(levels);
    else if (wanted != NULL)
        SAR_LOG(WARN, BASE, "MPIX_SPARSE_LOG is '%.60s', not a level, nor level:room,room of " SAR_LOG_ROOMS,
                wanted);
}

void sar_log_close(void)
{
    static const enum sar_log_level warnings[SAR_ROOMS] = { SAR_LOG_WARN };
    change_levels(warnings);
    int file = atomic_exchange(&output, STDERR_FILENO);
    if (file != STDERR_FILENO)
        close(file);
}
