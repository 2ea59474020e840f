/* SPDX-License-Identifier: BSD-3-Clause */
/* What a call runs through each time lies together in memory (src/steady.ld). A program that computes between
 * two calls leaves nothing of it in the caches, where a call then waits for one line of code after the other:
 * so all of it is asked for at once. */

#ifndef SAR_BASE_STEADY_H
#define SAR_BASE_STEADY_H

#include <stddef.h>

enum { SAR_LINE = 64 };

/** Ask for that code, without waiting for it. Nothing where the linker could not put it together. */
void sar_steady_fetch(void);

/** Ask for some memory likewise. */
static inline void sar_fetch(const void *memory, size_t bytes)
{
    for (const char *at = memory, *end = at + bytes; at < end; at += SAR_LINE)
        __builtin_prefetch(at);
}

#endif
