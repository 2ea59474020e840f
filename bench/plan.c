/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *knob(const struct perf_row *row, enum perf_knob which)
{
    return row->knobs.at[which];
}

static bool is(const struct perf_row *row, enum perf_knob which, const char *value)
{
    return strcmp(knob(row, which), value) == 0;
}

static void set(struct perf_row *row, enum perf_knob which, const char *value)
{
    snprintf(row->knobs.at[which], PERF_NAME_MAX, "%s", value);
}

static enum perf_way way_of(const char *scheme)
{
    if (strcmp(scheme, "memory") == 0)
        return PERF_MEMORY;
    return strcmp(scheme, "memory_node") == 0 ? PERF_MEMORY_NODE : PERF_BY_LIBRARY;
}

/* A row with the knobs of rows that nobody asked for. */
static void reference(struct perf_row *row, const struct perf_options *options, const char *scheme)
{
    memset(row, 0, sizeof *row);
    row->way = way_of(scheme);
    row->hidden = true;
    set(row, PERF_KNOB_SCHEME, scheme);
    set(row, PERF_KNOB_WIRE, options->plain_wire);
    set(row, PERF_KNOB_PARTITION, options->plain_partition);
    set(row, PERF_KNOB_GRAIN, options->grain);
    set(row, PERF_KNOB_WIRE_VALUES, perf_values_name(options->values));
    if (options->seed_given)
        snprintf(row->knobs.at[PERF_KNOB_SEED], PERF_NAME_MAX, "%lld", options->seed);
}

/* Whether a row runs its scheme as it is run for comparison. */
static bool is_reference(const struct perf_row *row, const struct perf_options *options, const char *scheme)
{
    return perf_row_is_ours(row) && is(row, PERF_KNOB_SCHEME, scheme) &&
           is(row, PERF_KNOB_WIRE, options->plain_wire) &&
           is(row, PERF_KNOB_PARTITION, options->plain_partition);
}

static void add(struct perf_row *row, const struct perf_options *options, const struct perf_scheme *scheme,
                const char *wire, const char *partition)
{
    reference(row, options, scheme->name);
    row->hidden = false;
    set(row, PERF_KNOB_WIRE, wire);
    set(row, PERF_KNOB_PARTITION, partition);
}

/* A scheme's rows with one wire: one for each partition map asked for that means something to it, or one. */
static int expand_partitions(const struct perf_options *options, const struct perf_scheme *scheme,
                             const char *wire, struct perf_row *rows)
{
    int n = 0;

    for (int p = 0; p < options->partition.n; p++)
        if (perf_scheme_takes(scheme, options->partition.at[p]))
            add(&rows[n++], options, scheme, wire, options->partition.at[p]);
    if (n == 0)
        add(&rows[n++], options, scheme, wire, options->plain_partition);
    return n;
}

/* All combinations asked for; a scheme gets one row for all wires or partitions that mean nothing to it. */
static int expand(const struct perf_options *options, struct perf_row *rows)
{
    int n = 0;

    for (int s = 0; s < options->scheme.n; s++) {
        struct perf_scheme scheme = perf_scheme_find(options->scheme.at[s]);
        if (!scheme.wires)
            n += expand_partitions(options, &scheme, options->plain_wire, rows + n);
        for (int w = 0; w < options->wire.n && scheme.wires; w++)
            n += expand_partitions(options, &scheme, options->wire.at[w], rows + n);
    }
    return n;
}

/* The rows asked for, and one of the selector unless they are to be alone; in fresh memory. */
static struct perf_row *wanted(const struct perf_options *options, int *n)
{
    size_t most = (size_t)options->scheme.n * (size_t)options->wire.n * (size_t)options->partition.n + 1;
    struct perf_row *rows = perf_alloc(most, sizeof *rows);

    *n = expand(options, rows);
    for (int i = 0; i < *n; i++)
        if (is_reference(&rows[i], options, "auto"))
            return rows;
    if (!options->alone)
        reference(&rows[(*n)++], options, "auto");
    return rows;
}

static int add_reference(struct perf_plan *plan, const struct perf_options *options, const char *scheme)
{
    reference(&plan->row[plan->rows], options, scheme);
    return plan->rows++;
}

