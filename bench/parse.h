/* SPDX-License-Identifier: BSD-3-Clause */
/* Readers of option values. One sentence says what is wrong with a value. */
#ifndef PERF_PARSE_H
#define PERF_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "names.h"

enum { PERF_LIST_MAX = 64, PERF_NAME_MAX = 64, PERF_PATH_MAX = 4096, PERF_WHY_MAX = 512 };

struct perf_counts {
    int n;
    long long at[PERF_LIST_MAX];
};

struct perf_reals {
    int n;
    double at[PERF_LIST_MAX];
};

/* Places in a list of names. */
struct perf_choices {
    int n;
    int at[PERF_LIST_MAX];
};

struct perf_names {
    int n;
    char at[PERF_LIST_MAX][PERF_NAME_MAX];
};

/* What a workload is made from. */
enum perf_workload_kind { PERF_RANDOM, PERF_MODEL, PERF_TEXT_FILE, PERF_TRACE_FILE };

struct perf_content {
    int kind;
    int model; /* place in the table of models */
    char path[PERF_PATH_MAX];
};

/* What values are good. */
struct perf_domain {
    perf_name_fn names;
    double low, high;
};

/* Reads text to out, or writes to `why` how the text fails, to go on after the text itself: "is not …". */
typedef bool (*perf_parse_fn)(const struct perf_domain *domain, const char *text, void *out, char *why);

/* The items of a list, whatever they are. */
bool perf_parse_items(const char *text, struct perf_names *items, char *why);

bool perf_parse_count(const struct perf_domain *domain, const char *text, void *out,
                      char *why); /* long long */
bool perf_parse_counts(const struct perf_domain *domain, const char *text, void *out,
                       char *why); /* perf_counts */
bool perf_parse_real(const struct perf_domain *domain, const char *text, void *out, char *why); /* double */
bool perf_parse_reals(const struct perf_domain *domain, const char *text, void *out,
                      char *why); /* perf_reals */
bool perf_parse_choice(const struct perf_domain *domain, const char *text, void *out, char *why); /* int */
bool perf_parse_choices(const struct perf_domain *domain, const char *text, void *out,
                        char *why); /* perf_choices */
bool perf_parse_names(const struct perf_domain *domain, const char *text, void *out,
                      char *why); /* perf_names */
bool perf_parse_wires(const struct perf_domain *domain, const char *text, void *out,
                      char *why); /* perf_names */
bool perf_parse_grain(const struct perf_domain *domain, const char *text, void *out,
                      char *why); /* PERF_NAME_MAX */
bool perf_parse_workload(const struct perf_domain *domain, const char *text, void *out,
                         char *why); /* perf_content */
bool perf_parse_path(const struct perf_domain *domain, const char *text, void *out,
                     char *why); /* PERF_PATH_MAX */
bool perf_parse_flag(const struct perf_domain *domain, const char *text, void *out, char *why); /* bool */

#endif
