/* SPDX-License-Identifier: BSD-3-Clause */
/* Format `demo`: a case in words. */

#include <math.h>
#include <string.h>

#include "bench/perf/report.h"

enum { WIDTH = 24 };

static const char *time_text(double seconds, char *text)
{
    if (isnan(seconds))
        snprintf(text, WIDTH, "-");
    else if (seconds >= 1)
        snprintf(text, WIDTH, "%.2f s", seconds);
    else if (seconds >= 1e-3)
        snprintf(text, WIDTH, "%.2f ms", seconds * 1e3);
    else
        snprintf(text, WIDTH, "%.1f us", seconds * 1e6);
    return text;
}

static const char *bytes_text(double bytes, char *text)
{
    if (bytes >= 1e9)
        snprintf(text, WIDTH, "%.2f GB", bytes / 1e9);
    else if (bytes >= 1e6)
        snprintf(text, WIDTH, "%.2f MB", bytes / 1e6);
    else if (bytes >= 1e3)
        snprintf(text, WIDTH, "%.1f kB", bytes / 1e3);
    else
        snprintf(text, WIDTH, "%.0f B", bytes);
    return text;
}

/* Separates groups of three digits. */
static const char *count_text(long long count, char *text)
{
    char digits[WIDTH];
    int length = snprintf(digits, sizeof digits, "%lld", count), used = 0;

    for (int i = 0; i < length && used < WIDTH - 2; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            text[used++] = ' ';
        text[used++] = digits[i];
    }
    text[used] = '\0';
    return text;
}

static const char *speed_text(double baseline, double seconds, char *text)
{
    if (isnan(baseline / seconds))
        snprintf(text, WIDTH, "-");
    else if (fabs(baseline / seconds - 1) < 0.05)
        snprintf(text, WIDTH, "the same");
    else if (seconds <= baseline)
        snprintf(text, WIDTH, "%.1f x faster", baseline / seconds);
    else
        snprintf(text, WIDTH, "%.1f x slower", seconds / baseline);
    return text;
}

static void print_line(const char *what, double seconds, const struct perf_record *r, const char *sent)
{
    char time[WIDTH], dense[WIDTH], allgather[WIDTH];

    printf("  %-54s %11s %18s %16s %15s\n", what, time_text(seconds, time),
           speed_text(r->dense_median, seconds, dense), speed_text(r->allgather_median, seconds, allgather),
           sent);
}

static void print_title(const struct perf_record *r)
{
    char count[WIDTH], bytes[WIDTH], nnz[WIDTH];

    printf("\n%s of %s %s", r->op, count_text(r->count, count), r->datatype);
    if (r->row_len > 1)
        printf(" rows of %lld", r->row_len);
    printf(" (%s) over %lld ranks, %s of them (%.3g %%) on each rank", bytes_text(r->bytes, bytes), r->ranks,
           count_text((long long)(r->nnz_in_mean + 0.5), nnz), 100 * r->density);
    printf(", %s (%.3g %%) in the result\n\n", count_text(r->nnz_out, nnz),
           r->count > 0 ? 100.0 * (double)r->nnz_out / (double)r->count : 0);
}

static void print_row(const struct perf_record *r)
{
    char what[2 * PERF_NAME_MAX], sent[WIDTH];
    snprintf(what, sizeof what, "%c %s", r->chosen ? '*' : ' ', r->scheme);
    if (strcmp(r->wire_requested, "auto") != 0)
        snprintf(what + strlen(what), sizeof what - strlen(what), ", %s", r->wire_requested);
    if (strcmp(r->partition_requested, "auto") != 0)
        snprintf(what + strlen(what), sizeof what - strlen(what), ", %s", r->partition_requested);
    if (r->columns > 1)
        snprintf(what + strlen(what), sizeof what - strlen(what), ", rows in %lld slices", r->columns);
    print_line(what, r->median, r, bytes_text((double)r->bytes_sent_max, sent));
    printf("      %s\n", perf_scheme_find(r->scheme).summary);
}

void perf_print_demo(const struct perf_case_result *result)
{
    if (result->records == 0)
        return;
    print_title(result->record);
    printf("  %-54s %11s %18s %16s %15s\n", "  what", "time", "vs MPI_Allreduce", "vs allgather",
           "sent per rank");
    print_line("  MPI_Allreduce: all elements, zeros too", result->record->dense_median, result->record, "");
    for (int i = 0; i < result->records; i++)
        print_row(&result->record[i]);
    if (result->pick != NULL)
        printf("\n  The selector chose %s: %s\n", result->pick->scheme, result->pick->reason);
}
