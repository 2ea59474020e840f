/* SPDX-License-Identifier: BSD-3-Clause */
/* A text as numbers: the gradient of an embedding table touches the rows of a batch's words. */
#ifndef PERF_TEXT_H
#define PERF_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base.h"

struct perf_text {
    uint32_t *token; /* the word at each place, words numbered as they first appear */
    size_t tokens, words;
};

/* Read a file on rank 0 and number its words on all ranks. Collective. False when it cannot be read or has
 * fewer than `least` words; rank 0 has then said so. */
bool perf_text_load(struct perf_text *text, const char *path, size_t least, const struct perf_world *world);
void perf_text_free(struct perf_text *text);

#endif
