/* SPDX-License-Identifier: BSD-3-Clause */
/* A dense buffer from runs, each byte written once. To zero the buffer and then to scatter would read back
 * every line that has an element; so a block is put together in the L1 cache and goes to memory by stores
 * that leave the caches alone. Buffers that a cache has room for are better left in it.
 *
 *     time = count * element bytes / memory bandwidth
 *
 * Where all else is zero already, only the lines of blocks that have elements go to memory; whole, so that
 * they need not be read before.
 *
 * Runs that have elements in common are folded in such blocks: no outcome of coordinates is made before. */

#include "tensor/expand.h"

#include <string.h>
#if defined(SAR_WIDE)
#include <immintrin.h>
#endif

#include "tensor/dense.h"
#include "tensor/folding.h"
#include "tensor/stream.h"

enum {
    BLOCK = 4096, /* bytes */
    STRETCH = 4 * BLOCK,
    LARGEST = 64, /* bytes of elements that blocks are made of */
    AHEAD = 4,    /* blocks */
    LINE = 64,    /* bytes */
    LINES = BLOCK / LINE
};

_Static_assert(LINES == 64, "a word has a bit for each line of a block");

/* The next element that is not written yet. */
struct place {
    const struct sar_run *run, *end;
    size_t i;
    struct sar_folding *folding; /* of all runs; or NULL where they are put one behind the other */
};

/* Put elements below an index into a block that begins at `start`; returns a bit for each of its lines that
 * has one. */
SAR_INLINE uint64_t put_below(struct place *p, unsigned index_size, size_t bytes, uint64_t start,
                              uint64_t limit, unsigned char *block)
{
    uint64_t lines = 0;
    for (; p->run < p->end; p->run++, p->i = 0) {
        const unsigned char *value = p->run->value;
        for (; p->i < p->run->nnz; p->i++) {
            uint64_t index = sar_index_get(p->run->index, index_size, p->i);
            if (index >= limit)
                return lines;
            size_t at = (size_t)(index - start) * bytes;
            memcpy(block + at, value + p->i * bytes, bytes);
            lines |= (uint64_t)1 << at / LINE % LINES;
        }
    }
    return lines;
}

static uint64_t put(const struct sar_shape *shape, struct place *p, uint64_t start, uint64_t limit,
                    unsigned char *block)
{
    size_t bytes = shape->element_size;
    uint64_t lines;
    if (p->folding != NULL)
        lines = p->folding->put(p->folding, shape, start, limit, block);
    else if (bytes == 4)
        SAR_FOR_INDEX_SIZE(shape->index_size, lines = put_below(p, INDEX_SIZE, 4, start, limit, block));
    else if (bytes == 8)
        SAR_FOR_INDEX_SIZE(shape->index_size, lines = put_below(p, INDEX_SIZE, 8, start, limit, block));
    else
        lines = put_below(p, shape->index_size, bytes, start, limit, block);
    return lines;
}

/* Elements in front of the first line that begins with one. */
static uint64_t head_of(const struct sar_shape *shape, const void *buf)
{
    return (uint64_t)(-(uintptr_t)buf % LINE) / shape->element_size;
}

static bool fits_lines(const struct sar_shape *shape, const void *buf)
{
    size_t bytes = shape->element_size;
    return bytes <= LARGEST && (bytes & (bytes - 1)) == 0 && (uintptr_t)buf % bytes == 0;
}

/* A block is about a page, whose address has to be translated. Stores past the caches would wait for that,
 * and take twice as long with pages of 4 KB: so a load asks for it ahead. */
static void look_up(const struct sar_shape *shape, const unsigned char *buf, uint64_t at)
{
    if (at < shape->count)
        __builtin_prefetch(buf + at * shape->element_size);
}

#if defined(SAR_WIDE)
/* Where each store is a line, it takes two thirds of the time. */
SAR_WIDE static void stream_wide(unsigned char *to, unsigned char *block)
{
    for (size_t i = 0; i < BLOCK; i += LINE) {
        _mm512_stream_si512((void *)(to + i), _mm512_load_si512(block + i));
        _mm512_store_si512(block + i, _mm512_setzero_si512());
    }
}
#else
#define stream_wide(to, block) ((void)(to))
#endif

/* A block is zeros again afterwards. */
static void stream_block(unsigned char *to, unsigned char *block)
{
    if (sar_is_wide()) {
        stream_wide(to, block);
        return;
    }
    sar_stream(to, block, BLOCK);
    memset(block, 0, BLOCK);
}

/* Into a buffer that a cache has room for, as much at a time as the L1 cache has. */
static void put_here(const struct sar_shape *shape, struct place *p, bool blank, unsigned char *buf)
{
    size_t bytes = shape->element_size;
    uint64_t each = bytes < STRETCH ? STRETCH / bytes : 1;
    for (uint64_t at = 0, n; at < shape->count; at += n) {
        n = shape->count - at < each ? shape->count - at : each;
        if (!blank)
            memset(buf + at * bytes, 0, n * bytes);
        put(shape, p, at, at + n, buf + at * bytes);
    }
}

