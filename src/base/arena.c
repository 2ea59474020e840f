/* SPDX-License-Identifier: BSD-3-Clause */
/* A chain of blocks, each at least twice the one before it until they are large, so that little is left
 * over. A request settles on one block: reset replaces a chain by a single block of the size that was needed,
 * and a block that has been four times too large for many uses by a smaller one. */

#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/* Under the address sanitizer only the bytes of pieces that are taken may be touched. */
#if defined(__has_feature)
#define SAR_ASAN __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define SAR_ASAN 1
#else
#define SAR_ASAN 0
#endif
#if SAR_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(from, bytes) ((void)(from), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(from, bytes) ((void)(from), (void)(bytes))
#endif

struct sar_block {
    struct sar_block *older;
    size_t capacity, used;
    unsigned char *bytes; /* the first aligned byte behind this head */
};

enum { SMALLEST_BLOCK = 1 << 14, LARGE_BLOCK = 1 << 18 };

static struct sar_block *make_block(struct sar_supply *supply, size_t capacity, struct sar_block *older)
{
    size_t head = sizeof(struct sar_block) + SAR_ALIGNMENT;
    if (capacity > SIZE_MAX - head)
        return NULL;
    size_t bytes = head + capacity;
    struct sar_block *block = supply == NULL ? malloc(bytes) : supply->take(supply, &bytes);
    if (block == NULL)
        return NULL;
    uintptr_t start = (uintptr_t)(block + 1);
    size_t gap = (size_t)(-start & (SAR_ALIGNMENT - 1));
    *block = (struct sar_block){ older, bytes - head, 0, (unsigned char *)(block + 1) + gap };
    ASAN_POISON_MEMORY_REGION(block->bytes, block->capacity);
    return block;
}

static void drop_block(struct sar_supply *supply, struct sar_block *block)
{
    if (supply == NULL) {
        free(block);
        return;
    }
    ASAN_UNPOISON_MEMORY_REGION(block->bytes, block->capacity);
    supply->give_back(supply, block);
}

static size_t first_capacity(const struct sar_arena *arena)
{
    return arena->expected > SMALLEST_BLOCK ? arena->expected : SMALLEST_BLOCK;
}

static enum sar_status grow(struct sar_arena *arena, size_t bytes)
{
    size_t capacity = arena->newest == NULL ? first_capacity(arena) : arena->newest->capacity;
    if (arena->newest != NULL)
        capacity = capacity < LARGE_BLOCK / 2 ? 2 * capacity : LARGE_BLOCK;
    struct sar_block *block = make_block(arena->supply, capacity > bytes ? capacity : bytes, arena->newest);
    if (block == NULL && capacity > bytes)
        block = make_block(arena->supply, bytes, arena->newest);
    if (block == NULL) {
        SAR_LOG(INFO, BASE, "no memory for %zu bytes", bytes);
        return SAR_NO_MEMORY;
    }
    arena->newest = block;
    return SAR_OK;
}

enum sar_status sar_arena_take(struct sar_arena *arena, size_t count, size_t size, void **memory)
{
    if (size != 0 && count > (SIZE_MAX - SAR_ALIGNMENT) / size)
        return SAR_NO_MEMORY;
    size_t bytes = (count * size + SAR_ALIGNMENT) & ~(size_t)(SAR_ALIGNMENT - 1);
    if (arena->newest == NULL || arena->newest->capacity - arena->newest->used < bytes)
        SAR_TRY(grow(arena, bytes));
    *memory = arena->newest->bytes + arena->newest->used;
    ASAN_UNPOISON_MEMORY_REGION(*memory, count * size);
    arena->newest->used += bytes;
    arena->taken += bytes;
    return SAR_OK;
}

enum sar_status sar_arena_take_zeroed(struct sar_arena *arena, size_t count, size_t size, void **memory)
{
    SAR_TRY(sar_arena_take(arena, count, size, memory));
    memset(*memory, 0, count * size);
    return SAR_OK;
}

static void drop_newest(struct sar_arena *arena)
{
    struct sar_block *block = arena->newest;
    arena->newest = block->older;
    drop_block(arena->supply, block);
}

struct sar_arena_mark sar_arena_mark(const struct sar_arena *arena)
{
    const struct sar_block *newest = arena->newest;
    return (struct sar_arena_mark){ arena->newest, newest == NULL ? 0 : newest->used, arena->taken };
}

void sar_arena_return(struct sar_arena *arena, struct sar_arena_mark mark)
{
    arena->most = arena->taken > arena->most ? arena->taken : arena->most;
    arena->taken = mark.taken;
    while (arena->newest != mark.newest)
        drop_newest(arena);
    if (mark.newest == NULL)
        return;
    ASAN_POISON_MEMORY_REGION(mark.newest->bytes + mark.used, mark.newest->used - mark.used);
    mark.newest->used = mark.used;
}

/* One block in place of all there are. */
static void replace(struct sar_arena *arena, size_t capacity)
{
    while (arena->newest != NULL)
        drop_newest(arena);
    arena->newest = make_block(arena->supply, capacity > SMALLEST_BLOCK ? capacity : SMALLEST_BLOCK, NULL);
}

void sar_arena_recycle(struct sar_arena *arena)
{
    arena->most = arena->taken > arena->most ? arena->taken : arena->most;
    arena->taken = 0;
    if (arena->newest == NULL)
        return;
    if (arena->newest->older != NULL || arena->newest->capacity < arena->most) {
        replace(arena, arena->most);
        return;
    }
    ASAN_POISON_MEMORY_REGION(arena->newest->bytes, arena->newest->used);
    arena->newest->used = 0;
}

void sar_arena_reset(struct sar_arena *arena)
{
    sar_arena_recycle(arena);
    if (arena->newest != NULL &&
        sar_idle_note(&arena->idle, arena->newest->capacity, arena->most, SMALLEST_BLOCK)) {
        replace(arena, arena->idle.most);
        arena->idle = (struct sar_idle){ 0 };
    }
    arena->most = 0;
}

void sar_arena_free(struct sar_arena *arena)
{
    while (arena->newest != NULL)
        drop_newest(arena);
    arena->taken = 0;
    arena->most = 0;
    arena->idle = (struct sar_idle){ 0 };
}

void sar_arena_leave(struct sar_arena *arena)
{
    size_t most = arena->taken > arena->most ? arena->taken : arena->most;
    sar_arena_free(arena);
    arena->expected = most;
}
