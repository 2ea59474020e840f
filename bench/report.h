/* SPDX-License-Identifier: BSD-3-Clause */
/* Printing. Rank 0 only. */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include <stdio.h>

#include "options.h"
#include "record.h"

/* A measured case: records of its rows, and what the selector picked. */
struct perf_outcome {
    struct perf_record *record;
    int records;
    const MPIX_Sparse_report_t *pick; /* NULL when the selector did not run */
};

struct perf_report {
    const struct perf_options *options;
    const struct perf_world *world;
    FILE *json;                       /* NULL when nobody asked for the file */
    const struct perf_schema *schema; /* of the table at hand, in a study */
    char label[256];                  /* what the rows printed last have in common (osu) */
    long long rows, wrong;
    bool unchecked; /* some row was not checked */
};

/* False, with a sentence, when the file cannot be written. */
bool perf_report_open(struct perf_report *report, const struct perf_options *options,
                      const struct perf_world *world);

void perf_report_case(struct perf_report *report, const struct perf_outcome *outcome);

/* Begin a table of records of one kind, and print one of them: what a study does. */
void perf_report_table(struct perf_report *report, const struct perf_schema *schema);
void perf_report_record(struct perf_report *report, const void *record);

/* A remark among the rows, in the manner of printf. */
void perf_report_note(struct perf_report *report, const char *format, ...);

/* False when not all could be written. */
bool perf_report_close(struct perf_report *report);

/* One format each, for people. */
void perf_print_header(const struct perf_report *report);
void perf_print_keys(const struct perf_schema *schema);
void perf_print_record(const struct perf_schema *schema, const void *record);
void perf_print_table(const struct perf_outcome *outcome);
void perf_print_osu(struct perf_report *report, const struct perf_outcome *outcome);
void perf_print_demo(const struct perf_outcome *outcome);

#endif
