/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of the library that study `threads` measures, and their data. */
#ifndef PERF_THREAD_WORK_H
#define PERF_THREAD_WORK_H

#include "bench/studies/study.h"
#include "wire/wire.h"

enum { PERF_COPY_PIECE = 16 << 20 /**< bytes that a thread copies at a time */ };

/** Memory that is copied. It is larger than all caches. */
struct perf_copied {
    struct perf_block from, to;
    size_t bytes;
};

/** The message of a part. */
struct perf_part_message {
    struct sar_wire_layout layout;
    void *payload;
    uint64_t bytes;
};

/** Data that all work is done on, and the result of the last call. */
struct perf_thread_job {
    size_t iterations;
    struct sar_vec_desc desc;
    struct sar_partition_map map;
    struct sar_wire_layout layout;
    struct sar_spvec vec;             /**< elements of a rank */
    void *shuffled;                   /**< their indices in random order */
    struct sar_spvec *runs;           /**< elements of as many ranks as there are parts */
    struct sar_spvec *parts;          /**< vec, split by map */
    struct sar_part_bitmap *bitmaps;  /**< these parts, or NULL if blocks are smaller than words */
    struct perf_block dense;          /**< vec as a dense vector */
    struct perf_block written;        /**< dense vector that is written */
    const struct perf_copied *copied; /**< borrowed */
    struct sar_arena data, arena;     /**< `arena` is reset before each call */

    /** Format of encode and decode, and memory for the message. Set by the study. */
    const struct sar_wire *wire;
    void *payload;
    uint64_t payload_bytes;

    /** A message in that format for each part; all payloads are in one block of memory. */
    struct perf_part_message *messages;
    struct sar_spvec *decoded;
    void *payloads;
    size_t payloads_bytes;

    /** Set by each call. */
    size_t elements, bytes;      /**< elements that go in; bytes that are read and written */
    struct sar_spvec result;     /**< of work that makes one vec */
    const struct sar_spvec *out; /**< vecs that the work made */
    size_t outs;
    unsigned out_index_size;
    const void *buffer; /**< result that is no vec, or NULL */
    size_t buffer_bytes;
};

/** A kind of work. */
struct perf_thread_work {
    const char *name;
    void (*prepare)(struct perf_thread_job *job); /**< precedes each call, unmeasured; or NULL */
    void (*run)(struct perf_thread_job *job);
    bool per_format;    /**< uses job->wire */
    bool single_floats; /**< only for elements of one float */
    bool bitmaps;       /**< uses job->bitmaps */
};

/** The copy of memory, and all other work, ended by a name of NULL. */
extern const struct perf_thread_work perf_thread_copy, perf_thread_works[];

/** Makes the data of a case. */
struct perf_thread_job perf_thread_job_make(const struct perf_study *study, const struct perf_case *c,
                                            const struct perf_copied *copied);
void perf_thread_job_free(struct perf_thread_job *job);

/** Makes memory for the messages of the parts in job->wire, and frees it. */
void perf_thread_messages_open(struct perf_thread_job *job);
void perf_thread_messages_close(struct perf_thread_job *job);

/** Does work once on so many threads, and returns the seconds. Unless digest is NULL, sets *digest to a
 * number that depends on all bits of the result. */
double perf_thread_call(struct perf_thread_job *job, const struct perf_thread_work *work, int threads,
                        uint64_t *digest);

#endif
