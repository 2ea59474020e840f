/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/nearest.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

enum { LONGEST = 63, LETTERS_FOR_ONE = 3 /* letters of a name that allow for one that differs */ };

static unsigned least(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;
    return least < c ? least : c;
}

static bool equal(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Rows of the table of Wagner and Fischer. */
struct rows {
    unsigned last[LONGEST + 1], before_last[LONGEST + 1];
};

/* Replaces the rows by the next one, of letter i of a, and the last. */
static void fill_row(struct rows *rows, const char *a, size_t i, const char *b, size_t columns)
{
    unsigned row[LONGEST + 1];
    row[0] = (unsigned)i + 1;
    for (size_t j = 0; j < columns; j++) {
        unsigned replaced = rows->last[j] + !equal(a[i], b[j]);
        row[j + 1] = least(replaced, rows->last[j + 1] + 1, row[j] + 1);
        bool swapped = i > 0 && j > 0 && equal(a[i], b[j - 1]) && equal(a[i - 1], b[j]);
        if (swapped && rows->before_last[j - 1] + 1 < row[j + 1])
            row[j + 1] = rows->before_last[j - 1] + 1;
    }
    memcpy(rows->before_last, rows->last, sizeof rows->last);
    memcpy(rows->last, row, (columns + 1) * sizeof *row);
}

unsigned sar_edit_distance(const char *a, size_t length, const char *b)
{
    struct rows rows = { { 0 }, { 0 } };
    size_t columns = strlen(b);
    if (length > LONGEST || columns > LONGEST)
        return UINT_MAX;
    for (size_t j = 0; j <= columns; j++)
        rows.last[j] = (unsigned)j;
    for (size_t i = 0; i < length; i++)
        fill_row(&rows, a, i, b, columns);
    return rows.last[columns];
}

struct sar_nearest sar_nearest_begin(const char *name, size_t length)
{
    return (struct sar_nearest){ name, length, NULL, (unsigned)(length / LETTERS_FOR_ONE) + 1 };
}

void sar_nearest_try(struct sar_nearest *nearest, const char *candidate)
{
    unsigned distance = sar_edit_distance(nearest->name, nearest->length, candidate);
    if (distance < nearest->distance) {
        nearest->found = candidate;
        nearest->distance = distance;
    }
}
