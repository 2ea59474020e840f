/* SPDX-License-Identifier: BSD-3-Clause */
/* Stable radix sort, least significant digit first. What is moved is a card for each element: 8 bytes with
 * the index above the value itself, where that has 4 bytes, or above its position; or, where one of these
 * needs more than 32 bits, 16 bytes. The last pass lays the elements out in order and folds equal indices.
 *
 *     time = (passes + 1) * nnz * 2 ns,   passes = bits of an index / 11 */

#include "tensor/sort.h"

#include <string.h>

#include "tensor/reduce.h"

enum { MOST_BITS = 11, LEAST_BITS = 5, DIGITS = 1 << MOST_BITS };

struct card {
    uint64_t index, position;
};

#define NARROW_INDEX(card) ((card) >> 32)
#define WIDE_INDEX(card) ((card).index)

/* Digits of `bits` bits each. */
struct plan {
    unsigned passes, bits;
};

/* Digits that the fewest passes need, but no more of them than there are elements. */
static struct plan make_plan(size_t nnz, uint64_t most)
{
    unsigned length = most == 0 ? 1 : 64 - (unsigned)__builtin_clzll(most), digit = LEAST_BITS;
    while (digit < MOST_BITS && (size_t)1 << digit < nnz)
        digit++;
    unsigned passes = (length + digit - 1) / digit;
    return (struct plan){ passes, (length + passes - 1) / passes };
}

/* Sort cards by one digit, or all; the latter returns the array that holds the outcome. */
#define DEFINE_SORT(name, type, INDEX)                                                            \
    static bool name##_digit(const type *from, type *to, size_t n, unsigned shift, unsigned bits) \
    {                                                                                             \
        size_t place[DIGITS], digits = (size_t)1 << bits, mask = digits - 1, begin = 0;           \
        memset(place, 0, digits * sizeof *place);                                                 \
        for (size_t i = 0; i < n; i++)                                                            \
            place[INDEX(from[i]) >> shift & mask]++;                                              \
        if (place[INDEX(from[0]) >> shift & mask] == n)                                           \
            return false;                                                                         \
        for (size_t d = 0; d < digits; d++) {                                                     \
            size_t here = place[d];                                                               \
            place[d] = begin;                                                                     \
            begin += here;                                                                        \
        }                                                                                         \
        for (size_t i = 0; i < n; i++)                                                            \
            to[place[INDEX(from[i]) >> shift & mask]++] = from[i];                                \
        return true;                                                                              \
    }                                                                                             \
    static const type *name(type *cards, type *spare, size_t n, struct plan plan)                 \
    {                                                                                             \
        for (unsigned pass = 0; pass < plan.passes; pass++) {                                     \
            if (!name##_digit(cards, spare, n, pass * plan.bits, plan.bits))                      \
                continue;                                                                         \
            type *swap = cards;                                                                   \
            cards = spare;                                                                        \
            spare = swap;                                                                         \
        }                                                                                         \
        return cards;                                                                             \
    }

DEFINE_SORT(sort_narrow, uint64_t, NARROW_INDEX)
DEFINE_SORT(sort_wide, struct card, WIDE_INDEX)

/* The outcome as far as it has come. */
struct pile {
    const struct sar_shape *shape;
    struct sar_run run;
    uint64_t last; /* index */
};

/* Put one more element on top; `bytes` of an element and `index_size` are constants where it matters. */
SAR_INLINE void add(struct pile *pile, uint64_t index, const void *value, size_t bytes, unsigned index_size)
{
    struct sar_run *run = &pile->run;
    unsigned char *top = (unsigned char *)run->value + run->nnz * bytes;
    if (run->nnz != 0 && index == pile->last) {
        pile->shape->kernels->fold(top - bytes, value, pile->shape->row);
        return;
    }
    memcpy(top, value, bytes);
    sar_index_set(run->index, index_size, run->nnz++, index);
    pile->last = index;
}

static void pile_values(const uint64_t *card, size_t n, struct pile *pile)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t value = (uint32_t)card[i];
        SAR_FOR_INDEX_SIZE(pile->shape->index_size, add(pile, card[i] >> 32, &value, 4, INDEX_SIZE));
    }
}

