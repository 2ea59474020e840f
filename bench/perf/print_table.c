/* SPDX-License-Identifier: BSD-3-Clause */
/* Formats `table` and `osu`: one line for each row; remarks begin with #. */

#include <math.h>
#include <mpi.h>
#include <mpix_sparse.h>
#include <stdio.h>
#include <string.h>

#include "bench/perf/report.h"

enum { WIDTH = 80 };

static const double SHARE = 0.01; /* least share of a row's median for a phase to be printed */

/* Prints the name of the MPI library: the first words of its version string. */
static void print_mpi(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    char *sentence;
    int length, word = 0;

    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = '\0';
    sentence = strstr(text, ". ");
    if (sentence != NULL)
        *sentence = '\0';
    for (char *part = strtok(text, " \t"); part != NULL; part = strtok(NULL, " \t"))
        if (strcmp(part, "Version:") != 0)
            printf("%s%s", word++ == 0 ? "" : " ", part);
}

static void print_tensors(const struct perf_options *options)
{
    static const char *const memory[] = {
        [PERF_HOST] = "",
        [PERF_CUDA] = "buffers on devices, ",
        [PERF_MIXED] = "buffers of the first rank of each node on a device, ",
    };
    char workload[PERF_WORKLOAD_MAX];

    if (options->collective != SAR_ALLREDUCE)
        printf("# collective %s, ", perf_collective_name(options->collective));
    else
        printf("# ");
    if (options->block > 0)
        printf("blocks of %lld, ", options->block);
    printf("interface %s%s, %s", perf_interface_name(options->interface),
           options->in_place ? " in place"
           : options->plan   ? " by plans"
                             : "",
           memory[options->buffers]);
    perf_source_name(&options->workload, workload, sizeof workload);
    printf("%s, ", workload);
    if (options->workload.kind == PERF_TEXT_FILE)
        printf("%lld words a batch, ", options->batch);
    if (options->workload.kind == PERF_RANDOM)
        printf("overlap %g, skew %g, ", options->overlap, options->skew);
    if (options->scale > 1)
        printf("scale %lld, ", options->scale);
    printf("%s indices, check %s\n", perf_order_name(options->order), options->check ? "on" : "off");
}

static void print_columns(const struct perf_options *options)
{
    int format = options->format;

    if (format == PERF_TABLE) {
        const char *columns = options->row_len > 1 ? "cols    " : "";
        const char *threads = perf_options_show_threads(options) ? "threads " : "";
        printf("#%11s %5s %9s %6s %4s %-28s %-25s %-16s %s%s%11s %11s %11s %8s %11s %8s %8s %8s%s %6s%s\n",
               "count", "row", "density", "type", "op", "  scheme", "wire(push/pull)", "part", columns,
               threads, "median", "min", "p99", "algbw", "sent", "vs-dense", "vs-allg.", "x-memory",
               options->message_replay ? "  x-skel." : "", "wrong",
               options->overlap_compute ? "     wait   thread" : "");
        printf("#%11s %5s %9s %6s %4s %-28s %-25s %-16s %*s%11s %11s %11s %8s %11s %8s %8s %8s%s %6s%s\n",
               "(elements)", "", "", "", "", "", "", "", (int)(strlen(columns) + strlen(threads)), "", "(us)",
               "(us)", "(us)", "(GB/s)", "(bytes)", "(times)", "(times)", "(times)",
               options->message_replay ? "  (times)" : "", "",
               options->overlap_compute ? "  (times)  (times)" : "");
    } else if (format == PERF_OSU) {
        printf("%-10s%20s%20s%20s%20s%20s\n", "# Size", "Median Latency(us)", "Min Latency(us)",
               "P99 Latency(us)", "Iterations", "Validation");
    }
}

void perf_print_header(const struct perf_report *report)
{
    const struct perf_options *options = report->options;
    const struct perf_world *world = report->world;

    printf("# mpix_sparse_perf %d.%d.%d, ", MPIX_SPARSE_VERSION >> 16, MPIX_SPARSE_VERSION >> 8 & 255,
           MPIX_SPARSE_VERSION & 255);
    print_mpi();
    printf(", %d rank%s %son %d node%s, seed %lld\n", world->ranks, world->ranks == 1 ? "" : "s",
           world->nodes_overridden ? "taken to be " : "", world->nodes, world->nodes == 1 ? "" : "s",
           options->seed);
    if (options->label[0] != '\0')
        printf("# %s\n", options->label);
    if (options->study != PERF_NO_STUDY) {
        printf("# study %s\n", perf_study_name(options->study));
        return;
    }
    print_tensors(options);
    printf("# warmup %lld, iterations %lld, time = max over ranks, median over iterations\n", options->warmup,
           options->iterations);
    print_columns(options);
}

static void print_times(double times)
{
    if (isnan(times))
        printf(" %8s", "-");
    else
        printf(" %8.2f", times);
}

