/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of a case. A scheme has one row for all formats, partition maps or columns that it ignores, and a
 * row for each number of threads. */

#include "bench/perf/row_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *setting_value(const struct perf_row *row, enum perf_setting which)
{
    return row->settings.at[which];
}

static bool setting_is(const struct perf_row *row, enum perf_setting which, const char *value)
{
    return strcmp(setting_value(row, which), value) == 0;
}

static void setting_set(struct perf_row *row, enum perf_setting which, const char *value)
{
    snprintf(row->settings.at[which], PERF_NAME_MAX, "%s", value);
}

static enum perf_row_kind kind_of(const char *scheme)
{
    if (strcmp(scheme, "memory") == 0)
        return PERF_ROW_MEMORY;
    return strcmp(scheme, "memory_node") == 0 ? PERF_ROW_MEMORY_NODE : PERF_ROW_SPARSE;
}

/* Makes a row with the settings of baselines. */
static void init_reference(struct perf_row *row, const struct perf_options *options, const char *scheme)
{
    memset(row, 0, sizeof *row);
    row->kind = kind_of(scheme);
    row->hidden = true;
    setting_set(row, PERF_SETTING_SCHEME, scheme);
    setting_set(row, PERF_SETTING_WIRE, options->default_wire);
    setting_set(row, PERF_SETTING_PARTITION, options->default_partition);
    setting_set(row, PERF_SETTING_COLUMNS, options->default_columns);
    setting_set(row, PERF_SETTING_THREADS, options->default_threads);
    setting_set(row, PERF_SETTING_GRAIN, options->grain);
    setting_set(row, PERF_SETTING_WIRE_VALUES, perf_values_name(options->values));
    if (options->seed_given)
        snprintf(row->settings.at[PERF_SETTING_SEED], PERF_NAME_MAX, "%lld", options->seed);
}

/* True if the row equals the baseline of this scheme. */
static bool is_reference(const struct perf_row *row, const struct perf_options *options, const char *scheme)
{
    return perf_row_is_sparse(row) && setting_is(row, PERF_SETTING_SCHEME, scheme) &&
           setting_is(row, PERF_SETTING_WIRE, options->default_wire) &&
           setting_is(row, PERF_SETTING_PARTITION, options->default_partition) &&
           setting_is(row, PERF_SETTING_COLUMNS, options->default_columns) &&
           setting_is(row, PERF_SETTING_THREADS, options->default_threads);
}

/* Adds a row for each requested number of threads, or one if the row does not call the library. */
static int add(struct perf_row *rows, const struct perf_options *options, const char *scheme,
               const char *wire, const char *partition, const char *columns)
{
    int n;

    init_reference(rows, options, scheme);
    rows->hidden = false;
    setting_set(rows, PERF_SETTING_WIRE, wire);
    setting_set(rows, PERF_SETTING_PARTITION, partition);
    setting_set(rows, PERF_SETTING_COLUMNS, columns);
    n = perf_row_is_sparse(rows) ? options->threads.n : 1;
    for (int i = 1; i < n; i++) {
        rows[i] = rows[0];
        setting_set(&rows[i], PERF_SETTING_THREADS, options->threads.at[i]);
    }
    return n;
}

/* Adds the rows of a scheme, a format and a map: for each requested number of columns, or for one if the
 * scheme slices no rows. */
static int expand_columns(const struct perf_options *options, const struct perf_scheme *scheme,
                          const char *wire, const char *partition, struct perf_row *rows)
{
    int n = 0;

    if (!perf_scheme_slices(scheme, partition, options->row_len))
        return add(rows, options, scheme->name, wire, partition, options->default_columns);
    for (int i = 0; i < options->columns.n; i++)
        n += add(rows + n, options, scheme->name, wire, partition, options->columns.at[i]);
    return n;
}

/* Adds the rows of a scheme and a format, for each requested map that the scheme honours, at least one. */
static int expand_partitions(const struct perf_options *options, const struct perf_scheme *scheme,
                             const char *wire, struct perf_row *rows)
{
    int n = 0;

    for (int p = 0; p < options->partition.n; p++)
        if (perf_scheme_takes(scheme, options->partition.at[p]))
            n += expand_columns(options, scheme, wire, options->partition.at[p], rows + n);
    if (n == 0)
        n += expand_columns(options, scheme, wire, options->default_partition, rows);
    return n;
}

/* Adds all requested rows. Returns their number. */
static int expand(const struct perf_options *options, struct perf_row *rows)
{
    int n = 0;

    for (int s = 0; s < options->scheme.n; s++) {
        struct perf_scheme scheme = perf_scheme_find(options->scheme.at[s]);
        if (!perf_scheme_serves(scheme.name, options->collective))
            continue;
        if (!scheme.wires)
            n += expand_partitions(options, &scheme, options->default_wire, rows + n);
        for (int w = 0; w < options->wire.n && scheme.wires; w++)
            n += expand_partitions(options, &scheme, options->wire.at[w], rows + n);
    }
    return n;
}

/* Returns the requested rows, and a row of `auto` unless --alone is given; for free(). */
static struct perf_row *requested_rows(const struct perf_options *options, int *n)
{
    size_t most = (size_t)options->scheme.n * (size_t)options->wire.n * (size_t)options->partition.n *
                      (size_t)options->columns.n * (size_t)options->threads.n +
                  1;
    struct perf_row *rows = perf_alloc(most, sizeof *rows);

    *n = expand(options, rows);
    for (int i = 0; i < *n; i++)
        if (is_reference(&rows[i], options, "auto"))
            return rows;
    if (!options->alone)
        init_reference(&rows[(*n)++], options, "auto");
    return rows;
}

