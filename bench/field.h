/* SPDX-License-Identifier: BSD-3-Clause */
/* Records: flat data with a table of their fields, for whoever prints them. */
#ifndef PERF_FIELD_H
#define PERF_FIELD_H

#include <stdbool.h>
#include <stddef.h>

/* A negative integer or a NaN is not known. PERF_TEXT is a pointer, PERF_LETTERS an array, PERF_BREAKDOWN a
 * pointer to phases, of which none are not known. */
enum perf_kind { PERF_INTEGER, PERF_REAL, PERF_TEXT, PERF_LETTERS, PERF_BOOL, PERF_BREAKDOWN };

struct perf_field {
    const char *key;
    enum perf_kind kind;
    size_t at;
};

#define PERF_FIELD(type, key, kind, member)      \
    {                                            \
        key, kind, offsetof(struct type, member) \
    }

/* A kind of record: its fields in the order in which they are printed. */
struct perf_schema {
    const struct perf_field *field;
    int fields;
};

#define PERF_SCHEMA(table)                             \
    {                                                  \
        table, (int)(sizeof(table) / sizeof(table)[0]) \
    }

enum { PERF_NUMBER_MAX = 32 };

/* The text of a field that is one, else NULL. */
const char *perf_field_text(const struct perf_field *field, const void *record);

struct perf_phases;

/* The phases of a field that has some, else NULL. */
const struct perf_phases *perf_field_phases(const struct perf_field *field, const void *record);

/* Write a field that is a number or a truth, reals with so many digits; false, with nothing written, where it
 * is not known. */
bool perf_field_number(const struct perf_field *field, const void *record, int digits,
                       char text[PERF_NUMBER_MAX]);

#endif
