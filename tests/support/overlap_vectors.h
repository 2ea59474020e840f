/* SPDX-License-Identifier: BSD-3-Clause */
/* Vectors of ones, of which ranks have every second element in common. */
#ifndef SAR_TESTS_SUPPORT_OVERLAP_VECTORS_H
#define SAR_TESTS_SUPPORT_OVERLAP_VECTORS_H

enum {
    OVERLAP_STEP = 20,     /* from an element of a rank to its next one */
    OVERLAP_COUNT = 200000 /* of the vector */
};

/** Where a rank has its element i. */
int overlap_index(int i, int of);

/** Check what came of nnz elements of each rank. */
void overlap_check(const float *out, int nnz);

#endif
