/* SPDX-License-Identifier: BSD-3-Clause */
/* Trains a sparse logistic regression by Adagrad on mini-batches: each rank has its samples, and all ranks
 * add their gradients by coordinates.
 *
 *     mpicc -O2 -o logreg logreg.c $(pkg-config --cflags --libs mpix-sparse) -lm
 *     mpirun -n 2 ./logreg [FILE]
 *
 * FILE has a sample on each line, as libsvm's tools write it: LABEL INDEX:VALUE..., with labels 1 and -1 (or
 * 0), and indices that begin at 1 and ascend. Without FILE, samples are made up: 3.2 million features, of
 * which a sample has 128 (0.004 %). The baseline is a second model, with the gradient in a dense vector and
 * MPI_Allreduce. Both models read the same batches in turn, step by step. */
#include "app.h"

#include <mpix_sparse.h>

#include <limits.h>
#include <math.h>

struct samples {
    size_t n, n_capacity, nnz, nnz_capacity;
    size_t *starts; /* of a sample's features; n + 1 of them */
    float *labels;  /* 1 or 0 */
    int32_t *indices;
    float *values;
};

struct model {
    float *weights, *squares; /* sums of squared gradients */
    double loss;              /* sum over this rank's samples of an epoch */
};

/* The elements of a gradient. An index may occur several times. */
struct gradient {
    size_t n, capacity;
    int32_t *indices;
    float *values;
};

static double features = 0, count = 16384, present = 128, batch = 256, epochs = 2, rate = 0.1;
static const struct app_option options[] = {
    { "--features", &features, 0, INT_MAX,
      "length of the vectors; 0 is the largest index of FILE, or 3200000", false },
    { "--samples", &count, 1, 1e9, "samples that are made up without FILE", false },
    { "--present", &present, 1, 1e6, "features of such a sample", false },
    { "--batch", &batch, 1, 1e6, "samples of a rank in a step", false },
    { "--epochs", &epochs, 1, 1e4, "times that all samples are read", false },
    { "--rate", &rate, 0, 100, "learning rate", true },
    { NULL, NULL, 0, 0, NULL, false },
};

static void add_feature(struct samples *to, int32_t index, float value)
{
    if (to->nnz == to->nnz_capacity) {
        to->nnz_capacity = 2 * to->nnz_capacity + 1024;
        to->indices = app_resize(to->indices, to->nnz_capacity, sizeof *to->indices);
        to->values = app_resize(to->values, to->nnz_capacity, sizeof *to->values);
    }
    to->indices[to->nnz] = index;
    to->values[to->nnz++] = value;
}

static void add_sample(struct samples *to, float label)
{
    if (to->n == to->n_capacity) {
        to->n_capacity = 2 * to->n_capacity + 1024;
        to->starts = app_resize(to->starts, to->n_capacity + 1, sizeof *to->starts);
        to->labels = app_resize(to->labels, to->n_capacity, sizeof *to->labels);
        to->starts[0] = 0;
    }
    to->labels[to->n++] = label;
    to->starts[to->n] = to->nnz;
}

/* Reads one line of libsvm. Returns NULL, or why it is wrong. */
static const char *read_line(char *line, void *context)
{
    static char why[160];
    struct samples *to = context;
    line[strcspn(line, "#")] = '\0';
    char *end, *word = strtok(line, " \t");
    if (word == NULL)
        return NULL;
    double label = strtod(word, &end);
    if (end == word || *end != '\0' || (label != 1 && label != -1 && label != 0)) {
        snprintf(why, sizeof why, "label '%.40s' is not 1, -1 or 0", word);
        return why;
    }
    for (long long before = 0; (word = strtok(NULL, " \t")) != NULL;) {
        char *colon;
        long long index = strtoll(word, &colon, 10);
        double value = *colon == ':' ? strtod(colon + 1, &end) : NAN;
        if (colon == word || *colon != ':' || end == colon + 1 || *end != '\0' || !isfinite(value)) {
            snprintf(why, sizeof why, "'%.40s' is not INDEX:VALUE", word);
            return why;
        }
        if (index <= before || index > (features > 0 ? (long long)features : INT_MAX)) {
            snprintf(why, sizeof why, "index %lld is not in %lld to %.0f", index, before + 1,
                     features > 0 ? features : INT_MAX);
            return why;
        }
        before = index;
        add_feature(to, (int32_t)(index - 1), (float)value);
    }
    add_sample(to, label > 0 ? 1 : 0);
    return NULL;
}

