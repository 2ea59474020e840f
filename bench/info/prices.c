/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of prices of a hypothetical call, from the library's own cost formulas and selector. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/info/info.h"
#include "bench/lib/schema.h"
#include "comm/comm.h"
#include "comm/topology.h"
#include "core/forecast.h"
#include "core/select.h"

/* Constants of a typical processor and network, used if nothing else is given. A message within a node is
 * written to memory and read from there. */
static const double GAMMA = 2.3e-9, MEMORY = 1e-10, GIGABITS = 25, MICROSECONDS = 10, INTRA_ALPHA = 5e-7;
enum { INTRA_PASSES = 2 };

/* Share of work that threads do not divide: 16 threads take a fifth of the time of one, as
 * `bench/simulate --compute` charges them. A call measures that. */
static const double SERIAL_SHARE = 0.147;

/* Further messages cost this fraction of the latency. */
static const double OVERHEAD = 0.2, INTRA_OVERHEAD = 0.6;

/* Returns the ranks of the i-th ratio. Ratios without ranks are for the ranks at which the library samples.
 */
static long long ranks_of(const struct info_gamma *asked, const struct sar_densification *usual, int i)
{
    if (asked->ranks[i] > 0)
        return asked->ranks[i];
    return i + 1 < usual->points ? usual->ranks[i + 1] : -1;
}

/* Checks option --gamma: ratios grow with the ranks, at most in proportion, and include one for all ranks. */
static bool read_gamma(const struct info_options *options, struct sar_densification *gamma)
{
    static const char option[] = "option --gamma";
    const struct info_gamma *asked = &options->gamma;
    struct sar_densification made = { 1, { 1 }, { 1 } };

    if (asked->n >= SAR_DENSIFICATION_POINTS)
        return info_print_error(option, "more than %d values", SAR_DENSIFICATION_POINTS - 1);
    for (int i = 0; i < asked->n; i++) {
        long long ranks = ranks_of(asked, gamma, i);
        if (asked->ranks[i] > options->ranks)
            return info_print_error(option, "'%lld:%g' is for more than %lld ranks", asked->ranks[i],
                                    asked->ratio[i], options->ranks);
        if (ranks < 0 || ranks > options->ranks)
            return info_print_error(option, "value %d is for more than %lld ranks", i + 1, options->ranks);
        if (ranks <= made.ranks[i])
            return info_print_error(option, "value %d is not for more ranks than the one before it", i + 1);
        if (asked->ratio[i] < made.ratio[i] || asked->ratio[i] > (double)ranks)
            return info_print_error(option, "%g at %lld ranks is not from %g, the one before it, to %lld",
                                    asked->ratio[i], ranks, made.ratio[i], ranks);
        made.ranks[i + 1] = (int)ranks;
        made.ratio[i + 1] = asked->ratio[i];
        made.points = i + 2;
    }
    if (asked->n > 0 && made.ranks[asked->n] < options->ranks)
        return info_print_error(option, "there is no value at %lld ranks", options->ranks);
    if (asked->n > 0)
        *gamma = made;
    return true;
}

/* An option overrides a setting or calibration, which override the default. */
static double first_of(double option, double setting, double common)
{
    return option > 0 ? option : setting > 0 ? setting : common;
}

/* Ranks of a node share its processors, which are as many as this process has. */
static int threads_of(const struct info_options *options, const struct sar_config *config)
{
    struct sar_cpuset own;
    int cpus, quota = sar_topology_cgroup_cpus();

    if (options->threads > 0)
        return (int)options->threads;
    if (config->threads != SAR_U64_AUTO)
        return (int)config->threads;
    sar_topology_cpuset(0, &own);
    cpus = sar_cpuset_count(&own);
    return sar_comm_auto_threads((quota > 0 && quota < cpus ? quota : cpus) / (int)options->ranks_per_node);
}

