/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory read and written at its full speed, in the ways that the library knows: what limits are made of. */
#ifndef PERF_TOUCH_H
#define PERF_TOUCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PERF_LINES = 64,              /* a word has a bit for each */
    PERF_GROUP = PERF_LINES * 64, /* bytes of these */
};

/* Read so many bytes. */
void perf_read(const void *data, size_t bytes);

/* Write zeros; by stores past the caches where it is to stream. `to` begins on a cache line. */
void perf_fill(void *to, size_t bytes, bool streams);

/* Write to the lines whose bits are set in so many words: each line whole, or a word of it where one is
 * enough for its way to memory and back; always whole where it is to stream. */
void perf_fill_lines(void *to, const uint64_t *lines, size_t words, bool whole, bool streams);

#endif
