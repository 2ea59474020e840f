/* SPDX-License-Identifier: BSD-3-Clause */
/* Tensors like the gradients of the models that the Zen paper evaluates. */
#ifndef PERF_MODELS_H
#define PERF_MODELS_H

#include <stdint.h>

enum { PERF_STRIPS = 3 };

/* A vector in strips, the densest first. In each a rank has elements at random, apart from all other ranks:
 * what ranks have in common, and how dense their union is, follows from how dense the strips are. */
struct perf_model {
    const char *name;
    uint64_t count; /* elements */
    double density; /* share of them that a rank has */
    struct {
        double end;   /* of the range, as a share of it */
        double share; /* of a rank's elements before that end */
    } strip[PERF_STRIPS];
};

/* The i-th model, or NULL after the last. */
const struct perf_model *perf_model_get(int i);
const char *perf_model_name(int i);

#endif
