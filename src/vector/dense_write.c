/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes a dense buffer from vecs when a call returns its result; writes each byte once. Zeroing the buffer
 * and then scattering would read back every cache line that has an element. So a block is assembled in the L1
 * cache and goes to memory by non-temporal stores. A buffer below SAR_NT_STORE_MIN stays in the caches.
 *
 *     time = count * element bytes / memory bandwidth
 *
 * If the rest of the buffer is zero already, only the dirty lines of a block go to memory. They are written
 * whole, so that the processor does not read them first. These blocks are longer, since few lines are dirty.
 *
 * Vecs that share indices are accumulated in these blocks, with no sparse result in between:
 *
 *     time = elements of all vecs * 1.6 ns, or their bytes / memory bandwidth
 *
 * on a Zen 4 at 4 GHz, where sar_reduce takes about 4 ns for an element.
 *
 * Several threads write ranges of blocks. Each finds its first elements by bisection. */

#include "vector/dense.h"

#include <string.h>
#if defined(SAR_AVX512)
#include <immintrin.h>
#endif

#include "vector/nt_store.h"
#include "vector/pieces.h"

enum {
    PAGE = 4096,            /* bytes */
    BLOCK_BYTES = 4 * PAGE, /* bytes of a block of which only dirty lines are stored */
    ELEMENT_MAX = 64,       /* most bytes of an element in a block */
    PREFETCH_PAGES = 4,     /* pages between a prefetch and its store */
    LINE = 64,              /* bytes of a cache line */
    LINES = BLOCK_BYTES / LINE,
    CHUNK = 64 /* elements whose positions are computed before they are accumulated */
};

_Static_assert(LINES % LINE == 0, "dirty is whole vectors");

/* Vecs that are accumulated in their order, block by block. */
struct accumulator {
    const struct sar_spvec *vecs;
    size_t n;
    size_t next[SAR_DENSE_ACCUMULATE_MAX]; /* for each vec, its first element not accumulated yet */
    /* Accumulate elements with indices in [start, limit) into the block `at`, and set dirty[i] for each line
     * i where such an element begins. All elements below start are accumulated already. */
    void (*accumulate)(struct accumulator *, const struct sar_vec_desc *, uint64_t start, uint64_t limit,
                       void *at, uint8_t dirty[]);
};

/* Sums of scalars with indices of 4 bytes. */
#define DEFINE_SUM(name, type)                                                                 \
    static void name(struct accumulator *acc, const struct sar_vec_desc *desc, uint64_t start, \
                     uint64_t limit, void *at, uint8_t dirty[])                                \
    {                                                                                          \
        type *sum = at;                                                                        \
        (void)desc;                                                                            \
        for (size_t r = 0; r < acc->n; r++) {                                                  \
            const uint32_t *restrict index = acc->vecs[r].index;                               \
            const type *restrict value = acc->vecs[r].value;                                   \
            size_t i = acc->next[r], nnz = acc->vecs[r].nnz;                                   \
            for (; i < nnz && index[i] < limit; i++) {                                         \
                size_t position = index[i] - start;                                            \
                sum[position] += value[i];                                                     \
                dirty[position * sizeof(type) / LINE] = 1;                                     \
            }                                                                                  \
            acc->next[r] = i;                                                                  \
        }                                                                                      \
    }

DEFINE_SUM(sum_floats, float)
DEFINE_SUM(sum_doubles, double)
DEFINE_SUM(sum_uint32, uint32_t)
DEFINE_SUM(sum_uint64, uint64_t)

/* Compute the positions in the block of up to CHUNK elements whose indices are below limit; returns their
 * number. */
SAR_INLINE size_t find_positions(const struct sar_spvec *vec, unsigned size, size_t from, uint64_t start,
                                 uint64_t limit, uint32_t positions[])
{
    size_t n = 0, chunk = vec->nnz - from < CHUNK ? vec->nnz - from : CHUNK;
    for (; n < chunk; n++) {
        uint64_t index = sar_index_get(vec->index, size, from + n);
        if (index >= limit)
            break;
        positions[n] = (uint32_t)(index - start);
    }
    return n;
}

