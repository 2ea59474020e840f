/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of options of mpix_sparse_perf, in the order and the groups of its manual page.
 * Checks of their combinations. */

#include "bench/lib/options.h"

#include <mpi.h>
#include <mpix_sparse.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "bench/lib/command.h"
#include "bench/lib/workload.h"
#include "bench/lib/number.h"
#include "bench/lib/settings.h"

#define TO(field) offsetof(struct perf_options, field)

enum {
    OPTION_COUNT,
    OPTION_DENSITY,
    OPTION_ROW,
    OPTION_INDEX,
    OPTION_OVERLAP,
    OPTION_SKEW,
    OPTION_ORDER,
    OPTION_WORKLOAD,
    OPTION_SCALE,
    OPTION_GPUS,
    OPTION_UNEQUAL,
    OPTION_DRIFT,
    OPTION_BATCH,
    OPTION_SEED,
    OPTION_COLLECTIVE,
    OPTION_BLOCK,
    OPTION_INTERFACE,
    OPTION_TYPE,
    OPTION_OP,
    OPTION_BUFFERS,
    OPTION_IN_PLACE,
    OPTION_PLAN,
    OPTION_OVERLAP_COMPUTE,
    OPTION_SCHEME,
    OPTION_WIRE,
    OPTION_WIRE_VALUES,
    OPTION_PARTITION,
    OPTION_GRAIN,
    OPTION_COLUMNS,
    OPTION_THREADS,
    OPTION_ALONE,
    OPTION_MESSAGE_REPLAY,
    OPTION_OLD_MESSAGE_REPLAY,
    OPTION_ITERATIONS,
    OPTION_WARMUP,
    OPTION_BETWEEN,
    OPTION_LATE,
    OPTION_JITTER,
    OPTION_CHECK,
    OPTION_TIMEOUT,
    OPTION_PROFILE,
    OPTION_FORMAT,
    OPTION_JSON,
    OPTION_LABEL,
    OPTION_HELP,
    OPTION_VERSION,
    OPTION_STUDY,
    OPTION_PARTS,
    OPTION_PIECE,
    OPTION_EVERY,
    OPTION_BUDGET,
    OPTION_CALIBRATE,
    OPTION_COSTS,
    OPTION_CHARGE,
    OPTION_MEMORY_BANDWIDTH,
    OPTION_MEMORY,
    OPTIONS
};

