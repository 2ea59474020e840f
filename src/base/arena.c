/* SPDX-License-Identifier: BSD-3-Clause */
/* A chain of blocks, each at least twice the one before it until they are large, so that little is left
 * over. A request settles on one block: reset replaces a chain by a single block of the size that was needed,
 * and drops a block that has become four times too large. */

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

enum { SMALLEST_BLOCK = 1 << 14, LARGE_BLOCK = 1 << 20, WASTE_LIMIT = 4 };

static struct sar_block *make_block(size_t capacity, struct sar_block *older)
{
    if (capacity > SIZE_MAX - sizeof(struct sar_block) - SAR_ALIGNMENT)
        return NULL;
    struct sar_block *block = malloc(sizeof *block + SAR_ALIGNMENT + capacity);
    if (block == NULL)
        return NULL;
    uintptr_t start = (uintptr_t)(block + 1);
    size_t gap = (size_t)(-start & (SAR_ALIGNMENT - 1));
    *block = (struct sar_block){ older, capacity, 0, (unsigned char *)(block + 1) + gap };
    ASAN_POISON_MEMORY_REGION(block->bytes, capacity);
    return block;
}

static enum sar_status grow(struct sar_arena *arena, size_t bytes)
{
    size_t capacity = arena->newest == NULL ? SMALLEST_BLOCK : arena->newest->capacity;
    if (arena->newest != NULL)
        capacity = capacity < LARGE_BLOCK / 2 ? 2 * capacity : LARGE_BLOCK;
    struct sar_block *block = make_block(capacity > bytes ? capacity : bytes, arena->newest);
    if (block == NULL && capacity > bytes)
        block = make_block(bytes, arena->newest);
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

/* One block in place of a chain, as large as the most that was needed. */
static void join(struct sar_arena *arena)
{
    size_t most = arena->most;
    sar_arena_free(arena);
    arena->newest = make_block(most > SMALLEST_BLOCK ? most : SMALLEST_BLOCK, NULL);
    arena->most = most;
}

void sar_arena_recycle(struct sar_arena *arena)
{
    arena->most = arena->taken > arena->most ? arena->taken : arena->most;
    arena->taken = 0;
    if (arena->newest == NULL)
        return;
    if (arena->newest->older != NULL) {
        join(arena);
        return;
    }
    ASAN_POISON_MEMORY_REGION(arena->newest->bytes, arena->newest->used);
    arena->newest->used = 0;
}

void sar_arena_reset(struct sar_arena *arena)
{
    sar_arena_recycle(arena);
    if (arena->newest != NULL && arena->newest->capacity / WASTE_LIMIT > arena->most + SMALLEST_BLOCK)
        join(arena);
    arena->most = 0;
}

void sar_arena_free(struct sar_arena *arena)
{
    while (arena->newest != NULL) {
        struct sar_block *block = arena->newest;
        arena->newest = block->older;
        free(block);
    }
    arena->taken = 0;
    arena->most = 0;
}
