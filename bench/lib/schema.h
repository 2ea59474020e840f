/* SPDX-License-Identifier: BSD-3-Clause */
/* Records: plain structs with a table of their fields, and their output as JSON and CSV. */
#ifndef PERF_SCHEMA_H
#define PERF_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/** Types of fields. An integer below 0, a NaN, a NULL text and a breakdown without phases mean "unknown".
 * PERF_TEXT is a pointer, PERF_LETTERS an array, PERF_BREAKDOWN a pointer to struct perf_phases. */
enum perf_kind { PERF_INTEGER, PERF_REAL, PERF_TEXT, PERF_LETTERS, PERF_BOOL, PERF_BREAKDOWN };

/** One field of a record: its key in JSON and CSV, its type and its offset. */
struct perf_field {
    const char *key;
    enum perf_kind kind;
    size_t at;
};

#define PERF_FIELD(type, key, kind, member)      \
    {                                            \
        key, kind, offsetof(struct type, member) \
    }

/** The fields of a kind of record, in output order. */
struct perf_schema {
    const struct perf_field *field;
    int fields;
};

#define PERF_SCHEMA(table)                             \
    {                                                  \
        table, (int)(sizeof(table) / sizeof(table)[0]) \
    }

enum { PERF_NUMBER_MAX = 32 };

/** Returns the text of a PERF_TEXT or PERF_LETTERS field, else NULL. */
const char *perf_field_text(const struct perf_field *field, const void *record);

enum { PERF_PHASES = 64, PERF_PHASE_NAME = 32 };

/** A phase of a row's calls. */
struct perf_phase {
    char name[PERF_PHASE_NAME];
    double max, mean; /**< seconds a call, over ranks */
};

/** The phases of a row's calls. */
struct perf_phases {
    int n;
    struct perf_phase at[PERF_PHASES]; /**< in the order in which the phases end */
};

/** Returns the phases of a PERF_BREAKDOWN field, else NULL. */
const struct perf_phases *perf_field_phases(const struct perf_field *field, const void *record);

/** Formats a number or a boolean, reals with `digits` digits. Returns false and leaves `text` alone if the
 * value is unknown. */
bool perf_field_number(const struct perf_field *field, const void *record, int digits,
                       char text[PERF_NUMBER_MAX]);

/** Writes a record as a JSON object on a line of its own. Unknown values are null. */
void perf_write_json(FILE *file, const struct perf_schema *schema, const void *record);

/** Print the line of keys, and the values of one record, to standard output. Unknown values are empty. */
void perf_write_csv_keys(const struct perf_schema *schema);
void perf_write_csv(const struct perf_schema *schema, const void *record);

#endif
