/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole lines to memory past the caches; by ordinary stores where a processor has no such. */

#ifndef SAR_TENSOR_STREAM_H
#define SAR_TENSOR_STREAM_H

#include <stdint.h>
#include <string.h>
#if defined(__SSE2__) && !defined(SAR_NO_CLONES)
#define SAR_STREAMS
#include <emmintrin.h>
#endif

/** Copy lines; `to` is aligned to 16 bytes. A loop of 16 bytes a turn takes half as long again where its code
 * happens to lie on two lines. */
static inline void sar_stream(void *to, const void *from, size_t bytes)
{
#if defined(SAR_STREAMS)
    __m128i *at = to;
    const __m128i *source = from;
#pragma GCC unroll 4
    for (size_t i = 0; i < bytes / sizeof *at; i++)
        _mm_stream_si128(at + i, _mm_loadu_si128(source + i));
#else
    memcpy(to, from, bytes);
#endif
}

/** Copy any bytes to anywhere: whole lines so, what is before and behind them by ordinary stores. */
static inline void sar_stream_any(void *to, const void *from, size_t bytes)
{
    enum { LINE_BYTES = 64 };
    unsigned char *at = to;
    const unsigned char *source = from;
    size_t head = -(uintptr_t)at % LINE_BYTES;
    head = head < bytes ? head : bytes;
    size_t lines = (bytes - head) / LINE_BYTES * LINE_BYTES, tail = bytes - head - lines;
    memcpy(at, source, head);
    sar_stream(at + head, source + head, lines);
    memcpy(at + head + lines, source + head + lines, tail);
}

/** Whole lines of zeros. */
static inline void sar_stream_zeros(void *to, size_t bytes)
{
#if defined(SAR_STREAMS)
    __m128i *at = to;
#pragma GCC unroll 4
    for (size_t i = 0; i < bytes / sizeof *at; i++)
        _mm_stream_si128(at + i, _mm_setzero_si128());
#else
    memset(to, 0, bytes);
#endif
}

/** Other ranks may be told of what was streamed by ordinary stores from here on. */
static inline void sar_stream_settle(void)
{
#if defined(SAR_STREAMS)
    _mm_sfence();
#endif
}

#endif