/* Any type, op and index size; also rows. */
static void accumulate_all(struct accumulator *acc, const struct sar_vec_desc *desc, uint64_t start,
                           uint64_t limit, void *at, uint8_t dirty[])
{
    uint32_t positions[CHUNK];
    size_t bytes = desc->element_size;
    for (size_t n, r = 0; r < acc->n; r += n < CHUNK) {
        const struct sar_spvec *vec = &acc->vecs[r];
        const unsigned char *value = (const unsigned char *)vec->value + acc->next[r] * bytes;
        SAR_FOR_INDEX_SIZE(desc->index_size,
                           n = find_positions(vec, INDEX_SIZE, acc->next[r], start, limit, positions));
        desc->kernels->apply_rows(at, positions, value, n, desc->row_len);
        for (size_t i = 0; i < n; i++)
            dirty[positions[i] * bytes / LINE] = 1;
        acc->next[r] += n;
    }
}

/* Begin at index `from`. */
static struct accumulator accumulator_init(const struct sar_vec_desc *desc, const struct sar_spvec vecs[],
                                           size_t n, uint64_t from)
{
    struct accumulator acc = { vecs, n, { 0 }, accumulate_all };
    for (size_t r = 0; from > 0 && r < n; r++)
        acc.next[r] = sar_index_lower_bound(vecs[r].index, desc->index_size, 0, vecs[r].nnz, from);
    if (desc->op != SAR_SUM || desc->row_len != 1 || desc->index_size != 4)
        return acc;
    switch (desc->dtype) {
    case SAR_FLOAT: acc.accumulate = sum_floats; break;
    case SAR_DOUBLE: acc.accumulate = sum_doubles; break;
    case SAR_INT32:
    case SAR_UINT32: acc.accumulate = sum_uint32; break;
    case SAR_INT64:
    case SAR_UINT64: acc.accumulate = sum_uint64; break;
    default: break;
    }
    return acc;
}

/* Returns the least index that is not accumulated yet, or UINT64_MAX. */
static uint64_t accumulator_next_index(const struct accumulator *acc, const struct sar_vec_desc *desc)
{
    uint64_t min_index = UINT64_MAX;
    for (size_t r = 0; r < acc->n; r++) {
        const struct sar_spvec *vec = &acc->vecs[r];
        size_t i = acc->next[r];
        uint64_t index = i < vec->nnz ? sar_index_get(vec->index, desc->index_size, i) : min_index;
        min_index = index < min_index ? index : min_index;
    }
    return min_index;
}

/* The next element to write, and the dirty lines of the block. */
struct cursor {
    const struct sar_spvec *vec, *end;
    size_t i;
    struct accumulator *accumulator; /* of all vecs; NULL if the vecs follow each other in order of index */
    uint8_t dirty[LINES];            /* 1 for each line of the block in which an element begins */
};

/* Move to the first element at or after index `from`. */
static void cursor_seek(struct cursor *p, const struct sar_vec_desc *desc, uint64_t from)
{
    unsigned size = desc->index_size;
    while (p->vec < p->end &&
           (p->vec->nnz == 0 || sar_index_get(p->vec->index, size, p->vec->nnz - 1) < from))
        p->vec++;
    p->i = p->vec == p->end ? 0 : sar_index_lower_bound(p->vec->index, size, 0, p->vec->nnz, from);
}

/* Copy elements with indices below limit into a block that begins at index start. */
SAR_INLINE void write_below(struct cursor *p, unsigned index_size, size_t bytes, uint64_t start,
                            uint64_t limit, unsigned char *block)
{
    for (; p->vec < p->end; p->vec++, p->i = 0) {
        const unsigned char *value = p->vec->value;
        for (; p->i < p->vec->nnz; p->i++) {
            uint64_t index = sar_index_get(p->vec->index, index_size, p->i);
            if (index >= limit)
                return;
            size_t at = (size_t)(index - start) * bytes;
            memcpy(block + at, value + p->i * bytes, bytes);
            p->dirty[at / LINE] = 1;
        }
    }
}

static void write_block(const struct sar_vec_desc *desc, struct cursor *p, uint64_t start, uint64_t limit,
                        unsigned char *block)
{
    size_t bytes = desc->element_size;
    if (p->accumulator != NULL)
        p->accumulator->accumulate(p->accumulator, desc, start, limit, block, p->dirty);
    else if (bytes == 4)
        SAR_FOR_INDEX_SIZE(desc->index_size, write_below(p, INDEX_SIZE, 4, start, limit, block));
    else if (bytes == 8)
        SAR_FOR_INDEX_SIZE(desc->index_size, write_below(p, INDEX_SIZE, 8, start, limit, block));
    else
        write_below(p, desc->index_size, bytes, start, limit, block);
}

