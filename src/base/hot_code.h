/* SPDX-License-Identifier: BSD-3-Clause */
/* Prefetch of the code that each call executes. The linker keeps this code together (src/hot_code.ld).
 *
 * A program that computes between two calls evicts the code from the caches. The next call would then miss on
 * one line after the other. Prefetching all lines at once overlaps the misses. */

#ifndef SAR_BASE_HOT_CODE_H
#define SAR_BASE_HOT_CODE_H

#include <stddef.h>

enum { SAR_CACHE_LINE = 64 /* bytes */ };

/** Prefetches the section of hot code, without waiting. Does nothing if the linker made no such section. */
void sar_hot_code_prefetch(void);

/** Prefetches `bytes` bytes of data, without waiting. */
static inline void sar_hot_code_prefetch_data(const void *memory, size_t bytes)
{
    for (const char *at = memory, *end = at + bytes; at < end; at += SAR_CACHE_LINE)
        __builtin_prefetch(at);
}

#endif
