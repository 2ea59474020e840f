/* SPDX-License-Identifier: BSD-3-Clause */
/* The study `selector`: on a grid of tensors, every scheme and MPI_Allreduce take turns with `auto`, after
 * this has tried whatever it wants to try. Its regret is its time over that of the fastest scheme.
 *
 * The fastest of several schemes that are equally good is the one that was lucky, so that a regret is a
 * little above 1 even where every choice is right. A point that breaks a limit is measured three times, each
 * time from the first trial on, and the middle one counts: bad luck does not come back, a bad choice does. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grid.h"
#include "measure.h"
#include "plan.h"
#include "scheme/scheme.h"

struct line {
    const char *study, *interface, *breaks;
    char choice[PERF_NAME_MAX], best[PERF_NAME_MAX];
    long long ranks, nodes, count, row, nnz, nnz_all, iterations, wrong;
    double bytes, density, overlap, skew, seconds, choice_seconds, best_seconds, plain_seconds;
    double regret, choice_regret, versus_plain;
};

#define FIELD(key, kind, member) PERF_FIELD(line, key, kind, member)

static const struct perf_field fields[] = {
    FIELD("study", PERF_TEXT, study),
    FIELD("ranks", PERF_INTEGER, ranks),
    FIELD("nodes", PERF_INTEGER, nodes),
    FIELD("interface", PERF_TEXT, interface),
    FIELD("count", PERF_INTEGER, count),
    FIELD("row", PERF_INTEGER, row),
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
    FIELD("dense_median_s", PERF_REAL, plain_seconds),
    FIELD("regret", PERF_REAL, regret),
    FIELD("choice_regret", PERF_REAL, choice_regret),
    FIELD("versus_dense", PERF_REAL, versus_plain),
    FIELD("breaks", PERF_TEXT, breaks),
    FIELD("iterations", PERF_INTEGER, iterations),
    FIELD("wrong", PERF_INTEGER, wrong),
};
static const struct perf_schema schema = PERF_SCHEMA(fields);

/* What the selector is held to, the second on dense vectors above LARGE bytes: pairs of index and value that
 * take more room than their vector cost more than it, whoever reduces them. */
static const double MOST_REGRET = 1.25, MOST_VERSUS_PLAIN = 1.05, LARGE = 1e6;

/* The points that have been measured. */
struct tally {
    int points;
    struct line *line;
};

static bool is_scheme(const struct perf_row *row, const char *name)
{
    return perf_row_is_ours(row) && !row->refused && strcmp(row->knobs.at[PERF_KNOB_SCHEME], name) == 0;
}

/* A group's times as they would have been beside the selector's: MPI_Allreduce runs in each of them. */
static void level(const struct perf_plan *plan)
{
    double reference = NAN;

    for (const struct perf_group *g = plan->group; g < plan->group + plan->groups; g++)
        if (g->begin <= plan->pick && plan->pick < g->end)
            reference = plan->row[g->plain].times.median;
    for (const struct perf_group *g = plan->group; g < plan->group + plan->groups; g++) {
        double factor = reference / plan->row[g->plain].times.median;
        for (int i = g->begin; i < g->end; i++)
            plan->row[i].times.median *= factor;
    }
}

/* Compare the rows of a point; false where the selector has none, or nothing to be compared with. */
static bool judge(const struct perf_plan *plan, struct line *line)
{
    line->seconds = line->plain_seconds = line->choice_seconds = NAN;
    line->best_seconds = INFINITY;
    line->wrong = 0;
    for (int i = 0; i < plan->rows; i++) {
        const struct perf_row *row = &plan->row[i];
        line->wrong += row->wrong > 0 ? row->wrong : 0;
        if (is_scheme(row, "auto")) {
            line->seconds = row->times.median;
            line->iterations = row->times.n;
            snprintf(line->choice, sizeof line->choice, "%s", row->report.choice);
        } else if (row->way == PERF_BY_MPI) {
            line->plain_seconds = row->times.median;
        } else if (perf_row_is_ours(row) && !row->refused && row->times.median < line->best_seconds) {
            line->best_seconds = row->times.median;
            snprintf(line->best, sizeof line->best, "%s", row->report.scheme);
        }
    }
    for (int i = 0; i < plan->rows; i++)
        if (is_scheme(&plan->row[i], line->choice))
            line->choice_seconds = plan->row[i].times.median;
    line->regret = line->seconds / line->best_seconds;
    line->choice_regret = line->choice_seconds / line->best_seconds;
    line->versus_plain = line->seconds / line->plain_seconds;
    return isfinite(line->regret) && line->regret > 0;
}

static void name_breaks(struct line *line)
{
    bool regret = line->regret > MOST_REGRET;
    bool plain = line->bytes > LARGE && line->versus_plain > MOST_VERSUS_PLAIN;

    line->breaks = regret && plain ? "both" : regret ? "regret" : plain ? "dense" : "nothing";
}

/* The selector and all schemes, on what is a case like others. */
static bool measure(struct perf_study *study, const struct perf_case *c, struct line *line)
{
    struct perf_tensor tensor;
    struct perf_shape shape;
    struct perf_plan plan;
    bool good = false;
    int room;

    if (!perf_tensor_make(&tensor, c, study->source))
        return false;
    perf_shape_find(&shape, c, &tensor.first);
    room = perf_plan_room(c, &tensor, &shape);
    perf_plan_make(&plan, c->options, room, true);
    if (room > 1 && tensor.recv.data != NULL) {
        for (const struct perf_group *g = plan.group; g < plan.group + plan.groups; g++)
            perf_measure(c, &tensor, plan.row + g->begin, g->end - g->begin, study->progress);
        level(&plan);
        perf_progress_erase(study->progress);
        line->nnz = shape.nnz_in_max;
        line->nnz_all = shape.nnz_out;
        good = judge(&plan, line);
        name_breaks(line);
    }
    perf_plan_free(&plan);
    perf_tensor_free(&tensor);
    return good;
}