/* clang-format off */
static const struct perf_option table[OPTIONS] = {
    [OPTION_COUNT] = { 'c', "count", "LIST", "1M",
        perf_parse_counts, TO(count), { NULL, 0, 1e15 },
        "elements of the vector; suffixes k, M, G or Ki, Mi, Gi" },
    [OPTION_DENSITY] = { 'd', "density", "LIST", "0.01",
        perf_parse_reals, TO(density), { NULL, 0, 1 },
        "share of the elements that is present on each rank" },
    [OPTION_ROW] = { 'R', "row", "D", "1",
        perf_parse_count, TO(row_len), { NULL, 1, 1 << 24 },
        "basic values in an element; 64 for a text" },
    [OPTION_INDEX] = { 0, "index", "NAME", "auto",
        perf_parse_choice, TO(index), { perf_index_name, 0, 0 },
        "type of the indices; auto: int32 where it is wide enough" },
    [OPTION_OVERLAP] = { 0, "overlap", "F", "0.3",
        perf_parse_real, TO(overlap), { NULL, 0, 1 },
        "share of a rank's elements that all ranks have" },
    [OPTION_SKEW] = { 0, "skew", "F", "0",
        perf_parse_real, TO(skew), { NULL, 0, 1 },
        "share of the elements in the first eighth, from 0.125; 0: even" },
    [OPTION_ORDER] = { 0, "order", "NAME", "sorted",
        perf_parse_choice, TO(order), { perf_order_name, 0, 0 },
        "order of the indices" },
    [OPTION_WORKLOAD] = { 0, "workload", "NAME", "random",
        perf_parse_workload, TO(workload), { perf_model_name, 0, 0 },
        "random, text:FILE, trace:FILE, or a model" },
    [OPTION_SCALE] = { 0, "scale", "S", "1",
        perf_parse_count, TO(scale), { NULL, 1, 1e9 },
        "divide the elements of random vectors and of models by S" },
    [OPTION_GPUS] = { 0, "gpus", "N", "1",
        perf_parse_count, TO(gpus), { NULL, 1, 1024 },
        "GPUs of a rank's machine" },
    [OPTION_UNEQUAL] = { 0, "unequal", "F", "1",
        perf_parse_real, TO(unequal), { NULL, 1, 1e6 },
        "elements of a model on rank 0, over those of others" },
    [OPTION_DRIFT] = { 0, "drift", "F", "0",
        perf_parse_real, TO(drift), { NULL, 0, 1 },
        "share of the vector by which a model's indices move in a step" },
    [OPTION_BATCH] = { 0, "batch", "TOKENS", "1024",
        perf_parse_count, TO(batch), { NULL, 1, 1e9 },
        "words of the text that a rank takes in a step" },
    [OPTION_SEED] = { 0, "seed", "N", "42",
        perf_parse_count, TO(seed), { NULL, 0, 4294967295.0 },
        "seed of the tensors, and when given of the library" },
    [OPTION_COLLECTIVE] = { 0, "collective", "NAME", "allreduce",
        perf_parse_choice, TO(collective), { perf_collective_name, 0, 0 },
        "collective to time" },
    [OPTION_BLOCK] = { 0, "block", "N", "0",
        perf_parse_count, TO(block), { NULL, 0, 1e15 },
        "elements of a block of a reduce_scatter; 0: contiguous parts" },
    [OPTION_INTERFACE] = { 'i', "interface", "NAME", "coo",
        perf_parse_choice, TO(interface), { perf_interface_name, 0, 0 },
        "coordinates or dense buffers" },
    [OPTION_TYPE] = { 't', "datatype", "LIST", "float",
        perf_parse_choices, TO(type), { perf_type_name, 0, 0 },
        "basic types, or all" },
    [OPTION_OP] = { 'o', "op", "LIST", "sum",
        perf_parse_choices, TO(op), { perf_op_name, 0, 0 },
        "reductions, or all" },
    [OPTION_BUFFERS] = { 'm', "buffers", "NAME", "host",
        perf_parse_choice, TO(buffers), { perf_buffers_name, 0, 0 },
        "memory of the buffers; mixed: of a device on the first rank of each node only" },
    [OPTION_IN_PLACE] = { 0, "in-place", NULL, NULL,
        perf_parse_flag, TO(in_place), { NULL, 0, 0 },
        "call the dense interface with MPI_IN_PLACE" },
    [OPTION_PLAN] = { 0, "plan", NULL, NULL,
        perf_parse_flag, TO(plan), { NULL, 0, 0 },
        "start a plan of the COO interface in each call" },
    [OPTION_OVERLAP_COMPUTE] = { 0, "overlap-compute", NULL, NULL,
        perf_parse_flag, TO(overlap_compute), { NULL, 0, 0 },
        "also time nonblocking calls, alone and beside computing" },
    [OPTION_SCHEME] = { 'S', "scheme", "LIST", "all",
        perf_parse_names, TO(scheme), { perf_scheme_name, 0, 0 },
        "schemes or bounds, or all" },
    [OPTION_WIRE] = { 'W', "wire", "LIST", "auto",
        perf_parse_wires, TO(wire), { perf_wire_name, 0, 0 },
        "message formats, pairs PUSH/PULL of them, or all" },
    [OPTION_WIRE_VALUES] = { 0, "wire-values", "NAME", "full",
        perf_parse_choice, TO(values), { perf_values_name, 0, 0 },
        "floats in messages" },
    [OPTION_PARTITION] = { 'P', "partition", "LIST", "auto",
        perf_parse_names, TO(partition), { perf_partition_name, 0, 0 },
        "partition maps, or all" },
    [OPTION_GRAIN] = { 'g', "grain", "N", "auto",
        perf_parse_grain, TO(grain), { NULL, 1, 256 },
        "consecutive elements that stay in one part, or auto" },
    [OPTION_COLUMNS] = { 0, "columns", "LIST", "auto",
        perf_parse_numbers, TO(columns), { NULL, 1, 1 << 20 },
        "most ranks that share a row of several values, or auto" },
    [OPTION_THREADS] = { 0, "threads", "LIST", "auto",
        perf_parse_numbers, TO(threads), { NULL, 1, SAR_THREADS_MAX },
        "threads for the work of a call, or auto" },
    [OPTION_ALONE] = { 0, "alone", NULL, NULL,
        perf_parse_flag, TO(alone), { NULL, 0, 0 },
        "no baselines, only the rows asked for" },
    [OPTION_MESSAGE_REPLAY] = { 0, "message-replay", NULL, NULL,
        perf_parse_flag, TO(message_replay), { NULL, 0, 0 },
        "after each row, measure its messages without computing" },
    [OPTION_OLD_MESSAGE_REPLAY] = { 0, "skeleton", NULL, NULL,
        perf_parse_flag, TO(message_replay), { NULL, 0, 0 }, NULL },
    [OPTION_ITERATIONS] = { 'n', "iterations", "N", "20",
        perf_parse_count, TO(iterations), { NULL, 1, 1e5 },
        "measured calls of each row; by default fewer where they take long" },
    [OPTION_WARMUP] = { 'w', "warmup", "N", "5",
        perf_parse_count, TO(warmup), { NULL, 0, 1e5 },
        "calls of each row before those" },
    [OPTION_BETWEEN] = { 0, "between", "BYTES", "0",
        perf_parse_count, TO(between), { NULL, 0, 1e12 },
        "before each call read the last result, write, read the input" },
    [OPTION_LATE] = { 0, "late", "US", "0",
        perf_parse_real, TO(late), { NULL, 0, 1e9 },
        "microseconds that the last rank waits before each call" },
    [OPTION_JITTER] = { 0, "jitter", "US", "0",
        perf_parse_real, TO(jitter), { NULL, 0, 1e9 },
        "microseconds that each rank waits at most, at random" },
    [OPTION_CHECK] = { 0, "check", "0|1", "1",
        perf_parse_count, TO(check), { NULL, 0, 1 },
        "compare results with MPI_Allreduce" },
    [OPTION_TIMEOUT] = { 'T', "timeout", "SECONDS", "0",
        perf_parse_seconds, TO(timeout), { NULL, 0, 1e6 },
        "end with exit status 3 after that time; 0: never" },
    [OPTION_PROFILE] = { 0, "profile", NULL, NULL,
        perf_parse_flag, TO(profile), { NULL, 0, 0 },
        "print how long the phases of each row's calls take" },
    [OPTION_FORMAT] = { 0, "format", "NAME", "table",
        perf_parse_choice, TO(format), { perf_format_name, 0, 0 },
        "form of the standard output" },
    [OPTION_JSON] = { 0, "json", "FILE", NULL,
        perf_parse_path, TO(json), { NULL, 0, 0 },
        "also write JSON lines to a file" },
    [OPTION_LABEL] = { 0, "label", "TEXT", NULL,
        perf_parse_path, TO(label), { NULL, 0, 0 },
        "remark on all rows, such as the name of the network" },
    [OPTION_HELP] = { 'h', "help", NULL, NULL,
        perf_parse_flag, TO(help), { NULL, 0, 0 },
        "print this and exit" },
    [OPTION_VERSION] = { 0, "version", NULL, NULL,
        perf_parse_flag, TO(version), { NULL, 0, 0 },
        "print the versions of program and library, and exit" },
    [OPTION_STUDY] = { 0, "study", "NAME", "none",
        perf_parse_choice, TO(study), { perf_study_name, 0, 0 },
        "print a study instead of the cases" },
    [OPTION_PARTS] = { 0, "parts", "N", "16",
        perf_parse_count, TO(parts), { NULL, 1, 4096 },
        "ranks that formats, hash, balance and threads assume" },
    [OPTION_PIECE] = { 0, "piece", "BYTES", "65536",
        perf_parse_count, TO(piece), { NULL, 1, 1e9 },
        "bytes of the least piece of a loop, for the study threads" },
    [OPTION_EVERY] = { 0, "every", "K", "1",
        perf_parse_count, TO(every), { NULL, 1, 1e6 },
        "only each K-th point of the study selector" },
    [OPTION_BUDGET] = { 0, "budget", "SECONDS", "0",
        perf_parse_seconds, TO(budget), { NULL, 0, 1e6 },
        "the study selector begins no point after that time; 0: no limit" },
    [OPTION_CALIBRATE] = { 0, "calibrate", "FILE", NULL,
        perf_parse_path, TO(calibrate), { NULL, 0, 0 },
        "write the machine's constants, and exit" },
    [OPTION_COSTS] = { 0, "costs", "FILE", NULL,
        perf_parse_path, TO(costs), { NULL, 0, 0 },
        "write the costs of the library's work, and exit" },
    [OPTION_CHARGE] = { 0, "charge", "FILE", NULL,
        perf_parse_path, TO(charge), { NULL, 0, 0 },
        "print the cost of each row's work by such a file" },
    [OPTION_MEMORY_BANDWIDTH] = { 0, "memory-bandwidth", "GB/S", "0",
        perf_parse_real, TO(memory_bandwidth), { NULL, 0, 1e6 },
        "of a node, for --charge; 0: 8 times one thread's" },
    [OPTION_MEMORY] = { 0, "memory", "BYTES", "0",
        perf_parse_count, TO(memory), { NULL, 0, 1e15 },
        "limit of a rank's buffers; 0: 3/4 of its share of the node" },
};

