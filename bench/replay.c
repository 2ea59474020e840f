/* SPDX-License-Identifier: BSD-3-Clause */
/* The file stays in memory as it is, and each use goes through all of its lines: it is used a few times,
 * outside of all timing. */

#include "replay.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"

static const uint64_t MOST_ELEMENTS = UINT64_C(1) << 50;
static const char FIRST_LINE[] = "mpix_sparse_trace 1";

/* A place in the file. */
struct reader {
    const char *at;
    int line;
};

/* Consecutive elements. */
struct stretch {
    uint64_t first, last;
};

static void skip_blanks(struct reader *r)
{
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\r')
        r->at++;
}

/* To the next line that is neither empty nor a remark; false at the end. */
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

/* An index, or two with a hyphen between them. */
static bool take_stretch(struct reader *r, uint64_t count, struct stretch *stretch)
{
    if (count == 0 || !take_number(r, count - 1, &stretch->first))
        return false;
    stretch->last = stretch->first;
    if (*r->at != '-')
        return true;
    r->at++;
    return take_number(r, count - 1, &stretch->last) && stretch->last >= stretch->first;
}

/* The beginning of a line of a set. */
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

static bool check_set(struct perf_replay *replay, struct reader *r)
{
    struct stretch stretch;
    int step, rank;

    if (!take_set(r, &step, &rank))
        return false;
    while (!at_end(r))
        if (!take_stretch(r, replay->count, &stretch))
            return false;
    replay->steps = step >= replay->steps ? step + 1 : replay->steps;
    replay->ranks = rank >= replay->ranks ? rank + 1 : replay->ranks;
    replay->lines++;
    return true;
}

static bool check_line(struct perf_replay *replay, struct reader *r)
{
    uint64_t number;

    if (take_word(r, "set"))
        return check_set(replay, r);
    if (replay->steps > 0)
        return false;
    if (take_word(r, "count") && take_number(r, MOST_ELEMENTS, &replay->count))
        return at_end(r);
    if (take_word(r, "row") && take_number(r, INT_MAX, &number) && number > 0) {
        replay->row = (long long)number;
        return at_end(r);
    }
    return false;
}

/* The line that is wrong, or 0. */
static int check(struct perf_replay *replay)
{
    struct reader r = { replay->content, 1 };

    if (strncmp(r.at, FIRST_LINE, sizeof FIRST_LINE - 1) != 0 || (r.at += sizeof FIRST_LINE - 1, !at_end(&r)))
        return 1;
    while (next_line(&r))
        if (!check_line(replay, &r))
            return r.line;
    return 0;
}

/* The line of the first byte that ends text before the file does, or 0. */
static int find_nul(const char *content, size_t bytes)
{
    size_t length = strlen(content);
    int line = 1;

    for (size_t i = 0; i < length; i++)
        line += content[i] == '\n';
    return length < bytes ? line : 0;
}

/* What one line adds to a set. */
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
    struct stretch stretch;
    uint64_t n = 0;

    while (!at_end(r) && n < count && take_stretch(r, count, &stretch))
        n += stretch.last - stretch.first + 1;
    return n < count ? n : count;
}

/* Read all lines of sets into memory for them, and return their number. */
static size_t take_additions(const struct perf_replay *replay, struct addition *addition)
{
    struct reader r = { replay->content, 1 };
    size_t n = 0;

    while (next_line(&r)) {
        struct addition *a = &addition[n];
        if (take_word(&r, "set") && take_set(&r, &a->step, &a->rank))
            addition[n++].elements = count_elements(&r, replay->count);
    }
    return n;
}

/* Elements of the largest set at most: what its lines add up to, in whatever order they come. */
static size_t find_largest(const struct perf_replay *replay)
{
    struct addition *addition = perf_alloc(replay->lines, sizeof *addition);
    size_t n = take_additions(replay, addition);
    uint64_t sum = 0, largest = 0;

    qsort(addition, n, sizeof *addition, compare_sets);
    for (size_t i = 0; i < n; i++) {
        bool same = i > 0 && compare_sets(&addition[i - 1], &addition[i]) == 0;
        sum = addition[i].elements + (same ? sum : 0);
        sum = sum < replay->count ? sum : replay->count;
        largest = sum > largest ? sum : largest;
    }
    free(addition);
    return (size_t)largest;
}

bool perf_replay_load(struct perf_replay *replay, const char *path, const struct perf_world *world)
{
    size_t bytes;
    int wrong;

    *replay = (struct perf_replay){ .row = 1 };
    replay->content = perf_file_load(path, &bytes, world);
    if (replay->content == NULL)
        return false;
    wrong = find_nul(replay->content, bytes);
    if (wrong == 0)
        wrong = check(replay);
    if (wrong == 0 && replay->ranks >= world->ranks) {
        replay->largest = find_largest(replay);
        return true;
    }
    if (world->rank == 0 && wrong > 0)
        fprintf(stderr, "mpix_sparse_perf: '%s', line %d: not a line of a trace\n", path, wrong);
    else if (world->rank == 0)
        fprintf(stderr, "mpix_sparse_perf: '%s' has sets of %d ranks, and here are %d\n", path, replay->ranks,
                world->ranks);
    perf_replay_free(replay);
    return false;
}

void perf_replay_free(struct perf_replay *replay)
{
    free(replay->content);
    replay->content = NULL;
}

void perf_replay_mark(const struct perf_replay *replay, int step, int rank, uint64_t *bitmap)
{
    struct reader r = { replay->content, 1 };
    struct stretch stretch;
    int of_step, of_rank;

    while (next_line(&r)) {
        if (!take_word(&r, "set") || !take_set(&r, &of_step, &of_rank) || of_step != step || of_rank != rank)
            continue;
        for (; !at_end(&r) && take_stretch(&r, replay->count, &stretch);)
            for (uint64_t i = stretch.first; i <= stretch.last; i++)
                bitmap[i / 64] |= UINT64_C(1) << i % 64;
    }
}
