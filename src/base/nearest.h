/* SPDX-License-Identifier: BSD-3-Clause */
/* Misspelt settings, and the names that they were meant to be. */

#ifndef SAR_BASE_NEAREST_H
#define SAR_BASE_NEAREST_H

#include <stddef.h>

/** Returns the letters to insert, delete or replace so that the first `length` characters of a become b:
 * Levenshtein's distance. Letters of both cases are equal. UINT_MAX for names of more than 63 characters. */
unsigned sar_edit_distance(const char *a, size_t length, const char *b);

/** Returns the distance from which on a name of `length` characters is not a misspelt one: more than a third
 * of its letters differ. */
unsigned sar_edit_limit(size_t length);

/** Returns the setting nearest to the first `length` characters of a name, both without prefix, or NULL if
 * none is nearer than the limit. */
const char *sar_nearest_setting(const char *name, size_t length);

/** Warns of each variable of the environment that has the library's prefix and is no setting. The first call
 * in a process does; others do nothing. */
void sar_warn_unknown_settings(void);

#endif
