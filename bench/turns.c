/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of a Latin square that is balanced for what comes right before: E. J. Williams, "Experimental
 * designs balanced for the estimation of residual effects of treatments", 1949. */
#include "turns.h"

/* 0, n - 1, 1, n - 2, 2, …: for an even n any two neighbours are another distance apart, modulo n. For an odd
 * n each distance is there twice, or in the mirrored line. */
static int zigzag(int k, int n)
{
    return k % 2 == 0 ? k / 2 : n - 1 - k / 2;
}

/* Where iterations begin zigzags too, so that the last row of one meets all first ones of the next. */
int perf_turn(int k, int iteration, int n)
{
    int mirrored = n % 2 == 1 && iteration % 2 == 1;

    return (zigzag(mirrored ? n - 1 - k : k, n) + zigzag(iteration % n, n)) % n;
}
