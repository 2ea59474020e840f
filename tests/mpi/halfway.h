/* SPDX-License-Identifier: BSD-3-Clause */
/* Vectors of ones, of which ranks have every second element in common. */
#ifndef HALFWAY_H
#define HALFWAY_H

enum {
    HALFWAY_STEP = 20,     /* from an element of a rank to its next one */
    HALFWAY_COUNT = 200000 /* of the vector */
};

/** Where a rank has its element i. */
int halfway_place(int i, int of);

/** Check what came of nnz elements of each rank. */
void halfway_check(const float *out, int nnz);

#endif