static const struct perf_group groups[] = {
    { OPTION_COUNT, "Tensors" },
    { OPTION_COLLECTIVE, "Calls" },
    { OPTION_SCHEME, "Schemes and settings" },
    { OPTION_ITERATIONS, "Measurement" },
    { OPTION_FORMAT, "Output" },
    { OPTION_STUDY, "Studies, constants and costs" },
};
/* clang-format on */

static const struct perf_command command = {
    .program = "mpix_sparse_perf",
    .usage = "usage: mpirun -n N mpix_sparse_perf [options]\n\n"
             "Time the sparse allreduce against MPI and the scheme allgather, or others against MPI.\n"
             "A LIST is separated by commas; every combination is measured. Defaults are in parentheses.\n\n"
             "Example: mpirun -n 4 mpix_sparse_perf -c 16M -d 0.001,0.01,0.1\n",
    .ending = "Exit status: 0 success, 1 a wrong value or nothing measured, 2 bad usage, 3 out of time.\n",
    .options = table,
    .groups = groups,
    .n = OPTIONS,
    .n_groups = sizeof groups / sizeof groups[0],
};

/* True if --scale leaves no element of a vector. */
static bool is_scaled_away(const struct perf_options *options)
{
    if (options->workload.kind == PERF_MODEL)
        return perf_model_get(options->workload.model)->count / (uint64_t)options->scale <
               (uint64_t)options->row_len;
    for (int i = 0; i < options->count.n && options->workload.kind == PERF_RANDOM; i++)
        if (options->count.at[i] > 0 && options->count.at[i] < options->scale)
            return true;
    return false;
}

