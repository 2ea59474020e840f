/* SPDX-License-Identifier: BSD-3-Clause */
#include "halfway.h"

#include "check.h"

int halfway_place(int i, int of)
{
    return i * HALFWAY_STEP + (i % 2 == 0 ? 0 : of % HALFWAY_STEP);
}

void halfway_check(const float *out, int nnz)
{
    int wrong = 0, found = 0, expected = (nnz + 1) / 2 + nnz / 2 * ranks;
    for (int i = 0; i < nnz; i++)
        for (int r = 0; r < ranks; r++)
            wrong += out[halfway_place(i, r)] != (i % 2 == 0 ? (float)ranks : 1.F);
    for (int i = 0; i < HALFWAY_COUNT; i++)
        found += out[i] != 0;
    check(wrong == 0 && found == expected, "expected %d right sums, found %d and %d wrong ones", expected,
          found, wrong);
}