/* Prints the ranks that share a row; parentheses mark a choice of the library. */
static void print_slices(const struct perf_record *r)
{
    char columns[24] = "-";

    if (r->row_len == 1)
        return;
    if (r->columns > 1)
        snprintf(columns, sizeof columns, strcmp(r->columns_requested, "auto") == 0 ? "(%lld)" : "%lld",
                 r->columns);
    printf("%-7s ", columns);
}

/* Prints the threads of a call's work; parentheses mark a choice of the library. */
static void print_threads(const struct perf_record *r)
{
    char threads[24] = "-";

    if (!r->shows_threads)
        return;
    if (r->threads > 0)
        snprintf(threads, sizeof threads, strcmp(r->threads_requested, "auto") == 0 ? "(%lld)" : "%lld",
                 r->threads);
    printf("%-7s ", threads);
}

/* Joins two names by a slash; parentheses mark a choice of the library. */
static void format_ran(char *text, const char *asked, const char *first, const char *second)
{
    bool own = strcmp(asked, "auto") == 0 && strcmp(first, "none") != 0,
         is_single = strcmp(second, "none") == 0;

    snprintf(text, WIDTH, "%s%s%s%s%s", own ? "(" : "", first, is_single ? "" : "/", is_single ? "" : second,
             own ? ")" : "");
}

static void print_row(const struct perf_record *r)
{
    char scheme[2 * PERF_NAME_MAX], wire[WIDTH], part[WIDTH], grain[24];
    bool is_auto = strcmp(r->scheme, r->ran) != 0;

    snprintf(scheme, sizeof scheme, "%c %s%s%s%s", r->chosen ? '*' : ' ', r->scheme, is_auto ? "(" : "",
             is_auto ? r->ran : "", is_auto ? ")" : "");
    format_ran(wire, r->wire_requested, r->push_wire, r->pull_wire);
    snprintf(grain, sizeof grain, "%lld", r->grain);
    format_ran(part, r->partition_requested, r->partition, r->grain > 0 ? grain : "none");
    printf("%12lld %5lld %9.3g %6s %4s %-28s %-25s %-16s ", r->count, r->row_len, r->density, r->datatype,
           r->op, scheme, wire, part);
    print_slices(r);
    print_threads(r);
    printf("%11.2f %11.2f %11.2f %8.2f %11lld", r->median * 1e6, r->min * 1e6, r->p99 * 1e6,
           r->bytes / r->median / 1e9, r->bytes_sent_max);
    print_times(r->dense_median / r->median);
    print_times(r->allgather_median / r->median);
    print_times(r->over_memory);
    if (r->replays)
        print_times(r->over_replay);
    if (r->wrong < 0)
        printf(" %6s", "-");
    else
        printf(" %6lld", r->wrong);
    if (r->overlap_compute) {
        print_times(r->wait_ratio);
        print_times(r->thread_ratio);
    }
    putchar('\n');
}

/* Prints the phases that take at least SHARE of a call. */
static void print_phases(const struct perf_phases *phases, double median)
{
    for (int i = 0; i < phases->n; i++)
        if (phases->at[i].max >= SHARE * median)
            printf("#   %-26s max %11.2f us, mean %11.2f us\n", phases->at[i].name, phases->at[i].max * 1e6,
                   phases->at[i].mean * 1e6);
}

void perf_print_table(const struct perf_case_result *result)
{
    bool profiled = false, extrapolated = false;

    for (int i = 0; i < result->records; i++) {
        print_row(&result->record[i]);
        print_phases(result->record[i].phases, result->record[i].median);
        profiled |= result->record[i].phases->n > 0;
        extrapolated |= result->record[i].extrapolated;
    }
    if (extrapolated)
        printf("# the file of costs has fewer threads than these rows: their work is extrapolated\n");
    if (profiled && result->record[0].cacheline > 0)
        printf("# a cache line takes %.0f ns from one rank to another\n", result->record[0].cacheline * 1e9);
}

/* Lines of one listing differ in the size only; a remark precedes each listing. */
void perf_print_osu(struct perf_report *report, const struct perf_case_result *result)
{
    for (int i = 0; i < result->records; i++) {
        const struct perf_record *r = &result->record[i];
        char label[sizeof report->label];

        snprintf(label, sizeof label,
                 "# Scheme: %s, wire: %s, partition: %s, columns: %s, threads: %s, "
                 "density: %g, datatype: %s, op: %s",
                 r->scheme, r->wire_requested, r->partition_requested, r->columns_requested,
                 r->threads_requested, r->density, r->datatype, r->op);
        if (strcmp(label, report->label) != 0)
            printf("%s\n", label);
        memcpy(report->label, label, sizeof label);
        printf("%-10.0f%20.2f%20.2f%20.2f%20lld%20s\n", r->bytes, r->median * 1e6, r->min * 1e6, r->p99 * 1e6,
               r->iterations,
               r->wrong < 0    ? "-"
               : r->wrong == 0 ? "Pass"
                               : "Fail");
    }
}