/* Returns the sentence on a combination of options that makes no sense, or NULL. */
static const char *conflict(const struct perf_options *options, const bool *given)
{
    static const double index_end[] = { 2147483648.0, 4294967296.0, 9e18, 9e18, 9e18 };
    int kind = options->workload.kind;

    for (int i = 0; i < options->count.n && kind == PERF_RANDOM; i++) {
        if ((double)options->count.at[i] > index_end[options->index])
            return "option --index: the type is too narrow for --count";
        if ((double)options->count.at[i] * (double)options->row_len > 1e17)
            return "option --count: that many elements of --row values are too many";
    }
    if (kind != PERF_RANDOM && (given[OPTION_COUNT] || given[OPTION_DENSITY]))
        return "options --count and --density: the workload has its own";
    if (kind != PERF_RANDOM && (given[OPTION_OVERLAP] || given[OPTION_SKEW]))
        return "options --overlap and --skew: the workload has its own";
    if (kind != PERF_TEXT_FILE && given[OPTION_BATCH])
        return "option --batch is for --workload text:FILE";
    if (kind != PERF_MODEL && (given[OPTION_GPUS] || given[OPTION_UNEQUAL] || given[OPTION_DRIFT]))
        return "options --gpus, --unequal and --drift are for models";
    if (kind == PERF_TRACE_FILE && given[OPTION_ROW])
        return "option --row: a trace has its own";
    if ((kind == PERF_TEXT_FILE || kind == PERF_TRACE_FILE) && given[OPTION_SCALE])
        return "option --scale is for random vectors and models";
    if (is_scaled_away(options))
        return "option --scale: nothing is left of the vector";
    if (given[OPTION_COSTS] && given[OPTION_CHARGE])
        return "options --costs and --charge: what is measured is not charged";
    if (given[OPTION_MEMORY_BANDWIDTH] && !given[OPTION_CHARGE])
        return "option --memory-bandwidth is for --charge";
    for (int i = 0; i < options->threads.n && given[OPTION_COSTS] && given[OPTION_THREADS]; i++)
        if (strcmp(options->threads.at[i], "auto") == 0)
            return "option --threads: with --costs it takes numbers, not auto";
    if (options->in_place && options->interface != PERF_DENSE)
        return "option --in-place is for --interface dense";
    if (options->plan && options->interface != PERF_COO)
        return "option --plan is for --interface coo";
    if (options->plan && options->overlap_compute)
        return "options --plan and --overlap-compute: calls in flight are no starts of a plan";
    if (options->late + options->jitter > 0 && options->overlap_compute)
        return "options --late and --jitter: --overlap-compute has calls in flight";
    if (options->between > 0 && options->buffers != PERF_HOST)
        return "option --between is for buffers of the host";
    if (options->skew > 0 && options->skew < 0.125)
        return "option --skew: neither 0 nor from 0.125 to 1";
    return NULL;
}

