/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of many kinds are made on tensors of a few, and the trace tells of each piece of work how long it
 * took and what that follows from. Of a work's seconds in several calls alike the least is taken, as others
 * may have had the processor meanwhile. What all of these are, over the tensors, is put down to elements,
 * bytes of values and slots by least squares of relative errors, no share below zero. */

#include "costs.h"

#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "net/fingerprint.h"
#include "net/machine.h"
#include "net/topology.h"
#include "row.h"
#include "samples.h"

enum { CALLS = 50, WARMUP = 2, SUMMED = 1 << 20 /* bytes */, MOST = 1024 /* samples */ };

/* A tensor: elements of a row of floats. */
struct tensor {
    size_t count, row;
    double density;
};

static const struct tensor tensors[] = {
    { 8000000, 1, 0.01 }, { 1500000, 1, 0.15 }, { 8000000, 1, 0.0005 }, { 60000, 64, 0.05 }
};

struct call {
    const char *scheme, *wire;
    int interface, order, index;
    bool in_place;
};

/* clang-format off */
static const struct call calls[] = {
    { "balanced", "coo", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "balanced", "packed", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "balanced", "elias_fano", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "balanced", "bitmap", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "balanced", "hash_bitmap", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "balanced", "block", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "balanced", "dense", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "balanced", "auto", PERF_COO, PERF_SHUFFLED, PERF_INDEX_AUTO, false },
    { "balanced", "auto", PERF_COO, PERF_SORTED, PERF_INT64, false },
    { "balanced", "auto", PERF_DENSE, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "balanced", "auto", PERF_DENSE, PERF_SORTED, PERF_INDEX_AUTO, true },
    { "oktopk", "auto", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "split_allgather", "auto", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "recursive_doubling", "auto", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "shared", "auto", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "shared", "auto", PERF_DENSE, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "shared", "auto", PERF_DENSE, PERF_SORTED, PERF_INDEX_AUTO, true },
    { "dense", "auto", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
};
/* clang-format on */

/* A row of the library's that does one scheme. */
static void prepare_row(struct perf_row *row, const struct call *call)
{
    memset(row, 0, sizeof *row);
    row->way = PERF_BY_LIBRARY;
    snprintf(row->knobs.at[PERF_KNOB_SCHEME], PERF_NAME_MAX, "%s", call->scheme);
    snprintf(row->knobs.at[PERF_KNOB_WIRE], PERF_NAME_MAX, "%s", call->wire);
}

static int calls_of(const struct perf_options *options)
{
    return options->iterations < CALLS ? (int)options->iterations : CALLS;
}

static void call_often(const struct perf_case *c, const struct perf_tensor *tensor, const struct call *call,
                       struct perf_samples *least)
{
    struct perf_samples now = perf_samples_make(PERF_SAMPLES);
    const struct sar_follower follower = { &now, NULL, NULL, perf_samples_hear };
    struct perf_row *row = perf_alloc(1, sizeof *row);

    prepare_row(row, call);
    perf_row_open(row, c, tensor);
    for (int i = 0; i < WARMUP + calls_of(c->options) && !row->refused; i++) {
        now.n = 0;
        sar_trace_follow(i < WARMUP ? NULL : &follower);
        perf_row_call(row, c, tensor, i % tensor->steps, 0);
        sar_trace_follow(NULL);
        perf_samples_keep_least(least, &now);
    }
    perf_row_close(row);
    free(row);
    perf_samples_free(&now);
}

/* What a measurement goes by, and what it has found. */
struct costs {
    const struct perf_world *world;
    const struct perf_source *source;
    struct perf_options options; /* of the calls to make next */
    struct perf_samples all;     /* on rank 0 */
};

static void measure_calls(struct costs *costs, const struct tensor *on, const struct call *call)
{
    struct perf_samples least = perf_samples_make(PERF_SAMPLES);
    struct perf_options *options = &costs->options;
    struct perf_tensor tensor;
    struct perf_case c;

    options->row = (long long)on->row;
    options->interface = call->interface;
    options->order = call->order;
    options->index = call->index;
    options->in_place = call->in_place;
    perf_case_make(&c, costs->world, options, options->type.at[0], PERF_SUM);
    perf_case_size(&c, on->count / (size_t)options->scale, on->density);
    if (perf_tensor_make(&tensor, &c, costs->source)) {
        call_often(&c, &tensor, call, &least);
        perf_tensor_free(&tensor);
    }
    perf_samples_collect(costs->world, &least, &costs->all);
    perf_case_free(&c);
    perf_samples_free(&least);
}

/* MPI's own sums, as MPI_Allreduce has them. */
static void measure_sums(struct costs *costs)
{
    struct perf_samples least = perf_samples_make(PERF_SAMPLES), now = perf_samples_make(1);
    struct perf_block in = perf_block_written(SUMMED), out = perf_block_written(SUMMED);

    for (int i = 0; i < WARMUP + calls_of(&costs->options); i++) {
        struct perf_sample sample = { .kind = PERF_SUM_KIND,
                                      .format = "-",
                                      .measure = { [PERF_BYTES] = SUMMED } };
        double start = MPI_Wtime();
        MPI_Reduce_local(in.data, out.data, SUMMED / (int)sizeof(float), MPI_FLOAT, MPI_SUM);
        sample.seconds = MPI_Wtime() - start;
        now.n = 0;
        perf_samples_append(&now, &sample);
        perf_samples_keep_least(&least, &now);
    }
    perf_samples_collect(costs->world, &least, &costs->all);
    perf_block_free(&in);
    perf_block_free(&out);
    perf_samples_free(&now);
    perf_samples_free(&least);
}

/* What the constants of a machine are measured by. */
static bool measure_machine(struct costs *costs)
{
    struct perf_samples least = perf_samples_make(PERF_SAMPLES), now = perf_samples_make(PERF_SAMPLES);
    const struct sar_follower follower = { &now, NULL, NULL, perf_samples_hear };
    struct sar_machine machine;
    struct sar_net net;
    enum sar_status status = sar_net_open(MPI_COMM_WORLD, &net);
    bool open = status == SAR_OK;

    for (int i = 0; i < calls_of(&costs->options) && status == SAR_OK; i++) {
        now.n = 0;
        sar_machine_forget();
        sar_trace_follow(&follower);
        status = sar_machine_measure(&net, &machine);
        sar_trace_follow(NULL);
        perf_samples_keep_least(&least, &now);
    }
    if (open)
        sar_net_close(&net);
    perf_samples_collect(costs->world, &least, &costs->all);
    perf_samples_free(&now);
    perf_samples_free(&least);
    return status == SAR_OK;
}

static void write_head(FILE *file, const struct costs *costs)
{
    char day[32], mpi[SAR_FINGERPRINT_TEXT];
    time_t now = time(NULL);

    strftime(day, sizeof day, "%Y-%m-%d", gmtime(&now));
    sar_fingerprint_mpi(mpi);
    fprintf(file, "{\n\"cpu\": \"%s\",\n\"processors\": %d,\n\"mpi\": \"%s\",\n\"date\": \"%s\",\n",
            sar_topology_model(), sar_topology_processors(), mpi, day);
    fprintf(file, "\"command\": \"mpirun -n %d mpix_sparse_perf --costs FILE -n %d\",\n\"costs\": [\n",
            costs->world->ranks, calls_of(&costs->options));
}

/* Whether a sample is the first of its kind. */
static bool is_new(const struct perf_samples *all, int i)
{
    for (int j = 0; j < i; j++)
        if (strcmp(all->at[i].kind, all->at[j].kind) == 0 &&
            strcmp(all->at[i].format, all->at[j].format) == 0)
            return false;
    return true;
}

static void write_costs(FILE *file, const struct perf_samples *all)
{
    for (int i = 0; i < all->n; i++) {
        struct perf_cost cost;
        if (!is_new(all, i))
            continue;
        memcpy(cost.kind, all->at[i].kind, sizeof cost.kind);
        memcpy(cost.format, all->at[i].format, sizeof cost.format);
        double misfit = perf_samples_fit(all, &cost);
        fprintf(file, i == 0 ? "" : ",\n");
        perf_cost_write(file, &cost, misfit);
        printf("%-10s %-12s %8.0f ns a piece, %7.3f an element, %7.4f a byte, %7.4f a slot; within %.0f %%\n",
               cost.kind, cost.format, cost.piece * 1e9, cost.element * 1e9, cost.byte * 1e9, cost.slot * 1e9,
               misfit * 100);
    }
    fprintf(file, "\n]\n}\n");
}

static bool complain(const char *path)
{
    fprintf(stderr, "mpix_sparse_perf: option --costs: cannot write '%s': %s\n", path, strerror(errno));
    return false;
}

/* Whether there is a place for the file, before minutes of measuring; what is there stays as it is. */
static bool has_place(const char *path)
{
    struct stat status;
    bool is_new = lstat(path, &status) != 0;
    FILE *file = fopen(path, "a");

    if (file == NULL)
        return complain(path);
    fclose(file);
    if (is_new)
        unlink(path);
    return true;
}

/* On rank 0. */
static bool save(const char *path, const struct costs *costs)
{
    FILE *file = fopen(path, "w");
    bool written = file != NULL;

    if (written) {
        write_head(file, costs);
        write_costs(file, &costs->all);
        written = !ferror(file);
        written &= fclose(file) == 0;
    }
    return written || complain(path);
}

static bool agree(int good)
{
    MPI_Bcast(&good, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return good;
}

bool perf_costs(const char *path, const struct perf_options *options, const struct perf_source *source,
                const struct perf_world *world)
{
    struct costs *costs;
    bool good;

    if (!agree(world->rank != 0 || has_place(path)))
        return false;
    costs = perf_alloc(1, sizeof *costs);
    *costs = (struct costs){ world, source, *options, perf_samples_make(MOST) };
    good = measure_machine(costs);
    measure_sums(costs);
    for (size_t t = 0; t < sizeof tensors / sizeof *tensors && good; t++)
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
            measure_calls(costs, &tensors[t], &calls[i]);
    if (good && world->rank == 0)
        good = save(path, costs);
    perf_samples_free(&costs->all);
    free(costs);
    return agree(good);
}
