/* SPDX-License-Identifier: BSD-3-Clause */
/* Study `bcast`: times of broadcasts of a new version of a vector, of which a share changed. Ways to do it:
 * MPIX_Sparse_bcast_delta in place, MPIX_Sparse_bcast_coo of the changes, MPI_Bcast of indices and values,
 * and MPI_Bcast of the vector. A time is the maximum over the ranks. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/stats.h"
#include "bench/studies/study.h"

struct record {
    const char *study, *label, *method;
    long long ranks, nodes, count, scale, nnz, floor_bytes, iterations, wrong;
    double density, median, min, gbs;
};

#define FIELD(key, kind, member) PERF_FIELD(record, key, kind, member)

static const struct perf_field fields[] = {
    FIELD("study", PERF_TEXT, study),
    FIELD("label", PERF_TEXT, label),
    FIELD("ranks", PERF_INTEGER, ranks),
    FIELD("nodes", PERF_INTEGER, nodes),
    FIELD("count", PERF_INTEGER, count),
    FIELD("scale", PERF_INTEGER, scale),
    FIELD("density", PERF_REAL, density),
    FIELD("nnz", PERF_INTEGER, nnz),
    FIELD("floor", PERF_INTEGER, floor_bytes),
    FIELD("method", PERF_TEXT, method),
    FIELD("iterations", PERF_INTEGER, iterations),
    FIELD("median_s", PERF_REAL, median),
    FIELD("min_s", PERF_REAL, min),
    FIELD("gbs", PERF_REAL, gbs),
    FIELD("wrong", PERF_INTEGER, wrong),
};
static const struct perf_schema schema = PERF_SCHEMA(fields);

/* Versions 0 and 1 of a vector: a number differs in all bits if its index is listed. The root has both; the
 * buffer of other ranks has one. */
struct vectors {
    const struct perf_case *c;
    MPI_Comm comm;
    size_t bytes, nnz;
    uint32_t *index;
    unsigned char *version[2], *values;
    MPIX_Sparse_result result;
    int current; /* version of the buffers */
};

/* Lists random indices: gaps between them are geometric. */
static void draw(struct vectors *v, double density)
{
    size_t capacity = (size_t)((double)v->c->count * density * 1.1) + 1000;
    double from = 0, none = density < 1 ? log1p(-density) : -INFINITY;

    v->index = perf_alloc(capacity, sizeof *v->index);
    for (uint64_t i = 0; v->nnz < capacity; i++) {
        double unit = ((double)(perf_mix(i + (uint64_t)v->c->options->seed) >> 11) + 1) / (double)(1LL << 53);
        from += density > 0 ? floor(log(unit) / none) : INFINITY;
        if (from >= (double)v->c->count)
            return;
        v->index[v->nnz++] = (uint32_t)from;
        from++;
    }
}

static void flip(struct vectors *v, unsigned char *vector)
{
    size_t size = v->c->element_bytes;

    for (size_t i = 0; i < v->nnz; i++)
        for (size_t k = 0; k < size; k++)
            vector[v->index[i] * size + k] ^= 0xff;
}

static void fill(const struct vectors *v, unsigned char *vector)
{
    for (size_t i = 0; i < v->bytes; i++)
        vector[i] = (unsigned char)(i * 2654435761u >> 16);
}

static void make(struct vectors *v, const struct perf_case *c, MPI_Comm comm, double density)
{
    size_t size = c->element_bytes;

    *v = (struct vectors){ .c = c, .comm = comm, .bytes = perf_case_bytes(c) };
    draw(v, density);
    for (int i = 0; i < (c->world->rank == 0 ? 2 : 1); i++) {
        v->version[i] = perf_alloc(v->bytes, 1);
        fill(v, v->version[i]);
    }
    v->values = perf_alloc(v->nnz, size);
    if (c->world->rank > 0)
        return;
    flip(v, v->version[1]);
    for (size_t i = 0; i < v->nnz; i++)
        memcpy(v->values + i * size, v->version[1] + v->index[i] * size, size);
}

static void release(struct vectors *v)
{
    MPIX_Sparse_result_free(&v->result);
    free(v->index);
    free(v->values);
    free(v->version[0]);
    free(v->version[1]);
}

static int by_delta(struct vectors *v)
{
    MPI_Count count = (MPI_Count)v->c->count;
    int from = v->current;

    v->current = 1 - from;
    if (v->c->world->rank == 0)
        return MPIX_Sparse_bcast_delta(v->version[from], v->version[1 - from], count, v->c->element, 0,
                                       v->comm);
    return MPIX_Sparse_bcast_delta(MPI_IN_PLACE, v->version[0], count, v->c->element, 0, v->comm);
}