/* True if a row can be made of the schemes asked for. */
static bool has_scheme(const struct perf_options *options)
{
    for (int i = 0; i < options->scheme.n; i++)
        if (perf_scheme_serves(options->scheme.at[i], options->collective))
            return true;
    return false;
}

/* Returns the sentence on an option that the collective does not take, or NULL. */
static const char *collective_conflict(const struct perf_options *options, const bool *given)
{
    bool dense = options->interface == PERF_DENSE;

    if (!has_scheme(options))
        return "option --scheme: none of these has this --collective";
    if (options->collective == SAR_ALLREDUCE)
        return given[OPTION_BLOCK] ? "option --block is for --collective reduce_scatter and allgather" : NULL;
    if (options->study != PERF_NO_STUDY || given[OPTION_CALIBRATE] || given[OPTION_COSTS])
        return "option --collective is not for --study, --calibrate and --costs";
    if (options->collective == SAR_ALLGATHER && given[OPTION_OP])
        return "option --op: an allgather does not reduce";
    if (dense && options->collective == SAR_ALLGATHER)
        return "option --interface: an allgather has coordinates";
    if (dense && given[OPTION_BLOCK])
        return "option --block is for --interface coo: dense parts are contiguous";
    if (options->buffers != PERF_HOST)
        return "option --buffers: those of a device are for --collective allreduce";
    if (given[OPTION_PARTITION] || given[OPTION_GRAIN] || given[OPTION_COLUMNS])
        return "options --partition, --grain and --columns are for --collective allreduce";
    return NULL;
}

/* Returns the sentence on an option that a study does not take, or NULL. */
static const char *study_conflict(const struct perf_options *options, const bool *given)
{
    int study = options->study;

    if (study == PERF_NO_STUDY && given[OPTION_PARTS])
        return "option --parts is for --study";
    if (study != PERF_NO_STUDY && study != PERF_THREADS && given[OPTION_THREADS])
        return "option --threads: of the studies, only threads takes it";
    if (study != PERF_THREADS && given[OPTION_PIECE])
        return "option --piece is for --study threads";
    if (study != PERF_SELECTOR && (given[OPTION_EVERY] || given[OPTION_BUDGET]))
        return "options --every and --budget are for --study selector";
    if (options->buffers != PERF_HOST && (study != PERF_NO_STUDY || options->message_replay))
        return "option --buffers: --study and --message-replay are for those of the host";
    if (study == PERF_NO_STUDY)
        return NULL;
    if (options->alone)
        return "option --alone is not for --study";
    if (given[OPTION_SCHEME])
        return "option --scheme is not for --study";
    if (given[OPTION_CALIBRATE])
        return "option --calibrate is not for --study";
    if (given[OPTION_COSTS])
        return "option --costs is not for --study";
    if (options->format == PERF_OSU || options->format == PERF_DEMO)
        return "option --format: a study is printed as table, csv or json";
    if (options->overlap_compute || options->between > 0)
        return "options --overlap-compute and --between are not for --study";
    if (options->late + options->jitter > 0)
        return "options --late and --jitter are not for --study";
    if (options->message_replay || options->profile)
        return "options --message-replay and --profile are not for --study";
    if (study != PERF_BALANCE && study != PERF_PROFILE && options->workload.kind != PERF_RANDOM)
        return "option --workload: of the studies, only balance and profile take one";
    if (study == PERF_BALANCE && options->workload.kind != PERF_RANDOM &&
        options->workload.kind != PERF_TEXT_FILE)
        return "option --workload: the study balance takes a text";
    return NULL;
}

