/* SPDX-License-Identifier: BSD-3-Clause */
/* Vectors of ones. Every second element of a rank is present on all ranks. */
#ifndef SAR_TESTS_SUPPORT_OVERLAP_VECTORS_H
#define SAR_TESTS_SUPPORT_OVERLAP_VECTORS_H

enum {
    OVERLAP_STEP = 20,     /* distance between two elements of a rank */
    OVERLAP_COUNT = 200000 /* length of the vector */
};

/** Index of element i of rank `of`. */
int overlap_index(int i, int of);

/** Check the sum of vectors with nnz elements on each rank. */
void overlap_check(const float *out, int nnz);

#endif