static int by_coo(struct vectors *v)
{
    return MPIX_Sparse_bcast_coo(v->index, v->values, (MPI_Count)v->nnz, MPI_UINT32_T, (MPI_Count)v->c->count,
                                 v->c->element, 0, v->comm, &v->result);
}

static int by_lists(struct vectors *v)
{
    int nnz = (int)v->nnz, code = MPI_Bcast(&nnz, 1, MPI_INT, 0, v->comm);

    if (code == MPI_SUCCESS)
        code = MPI_Bcast(v->index, nnz, MPI_UINT32_T, 0, v->comm);
    return code == MPI_SUCCESS ? MPI_Bcast(v->values, nnz, v->c->element, 0, v->comm) : code;
}

static int by_vector(struct vectors *v)
{
    return MPI_Bcast(v->version[0], (int)v->c->count, v->c->element, 0, v->comm);
}

static const struct method {
    const char *name;
    int (*run)(struct vectors *v);
} methods[] = { { "delta", by_delta }, { "coo", by_coo }, { "lists", by_lists }, { "dense", by_vector } };

/* Returns the wrong bytes of this rank's vector, which becomes version 0. */
static long long check_vector(struct vectors *v)
{
    long long wrong = 0;

    if (v->c->world->rank == 0) {
        v->current = 0;
        return 0;
    }
    if (v->current == 1)
        flip(v, v->version[0]);
    v->current = 0;
    for (size_t i = 0; i < v->bytes; i++)
        wrong += v->version[0][i] != (unsigned char)(i * 2654435761u >> 16);
    return wrong;
}

static long long check_result(const struct vectors *v)
{
    const void *index = NULL;
    MPI_Count nnz = 0;

    if (v->result == MPIX_SPARSE_RESULT_NULL)
        return 0;
    MPIX_Sparse_result_get(v->result, &nnz, &index, NULL);
    return nnz != (MPI_Count)v->nnz || memcmp(index, v->index, v->nnz * sizeof *v->index) != 0;
}

static double time_call(struct vectors *v, const struct method *method)
{
    double begin, seconds;

    MPI_Barrier(v->comm);
    begin = MPI_Wtime();
    if (method->run(v) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    seconds = MPI_Wtime() - begin;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, v->comm);
    return seconds;
}

static void run_method(struct perf_study *study, struct vectors *v, const struct method *method,
                       struct record *record)
{
    int n = (int)v->c->options->iterations;
    double *seconds = perf_alloc((size_t)n, sizeof *seconds);
    struct perf_times times;

    for (long long i = 0; i < v->c->options->warmup; i++)
        time_call(v, method);
    for (int i = 0; i < n; i++)
        seconds[i] = time_call(v, method);
    times = perf_times_of(seconds, n);
    free(seconds);
    record->method = method->name;
    record->median = times.median;
    record->min = times.min;
    record->gbs = (double)record->floor_bytes / times.median * 1e-9;
    record->wrong = check_vector(v) + check_result(v);
    MPI_Allreduce(MPI_IN_PLACE, &record->wrong, 1, MPI_LONG_LONG, MPI_SUM, v->comm);
    study->wrong += record->wrong;
    perf_study_add(study, record);
}

static void run(struct perf_study *study, const struct perf_case *c, MPI_Comm comm)
{
    struct vectors v;
    struct record record = { .study = perf_study_name(PERF_BCAST),
                             .label = c->options->label[0] != '\0' ? c->options->label : NULL,
                             .ranks = c->world->ranks,
                             .nodes = c->world->nodes,
                             .count = (long long)c->count,
                             .scale = c->options->scale,
                             .density = c->density,
                             .iterations = c->options->iterations };

    make(&v, c, comm, c->density);
    record.nnz = (long long)v.nnz;
    record.floor_bytes = (long long)((double)v.nnz * ((double)c->element_bytes +
                                                      perf_index_bytes((double)c->count, (double)v.nnz)));
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        run_method(study, &v, &methods[i], &record);
    release(&v);
}

void perf_study_bcast(struct perf_study *study)
{
    static const double one_in_100 = 0.01;
    struct perf_counts counts = perf_study_counts(study, 1 << 20);
    struct perf_reals densities = perf_study_densities(study, &one_in_100, 1);
    const struct perf_options *options = study->options;
    struct perf_case c;
    MPI_Comm comm; /* in SMPI all simulated ranks share the attributes of MPI_COMM_WORLD */

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    perf_study_table(study, &schema);
    perf_case_make(&c, study->world, options, options->type.at[0], PERF_SUM);
    for (int d = 0; d < densities.n; d++)
        for (int i = 0; i < counts.n; i++) {
            perf_case_size(&c, (size_t)(counts.at[i] / options->scale), densities.at[d]);
            run(study, &c, comm);
        }
    perf_case_free(&c);
    MPI_Comm_free(&comm);
}
