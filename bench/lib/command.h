/* SPDX-License-Identifier: BSD-3-Clause */
/* Command lines from tables of options. Used by all programs of the benchmark; knows neither MPI nor the
 * library. */
#ifndef PERF_COMMAND_H
#define PERF_COMMAND_H

#include "bench/lib/parse.h"

/** One option of a table. */
struct perf_option {
    char letter;               /**< short option, or 0 */
    const char *name;          /**< long option, without the dashes */
    const char *value;         /**< name of the value in --help; NULL for a flag */
    const char *fallback;      /**< default as text, parsed first; NULL: zero bytes */
    perf_parse_fn parse;       /**< parser of the value */
    size_t to;                 /**< offset of the value in the program's struct of options */
    struct perf_domain domain; /**< second argument of parse */
    const char *help;          /**< text of --help; NULL: an old name of another option, not listed */
};

/** A group of options in --help: those from number `first` to the next group. */
struct perf_group {
    int first;
    const char *title;
};

enum { PERF_MAX_OPERANDS = 4 };

/** The command line of a program. Operands are arguments that belong to option number `operands_of`. The
 * `name` of an operand is its name in the help text. */
struct perf_command {
    const char *program, *usage, *ending; /**< texts before and after the list of options */
    const struct perf_option *options, *operands;
    const struct perf_group *groups; /**< in the order of the options */
    int n, n_groups, n_operands, operands_of;
};

/** Reads all arguments into the struct at `to`. Sets given[i] for each option that is present, and given[n +
 * i] for each operand. Returns false, after a sentence on standard error, if an argument is wrong. */
bool perf_command_read(const struct perf_command *command, int argc, char **argv, void *to, bool *given);

/** Prints the help text. */
void perf_command_help(const struct perf_command *command);
/** Prints the versions of the program and of the library, in the form of MPIX_SPARSE_VERSION. */
void perf_command_version(const struct perf_command *command, int own, int library);

#endif