/* Makes up this rank's samples. Low indices are frequent; a hidden weight of each feature decides the labels.
 * */
static void make_samples(struct samples *to)
{
    for (long long i = app_rank; i < (long long)count; i += app_ranks) {
        uint64_t state = (uint64_t)i << 32;
        double margin = 0;
        for (int k = 0; k < (int)present; k++) {
            double u = app_uniform(&state);
            int32_t index = (int32_t)(features * u * u * u);
            uint64_t hidden = (uint64_t)index;
            margin += app_uniform(&hidden) - 0.5;
            add_feature(to, index, 1);
        }
        add_sample(to, margin > 0 ? 1 : 0);
    }
}

/* Computes a batch's gradient at the model's weights, and adds its loss. */
static void differentiate(const struct samples *of, size_t first, size_t last, struct model *model,
                          struct gradient *to)
{
    to->n = 0;
    if (last > first && to->capacity < of->starts[last] - of->starts[first]) {
        to->capacity = of->starts[last] - of->starts[first];
        to->indices = app_resize(to->indices, to->capacity, sizeof *to->indices);
        to->values = app_resize(to->values, to->capacity, sizeof *to->values);
    }
    for (size_t i = first; i < last; i++) {
        double margin = 0;
        for (size_t k = of->starts[i]; k < of->starts[i + 1]; k++)
            margin += (double)model->weights[of->indices[k]] * (double)of->values[k];
        double sign = of->labels[i] > 0 ? 1 : -1;
        model->loss +=
            margin * sign > 0 ? log1p(exp(-margin * sign)) : log1p(exp(margin * sign)) - margin * sign;
        double factor = (1 / (1 + exp(-margin)) - (double)of->labels[i]) / (batch * app_ranks);
        for (size_t k = of->starts[i]; k < of->starts[i + 1]; k++) {
            to->indices[to->n] = of->indices[k];
            to->values[to->n++] = (float)factor * of->values[k];
        }
    }
}

static void update(struct model *model, size_t i, float gradient)
{
    model->squares[i] += gradient * gradient;
    model->weights[i] -= (float)rate * gradient / (sqrtf(model->squares[i]) + 1e-10f);
}

