/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole lines to memory past the caches; by ordinary stores where a processor has no such. */

#ifndef SAR_TENSOR_STREAM_H
#define SAR_TENSOR_STREAM_H

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

/** The same with zeros. */
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
