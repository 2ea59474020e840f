/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and writes at full memory bandwidth, with the store instructions that the library uses. */
#ifndef PERF_MEMBW_H
#define PERF_MEMBW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PERF_GROUP_LINES = 64,                    /**< bits of a word */
    PERF_GROUP_BYTES = PERF_GROUP_LINES * 64, /**< bytes of these lines */
};

/** Reads all bytes. */
void perf_membw_read(const void *data, size_t bytes);

/** Writes zeros, with non-temporal stores if nt_stores. `to` is aligned to a cache line. */
void perf_membw_fill(void *to, size_t bytes, bool nt_stores);

/** Writes to the lines whose bits are set in `words` words. Writes one word of each line, or the whole line
 * if `whole` or nt_stores. One word moves the line to the cache and back to memory, too. */
void perf_membw_fill_lines(void *to, const uint64_t *lines, size_t words, bool whole, bool nt_stores);

#endif
