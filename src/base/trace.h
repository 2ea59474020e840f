/* SPDX-License-Identifier: BSD-3-Clause */
/* Tracing: spans of calls, and messages, go to the trace file, to a hook, and to the log at level trace.
 * Costs two relaxed loads a span while nothing traces. */

#ifndef SAR_BASE_TRACE_H
#define SAR_BASE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

/** True while a trace file is open or a hook is set. For sar_trace_wanted only. */
extern atomic_bool sar_trace_on;

/** True if spans and messages are to be recorded: by the trace file, a hook, or the log at level trace. */
static inline bool sar_trace_wanted(void)
{
    return atomic_load_explicit(&sar_trace_on, memory_order_relaxed) ||
           sar_log_wanted(SAR_LOG_TRACE, SAR_COMPONENT_CORE);
}

/** State of the call when a span ends. */
struct sar_span_context {
    int track;               /**< communicator's number; spans of one track nest */
    uint32_t call;           /**< call's number on the communicator */
    int stage;               /**< number of the stage in the call, or -1 */
    int stage_index;         /**< position of the stage in its scheme, or -1; repeated stages share it */
    uint64_t sent, received; /**< bytes of the call so far */
};

/** Work that a span consists of, in the quantities that determine its time. */
struct sar_span_work {
    const char *kind;   /**< static string; NULL: no work */
    const char *format; /**< static string that subdivides the kind, such as a wire format; or NULL */
    uint64_t elements;  /**< input elements */
    uint64_t bytes;     /**< bytes of their values */
    uint64_t slots;     /**< indices, blocks or dense values that the work scans */
    uint64_t parts;     /**< pieces of work like this one that threads share, or 0 */
};

/** An interval of a call. */
struct sar_span {
    const char *name;          /**< static string */
    int64_t start_ns;          /**< nanoseconds on sar_span_clock; 0: not recorded */
    uint64_t sent, received;   /**< bytes of the call at the start */
    struct sar_span_work work; /**< set by the caller before the end, for spans without inner spans */
    const char *collective;    /**< of the span of a call: static string, set by the caller; else NULL */
};

/** A message of a call, at its sender or its receiver. */
struct sar_message_event {
    int phase, channel, peer;
    bool sent; /**< false: received */
    uint64_t bytes;
};

/** Callbacks within the process, as the benchmark uses. The thread that makes progress on a call runs them.
 * Any function may be NULL. `work` runs when the work is done and before the span ends, so its own time
 * counts. */
struct sar_trace_hook {
    void *data;
    void (*span)(void *data, const struct sar_span *span, const struct sar_span_context *context,
                 int64_t end_ns);
    void (*message)(void *data, const struct sar_message_event *event);
    void (*work)(void *data, const struct sar_span *span, int64_t end_ns);
};

/** Sets the hook, which must outlive its use; NULL removes it. No call may be in flight. */
void sar_trace_set_hook(const struct sar_trace_hook *hook);

/** For the inline functions below only. The clock is in nanoseconds, monotonic. */
int64_t sar_span_clock(void);
void sar_span_record(const struct sar_span *span, const struct sar_span_context *context);
void sar_trace_record_message(const struct sar_message_event *event);
void sar_trace_record_loop(int thread, int64_t start_ns);

/** Returns a span that begins now. sent and received are the bytes of the call so far. */
static inline struct sar_span sar_span_begin(const char *name, uint64_t sent, uint64_t received)
{
    return (struct sar_span){ name, sar_trace_wanted() ? sar_span_clock() : 0, sent, received, { 0 }, NULL };
}

/** Returns the work of a span, for span->work. */
static inline struct sar_span_work sar_span_work_make(const char *kind, uint64_t elements,
                                                      size_t element_size, uint64_t slots)
{
    return (struct sar_span_work){ kind, NULL, elements, elements * element_size, slots, 0 };
}

/** Ends and records a span. Does nothing if the span has ended, or tracing was off when it began. */
static inline void sar_span_end(struct sar_span *span, const struct sar_span_context *context)
{
    if (span->start_ns != 0)
        sar_span_record(span, context);
    span->start_ns = 0;
}

/** Records a message that was handed to MPI, or has arrived completely. */
static inline void sar_trace_message(const struct sar_message_event *event)
{
    if (sar_trace_wanted())
        sar_trace_record_message(event);
}

/** Returns the time at which a thread begins its share of a loop, for sar_trace_loop_end. */
static inline int64_t sar_trace_loop_begin(void)
{
    return sar_trace_wanted() ? sar_span_clock() : 0;
}

/** Track of the calling thread in loops; those of the other threads of its team follow. Loops of several
 * calling threads share these tracks. */
enum { SAR_TRACE_THREADS = 1000000 };

/** Records the share of a thread of the team in a loop, in the trace file alone. The calling thread is 0. */
static inline void sar_trace_loop_end(int thread, int64_t start_ns)
{
    if (start_ns != 0)
        sar_trace_record_loop(thread, start_ns);
}

/** Opens the file that MPIX_SPARSE_TRACE of this process names, for this rank. Call after sar_log_open.
 * Local. */
void sar_trace_open(int rank);

/** Writes all buffered events to the file. Local. */
void sar_trace_flush(void);

/** Writes all buffered events and closes the file. Local. */
void sar_trace_close(void);

#endif
