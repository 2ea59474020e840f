/* SPDX-License-Identifier: BSD-3-Clause */
/* Output of mpix_sparse_perf. All functions are for rank 0 only, except those of perf_progress. */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/lib/options.h"
#include "bench/perf/record.h"

/** A measured case: the records of its rows, and the selector's choice. */
struct perf_case_result {
    struct perf_record *record;
    int records;
    const MPIX_Sparse_report_t *pick; /**< report of `auto`; NULL if it did not run */
};

/** The output of a run. */
struct perf_report {
    const struct perf_options *options;
    const struct perf_world *world;
    FILE *json;                       /**< file of option --json, or NULL */
    const struct perf_schema *schema; /**< schema of the current table of a study */
    char label[256];                  /**< properties of the last printed rows (format osu) */
    long long rows, wrong;
    bool unchecked; /**< true if a row was not checked */
};

/** Opens the file and prints the header. Returns false, after a sentence, if the file cannot be written. */
bool perf_report_open(struct perf_report *report, const struct perf_options *options,
                      const struct perf_world *world);

/** Prints the rows of a case. */
void perf_report_case(struct perf_report *report, const struct perf_case_result *result);

/** Start a table of a study, and print one of its records. */
void perf_report_table(struct perf_report *report, const struct perf_schema *schema);
void perf_report_record(struct perf_report *report, const void *record);

/** Prints a remark between rows, in the manner of printf. */
void perf_report_note(struct perf_report *report, const char *format, ...);

/** Prints the totals. Returns false, after a sentence, if some output could not be written. */
bool perf_report_close(struct perf_report *report);

/** The formats for people. */
void perf_print_header(const struct perf_report *report);
void perf_print_keys(const struct perf_schema *schema);
void perf_print_record(const struct perf_schema *schema, const void *record);
void perf_print_table(const struct perf_case_result *result);
void perf_print_osu(struct perf_report *report, const struct perf_case_result *result);
void perf_print_demo(const struct perf_case_result *result);

/** A progress line on standard error, if that is a terminal. Shown in long runs only, by rank 0. */

struct perf_progress {
    bool terminal, shown;
    int number, cases; /**< current case, from 1, and number of cases */
    double last;       /**< time of the last update */
};

/** Initializes the line for `cases` cases; the other ranks never print. */
void perf_progress_make(struct perf_progress *progress, int rank, int cases);

/** Updates the line at most every 0.2 s. The case takes `seconds` seconds, of which the fraction `done` is
 * over. */
void perf_progress_tick(struct perf_progress *progress, double seconds, double done);

/** Erases the line before other output. */
void perf_progress_erase(struct perf_progress *progress);

#endif
