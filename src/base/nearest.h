/* SPDX-License-Identifier: BSD-3-Clause */
/* The name that a misspelt one was meant to be. */

#ifndef SAR_BASE_NEAREST_H
#define SAR_BASE_NEAREST_H

#include <stddef.h>

/** Returns the letters to insert, delete or replace so that the first `length` characters of a become b:
 * Levenshtein's distance. Letters of both cases are equal. UINT_MAX for names of more than 63 characters. */
unsigned sar_edit_distance(const char *a, size_t length, const char *b);

/** Returns the setting nearest to the first `length` characters of a name, both without prefix, or NULL if
 * more than a third of the letters differ. */
const char *sar_nearest_setting(const char *name, size_t length);

#endif
