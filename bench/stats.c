/* SPDX-License-Identifier: BSD-3-Clause */
#include "stats.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

struct perf_times perf_times_of(double *seconds, int n)
{
    struct perf_times times = { n, NAN, NAN, NAN };

    if (n == 0)
        return times;
    qsort(seconds, (size_t)n, sizeof *seconds, compare);
    times.min = seconds[0];
    times.median = n % 2 == 1 ? seconds[n / 2] : (seconds[n / 2 - 1] + seconds[n / 2]) / 2;
    times.p99 = seconds[(int)ceil(0.99 * n) - 1];
    return times;
}

double perf_index_bytes(double count, double n)
{
    if (n <= 0 || n >= count)
        return 0;
    return (lgamma(count + 1) - lgamma(n + 1) - lgamma(count - n + 1)) / log(2) / 8 / n;
}
