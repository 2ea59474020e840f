/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/radix.h"

#include <string.h>

#include "tensor/shape.h"

enum {
    MOST_BITS = 11, /* of a digit */
    LEAST_BITS = 5,
    DIGITS = 1 << MOST_BITS,
    INSERTED = 16 /* cards that are sorted by insertion */
};

/* Sorting by digits of `bits` bits each. */
struct plan {
    unsigned passes, bits;
};

/* Digits that the fewest passes need, but no more of them than there are elements. */
static struct plan make_plan(size_t n, unsigned length)
{
    unsigned digit = LEAST_BITS;
    while (digit < MOST_BITS && (size_t)1 << digit < n)
        digit++;
    unsigned passes = (length + digit - 1) / digit;
    return (struct plan){ passes, passes == 0 ? 0 : (length + passes - 1) / passes };
}

static void insert_cards(uint64_t *cards, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint64_t card = cards[i];
        size_t k = i;
        for (; k > 0 && cards[k - 1] >> 32 > card >> 32; k--)
            cards[k] = cards[k - 1];
        cards[k] = card;
    }
}

/* Sort cards by one digit, and count the next, if there is one. */
SAR_INLINE void move_cards(const uint64_t *from, uint64_t *to, size_t n, unsigned shift, unsigned bits,
                           uint32_t *place, uint32_t *next)
{
    uint32_t begin = 0, mask = (1u << bits) - 1;
    for (size_t d = 0; d <= mask; d++) {
        uint32_t here = place[d];
        place[d] = begin;
        begin += here;
    }
    if (next != NULL)
        memset(next, 0, sizeof *next << bits);
    for (size_t i = 0; i < n; i++) {
        uint64_t card = from[i];
        if (next != NULL)
            next[card >> 32 >> shift >> bits & mask]++;
        to[place[card >> 32 >> shift & mask]++] = card;
    }
}

uint64_t *sar_radix_sort(uint64_t *cards, uint64_t *spare, size_t n, unsigned length)
{
    uint32_t places[2][DIGITS];
    struct plan plan = make_plan(n, length);
    if (n <= INSERTED) {
        insert_cards(cards, n);
        return cards;
    }
    memset(places[0], 0, sizeof *places[0] << plan.bits);
    for (size_t i = 0; plan.passes > 0 && i < n; i++)
        places[0][cards[i] >> 32 & ((1u << plan.bits) - 1)]++;
    for (unsigned pass = 0; pass < plan.passes; pass++) {
        unsigned shift = pass * plan.bits;
        uint32_t *place = places[pass % 2], *next = places[1 - pass % 2];
        if (pass + 1 < plan.passes)
            move_cards(cards, spare, n, shift, plan.bits, place, next);
        else
            move_cards(cards, spare, n, shift, plan.bits, place, NULL);
        uint64_t *swap = cards;
        cards = spare;
        spare = swap;
    }
    return cards;
}
