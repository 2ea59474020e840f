/* SPDX-License-Identifier: BSD-3-Clause */
/* An arena is a chain of blocks. Each block is at least twice as large as the one before, up to LARGE_BLOCK,
 * so that the chain stays short. Reset replaces the chain by one block of the size needed. After many small
 * uses (base/trim.h) reset replaces the block by a smaller one. */

#include "base/arena.h"

#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/parallel.h"

/* The address sanitizer reports accesses to bytes of a block that belong to no piece. */
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

struct sar_arena_block {
    struct sar_arena_block *previous;
    size_t capacity, used; /* bytes */
    unsigned char *bytes;  /* first aligned byte after this header */
};

enum { SMALLEST_BLOCK = 1 << 14, LARGE_BLOCK = 1 << 18 };

static struct sar_arena_block *make_block(struct sar_allocator *allocator, size_t capacity,
                                          struct sar_arena_block *previous)
{
    size_t header = sizeof(struct sar_arena_block) + SAR_ALIGNMENT;
    if (capacity > SIZE_MAX - header)
        return NULL;
    size_t bytes = header + capacity;
    struct sar_arena_block *block = allocator == NULL ? malloc(bytes) : allocator->alloc(allocator, &bytes);
    if (block == NULL)
        return NULL;
    uintptr_t start = (uintptr_t)(block + 1);
    size_t gap = (size_t)(-start & (SAR_ALIGNMENT - 1));
    *block = (struct sar_arena_block){ previous, bytes - header, 0, (unsigned char *)(block + 1) + gap };
    ASAN_POISON_MEMORY_REGION(block->bytes, block->capacity);
    return block;
}

static enum sar_status grow(struct sar_arena *arena, size_t bytes)
{
    size_t capacity = arena->first_bytes > SMALLEST_BLOCK ? arena->first_bytes : SMALLEST_BLOCK;
    if (arena->newest != NULL)
        capacity = arena->newest->capacity < LARGE_BLOCK / 2 ? 2 * arena->newest->capacity : LARGE_BLOCK;
    struct sar_arena_block *block =
        make_block(arena->allocator, capacity > bytes ? capacity : bytes, arena->newest);
    if (block == NULL && capacity > bytes)
        block = make_block(arena->allocator, bytes, arena->newest);
    if (block == NULL) {
        SAR_LOG(INFO, BASE, "no memory for %zu bytes", bytes);
        return SAR_NO_MEMORY;
    }
    arena->newest = block;
    return SAR_OK;
}

static enum sar_status take(struct sar_arena *arena, size_t count, size_t size, void **memory)
{
    size_t bytes = (count * size + SAR_ALIGNMENT) & ~(size_t)(SAR_ALIGNMENT - 1);
    if (arena->newest == NULL || arena->newest->capacity - arena->newest->used < bytes)
        SAR_TRY(grow(arena, bytes));
    *memory = arena->newest->bytes + arena->newest->used;
    ASAN_UNPOISON_MEMORY_REGION(*memory, count * size);
    arena->newest->used += bytes;
    arena->used += bytes;
    return SAR_OK;
}

static enum sar_status take_locked(struct sar_arena *arena, size_t count, size_t size, void **memory)
{
    while (__atomic_test_and_set(&arena->locked, __ATOMIC_ACQUIRE))
        sched_yield();
    enum sar_status status = take(arena, count, size, memory);
    __atomic_clear(&arena->locked, __ATOMIC_RELEASE);
    return status;
}

enum sar_status sar_arena_alloc(struct sar_arena *arena, size_t count, size_t size, void **memory)
{
    if (size != 0 && count > (SIZE_MAX - SAR_ALIGNMENT) / size)
        return SAR_NO_MEMORY;
    return sar_parallel_any() ? take_locked(arena, count, size, memory) : take(arena, count, size, memory);
}

enum sar_status sar_arena_alloc_zeroed(struct sar_arena *arena, size_t count, size_t size, void **memory)
{
    SAR_TRY(sar_arena_alloc(arena, count, size, memory));
    memset(*memory, 0, count * size);
    return SAR_OK;
}

static void free_newest(struct sar_arena *arena)
{
    struct sar_arena_block *block = arena->newest;
    arena->newest = block->previous;
    if (arena->allocator == NULL) {
        free(block);
        return;
    }
    ASAN_UNPOISON_MEMORY_REGION(block->bytes, block->capacity);
    arena->allocator->release(arena->allocator, block);
}

struct sar_arena_mark sar_arena_mark(const struct sar_arena *arena)
{
    const struct sar_arena_block *newest = arena->newest;
    return (struct sar_arena_mark){ arena->newest, newest == NULL ? 0 : newest->used, arena->used };
}

void sar_arena_rewind(struct sar_arena *arena, struct sar_arena_mark mark)
{
    arena->peak = arena->used > arena->peak ? arena->used : arena->peak;
    arena->used = mark.arena_used;
    while (arena->newest != mark.newest)
        free_newest(arena);
    if (mark.newest == NULL)
        return;
    ASAN_POISON_MEMORY_REGION(mark.newest->bytes + mark.used, mark.newest->used - mark.used);
    mark.newest->used = mark.used;
}

/* Replaces all blocks by one. */
static void replace_blocks(struct sar_arena *arena, size_t capacity)
{
    while (arena->newest != NULL)
        free_newest(arena);
    arena->newest = make_block(arena->allocator, capacity > SMALLEST_BLOCK ? capacity : SMALLEST_BLOCK, NULL);
}

void sar_arena_recycle(struct sar_arena *arena)
{
    arena->peak = arena->used > arena->peak ? arena->used : arena->peak;
    arena->used = 0;
    if (arena->newest == NULL)
        return;
    if (arena->newest->previous != NULL || arena->newest->capacity < arena->peak) {
        replace_blocks(arena, arena->peak);
        return;
    }
    ASAN_POISON_MEMORY_REGION(arena->newest->bytes, arena->newest->used);
    arena->newest->used = 0;
}

void sar_arena_reset(struct sar_arena *arena)
{
    sar_arena_recycle(arena);
    if (arena->newest != NULL &&
        sar_trim_note(&arena->trim, arena->newest->capacity, arena->peak, SMALLEST_BLOCK)) {
        replace_blocks(arena, arena->trim.peak);
        arena->trim = (struct sar_trim){ 0 };
    }
    arena->peak = 0;
}

void sar_arena_free(struct sar_arena *arena)
{
    while (arena->newest != NULL)
        free_newest(arena);
    arena->used = 0;
    arena->peak = 0;
    arena->trim = (struct sar_trim){ 0 };
}

void sar_arena_release(struct sar_arena *arena)
{
    size_t peak = arena->used > arena->peak ? arena->used : arena->peak;
    sar_arena_free(arena);
    arena->first_bytes = peak;
}
