/* SPDX-License-Identifier: BSD-3-Clause */
/* Index traces. The text stays in memory, and each use parses all lines: a trace is used a few times per
 * case, outside of all timing. */

#include "bench/lib/index_trace.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/base.h"

static const uint64_t MOST_ELEMENTS = UINT64_C(1) << 50;
static const char FIRST_LINE[] = "mpix_sparse_trace 1";

/* A position in the file. */
struct reader {
    const char *at;
    int line;
};

/* Consecutive elements, last included. */
struct range {
    uint64_t first, last;
};

static void skip_blanks(struct reader *r)
{
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\r')
        r->at++;
}

/* Moves to the next line that is neither empty nor a comment. Returns false at the end of the file. */
static bool next_line(struct reader *r)
{
    do {
        const char *end = strchr(r->at, '\n');
        if (end == NULL)
            return false;
        r->at = end + 1;
        r->line++;
        skip_blanks(r);
    } while (*r->at == '\n' || *r->at == '#');
    return *r->at != '\0';
}

static bool take_word(struct reader *r, const char *word)
{
    size_t length = strlen(word);

    if (strncmp(r->at, word, length) != 0 || isalnum((unsigned char)r->at[length]))
        return false;
    r->at += length;
    skip_blanks(r);
    return true;
}

static bool take_number(struct reader *r, uint64_t most, uint64_t *number)
{
    char *end;

    if (!isdigit((unsigned char)*r->at))
        return false;
    *number = strtoull(r->at, &end, 10);
    r->at = end;
    return *number <= most;
}

static bool at_end(struct reader *r)
{
    skip_blanks(r);
    return *r->at == '\n' || *r->at == '\0';
}

/* Reads INDEX or FIRST-LAST. */
static bool take_range(struct reader *r, uint64_t count, struct range *range)
{
    if (count == 0 || !take_number(r, count - 1, &range->first))
        return false;
    range->last = range->first;
    if (*r->at != '-')
        return true;
    r->at++;
    return take_number(r, count - 1, &range->last) && range->last >= range->first;
}

/* Reads the step and rank of a line "set STEP RANK INDEX…". */
static bool take_set(struct reader *r, int *step, int *rank)
{
    uint64_t numbers[2];

    for (int i = 0; i < 2; i++) {
        if (!take_number(r, INT_MAX - 1, &numbers[i]))
            return false;
        skip_blanks(r);
    }
    *step = (int)numbers[0];
    *rank = (int)numbers[1];
    return true;
}

static bool check_set(struct perf_index_trace *trace, struct reader *r)
{
    struct range range;
    int step, rank;

    if (!take_set(r, &step, &rank))
        return false;
    while (!at_end(r))
        if (!take_range(r, trace->count, &range))
            return false;
    trace->steps = step >= trace->steps ? step + 1 : trace->steps;
    trace->ranks = rank >= trace->ranks ? rank + 1 : trace->ranks;
    trace->lines++;
    return true;
}

static bool check_line(struct perf_index_trace *trace, struct reader *r)
{
    uint64_t number;

    if (take_word(r, "set"))
        return check_set(trace, r);
    if (trace->steps > 0)
        return false;
    if (take_word(r, "count") && take_number(r, MOST_ELEMENTS, &trace->count))
        return at_end(r);
    if (take_word(r, "row") && take_number(r, INT_MAX, &number) && number > 0) {
        trace->row_len = (long long)number;
        return at_end(r);
    }
    return false;
}

/* Checks all lines. Returns the number of the first wrong line, or 0. */
static int check(struct perf_index_trace *trace)
{
    struct reader r = { trace->content, 1 };

    if (strncmp(r.at, FIRST_LINE, sizeof FIRST_LINE - 1) != 0 || (r.at += sizeof FIRST_LINE - 1, !at_end(&r)))
        return 1;
    while (next_line(&r))
        if (!check_line(trace, &r))
            return r.line;
    return 0;
}

/* Returns the number of the line with the first null byte, or 0 if there is none. */
static int find_nul(const char *content, size_t bytes)
{
    size_t length = strlen(content);
    int line = 1;

    for (size_t i = 0; i < length; i++)
        line += content[i] == '\n';
    return length < bytes ? line : 0;
}

/* One line of a set. Several lines may add to one set. */
struct addition {
    int step, rank;
    uint64_t elements;
};

static int compare_sets(const void *left, const void *right)
{
    const struct addition *a = left, *b = right;

    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static uint64_t count_elements(struct reader *r, uint64_t count)
{
    struct range range;
    uint64_t n = 0;

    while (!at_end(r) && n < count && take_range(r, count, &range))
        n += range.last - range.first + 1;
    return n < count ? n : count;
}

/* Reads all lines of sets. `addition` has room for trace->lines. Returns the number of lines. */
static size_t take_additions(const struct perf_index_trace *trace, struct addition *addition)
{
    struct reader r = { trace->content, 1 };
    size_t n = 0;

    while (next_line(&r)) {
        struct addition *a = &addition[n];
        if (take_word(&r, "set") && take_set(&r, &a->step, &a->rank))
            addition[n++].elements = count_elements(&r, trace->count);
    }
    return n;
}

/* Returns an upper bound of the largest set: the sum of its lines, which may overlap and come in any order.
 */
static size_t find_largest(const struct perf_index_trace *trace)
{
    struct addition *addition = perf_alloc(trace->lines, sizeof *addition);
    size_t n = take_additions(trace, addition);
    uint64_t sum = 0, largest = 0;

    qsort(addition, n, sizeof *addition, compare_sets);
    for (size_t i = 0; i < n; i++) {
        bool same = i > 0 && compare_sets(&addition[i - 1], &addition[i]) == 0;
        sum = addition[i].elements + (same ? sum : 0);
        sum = sum < trace->count ? sum : trace->count;
        largest = sum > largest ? sum : largest;
    }
    free(addition);
    return (size_t)largest;
}

bool perf_index_trace_load(struct perf_index_trace *trace, const char *path, const struct perf_world *world)
{
    size_t bytes;
    int wrong;

    *trace = (struct perf_index_trace){ .row_len = 1 };
    trace->content = perf_file_load(path, &bytes, world);
    if (trace->content == NULL)
        return false;
    wrong = find_nul(trace->content, bytes);
    if (wrong == 0)
        wrong = check(trace);
    if (wrong == 0 && trace->ranks >= world->ranks) {
        trace->largest = find_largest(trace);
        return true;
    }
    if (world->rank == 0 && wrong > 0)
        fprintf(stderr, "mpix_sparse_perf: '%s', line %d: not a line of a trace\n", path, wrong);
    else if (world->rank == 0)
        fprintf(stderr, "mpix_sparse_perf: '%s' has sets of %d ranks, and here are %d\n", path, trace->ranks,
                world->ranks);
    perf_index_trace_free(trace);
    return false;
}

void perf_index_trace_free(struct perf_index_trace *trace)
{
    free(trace->content);
    trace->content = NULL;
}

void perf_index_trace_mark(const struct perf_index_trace *trace, int step, int rank, uint64_t *bitmap)
{
    struct reader r = { trace->content, 1 };
    struct range range;
    int of_step, of_rank;

    while (next_line(&r)) {
        if (!take_word(&r, "set") || !take_set(&r, &of_step, &of_rank) || of_step != step || of_rank != rank)
            continue;
        for (; !at_end(&r) && take_range(&r, trace->count, &range);)
            for (uint64_t i = range.first; i <= range.last; i++)
                bitmap[i / 64] |= UINT64_C(1) << i % 64;
    }
}
