/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "info.h"

#define TO(field) offsetof(struct info_options, field)

enum {
    OPTION_KNOBS,
    OPTION_SCHEMES,
    OPTION_EXPLAIN,
    OPTION_GAMMA,
    OPTION_NETWORK,
    OPTION_RANKS_PER_NODE,
    OPTION_ROW,
    OPTION_INTERFACE,
    OPTION_JSON,
    OPTION_HELP,
    OPTION_VERSION,
    OPTIONS
};

enum { OPERAND_COUNT, OPERAND_DENSITY, OPERAND_RANKS, OPERANDS };

/* Items N:VALUE, or VALUE. */
static bool parse_gamma(const struct perf_domain *domain, const char *text, void *out, char *why)
{
    const struct perf_domain ranks = { NULL, 2, 1 << 30 };
    struct perf_names items;
    struct info_gamma *gamma = out;

    if (!perf_parse_items(text, &items, why))
        return false;
    for (gamma->n = 0; gamma->n < items.n; gamma->n++) {
        char *item = items.at[gamma->n], *colon = strchr(item, ':');
        gamma->ranks[gamma->n] = 0;
        if (colon != NULL) {
            *colon = '\0';
            if (!perf_parse_count(&ranks, item, &gamma->ranks[gamma->n], why))
                return false;
        }
        if (!perf_parse_real(domain, colon != NULL ? colon + 1 : item, &gamma->ratio[gamma->n], why))
            return false;
    }
    return true;
}

/* GBPS,USEC. */
static bool parse_network(const struct perf_domain *domain, const char *text, void *out, char *why)
{
    const struct perf_domain latency = { NULL, 0, 1e9 };
    struct info_options *options = out;
    struct perf_names items;

    if (!perf_parse_items(text, &items, why))
        return false;
    if (items.n != 2) {
        snprintf(why, PERF_WHY_MAX, "is not two numbers, GBPS,USEC");
        return false;
    }
    return perf_parse_real(domain, items.at[0], &options->gigabits, why) &&
           perf_parse_real(&latency, items.at[1], &options->microseconds, why);
}

/* clang-format off */
static const struct perf_option table[OPTIONS] = {
    [OPTION_KNOBS] = { 'c', "config", NULL, NULL,
        perf_parse_flag, TO(knobs), { NULL, 0, 0 },
        "print the knobs, their values and where those come from" },
    [OPTION_SCHEMES] = { 's', "schemes", NULL, NULL,
        perf_parse_flag, TO(schemes), { NULL, 0, 0 },
        "print the schemes, the formats of messages, the partitions" },
    [OPTION_EXPLAIN] = { 'e', "explain", NULL, NULL,
        perf_parse_flag, TO(explain), { NULL, 0, 0 },
        "print what the cost model says of COUNT elements, of which\n"
        "DENSITY, from 0 to 1, are present on each of RANKS ranks" },
    [OPTION_GAMMA] = { 'g', "gamma", "LIST", NULL,
        parse_gamma, TO(gamma), { NULL, 1, 1e9 },
        "densification ratios: values at 2, 4, 8 ... RANKS ranks, or\n"
        "N:VALUE at N ranks; as if ranks chose alone unless given" },
    [OPTION_NETWORK] = { 'n', "network", "GBPS,USEC", NULL,
        parse_network, 0, { NULL, 1e-6, 1e9 },
        "10^9 bits a second of a node, and microseconds of a message;\n"
        "25,10 unless given here or by knobs" },
    [OPTION_RANKS_PER_NODE] = { 'k', "ranks-per-node", "K", "1",
        perf_parse_count, TO(ranks_per_node), { NULL, 1, 1 << 24 },
        "ranks that share a node's memory and its network" },
    [OPTION_ROW] = { 'R', "row", "D", "1",
        perf_parse_count, TO(row), { NULL, 1, 1 << 24 },
        "floats in an element" },
    [OPTION_INTERFACE] = { 'i', "interface", "NAME", "coo",
        perf_parse_choice, TO(interface), { perf_interface_name, 0, 0 },
        "price MPIX_Sparse_allreduce_coo or MPIX_Sparse_allreduce" },
    [OPTION_JSON] = { 'j', "json", NULL, NULL,
        perf_parse_flag, TO(json), { NULL, 0, 0 },
        "print JSON lines" },
    [OPTION_HELP] = { 'h', "help", NULL, NULL,
        perf_parse_flag, TO(help), { NULL, 0, 0 },
        "print this and exit" },
    [OPTION_VERSION] = { 0, "version", NULL, NULL,
        perf_parse_flag, TO(version), { NULL, 0, 0 },
        "print the version and exit" },
};

static const struct perf_option operands[OPERANDS] = {
    [OPERAND_COUNT] = { 0, "COUNT", NULL, NULL,
        perf_parse_count, TO(count), { NULL, 0, 1e15 }, NULL },
    [OPERAND_DENSITY] = { 0, "DENSITY", NULL, NULL,
        perf_parse_real, TO(density), { NULL, 0, 1 }, NULL },
    [OPERAND_RANKS] = { 0, "RANKS", NULL, NULL,
        perf_parse_count, TO(ranks), { NULL, 1, 1 << 24 }, NULL },
};
/* clang-format on */

static const struct perf_command command = {
    .program = "mpix_sparse_info",
    .usage = "usage: mpix_sparse_info [-c] [-s]\n"
             "       mpix_sparse_info --explain COUNT DENSITY RANKS [options]\n\n"
             "Print what the library is; or how it is set, what it knows, and what it would do.\n",
    .ending = "Exit status: 0 all right, 1 output that cannot be written, 2 bad usage.\n",
    .options = table,
    .operands = operands,
    .n = OPTIONS,
    .n_operands = OPERANDS,
    .operands_of = OPTION_EXPLAIN,
};

bool info_complain(const char *option, const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "%s: %s: ", command.program, option);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return false;
}

static bool check(const struct info_options *options, const bool *given)
{
    static const int of_explain[] = { OPTION_GAMMA, OPTION_NETWORK, OPTION_RANKS_PER_NODE, OPTION_ROW,
                                      OPTION_INTERFACE };

    for (int i = 0; i < OPERANDS && options->explain; i++)
        if (!given[OPTIONS + i])
            return info_complain("option --explain", "%s is missing", operands[i].name);
    for (int i = 0; i < (int)(sizeof of_explain / sizeof *of_explain) && !options->explain; i++)
        if (given[of_explain[i]])
            return info_complain("option --explain", "is missing, to which --%s belongs",
                                 table[of_explain[i]].name);
    return true;
}

enum info_verdict info_options_read(int argc, char **argv, struct info_options *options)
{
    bool given[OPTIONS + OPERANDS] = { false };

    memset(options, 0, sizeof *options);
    if (!perf_command_read(&command, argc, argv, options, given))
        return INFO_BAD_USAGE;
    if (options->help)
        perf_command_help(&command);
    else if (options->version)
        perf_command_version(&command);
    else
        return check(options, given) ? INFO_GO_ON : INFO_BAD_USAGE;
    return INFO_DONE;
}