/* The ranks of a node share its network. On a single node, all messages are intra-node. */
static struct sar_machine machine_of(const struct info_options *options, const struct info_settings *settings)
{
    const struct sar_config *config = &settings->config;
    bool network = options->gigabits > 0,
         one = options->ranks > 1 && options->ranks_per_node >= options->ranks;
    double memory = first_of(0, settings->memory, MEMORY), intra_beta = INTRA_PASSES * memory;
    double sharing = (double)options->ranks_per_node, inter_beta = 8e-9 / GIGABITS * sharing;
    double beta = network ? 8e-9 / options->gigabits * sharing : 0;
    double alpha = first_of(0, config->alpha, one ? INTRA_ALPHA : MICROSECONDS * 1e-6);
    struct sar_machine m = { .ranks = (int)options->ranks,
                             .alpha = network ? options->microseconds * 1e-6 : alpha,
                             .beta = first_of(beta, config->beta, one ? intra_beta : inter_beta),
                             .gamma = first_of(0, config->gamma, GAMMA),
                             .memory = memory };
    m.thread_ratio = SERIAL_SHARE + (1 - SERIAL_SHARE) / threads_of(options, config);
    m.overhead = first_of(0, config->overhead, (one ? INTRA_OVERHEAD : OVERHEAD) * m.alpha);
    m.intra_overhead = one ? m.overhead : INTRA_OVERHEAD * INTRA_ALPHA;
    m.intra_alpha = one ? m.alpha : INTRA_ALPHA;
    m.intra_beta = one ? m.beta : intra_beta;
    return m;
}

static void print_head(const struct info_options *options, const struct sar_agreed *a, int threads)
{
    const struct sar_machine *m = &a->machine;

    printf("# %lld elements of %zu B, %.0f evenly spread on each of %lld ranks, interface %s\n",
           options->count, a->desc.element_size, a->data.nnz_mean, options->ranks,
           perf_interface_name(options->interface));
    printf("# %s: densification", options->gamma.n > 0 ? "as given" : "as if ranks chose alone");
    for (int i = 1; i < a->data.densification.points; i++)
        printf(" %d:%.3f", a->data.densification.ranks[i], a->data.densification.ratio[i]);
    if (a->topo.node_ranks == 1)
        printf("\n# each rank a node of its own, ");
    else
        printf("\n# %d node%s of %d ranks, within which alpha %.3g s, overhead %.3g s, beta %.3g s/B, else ",
               a->topo.nodes, a->topo.nodes == 1 ? "" : "s", a->topo.node_ranks, m->intra_alpha,
               m->intra_overhead, m->intra_beta);
    printf("alpha %.3g s a message, overhead %.3g s a further one, beta %.3g s/B (%.3g Gb/s)\n", m->alpha,
           m->overhead, m->beta, 8e-9 / m->beta);
    printf("# gamma %.3g s an element reduced, memory %.3g s/B\n", m->gamma, m->memory);
    printf("# %d thread%s a rank", threads, threads == 1 ? "" : "s");
    if (threads > 1)
        printf(": work takes %.3g times as long as with one", m->thread_ratio);
    puts("");
    printf("# dense as a tree of messages and a ring of bytes: %.3g s, %.3g s/B\n", m->dense_alpha,
           m->dense_beta);
    if (a->topo.node_ranks > 1 && a->call.dense_face)
        printf("# within a node MPI_Allreduce often takes several times its price: measure with "
               "mpix_sparse_perf -i dense\n");
    printf("# bytes are those that a rank sends, or receives, whichever is more\n");
    printf("%-22s %14s %16s %9s", "# scheme", "time(us)", "bytes", "vs-dense");
    if (options->row_len > 1)
        printf(" %8s %9s %11s %11s", "columns", "messages", "push-bytes", "pull-bytes");
    putchar('\n');
}

static const struct sar_selection *sorted_by; /* context of by_price, for qsort */

