/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks (OmniReduce): every block of 256 values that holds elements is sent whole, with zero bits for absent
 * elements; then the numbers of the blocks. Unless zeros may be dropped, a presence bit for each slot of the
 * blocks follows. OmniReduce counts values, not elements: a block has B slots, the largest power of two that
 * have at most 256 values. An element of 16 values or more, such as a row of an embedding, is a block by
 * itself: its number takes a sixteenth of its bytes at most, and rows beside it are rarely present. A row of
 * more than 256 values has one number, where OmniReduce would send several.
 *
 *     bytes = b (B s + i), or b (B s + i) + ceil(b B / 8),   b blocks in use, i bytes of a block's number */

#include <math.h>

#include "base/parallel.h"
#include "wire/index_util.h"

enum {
    BLOCK_VALUES = 256,
    MAX_SHIFT = 8,
    LEAST_ROW = 16,
    MAX_PIECES = 64 /* that threads write of one message */
};

unsigned sar_wire_block_shift(size_t row_len)
{
    unsigned shift = row_len < LEAST_ROW ? MAX_SHIFT : 0;
    while (shift > 0 && row_len > (size_t)BLOCK_VALUES >> shift)
        shift--;
    return shift;
}

/* Slots of a block. */
static uint64_t block_slots(const struct sar_wire_layout *layout)
{
    return (uint64_t)1 << sar_wire_block_shift(layout->row_len);
}

/* Bytes of a block without its presence bits. */
static uint64_t bytes_each(const struct sar_wire_layout *layout)
{
    return sar_add_saturate(sar_mul_saturate(block_slots(layout), layout->element_size), layout->index_size);
}

static uint64_t presence_bytes(const struct sar_wire_layout *layout, uint64_t blocks)
{
    return layout->zero_is_absent ? 0 : sar_bitmap_bytes(sar_mul_saturate(blocks, block_slots(layout)));
}

static uint64_t bytes_of_blocks(const struct sar_wire_layout *layout, uint64_t blocks)
{
    return sar_add_saturate(sar_mul_saturate(blocks, bytes_each(layout)), presence_bytes(layout, blocks));
}

/* Returns the only number of blocks that can have this many bytes. Of other numbers of bytes, the blocks have
 * others. */
static uint64_t blocks_in(const struct sar_wire_layout *layout, uint64_t bytes)
{
    uint64_t bits = sar_mul_saturate(8, bytes_each(layout));
    return sar_mul_saturate(8, bytes) /
           sar_add_saturate(bits, layout->zero_is_absent ? 0 : block_slots(layout));
}

static uint64_t min_bytes(const struct sar_wire_layout *layout, uint64_t nnz)
{
    uint64_t slots = block_slots(layout);
    return bytes_of_blocks(layout, nnz / slots + (nnz % slots != 0));
}

static uint64_t count_blocks(const struct sar_wire_layout *layout, const struct sar_spvec *vec)
{
    return sar_indices_count_blocks(layout, vec, sar_wire_block_shift(layout->row_len));
}

static uint64_t bytes_of(const struct sar_wire_layout *layout, const struct sar_spvec *vec)
{
    return bytes_of_blocks(layout, count_blocks(layout, vec));
}

static double expected(const struct sar_wire_layout *layout, double nnz)
{
    double density = layout->slots == 0 ? 0 : fmin(nnz / (double)layout->slots, 1);
    double block = (double)block_slots(layout), presence = layout->zero_is_absent ? 0 : block / 8;
    double whole = floor((double)layout->slots / block), rest = (double)layout->slots - whole * block;
    double none = log1p(-density), last = rest > 0 ? -expm1(rest * none) : 0;
    return (whole * -expm1(block * none) + last) * ((double)bytes_each(layout) + presence);
}

/* Sections of the payload. */
struct blocks {
    unsigned char *values, *presence;
    void *numbers;
    uint64_t n;
};

