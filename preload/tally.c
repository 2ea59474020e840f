/* SPDX-License-Identifier: BSD-3-Clause */
#include "preload/tally.h"

#include <inttypes.h>
#include <stdlib.h>

#include "mpi_ext/types.h"

static bool same(const struct sar_note *a, const struct sar_note *b)
{
    return a->how == b->how && a->ranks == b->ranks && a->key.count == b->key.count &&
           a->key.base == b->key.base && a->key.op == b->key.op;
}

static struct sar_tally *row_of(struct sar_tally **rows, const struct sar_note *note)
{
    struct sar_tally **at = rows;
    while (*at != NULL && !same(&(*at)->last, note))
        at = &(*at)->next;
    if (*at == NULL && (*at = calloc(1, sizeof **at)) != NULL)
        (*at)->last = *note;
    return *at;
}

void sar_tally_add(struct sar_tally **rows, const struct sar_note *note)
{
    struct sar_tally *row = row_of(rows, note);
    if (row == NULL)
        return;
    row->looks += note->looked;
    row->look_seconds += note->look_seconds;
    *(note->taken ? &row->taken : &row->plain) += 1;
    *(note->taken ? &row->taken_seconds : &row->plain_seconds) += note->seconds;
    row->density += note->density >= 0 ? note->density : 0;
    row->known += note->density >= 0;
    if (note->scheme[0] != '\0')
        row->last = *note;
}

/* A number with so many decimals, or "-". */
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

/* What a call left to MPI takes longer than one that the library takes. Only where both were timed. */
static bool difference(const struct sar_tally *row, double *seconds)
{
    *seconds = mean(row->plain_seconds, row->plain) - mean(row->taken_seconds, row->taken);
    return row->plain > 0 && row->taken > 0 && row->last.how == SAR_BLOCKING;
}

static double missed(const struct sar_tally *row, double saving)
{
    return saving > 0 ? saving * (double)row->plain : 0;
}

static void write_row(FILE *file, const struct sar_tally *row)
{
    static const char *const hows[SAR_HOWS] = { "blocking", "nonblocking", "persistent" };
    static const char *const ops[SAR_OPS] = { "sum",  "max", "min", "prod", "land",
                                              "band", "lor", "bor", "lxor", "bxor" };
    const struct sar_note *last = &row->last;
    bool timed = last->how == SAR_BLOCKING, ran = last->scheme[0] != '\0';
    double saving;
    bool compared = difference(row, &saving);
    fprintf(file, "%-12s %6d %12" PRId64 " %-6s %-4s %9" PRIu64 " %9" PRIu64 " %6" PRIu64, hows[last->how],
            last->ranks, last->key.count, sar_base_name(last->key.base), ops[last->key.op],
            row->plain + row->taken, row->taken, row->looks);
    cell(file, 8, 4, mean(row->density, row->known), row->known > 0);
    fprintf(file, " %-18s", ran ? last->scheme : "-");
    cell(file, 11, 1, last->predicted * 1e6, ran);
    cell(file, 9, 1, mean(row->look_seconds, row->looks) * 1e6, row->looks > 0);
    cell(file, 11, 1, mean(row->taken_seconds, row->taken) * 1e6, timed && row->taken > 0);
    cell(file, 11, 1, mean(row->plain_seconds, row->plain) * 1e6, timed && row->plain > 0);
    cell(file, 10, 6, saving * (double)row->taken, compared);
    cell(file, 10, 6, missed(row, saving), compared);
    fprintf(file, "\n");
}

static void write_totals(FILE *file, const struct sar_tally *rows, uint64_t others)
{
    double saving, gained = 0, could = 0, all = 0, looks = 0;
    for (; rows != NULL; rows = rows->next) {
        looks += rows->look_seconds;
        all += rows->last.how == SAR_BLOCKING ? rows->plain_seconds + rows->taken_seconds : 0;
        if (!difference(rows, &saving))
            continue;
        gained += saving * (double)rows->taken;
        could += missed(rows, saving);
    }
    fprintf(file, "# other calls: %" PRIu64 "\n", others);
    fprintf(file, "# blocking calls took %.6f s, glances %.6f s; gained %.6f s, missed %.6f s\n", all, looks,
            gained, could);
}

void sar_tally_write(FILE *file, const struct sar_tally *rows, uint64_t others)
{
    fprintf(
        file,
        "# mpix_sparse_preload: allreduces of rank 0, by shape; see UNMODIFIED PROGRAMS in mpix_sparse(7)\n");
    fprintf(file, "#%-11s %6s %12s %-6s %-4s %9s %9s %6s %8s %-18s %11s %9s %11s %11s %10s %10s\n", "how",
            "ranks", "count", "type", "op", "calls", "taken", "looks", "density", "scheme", "price_us",
            "look_us", "taken_us", "plain_us", "gained_s", "missed_s");
    for (const struct sar_tally *row = rows; row != NULL; row = row->next)
        write_row(file, row);
    write_totals(file, rows, others);
}

void sar_tally_free(struct sar_tally **rows)
{
    while (*rows != NULL) {
        struct sar_tally *next = (*rows)->next;
        free(*rows);
        *rows = next;
    }
}
