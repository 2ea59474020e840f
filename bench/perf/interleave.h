/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of rows within an iteration: a Latin square that is balanced for carry-over effects. E. J.
 * Williams, "Experimental designs balanced for the estimation of residual effects of treatments", 1949. */
#ifndef PERF_INTERLEAVE_H
#define PERF_INTERLEAVE_H

/** The sequence 0, n - 1, 1, n - 2, 2, …. For an even n, the distance modulo n differs for each pair of
 * neighbours. For an odd n each distance occurs twice, or in the mirrored sequence. */
static inline int perf_interleave_zigzag(int k, int n)
{
    return k % 2 == 0 ? k / 2 : n - 1 - k / 2;
}

/** Returns the row, of n, that is called k-th in an iteration. In any n consecutive iterations (2n if n is
 * odd), each row takes each place equally often and follows each other row equally often. So the state that
 * a row leaves in the caches affects all rows alike. The first rows of iterations form a zigzag, too: the
 * last row of one iteration meets all first rows of the next. */
static inline int perf_interleave(int k, int iteration, int n)
{
    int is_mirrored = n % 2 == 1 && iteration % 2 == 1;

    return (perf_interleave_zigzag(is_mirrored ? n - 1 - k : k, n) +
            perf_interleave_zigzag(iteration % n, n)) %
           n;
}

#endif