static struct blocks blocks_at(const struct sar_wire_layout *layout, void *payload, uint64_t n)
{
    uint64_t value_bytes = block_slots(layout) * layout->element_size;
    unsigned char *at = payload;
    bool first = value_bytes % layout->index_size == 0; /* else numbers after values would be unaligned */
    return (struct blocks){ .values = first ? at : at + n * layout->index_size,
                            .numbers = first ? at + n * value_bytes : at,
                            .presence = at + n * bytes_each(layout),
                            .n = n };
}

/* An encoding. Each piece has the elements of whole blocks. */
struct encoding {
    const struct sar_wire_layout *layout;
    const struct sar_spvec *vec;
    struct blocks blocks;
    size_t pieces;
    size_t *first_block; /* of each piece; until all are counted, the number of its blocks */
};

/* Returns the first element of a piece: that of a block. */
static size_t first_element(const struct encoding *e, size_t piece)
{
    const struct sar_spvec *vec = e->vec;
    unsigned index_size = e->layout->index_size;
    size_t at = sar_parallel_bound(vec->nnz, 1, e->pieces, piece);
    if (at == 0 || at == vec->nnz)
        return at;
    uint64_t mask = block_slots(e->layout) - 1;
    uint64_t begin = (sar_index_get(vec->index, index_size, at - 1) | mask) + 1;
    return sar_index_lower_bound(vec->index, index_size, at, vec->nnz, begin);
}

static enum sar_status count_piece(void *encoding, size_t piece)
{
    struct encoding *e = encoding;
    size_t from = first_element(e, piece), to = first_element(e, piece + 1);
    struct sar_spvec part = { (unsigned char *)e->vec->index + from * e->layout->index_size, NULL,
                              to - from };
    e->first_block[piece] = count_blocks(e->layout, &part);
    return SAR_OK;
}

/* Writes elements to blocks from number `next` on. Pointers are copied to locals: a compiler must assume that
 * stored values overwrite the structs. */
SAR_INLINE void put(const struct encoding *e, size_t size, size_t from, size_t to, uint64_t next)
{
    const void *index = e->vec->index;
    const unsigned char *value = e->vec->value;
    const struct blocks b = e->blocks;
    unsigned shift = sar_wire_block_shift(e->layout->row_len), index_size = e->layout->index_size;
    uint64_t block = 0, number = 0, mask = block_slots(e->layout) - 1;
    bool sets_bits = mask != 0 && !e->layout->zero_is_absent;
    for (size_t i = from; i < to; i++) {
        uint64_t slot = sar_index_get(index, index_size, i);
        if (i == from || slot >> shift != number) {
            number = slot >> shift;
            block = next++;
            sar_index_set(b.numbers, index_size, block, number);
        }
        uint64_t at = block << shift | (slot & mask);
        memcpy(b.values + at * size, value + i * size, size);
        if (sets_bits)
            b.presence[at / 8] |= (unsigned char)(1u << (at % 8));
    }
}

static enum sar_status write_piece(void *encoding, size_t piece)
{
    const struct encoding *e = encoding;
    unsigned shift = sar_wire_block_shift(e->layout->row_len);
    size_t size = e->layout->element_size, from = first_element(e, piece), to = first_element(e, piece + 1);
    uint64_t next = e->first_block[piece], end = e->first_block[piece + 1];
    if (to - from < (end - next) << shift) /* else all values are written below */
        memset(e->blocks.values + (next << shift) * size, 0, ((end - next) << shift) * size);
    if (size == 4)
        put(e, 4, from, to, next);
    else
        put(e, size, from, to, next);
    return SAR_OK;
}

/* Clears the presence bits, or sets all where blocks have one slot, as only blocks with elements are sent. */
static void begin_presence(const struct sar_wire_layout *layout, const struct blocks *b)
{
    uint64_t bytes = presence_bytes(layout, b->n);
    if (block_slots(layout) > 1 || bytes == 0) {
        memset(b->presence, 0, bytes);
        return;
    }
    memset(b->presence, 0xff, bytes);
    if (b->n % 8 != 0)
        b->presence[bytes - 1] = (unsigned char)((1u << b->n % 8) - 1);
}

