/* SPDX-License-Identifier: BSD-3-Clause */
/* Work of one call on several threads, by OpenMP. Without OpenMP the calling thread does all work.
 *
 * A thread has one thread to work with, itself, until it calls sar_parallel_begin. Loops are split into
 * pieces; the pieces, and so the bits of results, may depend on the number of threads only where every way
 * to split gives equal bits. */

#ifndef SAR_BASE_PARALLEL_H
#define SAR_BASE_PARALLEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

enum {
    SAR_THREADS_MAX = 1024,    /**< most threads that a user may ask for */
    SAR_THREADS_AUTO_MAX = 16, /**< most threads that are used unless a user asks for more */
    SAR_THREAD_PIECES = 4,     /**< pieces of a loop for each thread, at most */
    SAR_PIECES_MAX = SAR_THREADS_MAX * SAR_THREAD_PIECES, /**< most pieces that sar_parallel_pieces returns */
    SAR_PIECE_BYTES = 64 << 10, /**< bytes that a piece reads and writes, at least (doc/measuring.md) */
    SAR_STEP_PIECES = 4         /**< a step of one thread has so many times these bytes, at least */
};

/** Progress of messages, called by the calling thread between pieces, and while it waits for others. */
typedef void sar_parallel_progress(void *arg);

/** Threads of the calling thread's loops, from here to sar_parallel_end. */
struct sar_parallel {
    int threads;                     /**< threads of a loop, the calling one included, at least 1 */
    bool automatic;                  /**< loops have one thread for a while after a late one */
    sar_parallel_progress *progress; /**< or NULL */
    void *arg;                       /**< of progress */
};

/** Sets the threads of the calling thread's loops, and returns the former setting. Loops have one
 * thread within a parallel region of OpenMP, and after sar_parallel_forbid, whatever the setting.
 *
 * A loop is late if the calling thread waited for the others, before its first piece and after its last one,
 * for longer than it worked, and for more than half a millisecond: other programs use the processors. With
 * `automatic`, loops then have one thread for some time, which doubles with each further late loop. */
struct sar_parallel sar_parallel_begin(struct sar_parallel parallel);

/** Restores a former setting. */
void sar_parallel_end(struct sar_parallel former);

/** From now on the loops of the calling thread have one thread. */
void sar_parallel_forbid(void);

/** Least bytes of a piece: SAR_PIECE_BYTES. Tests lower it, to split small vectors. */
extern size_t sar_parallel_piece_bytes;

/** Loops of the process that run on several threads now. Written by parallel.c. */
extern int sar_parallel_loops;

/** True if there is one. A thread of such a loop gets true. */
static inline bool sar_parallel_any(void)
{
    return __atomic_load_n(&sar_parallel_loops, __ATOMIC_RELAXED) != 0;
}

/** From now on all loops of the process have one thread. */
void sar_parallel_disable(void);

/** Returns the threads that a loop of the calling thread may use now. */
int sar_parallel_threads(void);

/** Returns the threads that OpenMP gives such a loop: fewer where OMP_THREAD_LIMIT is lower. */
int sar_parallel_granted(void);

/** Returns the pieces to split a loop into which reads and writes so many bytes: 1, or at most 4 for each
 * thread, of sar_parallel_piece_bytes or more. */
size_t sar_parallel_pieces(size_t bytes);

/** As sar_parallel_pieces; also splits the work of one thread, into steps of `least` bytes or more, if
 * there are messages to advance between them. */
size_t sar_parallel_steps(size_t bytes, size_t least);

/** Returns the first of n items in piece i of `pieces`; that of piece `pieces` is n. Pieces begin at
 * multiples of `unit` items. */
size_t sar_parallel_bound(size_t n, size_t unit, size_t pieces, size_t i);

/** The body of a loop: does piece i. Bodies of a loop run at once and must not depend on each other. */
typedef enum sar_status sar_parallel_body(void *arg, size_t i);

/** Calls body(arg, i) for all i below n, and advances messages between pieces. Returns the status of the
 * first i that fails, or SAR_OK. All pieces are done, also after a failure. */
enum sar_status sar_parallel_for(size_t n, sar_parallel_body *body, void *arg);

/** A loop over n items in pieces that begin at multiples of `unit` items. */
struct sar_ranges {
    size_t n, unit, pieces;
    void (*body)(void *arg, size_t from, size_t to); /**< does items [from, to), at least one */
    void *arg;                                       /**< of body */
};

/** Calls ranges.body for all pieces that are not empty; a single piece may be. */
void sar_ranges_run(struct sar_ranges ranges);

/** As memcpy, in parallel pieces. Does nothing for 0 bytes. */
void sar_parallel_copy(void *to, const void *from, size_t bytes);

/** Advances the messages of the calling thread's call, if it has any. */
void sar_parallel_advance(void);

/** Returns the threads that a user's OpenMP settings allow: OMP_NUM_THREADS, OMP_THREAD_LIMIT; 1 without
 * OpenMP.
 * @param wanted  threads asked for, or 0 for the default */
int sar_parallel_limit(int wanted);

/** Ends the threads that the calling thread's loops have made, unless it is in a parallel region. */
void sar_parallel_close(void);

#endif