/* Returns the number of elements before the first cache line that begins with an element. */
static uint64_t head_of(const struct sar_vec_desc *desc, const void *buf)
{
    return (uint64_t)(-(uintptr_t)buf % LINE) / desc->element_size;
}

static bool can_store_lines(const struct sar_vec_desc *desc, const void *buf)
{
    size_t bytes = desc->element_size;
    return bytes <= ELEMENT_MAX && (bytes & (bytes - 1)) == 0 && (uintptr_t)buf % bytes == 0;
}

/* Non-temporal stores wait for the translation of each page's address and take twice as long with pages of 4
 * KB. A prefetch translates the address ahead. */
static void prefetch_page(const struct sar_vec_desc *desc, const unsigned char *buf, uint64_t at)
{
    if (at < desc->count)
        __builtin_prefetch(buf + at * desc->element_size);
}

#if defined(SAR_AVX512)
/* Stores of whole lines take two thirds of the time. */
SAR_AVX512 SAR_INLINE void nt_store_line(unsigned char *to, unsigned char *block)
{
    _mm512_stream_si512((void *)to, _mm512_load_si512(block));
    _mm512_store_si512(block, _mm512_setzero_si512());
}

SAR_AVX512 static void nt_store_page_wide(unsigned char *to, unsigned char *block)
{
    for (size_t at = 0; at < PAGE; at += LINE)
        nt_store_line(to + at, block + at);
}

SAR_AVX512 static void nt_store_dirty_wide(unsigned char *to, unsigned char *block, uint8_t *dirty)
{
    for (size_t group = 0; group < LINES; group += LINE, dirty += LINE) {
        __m512i flags = _mm512_loadu_si512(dirty);
        for (uint64_t lines = _mm512_test_epi8_mask(flags, flags); lines != 0; lines &= lines - 1) {
            size_t at = (group + (size_t)__builtin_ctzll(lines)) * LINE;
            nt_store_line(to + at, block + at);
        }
        _mm512_storeu_si512(dirty, _mm512_setzero_si512());
    }
}
#else
#define nt_store_page_wide(to, block) ((void)(to))
#define nt_store_dirty_wide(to, block, dirty) ((void)(to))
#endif

/* Store a page of a block and zero it. */
static void nt_store_page(unsigned char *to, unsigned char *block)
{
    if (sar_has_avx512()) {
        nt_store_page_wide(to, block);
        return;
    }
    sar_nt_copy(to, block, PAGE);
    memset(block, 0, PAGE);
}

/* Store the dirty lines of a block, zero them and clear dirty. */
static void nt_store_dirty(unsigned char *to, unsigned char *block, uint8_t *dirty)
{
    if (sar_has_avx512()) {
        nt_store_dirty_wide(to, block, dirty);
        return;
    }
    for (size_t i = 0; i < LINES; i++) {
        if (dirty[i] == 0)
            continue;
        sar_nt_copy(to + i * LINE, block + i * LINE, LINE);
        memset(block + i * LINE, 0, LINE);
    }
    memset(dirty, 0, LINES);
}

/* Elements [from, to) of a dense buffer, all of it or whole blocks. */
struct range {
    unsigned char *buf;
    uint64_t from, to;
};

/* Write a range that fits into a cache, as much at a time as the L1 cache holds. */
static void write_in_place(const struct sar_vec_desc *desc, struct cursor *p, bool zeroed, struct range range)
{
    size_t bytes = desc->element_size;
    uint64_t chunk = bytes < BLOCK_BYTES ? BLOCK_BYTES / bytes : 1;
    for (uint64_t at = range.from, n; at < range.to; at += n) {
        n = range.to - at < chunk ? range.to - at : chunk;
        if (!zeroed)
            memset(range.buf + at * bytes, 0, n * bytes);
        write_block(desc, p, at, at + n, range.buf + at * bytes);
    }
}

static void expand_in_place(const struct sar_vec_desc *desc, struct cursor *p, struct range range)
{
    write_in_place(desc, p, false, range);
}

