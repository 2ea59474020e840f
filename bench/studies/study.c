/* SPDX-License-Identifier: BSD-3-Clause */
/* The study that the options ask for, and what all studies use. */

#include "bench/studies/study.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/lib/settings.h"
#include "scheme/engine/agreed.h"

void perf_study_run(struct perf_study *study)
{
    switch (study->options->study) {
    case PERF_FORMATS: perf_study_formats(study); break;
    case PERF_HASH: perf_study_hash(study); break;
    case PERF_BALANCE: perf_study_balance(study); break;
    case PERF_SELECTOR: perf_study_selector(study); break;
    case PERF_PROFILE: perf_study_profile(study); break;
    case PERF_THREADS: perf_study_threads(study); break;
    case PERF_BCAST: perf_study_bcast(study); break;
    }
    MPI_Bcast(&study->rows, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
    MPI_Bcast(&study->wrong, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
}

void perf_study_table(struct perf_study *study, const struct perf_schema *schema)
{
    if (study->world->rank == 0)
        perf_report_table(study->report, schema);
}

void perf_study_add(struct perf_study *study, const void *record)
{
    study->rows++;
    if (study->world->rank == 0)
        perf_report_record(study->report, record);
}

struct perf_counts perf_study_counts(const struct perf_study *study, long long otherwise)
{
    struct perf_counts counts = study->options->count;

    if (counts.n == 0)
        counts.at[counts.n++] = otherwise;
    return counts;
}

struct perf_reals perf_study_densities(const struct perf_study *study, const double *otherwise, int n)
{
    struct perf_reals densities = study->options->density;

    if (densities.n == 0)
        for (; densities.n < n; densities.n++)
            densities.at[densities.n] = otherwise[densities.n];
    return densities;
}

struct sar_partition_map perf_study_map(const struct perf_study *study, size_t count, size_t nnz)
{
    const struct perf_options *options = study->options;
    struct sar_agreed agreed = {
        .desc.count = count,
        .machine.ranks = (int)options->parts,
        .data.nnz_mean = (double)nnz,
        .partition.max_imbalance = perf_settings_config().imbalance,
        .partition.kind = -1,
        .partition.grain = atoi(options->grain), /* "auto" is SAR_AUTO */
        .partition.seed = (uint32_t)options->seed,
    };

    return sar_agreed_partition_map(&agreed);
}

struct sar_spvec perf_study_vector_make(const struct perf_case *c, const struct perf_set *set)
{
    unsigned size = sar_index_size(c->count);
    struct sar_spvec vec = { perf_alloc(set->n, size), perf_alloc(set->n, c->element_bytes), set->n };
    char *value = vec.value;

    for (size_t i = 0; i < set->n; i++) {
        sar_index_set(vec.index, size, i, set->at[i]);
        for (size_t k = 0; k < c->row_len; k++, value += c->type->size)
            perf_number_put(c->type, c->op, 0, perf_mix(set->at[i] + (k << 48)), value);
    }
    return vec;
}

void perf_study_vector_free(struct sar_spvec *vec)
{
    free(vec->index);
    free(vec->value);
}

void perf_study_require(enum sar_status status)
{
    if (status == SAR_OK)
        return;
    fprintf(stderr, "mpix_sparse_perf: ");
    fprintf(stderr, sar_status_text(status), "", "");
    fputc('\n', stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
