/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_BASE_TRACE_H
#define SAR_BASE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

/** Whether a file is written. For sar_trace_wanted only. */
extern atomic_bool sar_trace_on;

/** Whether somebody follows what calls do: the trace file, or the log at level trace. */
static inline bool sar_trace_wanted(void)
{
    return atomic_load_explicit(&sar_trace_on, memory_order_relaxed) ||
           sar_log_wanted(SAR_LOG_TRACE, SAR_ROOM_PLAN);
}

/** Where a span ends. */
struct sar_scene {
    int lane; /**< spans of one lane nest */
    uint32_t call;
    int stage;               /**< or -1 */
    uint64_t sent, received; /**< bytes of the call so far */
};

/** A stretch of time in the life of a call. */
struct sar_span {
    const char *name; /**< of static storage */
    int64_t from;     /**< nanoseconds; 0 while nobody follows */
    uint64_t sent, received;
};

/** For the two functions below only. */
int64_t sar_span_clock(void);
void sar_span_keep(const struct sar_span *span, const struct sar_scene *scene);

/** A span that begins now. The bytes are those of the call so far. */
static inline struct sar_span sar_span_begin(const char *name, uint64_t sent, uint64_t received)
{
    return (struct sar_span){ name, sar_trace_wanted() ? sar_span_clock() : 0, sent, received };
}

/** End a span; nothing if it has been ended, or nobody followed when it began. */
static inline void sar_span_end(struct sar_span *span, const struct sar_scene *scene)
{
    if (span->from != 0)
        sar_span_keep(span, scene);
    span->from = 0;
}

/** Follow MPIX_SPARSE_TRACE of this process, as this rank. Call behind sar_log_open. */
void sar_trace_open(int rank);

/** Write what is kept in memory. The file is whole after it. */
void sar_trace_flush(void);

/** Write, and follow no more. */
void sar_trace_close(void);

#endif
