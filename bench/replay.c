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

/* Read a line of a set, and count its elements. */
static bool check_set(struct perf_replay *replay, struct reader *r)
{
    struct stretch stretch;
    uint64_t n = 0;
    int step, rank;

    if (!take_set(r, &step, &rank))
        return false;
    for (; !at_end(r); n += stretch.last - stretch.first + 1)
        if (!take_stretch(r, replay->count, &stretch))
            return false;
    replay->steps = step >= replay->steps ? step + 1 : replay->steps;
    replay->ranks = rank >= replay->ranks ? rank + 1 : replay->ranks;
    replay->largest = n > replay->largest ? (size_t)n : replay->largest;
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

bool perf_replay_load(struct perf_replay *replay, const char *path, const struct perf_world *world)
{
    size_t bytes;
    int wrong;

    *replay = (struct perf_replay){ .row = 1 };
    replay->content = perf_file_load(path, &bytes, world);
    if (replay->content == NULL)
        return false;
    wrong = check(replay);
    if (wrong == 0 && replay->ranks >= world->ranks)
        return true;
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