/* Adds all ranks' gradients by coordinates, with a plan, and makes the step. */
static void step_sparse(MPIX_Sparse_plan plan, MPIX_Sparse_result *result, const struct gradient *gradient,
                        struct model *model)
{
    MPI_Request request;
    MPIX_Sparse_plan_start_coo(plan, gradient->indices, gradient->values, (MPI_Count)gradient->n, result,
                               &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Count n;
    const void *indices, *values;
    MPIX_Sparse_result_get(*result, &n, &indices, &values);
    for (MPI_Count k = 0; k < n; k++)
        update(model, (size_t)((const int32_t *)indices)[k], ((const float *)values)[k]);
}

/* The baseline. The dense vector is zero before and after. */
static void step_dense(float *dense, const struct gradient *gradient, struct model *model)
{
    for (size_t k = 0; k < gradient->n; k++)
        dense[gradient->indices[k]] += gradient->values[k];
    MPI_Allreduce(MPI_IN_PLACE, dense, (int)features, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (size_t i = 0; i < (size_t)features; i++)
        if (dense[i] != 0) {
            update(model, i, dense[i]);
            dense[i] = 0;
        }
}

/* All that the two models need. */
struct training {
    struct samples samples;
    struct gradient gradient;
    struct model sparse, dense;
    float *vector; /* the baseline's */
    MPIX_Sparse_plan plan;
    MPIX_Sparse_result result;
    size_t steps;          /* of an epoch, equal on all ranks */
    double *ours, *theirs; /* seconds of all steps */
};

/* One epoch of both models, in turn. The epoch's times begin at the given step. */
static void train_epoch(struct training *t, size_t at)
{
    for (size_t i = 0; i < t->steps; i++, at++) {
        size_t first = i * (size_t)batch, last = first + (size_t)batch;
        first = first < t->samples.n ? first : t->samples.n;
        last = last < t->samples.n ? last : t->samples.n;

        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        differentiate(&t->samples, first, last, &t->sparse, &t->gradient);
        step_sparse(t->plan, &t->result, &t->gradient, &t->sparse);
        t->ours[at] = MPI_Wtime() - start;

        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        differentiate(&t->samples, first, last, &t->dense, &t->gradient);
        step_dense(t->vector, &t->gradient, &t->dense);
        t->theirs[at] = MPI_Wtime() - start;
    }
}

/* Trains both models. Returns if their losses are equal but for the order of additions. */
static bool train(struct training *t)
{
    double samples = app_total((double)t->samples.n);
    bool equal = true;
    for (int epoch = 0; epoch < (int)epochs; epoch++) {
        t->sparse.loss = t->dense.loss = 0;
        train_epoch(t, (size_t)epoch * t->steps);
        double ours = app_total(t->sparse.loss) / samples, theirs = app_total(t->dense.loss) / samples;
        if (app_rank == 0)
            printf("epoch %d: loss %.6f, baseline %.6f\n", epoch + 1, ours, theirs);
        equal = equal && fabs(ours - theirs) <= 1e-6 * theirs;
    }
    return equal;
}

static void prepare(struct training *t, const char *path)
{
    if (path != NULL) {
        app_read_lines(path, read_line, &t->samples);
        int32_t largest = 0;
        for (size_t k = 0; k < t->samples.nnz; k++)
            largest = t->samples.indices[k] >= largest ? t->samples.indices[k] + 1 : largest;
        features = features > 0 ? features : app_max(largest);
    } else {
        features = features > 0 ? features : 3200000;
        make_samples(&t->samples);
    }
    if (app_total((double)t->samples.n) == 0 || features < 1)
        app_fail("%s has no samples", path);
    t->steps = (size_t)app_max(ceil((double)t->samples.n / batch));
    t->ours = app_zeros(t->steps * (size_t)epochs, sizeof *t->ours);
    t->theirs = app_zeros(t->steps * (size_t)epochs, sizeof *t->theirs);
    float **vectors[] = { &t->vector, &t->sparse.weights, &t->sparse.squares, &t->dense.weights,
                          &t->dense.squares };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        *vectors[i] = app_zeros((size_t)features, sizeof **vectors[i]);
    MPIX_Sparse_allreduce_coo_init(MPI_INT32_T, (MPI_Count)features, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                                   MPI_INFO_NULL, &t->plan);
}

static void release(struct training *t)
{
    void *memory[] = { t->vector,         t->sparse.weights,  t->sparse.squares,   t->dense.weights,
                       t->dense.squares,  t->samples.starts,  t->samples.labels,   t->samples.indices,
                       t->samples.values, t->gradient.values, t->gradient.indices, t->ours,
                       t->theirs };
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        free(memory[i]);
    MPIX_Sparse_plan_free(&t->plan);
    MPIX_Sparse_result_free(&t->result);
}

int main(int argc, char **argv)
{
    const char *usage =
        "Trains a logistic regression on the samples in FILE, a file of libsvm, or on made-up ones.";
    const char *path = app_start(argc, argv, "logreg", usage, options);
    struct training training = { .plan = MPIX_SPARSE_PLAN_NULL, .result = MPIX_SPARSE_RESULT_NULL };
    prepare(&training, path);
    double samples = app_total((double)training.samples.n), nnz = app_total((double)training.samples.nnz);
    if (app_rank == 0)
        printf("%.0f samples on %d ranks, %.0f features, %.4g %% present\n", samples, app_ranks, features,
               100 * nnz / samples / features);
    bool equal = train(&training);

    size_t steps = training.steps * (size_t)epochs;
    double ours = app_max(app_median(training.ours, steps)),
           theirs = app_max(app_median(training.theirs, steps));
    release(&training);
    return app_end(ours, theirs, "a step", equal);
}
