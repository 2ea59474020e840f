/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of the report: collected while the program runs, written at MPI_Finalize. */

#include "preload/stats.h"

#include <inttypes.h>
#include <stdlib.h>

#include "mpi_ext/datatypes.h"

static bool same(const struct sar_stats_call *a, const struct sar_stats_call *b)
{
    return a->kind == b->kind && a->ranks == b->ranks && a->key.count == b->key.count &&
           a->key.base == b->key.base && a->key.op == b->key.op;
}

static struct sar_stats_row *row_of(struct sar_stats_row **rows, const struct sar_stats_call *stats)
{
    struct sar_stats_row **at = rows;
    while (*at != NULL && !same(&(*at)->last, stats))
        at = &(*at)->next;
    if (*at == NULL && (*at = calloc(1, sizeof **at)) != NULL)
        (*at)->last = *stats;
    return *at;
}

void sar_stats_add(struct sar_stats_row **rows, const struct sar_stats_call *stats)
{
    struct sar_stats_row *row = row_of(rows, stats);
    if (row == NULL)
        return;
    if (!stats->taken && (row->plain == 0 || stats->seconds < row->least_plain_seconds))
        row->least_plain_seconds = stats->seconds;
    row->samples += stats->sampled;
    row->sample_seconds += stats->sample_seconds;
    *(stats->taken ? &row->taken : &row->plain) += 1;
    *(stats->taken ? &row->taken_seconds : &row->plain_seconds) += stats->seconds;
    row->density += stats->density >= 0 ? stats->density : 0;
    row->density_count += stats->density >= 0;
    if (stats->scheme[0] != '\0')
        row->last = *stats;
}

/* Writes a column: a number, or "-" if it is unknown. */
static void cell(FILE *file, int width, int decimals, double number, bool known)
{
    if (known)
        fprintf(file, " %*.*f", width, decimals, number);
    else
        fprintf(file, " %*s", width, "-");
}

static double mean(double sum, uint64_t n)
{
    return n == 0 ? 0 : sum / (double)n;
}

/* Sets the seconds that the library saves a call: against the fastest call of MPI, of which there may be few.
 * Returns false unless both kinds of calls were timed. MPI's first call touches new memory, and is no
 * measure. */
static bool saving_per_call(const struct sar_stats_row *row, double *seconds)
{
    *seconds = row->least_plain_seconds - mean(row->taken_seconds, row->taken);
    return row->plain > 1 && row->taken > 0 && row->last.kind == SAR_STATS_BLOCKING;
}

static double missed(const struct sar_stats_row *row, double saving)
{
    return saving > 0 ? saving * (double)row->plain : 0;
}

static void write_row(FILE *file, const struct sar_stats_row *row)
{
    static const char *const kinds[SAR_STATS_KINDS] = { "blocking", "nonblocking", "persistent" };
    static const char *const ops[SAR_OPS] = { "sum",  "max", "min", "prod", "land",
                                              "band", "lor", "bor", "lxor", "bxor" };
    const struct sar_stats_call *last = &row->last;
    bool timed = last->kind == SAR_STATS_BLOCKING, ran = last->scheme[0] != '\0';
    double saving;
    bool compared = saving_per_call(row, &saving);
    fprintf(file, "%-12s %6d %12" PRId64 " %-6s %-4s %9" PRIu64 " %9" PRIu64 " %6" PRIu64, kinds[last->kind],
            last->ranks, last->key.count, sar_dtype_name(last->key.base), ops[last->key.op],
            row->plain + row->taken, row->taken, row->samples);
    cell(file, 8, 4, mean(row->density, row->density_count), row->density_count > 0);
    fprintf(file, " %-18s", ran ? last->scheme : "-");
    cell(file, 11, 1, last->predicted * 1e6, ran);
    cell(file, 9, 1, mean(row->sample_seconds, row->samples) * 1e6, row->samples > 0);
    cell(file, 11, 1, mean(row->taken_seconds, row->taken) * 1e6, timed && row->taken > 0);
    cell(file, 11, 1, row->least_plain_seconds * 1e6, timed && row->plain > 0);
    cell(file, 10, 6, saving * (double)row->taken, compared);
    cell(file, 10, 6, missed(row, saving), compared);
    fprintf(file, "\n");
}

static void write_totals(FILE *file, const struct sar_stats_row *rows, uint64_t others)
{
    double saving, gained = 0, could = 0, all = 0, probes = 0;
    for (; rows != NULL; rows = rows->next) {
        probes += rows->sample_seconds;
        all += rows->last.kind == SAR_STATS_BLOCKING ? rows->plain_seconds + rows->taken_seconds : 0;
        if (!saving_per_call(rows, &saving))
            continue;
        gained += saving * (double)rows->taken;
        could += missed(rows, saving);
    }
    fprintf(file, "# other calls: %" PRIu64 "\n", others);
    fprintf(file, "# blocking calls took %.6f s, probes %.6f s; gained %.6f s, missed %.6f s\n", all, probes,
            gained, could);
}

void sar_stats_write(FILE *file, const struct sar_stats_row *rows, uint64_t others)
{
    fprintf(file, "# mpix_sparse_preload: allreduces of rank 0, by shape; see mpix_sparse_preload(7)\n");
    fprintf(file, "#%-11s %6s %12s %-6s %-4s %9s %9s %6s %8s %-18s %11s %9s %11s %11s %10s %10s\n", "how",
            "ranks", "count", "type", "op", "calls", "taken", "looks", "density", "scheme", "price_us",
            "look_us", "taken_us", "plain_us", "gained_s", "missed_s");
    for (const struct sar_stats_row *row = rows; row != NULL; row = row->next)
        write_row(file, row);
    write_totals(file, rows, others);
}

void sar_stats_free(struct sar_stats_row **rows)
{
    while (*rows != NULL) {
        struct sar_stats_row *next = (*rows)->next;
        free(*rows);
        *rows = next;
    }
}
