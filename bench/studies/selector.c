/* SPDX-License-Identifier: BSD-3-Clause */
/* Study `selector`: on a grid of tensors, times `auto` against every scheme and MPI_Allreduce, after `auto`
 * has made its trials. The regret of `auto` is its time over that of the fastest scheme.
 *
 * The fastest of several equal schemes is fast by chance, so the regret is slightly above 1 even if every
 * choice is right. A point that breaks a limit is measured three times, including the trials, and the median
 * counts. A bad choice comes back, bad luck does not. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/perf/measure.h"
#include "bench/perf/row_plan.h"
#include "bench/studies/study.h"
#include "scheme/scheme.h"

/* A point of the grid. */

struct grid_point {
    size_t count, row_len; /* elements, and values in each */
    double density, overlap, skew;
};

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static const long long counts[] = { 1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 26 };
static const double densities[] = { 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5 };
static const double overlaps[] = { 0, 0.3, 1 }, skews[] = { 0, 0.6 };
static const size_t row_lens[] = { 1, 64 };

struct axes {
    struct perf_counts count;
    struct perf_reals density;
};

static struct axes axes_of(const struct perf_study *study)
{
    struct axes axes = { study->options->count,
                         perf_study_densities(study, densities, (int)LENGTH(densities)) };

    if (axes.count.n == 0) {
        memcpy(axes.count.at, counts, sizeof counts);
        axes.count.n = (int)LENGTH(counts);
    }
    return axes;
}

/* Returns the last digit of *code in this base, and removes it. */
static size_t take_digit(size_t *code, size_t base)
{
    size_t place = *code % base;

    *code /= base;
    return place;
}

static struct grid_point point_of(const struct axes *axes, size_t code)
{
    struct grid_point point;

    point.row_len = row_lens[take_digit(&code, LENGTH(row_lens))];
    point.skew = skews[take_digit(&code, LENGTH(skews))];
    point.overlap = overlaps[take_digit(&code, LENGTH(overlaps))];
    point.density = axes->density.at[take_digit(&code, (size_t)axes->density.n)];
    point.count = (size_t)axes->count.at[code] / point.row_len;
    return point;
}

/* Returns all points with at least one element, for free(). Every prefix of the list is spread over the
 * grid. The counts of the option are basic values. */
static struct grid_point *grid_make(const struct perf_study *study, int *points)
{
    struct axes axes = axes_of(study);
    size_t all =
        (size_t)axes.count.n * (size_t)axes.density.n * LENGTH(overlaps) * LENGTH(skews) * LENGTH(row_lens);
    size_t step = perf_coprime((size_t)(0.618 * (double)all) + 1, all); /* golden section */
    struct grid_point *point = perf_alloc(all, sizeof *point);

    *points = 0;
    for (size_t i = 0; i < all; i++) {
        point[*points] = point_of(&axes, i * step % all);
        if ((double)point[*points].count * point[*points].density >= 0.5)
            ++*points;
    }
    return point;
}

struct record {
    const char *study, *interface, *breaks;
    char choice[PERF_NAME_MAX], best[PERF_NAME_MAX];
    long long ranks, nodes, count, row_len, nnz, nnz_all, iterations, wrong;
    double bytes, density, overlap, skew, seconds, choice_seconds, best_seconds, dense_seconds;
    double regret, choice_regret, versus_dense;
};

#define FIELD(key, kind, member) PERF_FIELD(record, key, kind, member)

static const struct perf_field fields[] = {
    FIELD("study", PERF_TEXT, study),
    FIELD("ranks", PERF_INTEGER, ranks),
    FIELD("nodes", PERF_INTEGER, nodes),
    FIELD("interface", PERF_TEXT, interface),
    FIELD("count", PERF_INTEGER, count),
    FIELD("row", PERF_INTEGER, row_len),
    FIELD("bytes_dense", PERF_REAL, bytes),
    FIELD("density", PERF_REAL, density),
    FIELD("overlap", PERF_REAL, overlap),
    FIELD("skew", PERF_REAL, skew),
    FIELD("nnz_in_max", PERF_INTEGER, nnz),
    FIELD("nnz_out", PERF_INTEGER, nnz_all),
    FIELD("choice", PERF_LETTERS, choice),
    FIELD("best", PERF_LETTERS, best),
    FIELD("median_s", PERF_REAL, seconds),
    FIELD("choice_median_s", PERF_REAL, choice_seconds),
    FIELD("best_median_s", PERF_REAL, best_seconds),
    FIELD("dense_median_s", PERF_REAL, dense_seconds),
    FIELD("regret", PERF_REAL, regret),
    FIELD("choice_regret", PERF_REAL, choice_regret),
    FIELD("versus_dense", PERF_REAL, versus_dense),
    FIELD("breaks", PERF_TEXT, breaks),
    FIELD("iterations", PERF_INTEGER, iterations),
    FIELD("wrong", PERF_INTEGER, wrong),
};
static const struct perf_schema schema = PERF_SCHEMA(fields);