static void encode(const struct sar_wire_layout *layout, const struct sar_spvec *vec, void *payload)
{
    size_t first_block[MAX_PIECES + 1] = { 0 };
    uint64_t n = count_blocks(layout, vec);
    size_t pieces = sar_parallel_pieces(n * bytes_each(layout));
    struct encoding e = { .layout = layout,
                          .vec = vec,
                          .blocks = blocks_at(layout, payload, n),
                          .pieces = pieces < MAX_PIECES ? pieces : MAX_PIECES,
                          .first_block = first_block };
    begin_presence(layout, &e.blocks);
    if (e.pieces > 1)
        (void)sar_parallel_for(e.pieces, count_piece, &e);
    for (size_t i = 0, before = 0; i < e.pieces; i++) {
        size_t blocks = first_block[i];
        first_block[i] = before;
        before += blocks;
    }
    first_block[e.pieces] = n;
    (void)sar_parallel_for(e.pieces, write_piece, &e);
}

/* Positions in the blocks, which become slots. */
struct positions {
    const struct sar_wire_layout *layout;
    const struct blocks *blocks;
    void *index;
};

SAR_INLINE void to_slots(const struct positions *p, unsigned size, size_t from, size_t to)
{
    unsigned shift = sar_wire_block_shift(p->layout->row_len);
    uint64_t mask = block_slots(p->layout) - 1;
    for (size_t i = from; i < to; i++) {
        uint64_t at = sar_index_get(p->index, size, i);
        sar_index_set(p->index, size, i,
                      sar_index_get(p->blocks->numbers, size, at >> shift) << shift | (at & mask));
    }
}

static void convert_positions(void *positions, size_t from, size_t to)
{
    const struct positions *p = positions;
    if (p->layout->index_size == 4)
        to_slots(p, 4, from, to);
    else
        to_slots(p, 8, from, to);
}

/* Converts positions in the blocks to slots, which ascend. Returns false if one is out of range. */
static bool find_slots(const struct sar_wire_layout *layout, const struct blocks *b,
                       const struct sar_spvec *vec)
{
    struct positions p = { layout, b, vec->index };
    size_t pieces = sar_parallel_pieces(2 * vec->nnz * layout->index_size);
    sar_ranges_run((struct sar_ranges){ vec->nnz, 1, pieces, convert_positions, &p });
    return vec->nnz == 0 || sar_index_get(vec->index, layout->index_size, vec->nnz - 1) < layout->slots;
}

static enum sar_status decode(const struct sar_wire_layout *layout, void *payload, uint64_t bytes,
                              struct sar_arena *arena, struct sar_spvec *vec)
{
    uint64_t n = blocks_in(layout, bytes), each = block_slots(layout);
    uint64_t all = layout->slots / each + (layout->slots % each != 0);
    if (bytes != bytes_of_blocks(layout, n) || vec->nnz > layout->slots ||
        vec->nnz > sar_mul_saturate(n, each))
        return SAR_CORRUPT;
    struct blocks b = blocks_at(layout, payload, n);
    struct sar_wire_layout numbers = { .slots = all, .index_size = layout->index_size };
    if (!sar_indices_are_sorted(&numbers, b.numbers, (size_t)n))
        return SAR_CORRUPT;
    SAR_TRY(sar_indices_extract(layout, b.values, layout->zero_is_absent ? NULL : b.presence, n * each, arena,
                                vec));
    return find_slots(layout, &b, vec) ? SAR_OK : SAR_CORRUPT;
}

/* Returns the expected share of blocks that are in use. */
static double share_in_use(const struct sar_wire_layout *layout, double nnz)
{
    double density = layout->slots == 0 ? 0 : fmin(nnz / (double)layout->slots, 1);
    return -expm1((double)block_slots(layout) * log1p(-density));
}

const struct sar_wire sar_wire_block = {
    .name = "block",
    .summary = "blocks of 256 values, or a row of 16 and more, whole, where anything is in them (OmniReduce)",
    .min_bytes = min_bytes,
    .exact_bytes = bytes_of,
    .expected_bytes = expected,
    .nnz_cost = 3.4,
    .slot_cost = 0.03,
    .pull_nnz_cost = 0.7,
    .pull_slot_cost = 0.013,
    .scanned_share = share_in_use,
    .encode = encode,
    .decode = decode,
};
