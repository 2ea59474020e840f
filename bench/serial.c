/* SPDX-License-Identifier: BSD-3-Clause */
/* The formats for programs, `json` and `csv`. Both follow the table of fields. */

#include <math.h>
#include <string.h>

#include "report.h"

static const void *value_of(const struct perf_record *record, const struct perf_field *field)
{
    return (const char *)record + field->at;
}

static const char *text_of(const struct perf_record *record, const struct perf_field *field)
{
    const void *value = value_of(record, field);
    return field->kind == PERF_TEXT ? *(const char *const *)value : value;
}

/* Bytes of the UTF-8 sequence that begins a text; 0 when it begins with none. */
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

/* JSON has room for Unicode only, so a byte of a file name that is not becomes the replacement character. */
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

/* Numbers and truth values; `nothing` stands for what is not known. */
static void write_number(FILE *file, const struct perf_record *record, const struct perf_field *field,
                         const char *nothing)
{
    const void *value = value_of(record, field);

    if (field->kind == PERF_BOOL)
        fputs(*(const bool *)value ? "true" : "false", file);
    else if (field->kind == PERF_INTEGER && *(const long long *)value >= 0)
        fprintf(file, "%lld", *(const long long *)value);
    else if (field->kind == PERF_REAL && isfinite(*(const double *)value))
        fprintf(file, "%.9g", *(const double *)value);
    else
        fputs(nothing, file);
}

static bool is_text(const struct perf_field *field)
{
    return field->kind == PERF_TEXT || field->kind == PERF_LETTERS;
}

void perf_print_json(FILE *file, const struct perf_outcome *outcome)
{
    for (const struct perf_record *r = outcome->record; r < outcome->record + outcome->records; r++) {
        for (int i = 0; i < perf_field_count; i++) {
            const struct perf_field *field = &perf_fields[i];
            fprintf(file, "%s\"%s\":", i == 0 ? "{" : ",", field->key);
            if (is_text(field))
                write_string(file, text_of(r, field));
            else
                write_number(file, r, field, "null");
        }
        fputs("}\n", file);
    }
    fflush(file);
}

void perf_print_csv_header(void)
{
    for (int i = 0; i < perf_field_count; i++)
        printf("%s%s", i == 0 ? "" : ",", perf_fields[i].key);
    putchar('\n');
}

/* A text with a comma, a quote or a line's end in it goes between quotes. */
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

void perf_print_csv(const struct perf_outcome *outcome)
{
    for (const struct perf_record *r = outcome->record; r < outcome->record + outcome->records; r++) {
        for (int i = 0; i < perf_field_count; i++) {
            if (i > 0)
                putchar(',');
            if (is_text(&perf_fields[i]))
                write_cell(text_of(r, &perf_fields[i]));
            else
                write_number(stdout, r, &perf_fields[i], "");
        }
        putchar('\n');
    }
}