static void pile_narrow(const uint64_t *card, size_t n, const unsigned char *value, struct pile *pile)
{
    size_t bytes = pile->shape->element_size;
    for (size_t i = 0; i < n; i++)
        add(pile, card[i] >> 32, value + (uint32_t)card[i] * bytes, bytes, pile->shape->index_size);
}

static void pile_wide(const struct card *card, size_t n, const unsigned char *value, struct pile *pile)
{
    size_t bytes = pile->shape->element_size;
    for (size_t i = 0; i < n; i++)
        add(pile, card[i].index, value + card[i].position * bytes, bytes, pile->shape->index_size);
}

static void make_narrow(const struct sar_unsorted *from, bool with_values, uint64_t *card)
{
    const uint32_t *value = from->value;
    for (size_t i = 0; i < from->nnz; i++) {
        uint64_t index = sar_index_get(from->index, from->index_size, i);
        card[i] = index << 32 | (with_values ? value[i] : (uint32_t)i);
    }
}

static enum sar_status open_pile(struct pile *pile, size_t nnz, struct sar_arena *arena)
{
    SAR_TRY(sar_run_take(pile->shape, nnz, arena, &pile->run));
    pile->run.nnz = 0;
    return SAR_OK;
}

/* Cards with values and an outcome have the same size: it takes the place of those that are spare. */
static enum sar_status narrow(const struct sar_unsorted *from, struct sar_arena *arena, struct pile *pile)
{
    void *cards, *spare;
    bool with_values = pile->shape->element_size == sizeof(uint32_t);
    SAR_TRY(sar_arena_take(arena, from->nnz, sizeof(uint64_t), &cards));
    SAR_TRY(sar_arena_take(arena, from->nnz, sizeof(uint64_t), &spare));
    make_narrow(from, with_values, cards);
    const uint64_t *sorted = sort_narrow(cards, spare, from->nnz, make_plan(from->nnz, from->most));
    if (with_values && pile->shape->index_size == sizeof(uint32_t)) {
        uint32_t *room = sorted == cards ? spare : cards;
        pile->run = (struct sar_run){ room, room + from->nnz, 0 };
    } else {
        SAR_TRY(open_pile(pile, from->nnz, arena));
    }
    if (with_values)
        pile_values(sorted, from->nnz, pile);
    else
        pile_narrow(sorted, from->nnz, from->value, pile);
    return SAR_OK;
}

static enum sar_status wide(const struct sar_unsorted *from, struct sar_arena *arena, struct pile *pile)
{
    void *cards, *spare;
    SAR_TRY(sar_arena_take(arena, from->nnz, sizeof(struct card), &cards));
    SAR_TRY(sar_arena_take(arena, from->nnz, sizeof(struct card), &spare));
    SAR_TRY(open_pile(pile, from->nnz, arena));
    struct card *card = cards;
    for (size_t i = 0; i < from->nnz; i++)
        card[i] = (struct card){ sar_index_get(from->index, from->index_size, i), i };
    pile_wide(sort_wide(cards, spare, from->nnz, make_plan(from->nnz, from->most)), from->nnz, from->value,
              pile);
    return SAR_OK;
}

enum sar_status sar_sort(const struct sar_shape *shape, const struct sar_unsorted *from,
                         struct sar_arena *arena, struct sar_run *run)
{
    struct pile pile = { .shape = shape };
    if (from->most <= UINT32_MAX && from->nnz <= UINT32_MAX)
        SAR_TRY(narrow(from, arena, &pile));
    else
        SAR_TRY(wide(from, arena, &pile));
    *run = pile.run;
    return SAR_OK;
}
