/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples of work, as the trace tells of it, and what a cost is made of them. */
#ifndef PERF_SAMPLES_H
#define PERF_SAMPLES_H

#include "charge.h"

enum { PERF_SAMPLES = 256 /* pieces of work in a call */ };

/* What the time of work may follow from. What cannot be told apart is put down to the first of them. */
enum perf_measure { PERF_ELEMENTS, PERF_BYTES, PERF_SLOTS, PERF_PIECES, PERF_MEASURES };

/* What was done of one kind of work, in one piece or in several. */
struct perf_sample {
    char kind[PERF_KIND_MAX], format[PERF_KIND_MAX];
    int place; /* of the piece among those of its kind in a call */
    double measure[PERF_MEASURES];
    double seconds;
};

struct perf_samples {
    int n, room;
    struct perf_sample *at;
};

struct perf_samples perf_samples_make(int room);
void perf_samples_free(struct perf_samples *samples);

/* Append a sample; one that there is no room for is lost. */
void perf_samples_append(struct perf_samples *samples, const struct perf_sample *sample);

/* For a follower whose data are samples of a call, one for each piece of work. */
void perf_samples_hear(void *data, const struct sar_span *span, int64_t until);

/* Keep of each piece of work, in calls that are alike, the time that was least. */
void perf_samples_keep_least(struct perf_samples *least, const struct perf_samples *now);

/* Add up, kind by kind, what ranks have in samples with room for PERF_SAMPLES each, and append the sums on
 * rank 0 to `all`, which so may have several of a kind. Collective. */
void perf_samples_collect(const struct perf_world *world, const struct perf_samples *mine,
                          struct perf_samples *all);

/* The cost that all samples of a kind and a format make, by least squares of relative errors, of which it
 * returns the largest. Nothing costs less than nothing. */
double perf_samples_fit(const struct perf_samples *all, struct perf_cost *cost);

#endif
