/* SPDX-License-Identifier: BSD-3-Clause */
/* The layers of a model, each with a plan that starts with the others' and one that starts alone. */
#ifndef SAR_TESTS_SUPPORT_LAYERS_H
#define SAR_TESTS_SUPPORT_LAYERS_H

#include "tensors.h"

enum {
    LAYERS = 100, /* at most */
    ALIKE = 3     /* of the first ones, which can travel together: one is empty */
};

struct layer {
    struct kind kind;
    size_t bytes;
    bool in_place;
    MPI_Datatype type;
    unsigned char *in, *out, *expected;
    MPIX_Sparse_plan plan, alone; /* alone writes to `expected` */
};

/** Layers like the first `kinds` ones, whose plans have hints. */
struct layer *make_layers(int n, int kinds, MPI_Comm comm, const char *scheme, const char *fuse);
void free_layers(struct layer *layers, int n);

/** New numbers in all buffers; in every third round one rank has nothing. Floats have exact sums, or any. */
void fill_layers(struct layer *layers, int n, unsigned round, bool exact);

void name_plans(const struct layer *layers, int n, MPIX_Sparse_plan *plans);

/** Run all plans one by one, or together; each round waits in another way. */
void start_one_by_one(struct layer *layers, int n);
void start_together(struct layer *layers, int n, unsigned round);
void wait_somehow(int n, MPI_Request *requests, unsigned round);

/** Whether both gave the same bits, on all ranks. */
void check_layers(const struct layer *layers, int n);

/** The same against MPI_Allreduce. */
void check_against_mpi(const struct layer *layers, int n);

#endif
