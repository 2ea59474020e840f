/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of indices from a file, one for each rank and step: what a program has met. mpix_sparse_perf(1) tells
 * the format. */
#ifndef PERF_REPLAY_H
#define PERF_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base.h"

struct perf_replay {
    char *content; /* of the file */
    uint64_t count;
    long long row;
    int steps, ranks;
    size_t lines;   /* of sets */
    size_t largest; /* elements of a set at most */
};

/* Read a file for the ranks of the world. Collective. False, and a sentence from rank 0, when that cannot be
 * done. */
bool perf_replay_load(struct perf_replay *replay, const char *path, const struct perf_world *world);
void perf_replay_free(struct perf_replay *replay);

/* Set the bits of what a rank has in a step. */
void perf_replay_mark(const struct perf_replay *replay, int step, int rank, uint64_t *bitmap);

#endif