/* Order: the scheme that runs, then by price, then schemes without a price. */
static int by_price(const void *a, const void *b)
{
    int i = *(const int *)a, k = *(const int *)b;
    double x = sorted_by->prices[i].price, y = sorted_by->prices[k].price;

    if (i == sorted_by->scheme || k == sorted_by->scheme)
        return (k == sorted_by->scheme) - (i == sorted_by->scheme);
    return x != y ? (x > y) - (x < y) : (i > k) - (i < k);
}

/* One line of the table. */
struct price {
    const char *scheme, *unsupported_reason, *why;
    long long count, row_len, ranks, nodes, threads;
    double density, alpha, overhead, beta, gamma, memory;
    double seconds, bytes, dense_seconds; /* NaN if there is no price */
    long long columns;                    /* -1 if the scheme slices no rows, as for the messages' NaN */
    double messages, push_bytes, pull_bytes;
    bool runs;
};

static void find_slices(struct price *p, const struct sar_scheme *scheme, const struct sar_agreed *a)
{
    struct perf_scheme known = perf_scheme_find(scheme->name);
    const char *partition = a->partition.kind < 0 ? "auto" : sar_partition_names[a->partition.kind];

    if (!perf_scheme_slices(&known, partition, p->row_len))
        return;
    struct sar_forecast_slices slices = sar_forecast_slices(scheme, a);
    p->columns = slices.columns;
    p->messages = slices.messages;
    p->push_bytes = slices.push_bytes;
    p->pull_bytes = slices.pull_bytes;
}

/* True if no scheme that can run has a lower price than scheme i, or if i was not chosen by its price. */
static bool is_cheapest(const struct sar_selection *s, int i)
{
    if (strcmp(s->reason, "cheapest") != 0)
        return true;
    for (int j = 0; sar_schemes[j] != NULL; j++)
        if (s->prices[j].unsupported_reason == NULL && s->prices[j].predicted < s->prices[i].predicted)
            return false;
    return true;
}

static struct price price_of(const struct sar_selection *s, const struct sar_agreed *a, enum sar_model model,
                             int i)
{
    const struct sar_scheme *scheme = sar_schemes[i];
    const struct sar_machine *m = &a->machine;
    double dense = s->prices[0].price;
    struct price p = { .scheme = scheme->name,
                       .unsupported_reason = s->prices[i].unsupported_reason,
                       .count = (long long)a->desc.count,
                       .row_len = (long long)a->desc.row_len,
                       .ranks = m->ranks,
                       .nodes = a->topo.nodes,
                       .density = a->desc.count > 0 ? a->data.nnz_mean / (double)a->desc.count : NAN,
                       .alpha = m->alpha,
                       .overhead = m->overhead,
                       .beta = m->beta,
                       .gamma = m->gamma,
                       .memory = m->memory,
                       .seconds = NAN,
                       .bytes = NAN,
                       .dense_seconds = isfinite(dense) ? dense : NAN,
                       .columns = -1,
                       .messages = NAN,
                       .push_bytes = NAN,
                       .pull_bytes = NAN,
                       .runs = i == s->scheme };
    if (p.runs || i == s->choice)
        p.why = !p.runs ? "cheapest" : is_cheapest(s, i) ? s->reason : "runs: others gain too little";
    if (p.unsupported_reason == NULL && isinf(s->prices[i].predicted))
        p.unsupported_reason = "the paper has no equation for it";
    if (p.unsupported_reason != NULL)
        return p;
    p.seconds = s->prices[i].price;
    p.bytes = model == SAR_MODEL_PAPER ? scheme->paper_bytes(a) : sar_forecast_bytes(scheme, a);
    if (model != SAR_MODEL_PAPER)
        find_slices(&p, scheme, a);
    return p;
}