/* Schemes that know of formats are those whose messages are the library's; what `auto` runs has a row. */
static void add_skeleton(struct perf_plan *plan)
{
    struct perf_row *model = &plan->row[plan->rows - 1], *row = &plan->row[plan->rows];

    if (!perf_row_is_ours(model) || is(model, PERF_KNOB_SCHEME, "auto") ||
        !perf_scheme_find(knob(model, PERF_KNOB_SCHEME)).wires)
        return;
    *row = *model;
    row->way = PERF_SKELETON;
    row->model = model;
    set(row, PERF_KNOB_SCHEME, "skeleton");
    plan->rows++;
}

/* Put the baselines behind the rows of a group. */
static void close_group(struct perf_plan *plan, struct perf_group *group, const struct perf_options *options,
                        bool plain)
{
    group->plain = group->allgather = group->memory = -1;
    for (int i = group->begin; i < plan->rows; i++) {
        if (is_reference(&plan->row[i], options, "allgather"))
            group->allgather = i;
        if (plan->row[i].way == PERF_MEMORY)
            group->memory = i;
    }
    group->end = plan->rows;
    if (options->alone)
        return;
    if (group->allgather < 0)
        group->allgather = add_reference(plan, options, "allgather");
    if (group->memory < 0)
        group->memory = add_reference(plan, options, "memory");
    if (plain) {
        group->plain = plan->rows;
        plan->row[plan->rows] = (struct perf_row){ .way = PERF_BY_MPI, .hidden = true };
        plan->rows++;
    }
    group->end = plan->rows;
}

/* Rows keep a result and scratch memory of the library, more of it where the elements are not at hand; dense
 * and auto have a vector of their own beside. */
int perf_plan_room(const struct perf_case *c, const struct perf_tensor *tensor,
                   const struct perf_shape *shape)
{
    const double copies = c->options->interface == PERF_DENSE ? 6 : 3, vectors = 2, most = 1000;
    double elements = (double)shape->nnz_in_max + (double)shape->nnz_out;
    double each = copies * elements * (double)(c->element_bytes + sizeof(uint64_t));
    double room = c->world->memory - tensor->bytes - vectors * (double)perf_case_bytes(c);
    double rows = each > 0 ? room / each : most;

    return rows < 1 ? 1 : rows > most ? (int)most : (int)rows;
}

void perf_plan_make(struct perf_plan *plan, const struct perf_options *options, int at_once, bool plain)
{
    enum { BASELINES = 3 };
    int n, each = options->skeleton && at_once > 1 ? at_once / 2 : at_once;
    struct perf_row *rows = wanted(options, &n);
    int groups = (n + each - 1) / each;

    *plan = (struct perf_plan){ .groups = groups, .pick = -1 };
    plan->row = perf_alloc((size_t)(2 * n + BASELINES * groups), sizeof *plan->row);
    plan->group = perf_alloc((size_t)groups, sizeof *plan->group);
    for (int g = 0; g < groups; g++) {
        plan->group[g].begin = plan->rows;
        for (int i = g * each; i < n && i < (g + 1) * each; i++) {
            if (is_reference(&rows[i], options, "auto"))
                plan->pick = plan->rows;
            plan->row[plan->rows++] = rows[i];
            if (options->skeleton && !rows[i].hidden)
                add_skeleton(plan);
        }
        close_group(plan, &plan->group[g], options, plain);
    }
    free(rows);
}

/* Whether a row does what another one, of the scheme auto, ended up doing. */
static bool does_the_same(const struct perf_row *row, const struct perf_row *pick,
                          const struct perf_options *options)
{
    const MPIX_Sparse_report_t *did = &row->report, *picked = &pick->report;
    bool same_wire =
        strcmp(did->push_wire, picked->push_wire) == 0 && strcmp(did->pull_wire, picked->pull_wire) == 0;
    bool same_parts = strcmp(did->partition, picked->partition) == 0 && did->grain == picked->grain;

    return !row->hidden && !row->refused && is(row, PERF_KNOB_SCHEME, picked->scheme) &&
           (is(row, PERF_KNOB_WIRE, options->plain_wire) || same_wire) &&
           (is(row, PERF_KNOB_PARTITION, options->plain_partition) || same_parts);
}

void perf_plan_choose(struct perf_plan *plan, const struct perf_options *options)
{
    struct perf_row *pick = plan->pick < 0 ? NULL : &plan->row[plan->pick];

    if (pick == NULL || pick->refused)
        return;
    for (int i = 0; i < plan->rows; i++)
        if (is_reference(&plan->row[i], options, pick->report.scheme) && !plan->row[i].hidden &&
            !plan->row[i].refused) {
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

void perf_plan_free(struct perf_plan *plan)
{
    free(plan->row);
    free(plan->group);
}
