/* SPDX-License-Identifier: BSD-3-Clause */
/* Non-temporal stores, which bypass the caches. Processors without SSE2 use ordinary stores. */

#ifndef SAR_VECTOR_NT_STORE_H
#define SAR_VECTOR_NT_STORE_H

#include <stdint.h>
#include <string.h>
#if defined(__SSE2__) && !defined(SAR_NO_CLONES)
#define SAR_NT_STORES
#include <emmintrin.h>
#endif

/** Copies bytes, a multiple of 16; `to` is aligned to 16 bytes. The loop is unrolled: a loop of one store
 * takes 1.5 times as long if its code spans two cache lines. */
static inline void sar_nt_copy(void *to, const void *from, size_t bytes)
{
#if defined(SAR_NT_STORES)
    __m128i *at = to;
    const __m128i *source = from;
#pragma GCC unroll 4
    for (size_t i = 0; i < bytes / sizeof *at; i++)
        _mm_stream_si128(at + i, _mm_loadu_si128(source + i));
#else
    memcpy(to, from, bytes);
#endif
}

/** Copies bytes without alignment: whole cache lines by non-temporal stores, the head and tail by ordinary
 * ones. */
static inline void sar_nt_copy_unaligned(void *to, const void *from, size_t bytes)
{
    enum { LINE_BYTES = 64 };
    unsigned char *at = to;
    const unsigned char *source = from;
    size_t head = -(uintptr_t)at % LINE_BYTES;
    head = head < bytes ? head : bytes;
    size_t lines = (bytes - head) / LINE_BYTES * LINE_BYTES, tail = bytes - head - lines;
    memcpy(at, source, head);
    sar_nt_copy(at + head, source + head, lines);
    memcpy(at + head + lines, source + head + lines, tail);
}

/** Zero bytes, a multiple of 16; `to` is aligned to 16 bytes. */
static inline void sar_nt_zero(void *to, size_t bytes)
{
#if defined(SAR_NT_STORES)
    __m128i *at = to;
#pragma GCC unroll 4
    for (size_t i = 0; i < bytes / sizeof *at; i++)
        _mm_stream_si128(at + i, _mm_setzero_si128());
#else
    memset(to, 0, bytes);
#endif
}

/** Orders non-temporal stores before later stores, such as a flag that other ranks read. */
static inline void sar_nt_fence(void)
{
#if defined(SAR_NT_STORES)
    _mm_sfence();
#endif
}

#endif
