/* SPDX-License-Identifier: BSD-3-Clause */
/* A text as a sequence of word numbers. The gradient of an embedding table has the rows of a batch's words.
 */
#ifndef PERF_TEXT_H
#define PERF_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/lib/base.h"

/** A text. Words are numbered in the order of their first appearance. */
struct perf_text {
    uint32_t *token; /**< word number at each position */
    size_t tokens, words;
};

/** Reads a file on rank 0 and numbers its words on all ranks. Returns false, after a sentence from rank 0, if
 * the file cannot be read or has fewer than `least` words. Collective. */
bool perf_text_load(struct perf_text *text, const char *path, size_t least, const struct perf_world *world);
void perf_text_free(struct perf_text *text);

#endif
