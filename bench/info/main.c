/* SPDX-License-Identifier: BSD-3-Clause */
/* mpix_sparse_info: the command line, and the parts of the output. */

#include <mpix_sparse.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "bench/info/info.h"
#include "bench/lib/command.h"

enum { EXIT_OUTPUT = 1, EXIT_USAGE = 2 };

enum info_status { INFO_RUN, INFO_DONE, INFO_BAD_USAGE };

#define TO(field) offsetof(struct info_options, field)

enum {
    OPTION_CONFIG,
    OPTION_SCHEMES,
    OPTION_EXPLAIN,
    OPTION_GAMMA,
    OPTION_NETWORK,
    OPTION_RANKS_PER_NODE,
    OPTION_ROW,
    OPTION_INTERFACE,
    OPTION_THREADS,
    OPTION_DIAGNOSE,
    OPTION_JSON,
    OPTION_HELP,
    OPTION_VERSION,
    OPTIONS
};

enum { OPERAND_COUNT, OPERAND_DENSITY, OPERAND_RANKS, OPERANDS };

/* Parses items N:VALUE or VALUE. */
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

/* Parses GBPS,USEC. */
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
    if (perf_parse_real(domain, items.at[0], &options->gigabits, why) &&
        perf_parse_real(&latency, items.at[1], &options->microseconds, why))
        return true;
    if (strcmp(why, "is not a number") == 0)
        snprintf(why, PERF_WHY_MAX, "is not two numbers without units, GBPS,USEC");
    return false;
}

/* clang-format off */
static const struct perf_option table[OPTIONS] = {
    [OPTION_CONFIG] = { 'c', "config", NULL, NULL,
        perf_parse_flag, TO(config), { NULL, 0, 0 },
        "print the settings, their values and their sources" },
    [OPTION_SCHEMES] = { 's', "schemes", NULL, NULL,
        perf_parse_flag, TO(schemes), { NULL, 0, 0 },
        "print the schemes, the message formats, the partition maps" },
    [OPTION_EXPLAIN] = { 'e', "explain", NULL, NULL,
        perf_parse_flag, TO(explain), { NULL, 0, 0 },
        "print the cost model's prices of COUNT elements, of which the "
        "share DENSITY, from 0 to 1, is present on each of RANKS ranks" },
    [OPTION_GAMMA] = { 'g', "gamma", "LIST", NULL,
        parse_gamma, TO(gamma), { NULL, 1, 1e9 },
        "densification ratios: values at 2, 4, 8 ... RANKS ranks, or "
        "N:VALUE at N ranks; default: ranks choose independently" },
    [OPTION_NETWORK] = { 'n', "network", "GBPS,USEC", NULL,
        parse_network, 0, { NULL, 1e-6, 1e9 },
        "bandwidth of a node in Gb/s and latency of a message in us; "
        "25,10 unless given here or by settings" },
    [OPTION_RANKS_PER_NODE] = { 'k', "ranks-per-node", "K", "1",
        perf_parse_count, TO(ranks_per_node), { NULL, 1, 1 << 24 },
        "ranks that share a node's memory and its network" },
    [OPTION_ROW] = { 'R', "row", "D", "1",
        perf_parse_count, TO(row_len), { NULL, 1, 1 << 24 },
        "floats in an element" },
    [OPTION_INTERFACE] = { 'i', "interface", "NAME", "coo",
        perf_parse_choice, TO(interface), { perf_interface_name, 0, 0 },
        "price MPIX_Sparse_allreduce_coo or MPIX_Sparse_allreduce" },
    [OPTION_THREADS] = { 't', "threads", "N", NULL,
        perf_parse_count, TO(threads), { NULL, 1, SAR_THREADS_MAX },
        "threads for the work of a call; default: MPIX_SPARSE_THREADS" },
    [OPTION_DIAGNOSE] = { 'd', "diagnose", "FILE", NULL,
        perf_parse_path, TO(diagnose), { NULL, 0, 0 },
        "print the mean times of each rank's calls by the traces of MPIX_SPARSE_TRACE=FILE, and "
        "which rank is late" },
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
    .usage =
        "usage: mpix_sparse_info [-c] [-s]\n"
        "       mpix_sparse_info --explain COUNT DENSITY RANKS [options]\n"
        "       mpix_sparse_info --diagnose FILE\n\n"
        "Print how the library was built, its settings, its schemes and formats, its prices of a call, or a\n"
        "diagnosis of slow calls.\n",
    .ending = "Exit status: 0 success, 1 output that cannot be written, 2 bad usage.\n",
    .options = table,
    .operands = operands,
    .n = OPTIONS,
    .n_operands = OPERANDS,
    .operands_of = OPTION_EXPLAIN,
};

bool info_print_error(const char *option, const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "%s: %s: ", command.program, option);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return false;
}

static void print_version(void)
{
    int library = 0;

    MPIX_Sparse_get_version(&library);
    perf_command_version(&command, MPIX_SPARSE_VERSION, library);
}

static bool check_options(const struct info_options *options, const bool *given)
{
    static const int of_explain[] = { OPTION_GAMMA, OPTION_NETWORK,   OPTION_RANKS_PER_NODE,
                                      OPTION_ROW,   OPTION_INTERFACE, OPTION_THREADS };

    for (int i = 0; i < OPERANDS && options->explain; i++)
        if (!given[OPTIONS + i])
            return info_print_error("option --explain", "%s is missing", operands[i].name);
    for (int i = 0; i < (int)(sizeof of_explain / sizeof *of_explain) && !options->explain; i++)
        if (given[of_explain[i]])
            return info_print_error("option --explain",
                                    "is missing; --%s needs --explain COUNT DENSITY RANKS",
                                    table[of_explain[i]].name);
    return true;
}

static enum info_status read_options(int argc, char **argv, struct info_options *options)
{
    bool given[OPTIONS + OPERANDS] = { false };

    memset(options, 0, sizeof *options);
    if (!perf_command_read(&command, argc, argv, options, given))
        return INFO_BAD_USAGE;
    if (options->help)
        perf_command_help(&command);
    else if (options->version)
        print_version();
    else
        return check_options(options, given) ? INFO_RUN : INFO_BAD_USAGE;
    return INFO_DONE;
}

static bool print(const struct info_options *options)
{
    struct info_settings settings;

    if ((options->config || options->explain) && !info_settings_read(&settings))
        return false;
    if (!options->config && !options->schemes && !options->explain && options->diagnose[0] == '\0')
        info_print_build(options->json);
    if (options->config)
        info_print_settings(&settings, options->json);
    if (options->schemes)
        info_print_schemes(options->json);
    if (options->diagnose[0] != '\0' && !info_print_diagnosis(options->diagnose, options->json))
        return false;
    return !options->explain || info_print_prices(options, &settings);
}

int main(int argc, char **argv)
{
    struct info_options options;
    enum info_status status = read_options(argc, argv, &options);

    if (status == INFO_BAD_USAGE || (status == INFO_RUN && !print(&options)))
        return EXIT_USAGE;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "mpix_sparse_info: cannot write all of the standard output\n");
        return EXIT_OUTPUT;
    }
    return 0;
}
