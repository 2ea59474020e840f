/* SPDX-License-Identifier: BSD-3-Clause */
/* A dense buffer from runs, each byte written once. To zero the buffer and then to scatter would read back
 * every line that has an element; so a block is put together in the L1 cache and goes to memory by stores
 * that leave the caches alone. Buffers that a cache has room for are better left in it.
 *
 *     time = count * element bytes / memory bandwidth
 *
 * Where all else is zero already, only the lines of blocks that have elements go to memory; whole, so that
 * they need not be read before. Such blocks are longer, since few of their lines are moved.
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
    PAGE = 4096,        /* bytes */
    STRETCH = 4 * PAGE, /* that is worked on at a time where not each line is moved */
    LARGEST = 64,       /* bytes of elements that blocks are made of */
    AHEAD = 4,          /* pages */
    LINE = 64,          /* bytes */
    LINES = STRETCH / LINE
};

_Static_assert(LINES % LINE == 0, "marks are whole vectors");

/* The next element that is not written yet. */
struct place {
    const struct sar_run *run, *end;
    size_t i;
    struct sar_folding *folding; /* of all runs; or NULL where they are put one behind the other */
    uint8_t marks[LINES];        /* of a stretch's lines, those that elements begin in */
};

/* Put elements below an index into a block that begins at `start`. */
SAR_INLINE void put_below(struct place *p, unsigned index_size, size_t bytes, uint64_t start, uint64_t limit,
                          unsigned char *block)
{
    for (; p->run < p->end; p->run++, p->i = 0) {
        const unsigned char *value = p->run->value;
        for (; p->i < p->run->nnz; p->i++) {
            uint64_t index = sar_index_get(p->run->index, index_size, p->i);
            if (index >= limit)
                return;
            size_t at = (size_t)(index - start) * bytes;
            memcpy(block + at, value + p->i * bytes, bytes);
            p->marks[at / LINE] = 1;
        }
    }
}

static void put(const struct sar_shape *shape, struct place *p, uint64_t start, uint64_t limit,
                unsigned char *block)
{
    size_t bytes = shape->element_size;
    if (p->folding != NULL)
        p->folding->put(p->folding, shape, start, limit, block, p->marks);
    else if (bytes == 4)
        SAR_FOR_INDEX_SIZE(shape->index_size, put_below(p, INDEX_SIZE, 4, start, limit, block));
    else if (bytes == 8)
        SAR_FOR_INDEX_SIZE(shape->index_size, put_below(p, INDEX_SIZE, 8, start, limit, block));
    else
        put_below(p, shape->index_size, bytes, start, limit, block);
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

/* The address of each page has to be translated. Stores past the caches would wait for that, and take twice
 * as long with pages of 4 KB: so a load asks for it ahead. */
static void look_up(const struct sar_shape *shape, const unsigned char *buf, uint64_t at)
{
    if (at < shape->count)
        __builtin_prefetch(buf + at * shape->element_size);
}

#if defined(SAR_WIDE)
/* Where each store is a line, it takes two thirds of the time. */
SAR_WIDE SAR_INLINE void stream_line(unsigned char *to, unsigned char *block)
{
    _mm512_stream_si512((void *)to, _mm512_load_si512(block));
    _mm512_store_si512(block, _mm512_setzero_si512());
}

SAR_WIDE static void stream_page_wide(unsigned char *to, unsigned char *block)
{
    for (size_t at = 0; at < PAGE; at += LINE)
        stream_line(to + at, block + at);
}

SAR_WIDE static void stream_marked_wide(unsigned char *to, unsigned char *block, uint8_t *marks)
{
    for (size_t group = 0; group < LINES; group += LINE, marks += LINE) {
        __m512i some = _mm512_loadu_si512(marks);
        for (uint64_t lines = _mm512_test_epi8_mask(some, some); lines != 0; lines &= lines - 1) {
            size_t at = (group + (size_t)__builtin_ctzll(lines)) * LINE;
            stream_line(to + at, block + at);
        }
        _mm512_storeu_si512(marks, _mm512_setzero_si512());
    }
}
#else
#define stream_page_wide(to, block) ((void)(to))
#define stream_marked_wide(to, block, marks) ((void)(to))
#endif

/* A block is zeros again afterwards. */
static void stream_page(unsigned char *to, unsigned char *block)
{
    if (sar_is_wide()) {
        stream_page_wide(to, block);
        return;
    }
    sar_stream(to, block, PAGE);
    memset(block, 0, PAGE);
}

/* The lines that have marks, of which none are left. */
static void stream_marked(unsigned char *to, unsigned char *block, uint8_t *marks)
{
    if (sar_is_wide()) {
        stream_marked_wide(to, block, marks);
        return;
    }
    for (size_t i = 0; i < LINES; i++) {
        if (marks[i] == 0)
            continue;
        sar_stream(to + i * LINE, block + i * LINE, LINE);
        memset(block + i * LINE, 0, LINE);
    }
    memset(marks, 0, LINES);
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
    _Alignas(LINE) unsigned char block[PAGE] = { 0 };
    size_t bytes = shape->element_size;
    uint64_t each = PAGE / bytes, at = head_of(shape, buf);
    memset(buf, 0, at * bytes);
    put(shape, p, 0, at, buf);
    for (; at + each <= shape->count; at += each) {
        look_up(shape, buf, at + AHEAD * each);
        put(shape, p, at, at + each, block);
        stream_page(buf + at * bytes, block);
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

static void update_lines(const struct sar_shape *shape, struct place *p, unsigned char *buf)
{
    _Alignas(LINE) unsigned char block[STRETCH] = { 0 };
    size_t bytes = shape->element_size;
    uint64_t each = STRETCH / bytes, head = head_of(shape, buf),
             end = head + (shape->count - head) / each * each;
    memset(buf, 0, head * bytes);
    put(shape, p, 0, head, buf);
    memset(p->marks, 0, sizeof p->marks);
    for (uint64_t next; (next = next_index(shape, p)) < end;) {
        uint64_t at = next - (next - head) % each;
        for (uint64_t page = 0; page < AHEAD; page++)
            look_up(shape, buf, at + each + page * (PAGE / bytes));
        put(shape, p, at, at + each, block);
        stream_marked(buf + at * bytes, block, p->marks);
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
    struct place place = { runs, runs + n, 0, NULL, { 0 } };
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
    struct place place = { runs, runs + n, 0, NULL, { 0 } };
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
    struct place place = { NULL, NULL, 0, &folding, { 0 } };
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
