/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/nearest.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "base/config.h"

enum { LONGEST = 63, LETTERS_FOR_ONE = 3 /* letters of a name that allow for one that differs */ };

static unsigned least(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;
    return least < c ? least : c;
}

/* A row of the table of Wagner and Fischer after the other. */
unsigned sar_edit_distance(const char *a, size_t length, const char *b)
{
    unsigned row[LONGEST + 1];
    size_t columns = strlen(b);
    if (length > LONGEST || columns > LONGEST)
        return UINT_MAX;
    for (size_t j = 0; j <= columns; j++)
        row[j] = (unsigned)j;
    for (size_t i = 0; i < length; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i + 1;
        for (size_t j = 0; j < columns; j++) {
            unsigned differs = tolower((unsigned char)a[i]) != tolower((unsigned char)b[j]);
            unsigned replaced = diagonal + differs;
            diagonal = row[j + 1];
            row[j + 1] = least(replaced, diagonal + 1, row[j] + 1);
        }
    }
    return row[columns];
}

const char *sar_nearest_setting(const char *name, size_t length)
{
    const char *nearest = NULL, *setting, *fallback, *help;
    unsigned distance = (unsigned)(length / LETTERS_FOR_ONE) + 1;
    for (size_t i = 0; sar_config_setting(i, &setting, &fallback, &help); i++) {
        unsigned found = sar_edit_distance(name, length, setting);
        if (found < distance) {
            nearest = setting;
            distance = found;
        }
    }
    return nearest;
}
