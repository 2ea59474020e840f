/* SPDX-License-Identifier: BSD-3-Clause */
/* Study `profile`: the Zen paper's characteristics C1 to C3 of a workload, as computed by
 * MPIX_Sparse_profile. */

#include <math.h>
#include <stdlib.h>

#include "bench/studies/study.h"

struct record {
    const char *study, *label;
    char workload[PERF_WORKLOAD_MAX];
    long long ranks, count, row_len, scale, sampled;
    double density, density_out, overlap, gamma, skewness, skewness_8, skewness_128;
};

#define FIELD(key, kind, member) PERF_FIELD(record, key, kind, member)

static const struct perf_field fields[] = {
    FIELD("study", PERF_TEXT, study),
    FIELD("label", PERF_TEXT, label),
    FIELD("workload", PERF_LETTERS, workload),
    FIELD("ranks", PERF_INTEGER, ranks),
    FIELD("count", PERF_INTEGER, count),
    FIELD("row", PERF_INTEGER, row_len),
    FIELD("scale", PERF_INTEGER, scale),
    FIELD("sampled", PERF_INTEGER, sampled),
    FIELD("density", PERF_REAL, density),
    FIELD("density_out", PERF_REAL, density_out),
    FIELD("overlap", PERF_REAL, overlap),
    FIELD("gamma", PERF_REAL, gamma),
    FIELD("skewness", PERF_REAL, skewness),
    FIELD("skewness_8", PERF_REAL, skewness_8),
    FIELD("skewness_128", PERF_REAL, skewness_128),
};
static const struct perf_schema schema = PERF_SCHEMA(fields);

/* Returns the density of the densest of `parts` equal parts over the density of the vector (Zen, Definition
 * 4), the mean over ranks. Collective. */
static double skewness(const struct perf_case *c, const struct perf_set *set, uint64_t parts)
{
    uint64_t width = (c->count + parts - 1) / parts;
    size_t *part = perf_alloc(parts, sizeof *part), most = 0;
    double ratio;

    for (size_t i = 0; i < set->n; i++) {
        size_t here = ++part[set->at[i] / width];
        most = here > most ? here : most;
    }
    free(part);
    ratio = set->n > 0 ? (double)most * (double)parts / (double)set->n / c->world->ranks : NAN;
    MPI_Allreduce(MPI_IN_PLACE, &ratio, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return ratio;
}

static void profile(const struct perf_case *c, const struct perf_set *set, struct record *record)
{
    MPIX_Sparse_profile_t found;
    MPI_Comm comm;
    char *vector = perf_alloc(perf_case_bytes(c), 1);

    for (size_t i = 0; i < set->n; i++)
        for (size_t k = 0; k < c->element_bytes; k++)
            vector[set->at[i] * c->element_bytes + k] = 1;
    /* In SMPI all simulated ranks share the attributes of MPI_COMM_WORLD. */
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (MPIX_Sparse_profile(vector, (MPI_Count)c->count, c->element, comm, &found) != MPI_SUCCESS)
        MPI_Abort(comm, 1);
    MPI_Comm_free(&comm);
    free(vector);
    record->sampled = found.sampled;
    record->density = found.density;
    record->density_out = found.density_out;
    record->overlap = found.overlap;
    record->gamma = found.gammas > 0 ? found.gamma[found.gammas - 1] : NAN;
    record->skewness = found.skewness;
}

static void run(struct perf_study *study, const struct perf_case *c)
{
    struct perf_set set = perf_workload_draw(c, study->source, 0, 1);
    struct record record = { .study = perf_study_name(PERF_PROFILE),
                             .label = c->options->label[0] != '\0' ? c->options->label : NULL,
                             .ranks = c->world->ranks,
                             .count = (long long)c->count,
                             .row_len = (long long)c->row_len,
                             .scale = c->options->scale };

    perf_source_name(&c->options->workload, record.workload, sizeof record.workload);
    profile(c, &set, &record);
    record.skewness_8 = skewness(c, &set, 8);
    record.skewness_128 = skewness(c, &set, 128);
    perf_study_add(study, &record);
    perf_set_free(&set);
}

void perf_study_profile(struct perf_study *study)
{
    static const double one_in_20 = 0.05;
    struct perf_counts counts = perf_study_counts(study, 1 << 20);
    struct perf_reals densities = perf_study_densities(study, &one_in_20, 1);
    const struct perf_options *options = study->options;
    struct perf_case c;

    perf_study_table(study, &schema);
    perf_case_make(&c, study->world, options, options->type.at[0], PERF_SUM);
    if (perf_source_size(study->source, &c))
        run(study, &c);
    else
        for (int d = 0; d < densities.n; d++)
            for (int i = 0; i < counts.n; i++) {
                perf_case_size(&c, (size_t)(counts.at[i] / options->scale), densities.at[d]);
                run(study, &c);
            }
    perf_case_free(&c);
}