static void update_in_place(const struct sar_vec_desc *desc, struct cursor *p, struct range range)
{
    write_in_place(desc, p, true, range);
}

/* Write elements [from, to) by ordinary stores: those before the first block, or after the last. */
static void write_edge(const struct sar_vec_desc *desc, struct cursor *p, unsigned char *buf, uint64_t from,
                       uint64_t to)
{
    size_t bytes = desc->element_size;
    memset(buf + from * bytes, 0, (to - from) * bytes);
    write_block(desc, p, from, to, buf + from * bytes);
}

static void expand_blocks(const struct sar_vec_desc *desc, struct cursor *p, struct range range)
{
    _Alignas(LINE) unsigned char block[PAGE] = { 0 };
    size_t bytes = desc->element_size;
    uint64_t chunk = PAGE / bytes, at = range.from;
    if (at == 0)
        write_edge(desc, p, range.buf, 0, at = head_of(desc, range.buf));
    for (; at + chunk <= range.to; at += chunk) {
        prefetch_page(desc, range.buf, at + PREFETCH_PAGES * chunk);
        write_block(desc, p, at, at + chunk, block);
        nt_store_page(range.buf + at * bytes, block);
    }
    write_edge(desc, p, range.buf, at, range.to);
    sar_nt_fence();
}

/* Returns the index of the next element to write, or UINT64_MAX. */
static uint64_t next_index(const struct sar_vec_desc *desc, struct cursor *p)
{
    if (p->accumulator != NULL)
        return accumulator_next_index(p->accumulator, desc);
    for (; p->vec < p->end && p->i == p->vec->nnz; p->i = 0)
        p->vec++;
    return p->vec == p->end ? UINT64_MAX : sar_index_get(p->vec->index, desc->index_size, p->i);
}

static void update_lines(const struct sar_vec_desc *desc, struct cursor *p, struct range range)
{
    _Alignas(LINE) unsigned char block[BLOCK_BYTES] = { 0 };
    size_t bytes = desc->element_size;
    uint64_t chunk = BLOCK_BYTES / bytes, head = range.from == 0 ? head_of(desc, range.buf) : range.from,
             end = head + (range.to - head) / chunk * chunk;
    if (range.from == 0)
        write_edge(desc, p, range.buf, 0, head);
    memset(p->dirty, 0, sizeof p->dirty);
    for (uint64_t next; (next = next_index(desc, p)) < end;) {
        uint64_t at = next - (next - head) % chunk;
        for (uint64_t page = 0; page < PREFETCH_PAGES; page++)
            prefetch_page(desc, range.buf, at + chunk + page * (PAGE / bytes));
        write_block(desc, p, at, at + chunk, block);
        nt_store_dirty(range.buf + at * bytes, block, p->dirty);
    }
    write_edge(desc, p, range.buf, end, range.to);
    sar_nt_fence();
}

/* Zero [from, to), whole lines by non-temporal stores. */
static void zero(unsigned char *from, const unsigned char *to)
{
    size_t bytes = (size_t)(to - from), head = -(uintptr_t)from % LINE;
    if (bytes < head + LINE) {
        memset(from, 0, bytes);
        return;
    }
    size_t lines = (bytes - head) / LINE * LINE;
    memset(from, 0, head);
    sar_nt_zero(from + head, lines);
    memset(from + head + lines, 0, bytes - head - lines);
}

/* Write large elements, and zero the gaps between them. */
static void expand_rows(const struct sar_vec_desc *desc, struct cursor *p, struct range range)
{
    size_t bytes = desc->element_size;
    unsigned char *done = range.buf + range.from * bytes, *end = range.buf + range.to * bytes;
    for (; p->vec < p->end; p->vec++, p->i = 0) {
        for (; p->i < p->vec->nnz; p->i++) {
            unsigned char *row = range.buf + sar_index_get(p->vec->index, desc->index_size, p->i) * bytes;
            if (row >= end)
                break;
            zero(done, row);
            memcpy(row, (const unsigned char *)p->vec->value + p->i * bytes, bytes);
            done = row + bytes;
        }
    }
    zero(done, end);
    sar_nt_fence();
}

/* A way to write elements with indices in a range, and zeros elsewhere if the buffer is not zero yet. */
typedef void write_range(const struct sar_vec_desc *desc, struct cursor *p, struct range range);

