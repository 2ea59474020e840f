/* SPDX-License-Identifier: BSD-3-Clause */
/* mpix_sparse_info: prints facts on the build, the settings, and the prices that the cost model gives to a
 * hypothetical call. Prints to standard output; never initializes MPI. */
#ifndef INFO_H
#define INFO_H

#include <stdbool.h>

#include "base/config.h"
#include "bench/lib/parse.h"

/** Values of option --gamma: densification ratios at numbers of ranks. ranks[i] is 0 if the option gives
 * none: 2, 4, 8 … in order. */
struct info_gamma {
    int n;
    long long ranks[PERF_LIST_MAX];
    double ratio[PERF_LIST_MAX];
};

/** All options. */
struct info_options {
    bool config, schemes, explain, json, help, version;
    long long count, ranks, ranks_per_node, row_len, threads; /**< threads 0: as the settings say */
    double density;
    struct info_gamma gamma;
    double gigabits, microseconds; /**< of the network; 0: not given */
    int interface;                 /**< enum perf_interface */
    char diagnose[PERF_PATH_MAX];  /**< pattern of the trace files; empty: not given */
};

/** Prints an error on an option, in the manner of printf. Returns false. */
bool info_print_error(const char *option, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Settings and the calibration that they name. */
struct info_settings {
    struct sar_config config;
    double memory; /**< seconds a byte of the calibration file; 0: no file */
};

/** Reads the environment and the calibration file. Returns false, after printing the error to stderr. */
bool info_settings_read(struct info_settings *settings);

/** Print a table, or JSON lines. */
void info_print_build(bool json);
void info_print_schemes(bool json);
void info_print_settings(const struct info_settings *settings, bool json);

/** Prints the times of all ranks by their trace files. Returns false, after printing the error to stderr, if
 * a file cannot be read or has no calls. */
bool info_print_diagnosis(const char *pattern, bool json);

/** Prints the table of prices. Returns false, after printing the error to
 * stderr, if options contradict each other. */
bool info_print_prices(const struct info_options *options, const struct info_settings *settings);

#endif
