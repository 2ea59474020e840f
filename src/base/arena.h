/* SPDX-License-Identifier: BSD-3-Clause */
/* Arenas: memory that is allocated in small pieces and released all at once. Threads of one parallel loop
 * (base/parallel.h) may take pieces of the same arena; else an arena is not thread-safe. */

#ifndef SAR_BASE_ARENA_H
#define SAR_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/trim.h"
#include "base/status.h"

struct sar_arena_block;

/** Allocator of an arena's blocks, in place of malloc and free. */
struct sar_allocator {
    /** Returns memory of at least *bytes and sets *bytes to its size; NULL if there is none. */
    void *(*alloc)(struct sar_allocator *allocator, size_t *bytes);
    void (*release)(struct sar_allocator *allocator, void *memory);
};

/** The arena. Zero bytes are an empty arena. */
struct sar_arena {
    struct sar_arena_block *newest;  /**< block that pieces are taken from; links to the earlier blocks */
    size_t used;                     /**< bytes taken since the last reset or recycle */
    size_t peak;                     /**< largest `used` since the last reset */
    size_t first_bytes;              /**< smallest size of the first block, in bytes */
    struct sar_trim trim;            /**< small uses, a use being the time between two resets */
    struct sar_allocator *allocator; /**< not owned; NULL: malloc and free */
    bool locked;                     /**< a thread of a parallel loop takes a piece */
};

/** Alignment of every piece, in bytes. */
enum { SAR_ALIGNMENT = 64 };

/** Returns bytes rounded up to a multiple of SAR_ALIGNMENT, or bytes itself if that would overflow. */
static inline size_t sar_align_up(size_t bytes)
{
    size_t most = SIZE_MAX / SAR_ALIGNMENT * SAR_ALIGNMENT;
    return bytes > most ? bytes : (bytes + SAR_ALIGNMENT - 1) / SAR_ALIGNMENT * SAR_ALIGNMENT;
}

/** Takes count * size bytes, uninitialised, valid until the arena is reset, recycled, rewound or freed.
 * After success *memory is not NULL, even for zero bytes. */
enum sar_status sar_arena_alloc(struct sar_arena *arena, size_t count, size_t size, void **memory);

/** As sar_arena_alloc, filled with zero bytes. */
enum sar_status sar_arena_alloc_zeroed(struct sar_arena *arena, size_t count, size_t size, void **memory);

/** State of an arena that it can be rewound to. Zero bytes are the state before the first piece. */
struct sar_arena_mark {
    struct sar_arena_block *newest; /**< newest block */
    size_t used;                    /**< bytes taken of that block */
    size_t arena_used;              /**< bytes taken of the arena */
};

/** Returns the present state. */
struct sar_arena_mark sar_arena_mark(const struct sar_arena *arena);

/** Releases all pieces taken since the mark, and the blocks added since. The arena must not have been reset,
 * recycled, or rewound to an earlier mark meanwhile. */
void sar_arena_rewind(struct sar_arena *arena, struct sar_arena_mark mark);

/** Releases all pieces and ends a use. Keeps memory, so that an equal use later allocates nothing, unless
 * many uses in a row were small (base/trim.h). */
void sar_arena_reset(struct sar_arena *arena);

/** Releases all pieces in the middle of a use. Never shrinks the memory. */
void sar_arena_recycle(struct sar_arena *arena);

/** Frees all memory, and remembers its size as first_bytes: an equal use later allocates one block. */
void sar_arena_release(struct sar_arena *arena);

/** Frees all memory. */
void sar_arena_free(struct sar_arena *arena);

#endif