/* A dense buffer to write. */
struct output {
    const struct sar_vec_desc *desc;
    const struct sar_spvec *vecs;
    size_t n;
    unsigned char *buf;
    bool accumulate;
    write_range *write;
    uint64_t head; /* pieces begin there, or whole multiples of BLOCK_BYTES after it */
};

static void accumulate_part(const struct output *out, uint64_t from, uint64_t to)
{
    struct accumulator accumulator = accumulator_init(out->desc, out->vecs, out->n, from);
    struct cursor cursor = { NULL, NULL, 0, &accumulator, { 0 } };
    out->write(out->desc, &cursor, (struct range){ out->buf, from, to });
}

static void copy_part(const struct output *out, uint64_t from, uint64_t to)
{
    struct cursor cursor = { out->vecs, out->vecs + out->n, 0, NULL, { 0 } };
    if (from > 0)
        cursor_seek(&cursor, out->desc, from);
    out->write(out->desc, &cursor, (struct range){ out->buf, from, to });
}

static void write_part(const struct output *out, uint64_t from, uint64_t to)
{
    (out->accumulate ? accumulate_part : copy_part)(out, from, to);
}

static void write_piece(void *output, size_t from, size_t to)
{
    const struct output *out = output;
    write_part(out, from == 0 ? 0 : from + out->head, to + out->head);
}

/* Write the buffer; `bytes` are read and written. */
static void write_all(struct output *out, size_t bytes)
{
    size_t each = out->desc->element_size, pieces = sar_pieces(bytes);
    uint64_t head = can_store_lines(out->desc, out->buf) ? head_of(out->desc, out->buf) : 0;
    if (pieces == 1 || head >= out->desc->count) {
        write_part(out, 0, out->desc->count);
        return;
    }
    out->head = head;
    sar_ranges_run((struct sar_ranges){ (size_t)(out->desc->count - out->head),
                                        each < BLOCK_BYTES ? BLOCK_BYTES / each : 1, pieces, write_piece,
                                        out });
}

static size_t bytes_of(const struct sar_vec_desc *desc)
{
    return (size_t)desc->count * desc->element_size;
}

/* Bytes of vecs, and of the cache lines that they change. */
static size_t bytes_to_update(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n)
{
    size_t nnz = 0;
    for (size_t r = 0; r < n; r++)
        nnz += vecs[r].nnz;
    return nnz * (desc->index_size + desc->element_size + LINE);
}

void sar_dense_expand(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n, void *buf)
{
    struct output out = { desc, vecs, n, buf, false, expand_rows, 0 };
    if (bytes_of(desc) < SAR_NT_STORE_MIN)
        out.write = expand_in_place;
    else if (can_store_lines(desc, buf))
        out.write = expand_blocks;
    write_all(&out, bytes_of(desc));
}

void sar_dense_update(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n, void *buf)
{
    bool lines = bytes_of(desc) >= SAR_NT_STORE_MIN && can_store_lines(desc, buf);
    struct output out = { desc, vecs, n, buf, false, lines ? update_lines : update_in_place, 0 };
    size_t bytes = bytes_to_update(desc, vecs, n);
    if (lines || sar_pieces(bytes) > 1) {
        write_all(&out, bytes);
        return;
    }
    for (size_t r = 0; r < n; r++)
        sar_dense_scatter(desc, &vecs[r], buf);
}

/* x op 0 must be x, so that a block of zeros is a valid start; and partial results must need no wider
 * type. */
bool sar_dense_can_accumulate(const struct sar_vec_desc *desc, const void *buf, size_t n)
{
    return sar_op_zero_is_neutral(desc->op) && desc->kernels->wide == NULL && !desc->absent_is_zero &&
           n <= SAR_DENSE_ACCUMULATE_MAX && can_store_lines(desc, buf);
}

void sar_dense_accumulate(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                          const struct sar_spvec *before, void *buf)
{
    struct output out = { desc, vecs, n, buf, true, before != NULL ? update_in_place : expand_in_place, 0 };
    if (bytes_of(desc) >= SAR_NT_STORE_MIN)
        out.write = before != NULL ? update_lines : expand_blocks;
    else if (before != NULL)
        sar_dense_clear(desc, before, buf);
    write_all(&out, bytes_to_update(desc, vecs, n) + (before != NULL ? 0 : bytes_of(desc)));
}