/* Limits on `auto`. The second one holds for dense vectors above LARGE bytes. Coordinates that take more
 * memory than their dense vector are always slower than the vector. */
static const double MAX_REGRET = 1.25, MAX_VERSUS_DENSE = 1.05, LARGE = 1e6;

/* The measured points. */
struct results {
    int points;
    struct record *record;
};

static bool is_scheme(const struct perf_row *row, const char *name)
{
    return perf_row_is_sparse(row) && !row->failed &&
           strcmp(row->settings.at[PERF_SETTING_SCHEME], name) == 0;
}

/* Scales times of all groups to those of the selector's group, by MPI_Allreduce, which runs in each group. */
static void scale_groups(const struct perf_row_plan *plan)
{
    double reference = NAN;

    for (const struct perf_row_group *g = plan->group; g < plan->group + plan->groups; g++)
        if (g->begin <= plan->pick && plan->pick < g->end)
            reference = plan->row[g->dense].times.median;
    for (const struct perf_row_group *g = plan->group; g < plan->group + plan->groups; g++) {
        double factor = reference / plan->row[g->dense].times.median;
        for (int i = g->begin; i < g->end; i++)
            plan->row[i].times.median *= factor;
    }
}

/* Fills in the times of a point. Returns false if `auto` or all other schemes failed. */
static bool compare_rows(const struct perf_row_plan *plan, struct record *record)
{
    record->seconds = record->dense_seconds = record->choice_seconds = NAN;
    record->best_seconds = INFINITY;
    record->wrong = 0;
    for (int i = 0; i < plan->rows; i++) {
        const struct perf_row *row = &plan->row[i];
        record->wrong += row->wrong > 0 ? row->wrong : 0;
        if (is_scheme(row, "auto")) {
            record->seconds = row->times.median;
            record->iterations = row->times.n;
            snprintf(record->choice, sizeof record->choice, "%s", row->report.choice);
        } else if (row->kind == PERF_ROW_DENSE) {
            record->dense_seconds = row->times.median;
        } else if (perf_row_is_sparse(row) && !row->failed && row->times.median < record->best_seconds) {
            record->best_seconds = row->times.median;
            snprintf(record->best, sizeof record->best, "%s", row->report.scheme);
        }
    }
    for (int i = 0; i < plan->rows; i++)
        if (is_scheme(&plan->row[i], record->choice))
            record->choice_seconds = plan->row[i].times.median;
    record->regret = record->seconds / record->best_seconds;
    record->choice_regret = record->choice_seconds / record->best_seconds;
    record->versus_dense = record->seconds / record->dense_seconds;
    return isfinite(record->regret) && record->regret > 0;
}

static void name_breaks(struct record *record)
{
    bool regret = record->regret > MAX_REGRET;
    bool dense = record->bytes > LARGE && record->versus_dense > MAX_VERSUS_DENSE;

    record->breaks = regret && dense ? "both" : regret ? "regret" : dense ? "dense" : "nothing";
}

/* Measures the selector and all schemes as one case. */
static bool measure(struct perf_study *study, const struct perf_case *c, struct record *record)
{
    struct perf_tensor tensor;
    struct perf_tensor_stats stats;
    struct perf_row_plan plan;
    bool good = false;
    int max_rows;

    if (!perf_tensor_make(&tensor, c, study->source))
        return false;
    perf_tensor_stats_find(&stats, c, &tensor.first);
    max_rows = perf_row_plan_max_rows(c, &tensor, &stats);
    perf_row_plan_make(&plan, c->options, max_rows, true);
    if (max_rows > 1 && tensor.recv.data != NULL) {
        for (const struct perf_row_group *g = plan.group; g < plan.group + plan.groups; g++)
            perf_measure(c, &tensor, plan.row + g->begin, g->end - g->begin, study->progress);
        scale_groups(&plan);
        perf_progress_erase(study->progress);
        record->nnz = stats.nnz_in_max;
        record->nnz_all = stats.nnz_out;
        good = compare_rows(&plan, record);
        name_breaks(record);
    }
    perf_row_plan_free(&plan);
    perf_tensor_free(&tensor);
    return good;
}

static void add_scheme(struct perf_options *options, const char *name)
{
    snprintf(options->scheme.at[options->scheme.n++], PERF_NAME_MAX, "%s", name);
}

