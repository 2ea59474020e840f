/* SPDX-License-Identifier: BSD-3-Clause */
/* Misspelt settings, and the names that they were meant to be. */

#ifndef SAR_BASE_NEAREST_H
#define SAR_BASE_NEAREST_H

#include <stddef.h>

/** Returns the letters to insert, delete or replace so that the first `length` characters of a become b:
 * Levenshtein's distance. Letters of both cases are equal. UINT_MAX for names of more than 63 characters. */
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

/** Returns the setting nearest to the first `length` characters of a name, both without prefix, or NULL if
 * more than a third of the letters differ. */
const char *sar_nearest_setting(const char *name, size_t length);

/** Warns of each variable of the environment that has the library's prefix and is no setting. The first call
 * in a process does; others do nothing. */
void sar_warn_unknown_settings(void);

#endif