static void add_scheme(struct perf_options *options, const char *name)
{
    snprintf(options->scheme.at[options->scheme.n++], PERF_NAME_MAX, "%s", name);
}

/* The options with which a point is measured: all schemes, one row each. */
static void set_options(struct perf_options *options, const struct perf_point *point)
{
    options->overlap = point->overlap;
    options->skew = point->skew;
    options->row = (long long)point->row;
    options->wire.n = options->partition.n = 1;
    memcpy(options->plain_wire, options->wire.at[0], PERF_NAME_MAX);
    memcpy(options->plain_partition, options->partition.at[0], PERF_NAME_MAX);
    options->scheme.n = 0;
    for (int i = 0; sar_schemes[i] != NULL; i++)
        add_scheme(options, sar_schemes[i]->name);
    add_scheme(options, "auto");
}

static bool breaks(const struct line *line)
{
    return strcmp(line->breaks, "nothing") != 0;
}

static int by_regret(const void *a, const void *b)
{
    double x = ((const struct line *)a)->regret, y = ((const struct line *)b)->regret;

    return (x > y) - (x < y);
}

/* Rank 0's times decide for all. */
static bool measure_well(struct perf_study *study, const struct perf_case *c, struct line *line)
{
    struct line again[3] = { *line, *line, *line };
    int n = 1, more;
    bool good = measure(study, c, &again[0]);

    more = good && breaks(&again[0]);
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    while (more && n < 3 && good)
        good = measure(study, c, &again[n++]);
    qsort(again, (size_t)n, sizeof *again, by_regret);
    *line = again[n / 2];
    return good;
}

static void run_point(struct perf_study *study, const struct perf_point *point, struct tally *tally)
{
    struct perf_options *options = perf_alloc(1, sizeof *options);
    struct line line = { .study = perf_study_name(PERF_SELECTOR),
                         .ranks = study->world->ranks,
                         .nodes = study->world->nodes,
                         .interface = perf_interface_name(study->options->interface),
                         .count = (long long)point->count,
                         .row = (long long)point->row,
                         .density = point->density,
                         .overlap = point->overlap,
                         .skew = point->skew };
    struct perf_case c;

    *options = *study->options;
    set_options(options, point);
    perf_case_make(&c, study->world, options, options->type.at[0], options->op.at[0]);
    perf_case_size(&c, point->count, point->density);
    line.bytes = (double)perf_case_bytes(&c);
    if (measure_well(study, &c, &line)) {
        study->wrong += line.wrong;
        tally->line[tally->points++] = line;
        perf_study_put(study, &line);
    } else if (study->world->rank == 0) {
        perf_report_note(study->report,
                         "skipped %zu elements of %zu values, density %g: no room for all rows", point->count,
                         point->row, point->density);
    }
    perf_case_free(&c);
    free(options);
}

static void note_line(const struct perf_study *study, const char *what, const struct line *l)
{
    perf_report_note(study->report,
                     "%s: %lld elements of %lld, density %g, overlap %g, skew %g: %s, %.3f times %s, "
                     "%.3f times MPI_Allreduce",
                     what, l->count, l->row, l->density, l->overlap, l->skew, l->choice, l->regret, l->best,
                     l->versus_plain);
}

static void sum_up(const struct perf_study *study, const struct tally *tally)
{
    const struct line *worst = NULL, *slowest = NULL;
    double sum = 0;

    for (const struct line *l = tally->line; l < tally->line + tally->points; l++) {
        sum += l->regret;
        if (worst == NULL || l->regret > worst->regret)
            worst = l;
        if (l->bytes > LARGE && (slowest == NULL || l->versus_plain > slowest->versus_plain))
            slowest = l;
        if (breaks(l))
            note_line(study, "breaks a limit", l);
    }
    if (worst == NULL)
        return;
    perf_report_note(study->report, "%d points, mean regret %.3f", tally->points, sum / tally->points);
    note_line(study, "worst regret", worst);
    if (slowest != NULL)
        note_line(study, "slowest against MPI_Allreduce above 1 MB", slowest);
}

/* Rank 0's clock decides for all. */
static bool in_time(const struct perf_study *study, double start)
{
    int more = study->options->budget == 0 || MPI_Wtime() - start < (double)study->options->budget;

    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return more != 0;
}

void perf_study_selector(struct perf_study *study)
{
    int points, every = (int)study->options->every, i;
    struct perf_point *point = perf_grid_make(study, &points);
    struct tally tally = { .line = perf_alloc((size_t)points, sizeof *tally.line) };
    double start = MPI_Wtime();

    perf_progress_make(study->progress, study->world->rank, (points + every - 1) / every);
    perf_study_table(study, &schema);
    for (i = 0; i < points && in_time(study, start); i += every) {
        study->progress->number++;
        run_point(study, &point[i], &tally);
    }
    if (study->world->rank == 0 && i < points)
        perf_report_note(study->report, "out of the budget of %lld seconds before %d of %d points",
                         study->options->budget, (points - i + every - 1) / every,
                         (points + every - 1) / every);
    if (study->world->rank == 0)
        sum_up(study, &tally);
    free(tally.line);
    free(point);
}