/* Takes values from the environment for options that were not given. The library itself checks them later,
 * except for wire-values, which is a number here. */
static bool take_environment(struct perf_options *options, const bool *given)
{
    char values[PERF_NAME_MAX], why[PERF_WHY_MAX];

    if (!given[OPTION_SCHEME] && perf_setting_get(PERF_SETTING_SCHEME, options->scheme.at[0]))
        options->scheme.n = 1;
    if (!given[OPTION_WIRE] && perf_setting_get(PERF_SETTING_WIRE, options->wire.at[0]))
        snprintf(options->default_wire, PERF_NAME_MAX, "%s", options->wire.at[0]);
    if (!given[OPTION_PARTITION] && perf_setting_get(PERF_SETTING_PARTITION, options->partition.at[0]))
        snprintf(options->default_partition, PERF_NAME_MAX, "%s", options->partition.at[0]);
    if (!given[OPTION_COLUMNS] && perf_setting_get(PERF_SETTING_COLUMNS, options->columns.at[0]))
        snprintf(options->default_columns, PERF_NAME_MAX, "%s", options->columns.at[0]);
    if (!given[OPTION_THREADS] && perf_setting_get(PERF_SETTING_THREADS, options->threads.at[0]))
        options->threads.n = 1;
    snprintf(options->default_threads, PERF_NAME_MAX, "%s", options->threads.at[0]);
    if (!given[OPTION_GRAIN])
        perf_setting_get(PERF_SETTING_GRAIN, options->grain);
    if (given[OPTION_WIRE_VALUES] || !perf_setting_get(PERF_SETTING_WIRE_VALUES, values) ||
        perf_parse_choice(&table[OPTION_WIRE_VALUES].domain, values, &options->values, why))
        return true;
    fprintf(stderr, "mpix_sparse_perf: MPIX_SPARSE_WIRE_VALUES is '%s', which %s\n", values, why);
    return false;
}

static bool read_all(int argc, char **argv, struct perf_options *options)
{
    enum { TEXT_ROW = 64 };
    bool given[OPTIONS] = { false };
    const char *problem;

    memset(options, 0, sizeof *options);
    snprintf(options->default_wire, PERF_NAME_MAX, "auto");
    snprintf(options->default_partition, PERF_NAME_MAX, "auto");
    snprintf(options->default_columns, PERF_NAME_MAX, "auto");
    if (!perf_command_read(&command, argc, argv, options, given))
        return false;
    problem = conflict(options, given);
    if (problem == NULL)
        problem = collective_conflict(options, given);
    if (problem == NULL)
        problem = study_conflict(options, given);
    if (problem != NULL) {
        fprintf(stderr, "mpix_sparse_perf: %s\n", problem);
        return false;
    }
    if (options->workload.kind == PERF_TEXT_FILE && !given[OPTION_ROW])
        options->row_len = TEXT_ROW;
    if (options->study != PERF_NO_STUDY && !given[OPTION_COUNT])
        options->count.n = 0;
    if (options->study != PERF_NO_STUDY && !given[OPTION_DENSITY])
        options->density.n = 0;
    options->seed_given = given[OPTION_SEED];
    options->threads_given = given[OPTION_THREADS];
    options->iterations_given = given[OPTION_ITERATIONS];
    return take_environment(options, given);
}

bool perf_options_show_threads(const struct perf_options *options)
{
    return options->threads.n > 1 || strcmp(options->threads.at[0], "auto") != 0;
}

static void print_version(void)
{
    int library = 0;

    MPIX_Sparse_get_version(&library);
    perf_command_version(&command, MPIX_SPARSE_VERSION, library);
}

enum perf_options_status perf_options_read(int argc, char **argv, const struct perf_world *world,
                                           struct perf_options *options)
{
    int action = PERF_RUN;

    if (world->rank == 0) {
        if (!read_all(argc, argv, options))
            action = PERF_BAD_USAGE;
        else if (options->help || options->version)
            action = PERF_DONE;
        if (action == PERF_DONE && options->help)
            perf_command_help(&command);
        else if (action == PERF_DONE)
            print_version();
    }
    MPI_Bcast(&action, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(options, (int)sizeof *options, MPI_BYTE, 0, MPI_COMM_WORLD);
    return (enum perf_options_status)action;
}
