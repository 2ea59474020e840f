/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums are made where the outcome will be, from the op's identity on. But those of 16 bits, which would lose
 * by every rounding, are made of floats, in memory that a cache has room for, and are rounded once when all
 * runs have been folded in.
 *
 * An identity is written first and read again, which long elements do without: what reaches one first is
 * copied to where the outcome will be, and stays there where nothing else comes. */

#include "tensor/sums.h"

#include <string.h>

enum {
    LONG = 128,           /* bytes of an element that is copied where it is the first */
    WIDE_BYTES = 16 << 10 /* of floats, if that is an element or more */
};

enum { NONE, ONE, SEVERAL }; /* that reached an element */

enum sar_status sar_sums_open(const struct sar_shape *shape, size_t runs, size_t places,
                              struct sar_arena *arena, struct sar_sums *sums)
{
    void *hits = NULL, *reached = NULL;
    size_t wide = shape->row * sizeof(float), fit = wide < WIDE_BYTES ? WIDE_BYTES / wide : 1;
    *sums = (struct sar_sums){ .shape = shape, .runs = runs, .kernels = shape->kernels, .most = SIZE_MAX };
    if (shape->kernels->wide != NULL) {
        places = places < fit ? places : fit;
        sums->kernels = shape->kernels->wide;
        sums->most = places > 0 ? places : 1;
        SAR_TRY(sar_arena_take(arena, places, wide, &sums->wide));
    }
    if (shape->element_size >= LONG)
        SAR_TRY(sar_arena_take(arena, places, sizeof *sums->reached, &reached));
    if (shape->absent_is_zero)
        SAR_TRY(sar_arena_take_zeroed(arena, places, sizeof *sums->hits, &hits));
    sums->hits = hits;
    sums->reached = reached;
    return SAR_OK;
}

static unsigned char *sum_at(const struct sar_sums *sums, size_t place)
{
    return sums->at + place * sums->shape->row * sums->kernels->size;
}

void sar_sums_begin(struct sar_sums *sums, void *out, size_t from, size_t n)
{
    sums->out = out;
    sums->at = sums->wide != NULL ? sums->wide : out;
    if (sums->reached != NULL)
        memset(sums->reached + from, NONE, n * sizeof *sums->reached);
    else
        sums->kernels->fill_identity(sum_at(sums, from), n * sums->shape->row);
}

/* Count a run once for each place, also where the run holds an index several times. */
static void count_hits(uint32_t *hits, const uint32_t *places, size_t n, uint32_t *last)
{
    for (size_t i = 0; i < n; i++) {
        hits[places[i]] += places[i] != *last;
        *last = places[i];
    }
}

/* To what is here, alone or folded. */
static void fold_wide(const struct sar_sums *sums, uint32_t place, const void *here, const void *value)
{
    size_t row = sums->shape->row;
    void *sum = sum_at(sums, place);
    if (sums->reached[place] == ONE) {
        sums->kernels->fill_identity(sum, row);
        sums->kernels->fold(sum, here, row);
    }
    sums->kernels->fold(sum, value, row);
}

static void fold_long(const struct sar_sums *sums, const uint32_t *places, const unsigned char *value,
                      size_t n)
{
    const struct sar_sums here = *sums; /* where no store can reach it */
    size_t bytes = here.shape->element_size, row = here.shape->row;
    for (size_t i = 0; i < n; i++, value += bytes) {
        uint32_t place = places[i];
        unsigned char *out = here.out + place * bytes;
        if (here.reached[place] == NONE) {
            memcpy(out, value, bytes);
            here.reached[place] = ONE;
            continue;
        }
        if (here.wide != NULL)
            fold_wide(sums, place, out, value);
        else
            here.kernels->fold(out, value, row);
        here.reached[place] = SEVERAL;
    }
}

void sar_sums_fold(const struct sar_sums *sums, const uint32_t *places, const void *value, size_t n,
                   uint32_t *last)
{
    if (sums->hits != NULL)
        count_hits(sums->hits, places, n, last);
    if (sums->reached != NULL)
        fold_long(sums, places, value, n);
    else
        sums->kernels->fold_rows(sums->at, places, value, n, sums->shape->row);
}

/* Whether the outcome is an element that is not in the sums. */
static bool is_copied(const struct sar_sums *sums, size_t place)
{
    return sums->reached != NULL && sums->reached[place] == ONE;
}

/* Fold a zero into those that some run lacks. */
static void fold_absent(const struct sar_sums *sums, size_t from, size_t n)
{
    const struct sar_shape *shape = sums->shape;
    for (size_t i = from; i < from + n; i++) {
        if (sums->hits[i] == sums->runs)
            continue;
        if (is_copied(sums, i))
            shape->kernels->fold_zero(sums->out + i * shape->element_size, shape->row);
        else
            sums->kernels->fold_zero(sum_at(sums, i), shape->row);
    }
    memset(sums->hits + from, 0, n * sizeof *sums->hits);
}

static void round_sums(const struct sar_sums *sums, size_t n)
{
    const struct sar_shape *shape = sums->shape;
    if (sums->reached == NULL)
        shape->kernels->round(sums->out, sums->wide, n * shape->row);
    for (size_t i = 0; sums->reached != NULL && i < n; i++)
        if (!is_copied(sums, i))
            shape->kernels->round(sums->out + i * shape->element_size, sum_at(sums, i), shape->row);
}

void sar_sums_end(const struct sar_sums *sums, size_t from, size_t n)
{
    if (sums->hits != NULL)
        fold_absent(sums, from, n);
    if (sums->wide != NULL)
        round_sums(sums, n);
}
