/* SPDX-License-Identifier: BSD-3-Clause */
/* mpix_sparse_info: what the library is, how it is set, and what its cost model says of calls that nobody
 * makes. Every part prints to the standard output; MPI is never started. */
#ifndef INFO_H
#define INFO_H

#include <stdbool.h>

#include "base/config.h"
#include "parse.h"

/* Densification as it was asked for: values at so many ranks, or with 0 ranks at 2, 4, 8 … of them. */
struct info_gamma {
    int n;
    long long ranks[PERF_LIST_MAX];
    double ratio[PERF_LIST_MAX];
};

struct info_options {
    bool knobs, schemes, explain, json, help, version;
    long long count, ranks, ranks_per_node, row;
    double density;
    struct info_gamma gamma;
    double gigabits, microseconds; /* of the network; 0 where not given */
    int interface;                 /* enum perf_interface */
};

enum info_verdict { INFO_GO_ON, INFO_DONE, INFO_BAD_USAGE };

/* Read the command line. Prints help, version, or the sentence on what is wrong. */
enum info_verdict info_options_read(int argc, char **argv, struct info_options *options);

/* A value that is no option by itself turns out to be wrong: print why. Always false. */
bool info_complain(const char *option, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Knobs, and what belongs to them. */
struct info_settings {
    struct sar_config config;
    double memory; /* seconds for a byte, of the calibration file; 0 without one */
};

/* Read the environment, and the calibration file that it names; false, after a sentence, when one is bad. */
bool info_settings_read(struct info_settings *settings);

/* As tables, or as JSON lines. */
void info_print_build(bool json);
void info_print_schemes(bool json);
void info_print_knobs(const struct info_settings *settings, bool json);

/* The table of prices, likewise. False, after a sentence, where the options contradict each other. */
bool info_print_prices(const struct info_options *options, const struct info_settings *settings);

#endif
