/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "serial.h"

/* Remarks go where they do not get in the way of a program that reads the rows. */
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

/* A record in the formats that no person reads, as far as they are asked for. */
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

void perf_report_case(struct perf_report *report, const struct perf_outcome *outcome)
{
    switch (report->options->format) {
    case PERF_TABLE: perf_print_table(outcome); break;
    case PERF_OSU: perf_print_osu(report, outcome); break;
    case PERF_DEMO: perf_print_demo(outcome); break;
    }
    for (int i = 0; i < outcome->records; i++) {
        write_for_programs(report, &perf_record_schema, &outcome->record[i]);
        report->rows++;
        if (outcome->record[i].wrong >= 0)
            report->wrong += outcome->record[i].wrong;
        else if (outcome->record[i].reduces)
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
