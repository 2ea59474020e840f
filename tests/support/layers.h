/* SPDX-License-Identifier: BSD-3-Clause */
/* The layers of a model. Each layer has a plan started together with others, and a plan started
 * separately. */
#ifndef SAR_TESTS_SUPPORT_LAYERS_H
#define SAR_TESTS_SUPPORT_LAYERS_H

#include "tensors.h"

enum {
    LAYERS = 100, /* maximum */
    ALIKE = 3     /* leading layers that one fused start can hold; one of them is empty */
};

struct layer {
    struct tensor_desc desc;
    size_t bytes;
    bool in_place;
    MPI_Datatype type;
    unsigned char *in, *out, *expected;
    MPIX_Sparse_plan plan, alone; /* `alone` writes to `expected` */
};

/** Make n layers, cycling through the first `kinds` sorts. Their plans have hints. */
struct layer *make_layers(int n, int descs, MPI_Comm comm, const char *scheme, const char *fuse);
void free_layers(struct layer *layers, int n);

/** Fill all buffers with new numbers. In every third round one rank has no elements. Sums of floats are exact
 * if `exact`. */
void fill_layers(struct layer *layers, int n, unsigned round, bool exact);

void name_plans(const struct layer *layers, int n, MPIX_Sparse_plan *plans);

/** Start all plans one by one, or together, and wait for them. Each round uses another way to wait. */
void start_one_by_one(struct layer *layers, int n);
void start_together(struct layer *layers, int n, unsigned round);
void wait_somehow(int n, MPI_Request *requests, unsigned round);

/** Check that plans started together and one by one gave the same bits on all ranks. */
void check_layers(const struct layer *layers, int n);

/** Check the results against MPI_Allreduce. */
void check_against_mpi(const struct layer *layers, int n);

#endif
