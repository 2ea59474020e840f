/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/index_util.h"

#include "base/parallel.h"
#include "vector/dense.h"

SAR_INLINE bool ascend(const void *index, unsigned size, size_t n, uint64_t slots)
{
    bool wrong = sar_index_get(index, size, n - 1) >= slots;
    for (size_t i = 1; i < n; i++)
        wrong |= sar_index_get(index, size, i) <= sar_index_get(index, size, i - 1);
    return !wrong;
}

SAR_CLONES static bool ascend_u32(const uint32_t *index, size_t n, uint64_t slots)
{
    return ascend(index, 4, n, slots);
}

/* Indices that are checked in parallel ranges. */
struct sorted {
    const struct sar_wire_layout *layout;
    const unsigned char *index;
    size_t n, pieces;
};

/* Checks a range, and its order after the range before. */
static enum sar_status check_range(void *arg, size_t i)
{
    const struct sorted *s = arg;
    size_t begin = sar_parallel_bound(s->n, 1, s->pieces, i),
           end = sar_parallel_bound(s->n, 1, s->pieces, i + 1);
    unsigned size = s->layout->index_size;
    begin -= begin > 0;
    if (begin == end)
        return SAR_OK;
    const void *index = s->index + begin * size;
    bool good = size == 4 ? ascend_u32(index, end - begin, s->layout->slots)
                          : ascend(index, 8, end - begin, s->layout->slots);
    return good ? SAR_OK : SAR_CORRUPT;
}

bool sar_indices_are_sorted(const struct sar_wire_layout *layout, const void *index, size_t n)
{
    struct sorted s = { layout, index, n, sar_parallel_pieces(n * layout->index_size) };
    return n == 0 || sar_parallel_for(s.pieces, check_range, &s) == SAR_OK;
}

SAR_INLINE uint64_t count_blocks(const void *index, unsigned size, size_t n, unsigned shift)
{
    uint64_t blocks = n != 0;
    for (size_t i = 1; i < n; i++)
        blocks += sar_index_get(index, size, i) >> shift != sar_index_get(index, size, i - 1) >> shift;
    return blocks;
}

SAR_CLONES static uint64_t count_blocks_u32(const uint32_t *index, size_t n, unsigned shift)
{
    return count_blocks(index, 4, n, shift);
}

uint64_t sar_indices_count_blocks(const struct sar_wire_layout *layout, const struct sar_spvec *vec,
                                  unsigned shift)
{
    return layout->index_size == 4 ? count_blocks_u32(vec->index, vec->nnz, shift)
                                   : count_blocks(vec->index, 8, vec->nnz, shift);
}

/* Values of all slots, and those that are copied. */
struct values_at {
    const struct sar_wire_layout *layout;
    const unsigned char *values;
    struct sar_spvec *vec;
};

/* Pointers are copied to locals: a compiler must assume that stored values overwrite the structs. */
SAR_INLINE void copy_sized(const struct values_at *v, size_t size, size_t from, size_t to)
{
    unsigned char *out = v->vec->value;
    const unsigned char *values = v->values;
    const void *index = v->vec->index;
    unsigned index_size = v->layout->index_size;
    for (size_t i = from; i < to; i++)
        memcpy(out + i * size, values + sar_index_get(index, index_size, i) * size, size);
}

static void copy_values(void *values_at, size_t from, size_t to)
{
    const struct values_at *v = values_at;
    if (v->layout->element_size == 4)
        copy_sized(v, 4, from, to);
    else
        copy_sized(v, v->layout->element_size, from, to);
}

enum sar_status sar_indices_extract(const struct sar_wire_layout *layout, unsigned char *values,
                                    const unsigned char *presence, uint64_t slots, struct sar_arena *arena,
                                    struct sar_spvec *vec)
{
    size_t announced = vec->nnz, size = layout->element_size;
    if (presence == NULL) {
        struct sar_vec_desc desc = { .count = slots,
                                     .element_size = layout->element_size,
                                     .index_size = layout->index_size };
        SAR_TRY(sar_dense_compact(&desc, values, announced, arena, vec));
        return vec->nnz <= announced ? SAR_OK : SAR_CORRUPT;
    }
    struct sar_wire_layout all = *layout;
    all.slots = slots;
    SAR_TRY(sar_arena_alloc(arena, announced, layout->index_size, &vec->index));
    SAR_TRY(sar_bitmap_decode(&all, presence, announced, vec->index));
    if (announced == slots) {
        vec->value = values;
        return SAR_OK;
    }
    SAR_TRY(sar_arena_alloc(arena, announced, size, &vec->value));
    struct values_at at = { layout, values, vec };
    sar_ranges_run(
        (struct sar_ranges){ announced, 1, sar_parallel_pieces(2 * announced * size), copy_values, &at });
    return SAR_OK;
}