/* Sets the options of a point: one row for each scheme. */
static void set_options(struct perf_options *options, const struct grid_point *point)
{
    options->overlap = point->overlap;
    options->skew = point->skew;
    options->row_len = (long long)point->row_len;
    options->wire.n = options->partition.n = options->columns.n = 1;
    memcpy(options->default_wire, options->wire.at[0], PERF_NAME_MAX);
    memcpy(options->default_partition, options->partition.at[0], PERF_NAME_MAX);
    memcpy(options->default_columns, options->columns.at[0], PERF_NAME_MAX);
    options->scheme.n = 0;
    for (int i = 0; sar_schemes[i] != NULL; i++)
        add_scheme(options, sar_schemes[i]->name);
    add_scheme(options, "auto");
}

static bool breaks(const struct record *record)
{
    return strcmp(record->breaks, "nothing") != 0;
}

static int by_regret(const void *a, const void *b)
{
    double x = ((const struct record *)a)->regret, y = ((const struct record *)b)->regret;

    return (x > y) - (x < y);
}

/* Rank 0 decides on repetitions, by its times. */
static bool measure_well(struct perf_study *study, const struct perf_case *c, struct record *record)
{
    struct record again[3] = { *record, *record, *record };
    int n = 1, more;
    bool good = measure(study, c, &again[0]);

    more = good && breaks(&again[0]);
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    while (more && n < 3 && good)
        good = measure(study, c, &again[n++]);
    qsort(again, (size_t)n, sizeof *again, by_regret);
    *record = again[n / 2];
    return good;
}

static void run_point(struct perf_study *study, const struct grid_point *point, struct results *results)
{
    struct perf_options *options = perf_alloc(1, sizeof *options);
    struct record record = { .study = perf_study_name(PERF_SELECTOR),
                             .ranks = study->world->ranks,
                             .nodes = study->world->nodes,
                             .interface = perf_interface_name(study->options->interface),
                             .count = (long long)point->count,
                             .row_len = (long long)point->row_len,
                             .density = point->density,
                             .overlap = point->overlap,
                             .skew = point->skew };
    struct perf_case c;

    *options = *study->options;
    set_options(options, point);
    perf_case_make(&c, study->world, options, options->type.at[0], options->op.at[0]);
    perf_case_size(&c, point->count, point->density);
    record.bytes = (double)perf_case_bytes(&c);
    if (measure_well(study, &c, &record)) {
        study->wrong += record.wrong;
        results->record[results->points++] = record;
        perf_study_add(study, &record);
    } else if (study->world->rank == 0) {
        perf_report_note(study->report,
                         "skipped %zu elements of %zu values, density %g: no room for all rows", point->count,
                         point->row_len, point->density);
    }
    perf_case_free(&c);
    free(options);
}

static void note_line(const struct perf_study *study, const char *what, const struct record *l)
{
    perf_report_note(study->report,
                     "%s: %lld elements of %lld, density %g, overlap %g, skew %g: %s, %.3f times %s, "
                     "%.3f times MPI_Allreduce",
                     what, l->count, l->row_len, l->density, l->overlap, l->skew, l->choice, l->regret,
                     l->best, l->versus_dense);
}

static void report_summary(const struct perf_study *study, const struct results *results)
{
    const struct record *worst = NULL, *slowest = NULL;
    double sum = 0;

    for (const struct record *l = results->record; l < results->record + results->points; l++) {
        sum += l->regret;
        if (worst == NULL || l->regret > worst->regret)
            worst = l;
        if (l->bytes > LARGE && (slowest == NULL || l->versus_dense > slowest->versus_dense))
            slowest = l;
        if (breaks(l))
            note_line(study, "breaks a limit", l);
    }
    if (worst == NULL)
        return;
    perf_report_note(study->report, "%d points, mean regret %.3f", results->points, sum / results->points);
    note_line(study, "worst regret", worst);
    if (slowest != NULL)
        note_line(study, "slowest against MPI_Allreduce above 1 MB", slowest);
}

/* Rank 0's clock decides. */
static bool in_time(const struct perf_study *study, double start)
{
    int more = study->options->budget == 0 || MPI_Wtime() - start < (double)study->options->budget;

    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return more != 0;
}

void perf_study_selector(struct perf_study *study)
{
    int points, every = (int)study->options->every, i;
    struct grid_point *point = grid_make(study, &points);
    struct results results = { .record = perf_alloc((size_t)points, sizeof *results.record) };
    double start = MPI_Wtime();

    perf_progress_make(study->progress, study->world->rank, (points + every - 1) / every);
    perf_study_table(study, &schema);
    for (i = 0; i < points && in_time(study, start); i += every) {
        study->progress->number++;
        run_point(study, &point[i], &results);
    }
    if (study->world->rank == 0 && i < points)
        perf_report_note(study->report, "out of the budget of %lld seconds before %d of %d points",
                         study->options->budget, (points - i + every - 1) / every,
                         (points + every - 1) / every);
    if (study->world->rank == 0)
        report_summary(study, &results);
    free(results.record);
    free(point);
}
