/* SPDX-License-Identifier: BSD-3-Clause */
/* Command lines out of tables: what an option is called, how its value is read, and where it goes. */
#ifndef PERF_COMMAND_H
#define PERF_COMMAND_H

#include "parse.h"

struct perf_option {
    char letter;               /* 0: none */
    const char *name;          /* without the dashes */
    const char *value;         /* what the help calls its value; NULL for a flag */
    const char *fallback;      /* read first; NULL leaves zeros */
    perf_parse_fn parse;       /* of the value */
    size_t to;                 /* where the value goes, in bytes behind the beginning */
    struct perf_domain domain; /* of parse */
    const char *help;          /* lines */
};

enum { PERF_MOST_OPERANDS = 4 };

/* What a program takes. Operands are arguments that stand by themselves, of the option with number
 * `operands_of`: their name is that of the help. */
struct perf_command {
    const char *program, *usage, *ending; /* the texts before and behind the list of options */
    const struct perf_option *options, *operands;
    int n, n_operands, operands_of;
};

/* Read all arguments. `given` tells which options, and behind them which operands, were among them. Where
 * something is wrong, prints a sentence that says what and returns false. */
bool perf_command_read(const struct perf_command *command, int argc, char **argv, void *to, bool *given);

void perf_command_help(const struct perf_command *command);
void perf_command_version(const struct perf_command *command);

#endif
