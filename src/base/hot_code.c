/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/hot_code.h"

/* First byte of the section, and the byte after its last; both NULL if the linker made no such section. */
extern const char sar_hot_code_begin[] __attribute__((weak, visibility("hidden")));
extern const char sar_hot_code_end[] __attribute__((weak, visibility("hidden")));

/* Locality 2: into the level-2 cache, which holds code and data; the level-1 data cache holds no code. */
void sar_hot_code_prefetch(void)
{
    for (const char *at = sar_hot_code_begin; at < sar_hot_code_end; at += SAR_CACHE_LINE)
        __builtin_prefetch(at, 0, 2);
}
