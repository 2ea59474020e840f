/* SPDX-License-Identifier: BSD-3-Clause */
/* The output of a run: formats for programs, remarks, the tables of studies, and the progress line. */

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* fileno */
#endif

#include "bench/perf/report.h"

#include <errno.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/lib/schema.h"

/* Returns the stream of remarks: standard error if a program reads the rows from standard output. */
static FILE *remarks(const struct perf_report *report)
{
    int format = report->options->format;
    return format == PERF_CSV || format == PERF_JSON ? stderr : stdout;
}

bool perf_report_open(struct perf_report *report, const struct perf_options *options,
                      const struct perf_world *world)
{
    *report = (struct perf_report){ .options = options, .world = world };
    if (options->json[0] != '\0') {
        report->json = fopen(options->json, "w");
        if (report->json == NULL) {
            fprintf(stderr, "mpix_sparse_perf: option --json: cannot write '%s': %s\n", options->json,
                    strerror(errno));
            return false;
        }
    }
    if (options->format == PERF_CSV && options->study == PERF_NO_STUDY)
        perf_write_csv_keys(&perf_record_schema);
    else if (options->format != PERF_CSV && options->format != PERF_JSON)
        perf_print_header(report);
    fflush(stdout);
    return true;
}

/* Writes a record in the requested formats for programs. */
static void write_for_programs(struct perf_report *report, const struct perf_schema *schema,
                               const void *record)
{
    if (report->options->format == PERF_CSV)
        perf_write_csv(schema, record);
    if (report->options->format == PERF_JSON)
        perf_write_json(stdout, schema, record);
    if (report->json != NULL) {
        perf_write_json(report->json, schema, record);
        fflush(report->json);
    }
}

void perf_report_case(struct perf_report *report, const struct perf_case_result *result)
{
    switch (report->options->format) {
    case PERF_TABLE: perf_print_table(result); break;
    case PERF_OSU: perf_print_osu(report, result); break;
    case PERF_DEMO: perf_print_demo(result); break;
    }
    for (int i = 0; i < result->records; i++) {
        write_for_programs(report, &perf_record_schema, &result->record[i]);
        report->rows++;
        if (result->record[i].wrong >= 0)
            report->wrong += result->record[i].wrong;
        else if (result->record[i].reduces)
            report->unchecked = true;
    }
    fflush(stdout);
}

void perf_report_table(struct perf_report *report, const struct perf_schema *schema)
{
    report->schema = schema;
    if (report->options->format == PERF_TABLE)
        perf_print_keys(schema);
    if (report->options->format == PERF_CSV)
        perf_write_csv_keys(schema);
}

void perf_report_record(struct perf_report *report, const void *record)
{
    report->rows++;
    if (report->options->format == PERF_TABLE)
        perf_print_record(report->schema, record);
    write_for_programs(report, report->schema, record);
    fflush(stdout);
}

void perf_report_note(struct perf_report *report, const char *format, ...)
{
    va_list arguments;

    fputs("# ", remarks(report));
    va_start(arguments, format);
    vfprintf(remarks(report), format, arguments);
    va_end(arguments);
    fputc('\n', remarks(report));
    fflush(remarks(report));
}

bool perf_report_close(struct perf_report *report)
{
    bool written = true;

    if (report->options->format != PERF_CSV && report->options->format != PERF_JSON)
        perf_report_note(report, "%lld wrong values, %lld rows%s", report->wrong, report->rows,
                         report->unchecked ? ", not all of them checked" : "");
    if (report->json != NULL)
        written = !ferror(report->json);
    if (report->json != NULL && fclose(report->json) != 0)
        written = false;
    if (!written)
        fprintf(stderr, "mpix_sparse_perf: cannot write all of '%s'\n", report->options->json);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "mpix_sparse_perf: cannot write all of the standard output\n");
        written = false;
    }
    return written;
}

static const double LONG_RUN = 2, BETWEEN = 0.2; /* seconds */

void perf_progress_make(struct perf_progress *progress, int rank, int cases)
{
    *progress = (struct perf_progress){ .terminal = rank == 0 && isatty(fileno(stderr)), .cases = cases };
}

void perf_progress_tick(struct perf_progress *progress, double seconds, double done)
{
    double now = MPI_Wtime();

    if (!progress->terminal || seconds * progress->cases < LONG_RUN || now - progress->last < BETWEEN)
        return;
    progress->last = now;
    progress->shown = true;
    fprintf(stderr, "\r# case %d of %d, %.0f %%, %.0f s left of it \033[K", progress->number, progress->cases,
            100 * done, (1 - done) * seconds);
    fflush(stderr);
}

void perf_progress_erase(struct perf_progress *progress)
{
    if (progress->shown)
        fprintf(stderr, "\r\033[K");
    fflush(stderr);
    progress->shown = false;
}

/* Format `table` of a study: one column for each field. */

enum { BOOL_WIDTH = 6, VALUE_WIDTH = 10, DIGITS = 5 };

static int width_of(const struct perf_field *field)
{
    int key = (int)strlen(field->key);
    int least = field->kind == PERF_BOOL ? BOOL_WIDTH : VALUE_WIDTH;

    return key > least ? key : least;
}

void perf_print_keys(const struct perf_schema *schema)
{
    for (int i = 0; i < schema->fields; i++)
        printf("%c%*s", i == 0 ? '#' : ' ', width_of(&schema->field[i]), schema->field[i].key);
    putchar('\n');
}

void perf_print_record(const struct perf_schema *schema, const void *record)
{
    for (int i = 0; i < schema->fields; i++) {
        const struct perf_field *field = &schema->field[i];
        const char *text = perf_field_text(field, record);
        char number[PERF_NUMBER_MAX] = "-";

        if (text == NULL)
            perf_field_number(field, record, DIGITS, number);
        printf(" %*s", width_of(field), text != NULL ? text : number);
    }
    putchar('\n');
}
