/* SPDX-License-Identifier: BSD-3-Clause */
/* Fields of records, and their output as JSON and CSV. */

#include "bench/lib/schema.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const void *value_of(const struct perf_field *field, const void *record)
{
    return (const char *)record + field->at;
}

const char *perf_field_text(const struct perf_field *field, const void *record)
{
    if (field->kind == PERF_TEXT)
        return *(const char *const *)value_of(field, record);
    return field->kind == PERF_LETTERS ? value_of(field, record) : NULL;
}

const struct perf_phases *perf_field_phases(const struct perf_field *field, const void *record)
{
    const struct perf_phases *phases;

    if (field->kind != PERF_BREAKDOWN)
        return NULL;
    phases = *(const struct perf_phases *const *)value_of(field, record);
    return phases->n > 0 ? phases : NULL;
}

bool perf_field_number(const struct perf_field *field, const void *record, int digits,
                       char text[PERF_NUMBER_MAX])
{
    const void *value = value_of(field, record);

    if (field->kind == PERF_BOOL)
        snprintf(text, PERF_NUMBER_MAX, "%s", *(const bool *)value ? "true" : "false");
    else if (field->kind == PERF_INTEGER && *(const long long *)value >= 0)
        snprintf(text, PERF_NUMBER_MAX, "%lld", *(const long long *)value);
    else if (field->kind == PERF_REAL && isfinite(*(const double *)value))
        snprintf(text, PERF_NUMBER_MAX, "%.*g", digits, *(const double *)value);
    else
        return false;
    return true;
}

enum { DIGITS = 9 };

/* Returns the length of the UTF-8 sequence at the start of a text, or 0 if it is invalid. */
static int sequence(const unsigned char *text)
{
    int bytes = text[0] < 0x80   ? 1
                : text[0] < 0xc2 ? 0
                : text[0] < 0xe0 ? 2
                : text[0] < 0xf0 ? 3
                : text[0] < 0xf5 ? 4
                                 : 0;
    bool overlong = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    bool beyond = (text[0] == 0xed && text[1] >= 0xa0) || (text[0] == 0xf4 && text[1] >= 0x90);

    for (int i = 1; i < bytes; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return overlong || beyond ? 0 : bytes;
}

/* A byte that is no valid UTF-8, as file names may have, becomes the replacement character. */
static void write_string(FILE *file, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    fputc('"', file);
    while (*at != '\0') {
        int bytes = sequence(at);
        if (*at == '"' || *at == '\\')
            fprintf(file, "\\%c", *at);
        else if (bytes == 0)
            fputs("\\ufffd", file);
        else if (*at < 0x20 || *at == 0x7f)
            fprintf(file, "\\u%04x", (unsigned)*at);
        else
            fprintf(file, "%.*s", bytes, (const char *)at);
        at += bytes == 0 ? 1 : bytes;
    }
    fputc('"', file);
}

static void write_phases(FILE *file, const struct perf_phases *phases)
{
    for (int i = 0; i < phases->n; i++) {
        const struct perf_phase *phase = &phases->at[i];
        fprintf(file, "%s{\"phase\":\"%s\",\"max_s\":%.*g,\"mean_s\":%.*g}", i == 0 ? "[" : ",", phase->name,
                DIGITS, phase->max, DIGITS, phase->mean);
    }
    fputc(']', file);
}

void perf_write_json(FILE *file, const struct perf_schema *schema, const void *record)
{
    char number[PERF_NUMBER_MAX];

    for (int i = 0; i < schema->fields; i++) {
        const struct perf_field *field = &schema->field[i];
        const char *text = perf_field_text(field, record);
        const struct perf_phases *phases = perf_field_phases(field, record);
        fprintf(file, "%s\"%s\":", i == 0 ? "{" : ",", field->key);
        if (text != NULL)
            write_string(file, text);
        else if (phases != NULL)
            write_phases(file, phases);
        else
            fputs(perf_field_number(field, record, DIGITS, number) ? number : "null", file);
    }
    fputs("}\n", file);
}

void perf_write_csv_keys(const struct perf_schema *schema)
{
    for (int i = 0; i < schema->fields; i++)
        printf("%s%s", i == 0 ? "" : ",", schema->field[i].key);
    putchar('\n');
}

/* Quotes a text that contains a comma, a quote or the end of a line. */
static void write_cell(const char *text)
{
    if (text[strcspn(text, ",\"\r\n")] == '\0') {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text != '\0'; text++)
        fputs(*text == '"' ? "\"\"" : (char[]){ *text, '\0' }, stdout);
    putchar('"');
}

/* All phases share one cell. */
static void write_phase_cell(const struct perf_phases *phases)
{
    for (int i = 0; i < phases->n; i++)
        printf("%s%s %.*g %.*g", i == 0 ? "" : "; ", phases->at[i].name, DIGITS, phases->at[i].max, DIGITS,
               phases->at[i].mean);
}

void perf_write_csv(const struct perf_schema *schema, const void *record)
{
    char number[PERF_NUMBER_MAX];

    for (int i = 0; i < schema->fields; i++) {
        const char *text = perf_field_text(&schema->field[i], record);
        const struct perf_phases *phases = perf_field_phases(&schema->field[i], record);
        if (i > 0)
            putchar(',');
        if (text != NULL)
            write_cell(text);
        else if (phases != NULL)
            write_phase_cell(phases);
        else if (perf_field_number(&schema->field[i], record, DIGITS, number))
            fputs(number, stdout);
    }
    putchar('\n');
}
