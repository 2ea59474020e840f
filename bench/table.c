/* SPDX-License-Identifier: BSD-3-Clause */
/* The formats `table` and `osu`: a line a row, and remarks behind a #. */

#include <math.h>
#include <mpi.h>
#include <mpix_sparse.h>
#include <stdio.h>
#include <string.h>

#include "report.h"

enum { WIDTH = 80 };

static const double SHARE = 0.01; /* of a row's median, from which on a phase is printed */

/* The name of the MPI library: what its version string says first. */
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
    char workload[PERF_WORKLOAD_MAX];

    printf("# interface %s%s, %s", perf_interface_name(options->interface),
           options->in_place ? " in place" : "",
           options->buffers == PERF_CUDA ? "buffers on a device, " : "");
    perf_source_name(&options->content, workload, sizeof workload);
    printf("%s, ", workload);
    if (options->content.kind == PERF_TEXT_FILE)
        printf("%lld words a batch, ", options->batch);
    if (options->content.kind == PERF_RANDOM)
        printf("overlap %g, skew %g, ", options->overlap, options->skew);
    if (options->scale > 1)
        printf("scale %lld, ", options->scale);
    printf("%s indices, check %s\n", perf_order_name(options->order), options->check ? "on" : "off");
}

static void print_columns(const struct perf_options *options)
{
    int format = options->format;

    if (format == PERF_TABLE) {
        printf("#%11s %5s %9s %6s %4s %-28s %-25s %-10s %11s %11s %11s %8s %11s %8s %8s %8s%s %6s%s\n",
               "count", "row", "density", "type", "op", "  scheme", "wire(push/pull)", "part", "median",
               "min", "p99", "algbw", "sent", "vs-dense", "vs-allg.", "x-memory",
               options->skeleton ? "  x-skel." : "", "wrong",
               options->overlap_compute ? "     wait   thread" : "");
        printf("#%11s %5s %9s %6s %4s %-28s %-25s %-10s %11s %11s %11s %8s %11s %8s %8s %8s%s %6s%s\n",
               "(elements)", "", "", "", "", "", "", "", "(us)", "(us)", "(us)", "(GB/s)", "(bytes)",
               "(times)", "(times)", "(times)", options->skeleton ? "  (times)" : "", "",
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
           world->pretended ? "taken to be " : "", world->nodes, world->nodes == 1 ? "" : "s", options->seed);
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

/* Two names with a slash between them, in parentheses when nobody asked for them. */
static void name_what_ran(char *text, const char *asked, const char *first, const char *second)
{
    bool own = strcmp(asked, "auto") == 0 && strcmp(first, "none") != 0, alone = strcmp(second, "none") == 0;

    snprintf(text, WIDTH, "%s%s%s%s%s", own ? "(" : "", first, alone ? "" : "/", alone ? "" : second,
             own ? ")" : "");
}

static void print_row(const struct perf_record *r)
{
    char scheme[2 * PERF_NAME_MAX], wire[WIDTH], part[WIDTH], grain[24];
    bool is_auto = strcmp(r->scheme, r->ran) != 0;

    snprintf(scheme, sizeof scheme, "%c %s%s%s%s", r->chosen ? '*' : ' ', r->scheme, is_auto ? "(" : "",
             is_auto ? r->ran : "", is_auto ? ")" : "");
    name_what_ran(wire, r->wire_requested, r->push_wire, r->pull_wire);
    snprintf(grain, sizeof grain, "%lld", r->grain);
    name_what_ran(part, r->partition_requested, r->partition, r->grain > 0 ? grain : "none");
    printf("%12lld %5lld %9.3g %6s %4s %-28s %-25s %-10s %11.2f %11.2f %11.2f %8.2f %11lld", r->count, r->row,
           r->density, r->datatype, r->op, scheme, wire, part, r->median * 1e6, r->min * 1e6, r->p99 * 1e6,
           r->bytes / r->median / 1e9, r->bytes_sent_max);
    print_times(r->dense_median / r->median);
    print_times(r->allgather_median / r->median);
    print_times(r->over_memory);
    if (r->skeletons)
        print_times(r->over_skeleton);
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

/* Those that matter. */
static void print_phases(const struct perf_phases *phases, double median)
{
    for (int i = 0; i < phases->n; i++)
        if (phases->at[i].max >= SHARE * median)
            printf("#   %-26s max %11.2f us, mean %11.2f us\n", phases->at[i].name, phases->at[i].max * 1e6,
                   phases->at[i].mean * 1e6);
}

void perf_print_table(const struct perf_outcome *outcome)
{
    bool profiled = false;

    for (int i = 0; i < outcome->records; i++) {
        print_row(&outcome->record[i]);
        print_phases(outcome->record[i].phases, outcome->record[i].median);
        profiled |= outcome->record[i].phases->n > 0;
    }
    if (profiled && outcome->record[0].line > 0)
        printf("# a line of cache takes %.0f ns from a rank to another\n", outcome->record[0].line * 1e9);
}

/* Only the size changes between lines of such a listing; a remark says what else does. */
void perf_print_osu(struct perf_report *report, const struct perf_outcome *outcome)
{
    for (int i = 0; i < outcome->records; i++) {
        const struct perf_record *r = &outcome->record[i];
        char label[sizeof report->label];

        snprintf(label, sizeof label,
                 "# Scheme: %s, wire: %s, partition: %s, density: %g, datatype: %s, op: %s", r->scheme,
                 r->wire_requested, r->partition_requested, r->density, r->datatype, r->op);
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