static int add_reference(struct perf_row_plan *plan, const struct perf_options *options, const char *scheme)
{
    init_reference(&plan->row[plan->rows], options, scheme);
    return plan->rows++;
}

/* Only schemes with formats send their messages by the library. What `auto` runs has a row of its own. */
static void add_message_replay(struct perf_row_plan *plan)
{
    struct perf_row *original = &plan->row[plan->rows - 1], *row = &plan->row[plan->rows];

    if (!perf_row_is_sparse(original) || setting_is(original, PERF_SETTING_SCHEME, "auto") ||
        !perf_scheme_find(setting_value(original, PERF_SETTING_SCHEME)).wires)
        return;
    *row = *original;
    row->kind = PERF_ROW_MESSAGE_REPLAY;
    row->original = original;
    setting_set(row, PERF_SETTING_SCHEME, "skeleton");
    plan->rows++;
}

/* Adds the baselines of a group. */
static void close_group(struct perf_row_plan *plan, struct perf_row_group *group,
                        const struct perf_options *options, bool dense)
{
    group->dense = group->allgather = group->memory = -1;
    for (int i = group->begin; i < plan->rows; i++) {
        if (is_reference(&plan->row[i], options, "allgather"))
            group->allgather = i;
        if (plan->row[i].kind == PERF_ROW_MEMORY)
            group->memory = i;
    }
    group->end = plan->rows;
    if (options->alone)
        return;
    if (group->allgather < 0 && perf_scheme_serves("allgather", options->collective))
        group->allgather = add_reference(plan, options, "allgather");
    if (group->memory < 0 && perf_scheme_serves("memory", options->collective))
        group->memory = add_reference(plan, options, "memory");
    if (dense) {
        group->dense = plan->rows;
        plan->row[plan->rows] = (struct perf_row){ .kind = PERF_ROW_DENSE, .hidden = true };
        plan->rows++;
    }
    group->end = plan->rows;
}

/* Estimates a row's result and scratch memory; more for dense inputs. Schemes `dense` and `auto` also need a
 * vector. */
int perf_row_plan_max_rows(const struct perf_case *c, const struct perf_tensor *tensor,
                           const struct perf_tensor_stats *stats)
{
    const double copies = c->options->interface == PERF_DENSE ? 6 : 3, vectors = 2, most = 1000;
    double elements = (double)stats->nnz_in_max + (double)stats->nnz_out;
    double each = copies * elements * (double)(c->element_bytes + sizeof(uint64_t));
    double available = c->world->memory - tensor->bytes - vectors * (double)perf_case_bytes(c);
    double rows = each > 0 ? available / each : most;

    return rows < 1 ? 1 : rows > most ? (int)most : (int)rows;
}

void perf_row_plan_make(struct perf_row_plan *plan, const struct perf_options *options, int at_once,
                        bool dense)
{
    enum { BASELINES = 3 };
    int n, each = options->message_replay && at_once > 1 ? at_once / 2 : at_once;
    struct perf_row *rows = requested_rows(options, &n);
    int groups = (n + each - 1) / each;

    *plan = (struct perf_row_plan){ .groups = groups, .pick = -1 };
    plan->row = perf_alloc((size_t)(2 * n + BASELINES * groups), sizeof *plan->row);
    plan->group = perf_alloc((size_t)groups, sizeof *plan->group);
    for (int g = 0; g < groups; g++) {
        plan->group[g].begin = plan->rows;
        for (int i = g * each; i < n && i < (g + 1) * each; i++) {
            if (is_reference(&rows[i], options, "auto"))
                plan->pick = plan->rows;
            plan->row[plan->rows++] = rows[i];
            if (options->message_replay && !rows[i].hidden)
                add_message_replay(plan);
        }
        close_group(plan, &plan->group[g], options, dense);
    }
    free(rows);
}

/* True if the row did what the row of `auto` did last. */
static bool does_the_same(const struct perf_row *row, const struct perf_row *pick,
                          const struct perf_options *options)
{
    const MPIX_Sparse_report_t *did = &row->report, *picked = &pick->report;
    bool same_wire =
        strcmp(did->push_wire, picked->push_wire) == 0 && strcmp(did->pull_wire, picked->pull_wire) == 0;
    bool same_parts = strcmp(did->partition, picked->partition) == 0 && did->grain == picked->grain;
    bool same_columns = did->columns == picked->columns, same_threads = row->threads == pick->threads;

    return !row->hidden && !row->failed && setting_is(row, PERF_SETTING_SCHEME, picked->scheme) &&
           (setting_is(row, PERF_SETTING_WIRE, options->default_wire) || same_wire) &&
           (setting_is(row, PERF_SETTING_PARTITION, options->default_partition) || same_parts) &&
           (setting_is(row, PERF_SETTING_COLUMNS, options->default_columns) || same_columns) &&
           (setting_is(row, PERF_SETTING_THREADS, options->default_threads) || same_threads);
}

void perf_row_plan_mark_choice(struct perf_row_plan *plan, const struct perf_options *options)
{
    struct perf_row *pick = plan->pick < 0 ? NULL : &plan->row[plan->pick];

    if (pick == NULL || pick->failed)
        return;
    for (int i = 0; i < plan->rows; i++)
        if (is_reference(&plan->row[i], options, pick->report.scheme) && !plan->row[i].hidden &&
            !plan->row[i].failed) {
            plan->row[i].chosen = true;
            return;
        }
    for (int i = 0; i < plan->rows; i++)
        if (does_the_same(&plan->row[i], pick, options)) {
            plan->row[i].chosen = true;
            return;
        }
    pick->chosen = true;
}

void perf_row_plan_free(struct perf_row_plan *plan)
{
    free(plan->row);
    free(plan->group);
}
