/* SPDX-License-Identifier: BSD-3-Clause */
/* Misspelt names, and those that they were meant to be. */

#ifndef SAR_BASE_NEAREST_H
#define SAR_BASE_NEAREST_H

#include <stddef.h>

/** Returns the letters to insert, delete, replace or swap with the next one so that the first `length`
 * characters of a become b. A letter that is swapped is not changed again. Letters of both cases are equal.
 * UINT_MAX for names of more than 63 characters. */
unsigned sar_edit_distance(const char *a, size_t length, const char *b);

/** A search for the name that the first `length` characters of `name` misspell. */
struct sar_nearest {
    const char *name;
    size_t length;
    const char
        *found; /**< the nearest candidate so far, or NULL if more than a third of the letters differ */
    unsigned distance; /**< edit distance of `found`, or the first one that is too large */
};

/** Returns a search without candidates. */
struct sar_nearest sar_nearest_begin(const char *name, size_t length);

/** Compares the name with a candidate. */
void sar_nearest_try(struct sar_nearest *nearest, const char *candidate);

#endif
