/* SPDX-License-Identifier: BSD-3-Clause */
#include "overlap_vectors.h"

#include "check.h"

int overlap_index(int i, int of)
{
    return i * OVERLAP_STEP + (i % 2 == 0 ? 0 : of % OVERLAP_STEP);
}

void overlap_check(const float *out, int nnz)
{
    int wrong = 0, found = 0, expected = (nnz + 1) / 2 + nnz / 2 * ranks;
    for (int i = 0; i < nnz; i++)
        for (int r = 0; r < ranks; r++)
            wrong += out[overlap_index(i, r)] != (i % 2 == 0 ? (float)ranks : 1.F);
    for (int i = 0; i < OVERLAP_COUNT; i++)
        found += out[i] != 0;
    check(wrong == 0 && found == expected, "expected %d right sums, found %d and %d wrong ones", expected,
          found, wrong);
}
