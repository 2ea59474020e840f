/* SPDX-License-Identifier: BSD-3-Clause */
/* Parsers of option values. A parser describes an error in one sentence. Knows neither MPI nor the library.
 */
#ifndef PERF_PARSE_H
#define PERF_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/lib/names.h"

enum { PERF_LIST_MAX = 64, PERF_NAME_MAX = 64, PERF_PATH_MAX = 4096, PERF_WHY_MAX = 512 };

struct perf_counts {
    int n;
    long long at[PERF_LIST_MAX];
};

struct perf_reals {
    int n;
    double at[PERF_LIST_MAX];
};

/** Indices into a list of names. */
struct perf_choices {
    int n;
    int at[PERF_LIST_MAX];
};

struct perf_names {
    int n;
    char at[PERF_LIST_MAX][PERF_NAME_MAX];
};

/** Sources of index sets. */
enum perf_workload_kind { PERF_RANDOM, PERF_MODEL, PERF_TEXT_FILE, PERF_TRACE_FILE };

struct perf_workload_spec {
    int kind;
    int model; /**< index into the table of models */
    char path[PERF_PATH_MAX];
};

/** The accepted values of a parser: a list of names, or a range. */
struct perf_domain {
    perf_name_fn names;
    double low, high;
};

/** Parses text into *out. On failure returns false and writes an explanation that continues the sentence
 * after the quoted text: "is not …". */
typedef bool (*perf_parse_fn)(const struct perf_domain *domain, const char *text, void *out, char *why);

/** Splits a comma-separated list. */
bool perf_parse_items(const char *text, struct perf_names *items, char *why);

/** The parsers. *out is
 * - count: long long: digits with a suffix k, M, G, Ki, Mi, Gi
 * - seconds: long long: digits
 * - counts: struct perf_counts
 * - real: double
 * - reals: struct perf_reals
 * - choice: int: index of a name
 * - choices: struct perf_choices, or "all"
 * - names: struct perf_names, or "all"
 * - wires: struct perf_names of FORMAT or PUSH/PULL, or "all"
 * - grain: char[PERF_NAME_MAX]: a power of two, or "auto"
 * - numbers: struct perf_names of whole numbers and "auto"
 * - workload: struct perf_workload_spec
 * - path: char[PERF_PATH_MAX]
 * - flag: bool: true, whatever the text. */
bool perf_parse_count(const struct perf_domain *domain, const char *text, void *out, char *why);
bool perf_parse_seconds(const struct perf_domain *domain, const char *text, void *out, char *why);
bool perf_parse_counts(const struct perf_domain *domain, const char *text, void *out, char *why);
bool perf_parse_real(const struct perf_domain *domain, const char *text, void *out, char *why);
bool perf_parse_reals(const struct perf_domain *domain, const char *text, void *out, char *why);
bool perf_parse_choice(const struct perf_domain *domain, const char *text, void *out, char *why);
bool perf_parse_choices(const struct perf_domain *domain, const char *text, void *out, char *why);
bool perf_parse_names(const struct perf_domain *domain, const char *text, void *out, char *why);
bool perf_parse_wires(const struct perf_domain *domain, const char *text, void *out, char *why);
bool perf_parse_grain(const struct perf_domain *domain, const char *text, void *out, char *why);
bool perf_parse_numbers(const struct perf_domain *domain, const char *text, void *out, char *why);
bool perf_parse_workload(const struct perf_domain *domain, const char *text, void *out, char *why);
bool perf_parse_path(const struct perf_domain *domain, const char *text, void *out, char *why);
bool perf_parse_flag(const struct perf_domain *domain, const char *text, void *out, char *why);

#endif