static void expand_blocks(const struct sar_shape *shape, struct place *p, unsigned char *buf)
{
    _Alignas(LINE) unsigned char block[BLOCK] = { 0 };
    size_t bytes = shape->element_size;
    uint64_t each = BLOCK / bytes, at = head_of(shape, buf);
    memset(buf, 0, at * bytes);
    put(shape, p, 0, at, buf);
    for (; at + each <= shape->count; at += each) {
        look_up(shape, buf, at + AHEAD * each);
        put(shape, p, at, at + each, block);
        stream_block(buf + at * bytes, block);
    }
    memset(buf + at * bytes, 0, (shape->count - at) * bytes);
    put(shape, p, at, shape->count, buf + at * bytes);
}

/* The index of the next element that is not written yet, or the largest number. */
static uint64_t next_index(const struct sar_shape *shape, struct place *p)
{
    if (p->folding != NULL)
        return sar_folding_next(p->folding, shape);
    for (; p->run < p->end && p->i == p->run->nnz; p->i = 0)
        p->run++;
    return p->run == p->end ? UINT64_MAX : sar_index_get(p->run->index, shape->index_size, p->i);
}

static void stream_lines(unsigned char *to, unsigned char *block, uint64_t lines)
{
    for (; lines != 0; lines &= lines - 1) {
        size_t at = (size_t)__builtin_ctzll(lines) * LINE;
        sar_stream(to + at, block + at, LINE);
        memset(block + at, 0, LINE);
    }
}

static void update_lines(const struct sar_shape *shape, struct place *p, unsigned char *buf)
{
    _Alignas(LINE) unsigned char block[BLOCK] = { 0 };
    size_t bytes = shape->element_size;
    uint64_t each = BLOCK / bytes, head = head_of(shape, buf),
             end = head + (shape->count - head) / each * each;
    memset(buf, 0, head * bytes);
    put(shape, p, 0, head, buf);
    for (uint64_t next; (next = next_index(shape, p)) < end;) {
        uint64_t at = next - (next - head) % each;
        look_up(shape, buf, at + AHEAD * each);
        stream_lines(buf + at * bytes, block, put(shape, p, at, at + each, block));
    }
    memset(buf + end * bytes, 0, (shape->count - end) * bytes);
    put(shape, p, end, shape->count, buf + end * bytes);
}

static void zero(unsigned char *from, const unsigned char *to)
{
    size_t bytes = (size_t)(to - from), head = -(uintptr_t)from % LINE;
    if (bytes < head + LINE) {
        memset(from, 0, bytes);
        return;
    }
    size_t lines = (bytes - head) / LINE * LINE;
    memset(from, 0, head);
    sar_stream_zeros(from + head, lines);
    memset(from + head + lines, 0, bytes - head - lines);
}

/* Large elements: they, and the gaps between them. */
static void expand_rows(const struct sar_shape *shape, const struct place *p, unsigned char *buf)
{
    size_t bytes = shape->element_size;
    unsigned char *done = buf;
    for (const struct sar_run *run = p->run; run < p->end; run++) {
        for (size_t i = 0; i < run->nnz; i++) {
            unsigned char *row = buf + sar_index_get(run->index, shape->index_size, i) * bytes;
            zero(done, row);
            memcpy(row, (const unsigned char *)run->value + i * bytes, bytes);
            done = row + bytes;
        }
    }
    zero(done, buf + shape->count * bytes);
}

void sar_dense_expand(const struct sar_shape *shape, const struct sar_run runs[], size_t n, void *buf)
{
    struct place place = { runs, runs + n, 0, NULL };
    size_t bytes = (size_t)shape->count * shape->element_size;
    if (bytes < SAR_STREAMED) {
        put_here(shape, &place, false, buf);
        return;
    }
    if (fits_lines(shape, buf))
        expand_blocks(shape, &place, buf);
    else
        expand_rows(shape, &place, buf);
    sar_stream_settle();
}

void sar_dense_update(const struct sar_shape *shape, const struct sar_run runs[], size_t n, void *buf)
{
    struct place place = { runs, runs + n, 0, NULL };
    if (shape->count * shape->element_size >= SAR_STREAMED && fits_lines(shape, buf)) {
        update_lines(shape, &place, buf);
        sar_stream_settle();
        return;
    }
    for (size_t r = 0; r < n; r++)
        sar_dense_scatter(shape, &runs[r], buf);
}

bool sar_dense_folds(const struct sar_shape *shape, const void *buf, size_t n)
{
    return sar_folding_suits(shape) && n <= SAR_FOLDED && fits_lines(shape, buf);
}

void sar_dense_fold(const struct sar_shape *shape, const struct sar_run runs[], size_t n,
                    const struct sar_run *before, void *buf)
{
    bool streams = shape->count * shape->element_size >= SAR_STREAMED;
    struct sar_folding folding = sar_folding_begin(shape, runs, n);
    struct place place = { NULL, NULL, 0, &folding };
    if (streams) {
        (before != NULL ? update_lines : expand_blocks)(shape, &place, buf);
        sar_stream_settle();
    } else if (before != NULL) {
        sar_dense_clear(shape, before, buf);
        put_here(shape, &place, true, buf);
    } else {
        put_here(shape, &place, false, buf);
    }
}
