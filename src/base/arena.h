/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_BASE_ARENA_H
#define SAR_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/idle.h"
#include "base/status.h"

struct sar_block;

/** Where an arena has blocks from that are not malloc's. */
struct sar_supply {
    /** Memory for a block of at least *bytes, which is set to what there is; NULL if there is none. */
    void *(*take)(struct sar_supply *supply, size_t *bytes);
    void (*give_back)(struct sar_supply *supply, void *memory);
};

/** Memory that is taken piece by piece and given back all at once. Zero bytes are an empty arena. */
struct sar_arena {
    struct sar_block *newest;  /**< block that pieces are cut from; owns the older ones */
    size_t taken;              /**< bytes cut since the last reset or recycling */
    size_t most;               /**< the largest such number since the last reset */
    size_t expected;           /**< bytes of the first block, if that is more than others have */
    struct sar_idle idle;      /**< uses, from one reset to the next, that needed little */
    struct sar_supply *supply; /**< or NULL */
};

/** Every piece starts at a multiple of this many bytes. */
enum { SAR_ALIGNMENT = 64 };

/** A number of bytes rounded up to such a multiple; as it is where that would be too large. */
static inline size_t sar_align(size_t bytes)
{
    size_t most = SIZE_MAX / SAR_ALIGNMENT * SAR_ALIGNMENT;
    return bytes > most ? bytes : (bytes + SAR_ALIGNMENT - 1) / SAR_ALIGNMENT * SAR_ALIGNMENT;
}

/** Take count * size bytes, uninitialised, aligned to SAR_ALIGNMENT, valid until reset or free.
 * *memory is never NULL after success, even for zero bytes. */
enum sar_status sar_arena_take(struct sar_arena *arena, size_t count, size_t size, void **memory);

/** As sar_arena_take, filled with zero bytes. */
enum sar_status sar_arena_take_zeroed(struct sar_arena *arena, size_t count, size_t size, void **memory);

/** A place in the order in which pieces were taken. Zero bytes are before all of them. */
struct sar_arena_mark {
    struct sar_block *newest;
    size_t used, taken;
};

struct sar_arena_mark sar_arena_mark(const struct sar_arena *arena);

/** Make the pieces available again that were taken since a mark was made, or one before it was returned to,
 * and there was no reset. Blocks that were added are given back. */
void sar_arena_return(struct sar_arena *arena, struct sar_arena_mark mark);

/** Make all pieces available again. Keeps memory, so that equal use later allocates nothing, until many uses
 * in a row have needed little of it (base/idle.h). */
void sar_arena_reset(struct sar_arena *arena);

/** Make all pieces available again in the middle of a use of many steps: no memory is given back. */
void sar_arena_recycle(struct sar_arena *arena);

/** Give all memory back, and remember how much that was: equal use later takes one block. */
void sar_arena_leave(struct sar_arena *arena);

/** Give all memory back. */
void sar_arena_free(struct sar_arena *arena);

#endif
