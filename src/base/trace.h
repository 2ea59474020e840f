/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_BASE_TRACE_H
#define SAR_BASE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

/** Whether a file is written, or a follower listens. For sar_trace_wanted only. */
extern atomic_bool sar_trace_on;

/** Whether somebody follows what calls do: the trace file, a follower, or the log at level trace. */
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
    int place;               /**< of the stage in its scheme: equal where one runs again; or -1 */
    uint64_t sent, received; /**< bytes of the call so far */
};

/** Work of one kind, and what its time follows from. */
struct sar_work {
    const char *kind;   /**< of static storage; NULL where nothing is told */
    const char *format; /**< likewise: what makes a difference within the kind, or NULL */
    uint64_t elements;  /**< that go in */
    uint64_t bytes;     /**< of their values */
    uint64_t slots;     /**< that are gone through: of the index space, blocks, or values of a dense vector */
};

/** A stretch of time in the life of a call. */
struct sar_span {
    const char *name; /**< of static storage */
    int64_t from;     /**< nanoseconds; 0 while nobody follows */
    uint64_t sent, received;
    struct sar_work work; /**< set before the end of a span that is all work, with no other span in it */
};

/** A message of a call, as its sender or its receiver sees it. */
struct sar_passage {
    int phase, lane, peer;
    bool sent;
    uint64_t bytes;
};

/** Whoever follows calls from within the process, as the benchmark does. It is called by who moves a call on.
 * Any function may be NULL. `work` is told of a span's work when that is done, and before the span ends: the
 * time that it takes itself is in the span. */
struct sar_follower {
    void *data;
    void (*span)(void *data, const struct sar_span *span, const struct sar_scene *scene, int64_t until);
    void (*message)(void *data, const struct sar_passage *passage);
    void (*work)(void *data, const struct sar_span *span, int64_t until);
};

/** Let there be one follower, or none when it is NULL; while no call is in flight. */
void sar_trace_follow(const struct sar_follower *follower);

/** For the functions below only. */
int64_t sar_span_clock(void);
void sar_span_keep(const struct sar_span *span, const struct sar_scene *scene);
void sar_passage_keep(const struct sar_passage *passage);

/** A span that begins now. The bytes are those of the call so far. */
static inline struct sar_span sar_span_begin(const char *name, uint64_t sent, uint64_t received)
{
    return (struct sar_span){ name, sar_trace_wanted() ? sar_span_clock() : 0, sent, received, { 0 } };
}

/** What to set a span's work to. */
static inline struct sar_work sar_work_on(const char *kind, uint64_t elements, size_t element_size,
                                          uint64_t slots)
{
    return (struct sar_work){ kind, NULL, elements, elements * element_size, slots };
}

/** End a span; nothing if it has been ended, or nobody followed when it began. */
static inline void sar_span_end(struct sar_span *span, const struct sar_scene *scene)
{
    if (span->from != 0)
        sar_span_keep(span, scene);
    span->from = 0;
}

/** Tell a follower of a message that has been handed to MPI, or has come whole. */
static inline void sar_trace_message(const struct sar_passage *passage)
{
    if (sar_trace_wanted())
        sar_passage_keep(passage);
}

/** Follow MPIX_SPARSE_TRACE of this process, as this rank. Call behind sar_log_open. */
void sar_trace_open(int rank);

/** Write what is kept in memory. The file is whole after it. */
void sar_trace_flush(void);

/** Write, and follow no more. */
void sar_trace_close(void);

#endif