static void print_row(const struct price *p)
{
    if (p->unsupported_reason != NULL) {
        printf("%-22s not considered: %s\n", p->scheme, p->unsupported_reason);
        return;
    }
    printf("%-22s %14.1f %16.0f", p->scheme, p->seconds * 1e6, p->bytes);
    if (!isnan(p->dense_seconds) && p->seconds > 0)
        printf(" %9.2f", p->dense_seconds / p->seconds);
    else
        printf(" %9s", "-");
    if (p->columns > 0)
        printf(" %8lld %9.0f %11.0f %11.0f", p->columns, p->messages, p->push_bytes, p->pull_bytes);
    else if (p->row_len > 1)
        printf(" %8s %9s %11s %11s", "-", "-", "-", "-");
    printf("  %s%s\n", p->runs ? "<- " : "", p->why != NULL ? p->why : "");
}

static void print_json(const struct price *p)
{
    static const struct perf_field fields[] = {
        PERF_FIELD(price, "count", PERF_INTEGER, count),
        PERF_FIELD(price, "row", PERF_INTEGER, row_len),
        PERF_FIELD(price, "density", PERF_REAL, density),
        PERF_FIELD(price, "ranks", PERF_INTEGER, ranks),
        PERF_FIELD(price, "nodes", PERF_INTEGER, nodes),
        PERF_FIELD(price, "threads", PERF_INTEGER, threads),
        PERF_FIELD(price, "alpha_s", PERF_REAL, alpha),
        PERF_FIELD(price, "overhead_s", PERF_REAL, overhead),
        PERF_FIELD(price, "beta_s", PERF_REAL, beta),
        PERF_FIELD(price, "gamma_s", PERF_REAL, gamma),
        PERF_FIELD(price, "memory_s", PERF_REAL, memory),
        PERF_FIELD(price, "scheme", PERF_TEXT, scheme),
        PERF_FIELD(price, "predicted_s", PERF_REAL, seconds),
        PERF_FIELD(price, "bytes", PERF_REAL, bytes),
        PERF_FIELD(price, "dense_s", PERF_REAL, dense_seconds),
        PERF_FIELD(price, "columns", PERF_INTEGER, columns),
        PERF_FIELD(price, "messages", PERF_REAL, messages),
        PERF_FIELD(price, "push_message_bytes", PERF_REAL, push_bytes),
        PERF_FIELD(price, "pull_message_bytes", PERF_REAL, pull_bytes),
        PERF_FIELD(price, "obstacle", PERF_TEXT, unsupported_reason),
        PERF_FIELD(price, "runs", PERF_BOOL, runs),
        PERF_FIELD(price, "why", PERF_TEXT, why),
    };
    static const struct perf_schema schema = PERF_SCHEMA(fields);

    perf_write_json(stdout, &schema, p);
}

bool info_print_prices(const struct info_options *options, const struct info_settings *settings)
{
    static const struct sar_cost_history none = { .trials = { 0 } };
    struct sar_forecast f = { .count = (uint64_t)options->count,
                              .row = (size_t)options->row_len,
                              .density = options->density,
                              .gamma = sar_densification_independent(options->density, (int)options->ranks),
                              .machine = machine_of(options, settings),
                              .node_ranks = (int)options->ranks_per_node,
                              .dense_face = options->interface == PERF_DENSE };
    struct sar_config config = settings->config;
    struct sar_selection selection;
    int order[SAR_SCHEMES_MAX], n = 0, threads = threads_of(options, &config);

    if (!read_gamma(options, &f.gamma))
        return false;
    config.learn = false;
    struct sar_agreed agreed = sar_forecast_agreed(&f, &config);
    if (sar_select(&agreed, &config, &none, sar_scheme_find(config.scheme), NULL, &selection) != SAR_OK)
        return info_print_error("option --explain", "no scheme can carry out such a call");
    for (; sar_schemes[n] != NULL; n++)
        order[n] = n;
    sorted_by = &selection;
    qsort(order, (size_t)n, sizeof *order, by_price);
    if (!options->json)
        print_head(options, &agreed, threads);
    for (int i = 0; i < n; i++) {
        struct price price = price_of(&selection, &agreed, (enum sar_model)config.model, order[i]);
        price.threads = threads;
        (options->json ? print_json : print_row)(&price);
    }
    return true;
}
