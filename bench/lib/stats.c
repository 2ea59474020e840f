/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics of times and index sets. Overlap of sets costs O(ranks · nnz) up to 17 ranks and 65536
 * elements; beyond, pairs and elements are sampled. */

#include "bench/lib/stats.h"

#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

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

/* Writes the set bits as elements from `low` on. Returns the end of the list. */
static uint64_t *list_bits(const uint64_t *bitmap, size_t words, uint64_t low, uint64_t *at)
{
    for (size_t word = 0; word < words; word++)
        for (uint64_t bits = bitmap[word]; bits != 0; bits &= bits - 1)
            *at++ = low + word * 64 + (uint64_t)__builtin_ctzll(bits);
    return at;
}

/* Reduces bitmaps of all ranks' sets, 2^26 elements at a time. */
long long perf_set_union(const struct perf_case *c, const struct perf_set *set, uint64_t *at)
{
    enum { WORDS = 1 << 20 };
    size_t words = c->count / 64 + 1 < WORDS ? c->count / 64 + 1 : WORDS, span = words * 64, i = 0;
    uint64_t *bitmap = perf_alloc(words, sizeof *bitmap);
    long long size = 0;

    for (size_t low = 0; low < c->count; low += span) {
        memset(bitmap, 0, words * sizeof *bitmap);
        for (; i < set->n && set->at[i] < low + span; i++)
            bitmap[(set->at[i] - low) / 64] |= UINT64_C(1) << (set->at[i] - low) % 64;
        MPI_Allreduce(MPI_IN_PLACE, bitmap, (int)words, MPI_UINT64_T, MPI_BOR, MPI_COMM_WORLD);
        for (size_t word = 0; word < words; word++)
            size += __builtin_popcountll(bitmap[word]);
        if (at != NULL)
            at = list_bits(bitmap, words, low, at);
    }
    free(bitmap);
    return size;
}

/* Selects about the fraction `share` of a set. The hash of an element decides, so all ranks select equally.
 */
static struct perf_set sample(const struct perf_set *set, double share)
{
    struct perf_set some = { 0, perf_alloc(set->n, sizeof *some.at) };
    uint64_t below = share >= 1 ? UINT64_MAX : (uint64_t)(share * 18446744073709549568.0);

    for (size_t i = 0; i < set->n; i++)
        if (perf_mix(set->at[i]) <= below)
            some.at[some.n++] = set->at[i];
    return some;
}

static size_t common(const struct perf_set *a, const struct perf_set *b)
{
    size_t i = 0, j = 0, both = 0;

    while (i < a->n && j < b->n) {
        uint64_t left = a->at[i], right = b->at[j];
        both += left == right;
        i += left <= right;
        j += right <= left;
    }
    return both;
}

/* Exchanges sets: sends to the rank `distance` above, returns the set of the rank `distance` below. */
static struct perf_set exchange(const struct perf_world *world, const struct perf_set *mine, int distance)
{
    int to = (world->rank + distance) % world->ranks;
    int from = (world->rank - distance + world->ranks) % world->ranks;
    int sent = (int)mine->n, got;
    struct perf_set theirs;

    MPI_Sendrecv(&sent, 1, MPI_INT, to, 0, &got, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    theirs.n = (size_t)got;
    theirs.at = perf_alloc(theirs.n, sizeof *theirs.at);
    MPI_Sendrecv(mine->at, sent, MPI_UINT64_T, to, 1, theirs.at, got, MPI_UINT64_T, from, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    return theirs;
}

/* Covers all pairs up to 17 ranks, else the 16 nearest; all elements up to 65536, else a sample. */
static double overlap(const struct perf_case *c, const struct perf_set *set, long long largest)
{
    enum { DISTANCES = 16 };
    static const double sampled = 65536;
    struct perf_set mine = sample(set, largest == 0 ? 1 : sampled / (double)largest);
    double sums[2] = { 0, 0 }; /* of ratios, of pairs */

    for (int distance = 1; distance < c->world->ranks && distance <= DISTANCES; distance++) {
        struct perf_set theirs = exchange(c->world, &mine, distance);
        size_t fewer = mine.n < theirs.n ? mine.n : theirs.n;
        if (fewer > 0) {
            sums[0] += (double)common(&mine, &theirs) / (double)fewer;
            sums[1] += 1;
        }
        perf_set_free(&theirs);
    }
    perf_set_free(&mine);
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sums[1] > 0 ? sums[0] / sums[1] : NAN;
}

void perf_tensor_stats_find(struct perf_tensor_stats *stats, const struct perf_case *c,
                            const struct perf_set *set)
{
    long long sums[2] = { (long long)set->n, 0 };

    for (size_t i = 0; i < set->n && set->at[i] < c->count / 8; i++)
        sums[1]++;
    MPI_Allreduce(&sums[0], &stats->nnz_in_max, 1, MPI_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    stats->nnz_in_mean = (double)sums[0] / c->world->ranks;
    stats->head_share = sums[0] > 0 ? (double)sums[1] / (double)sums[0] : NAN;
    stats->nnz_out = perf_set_union(c, set, NULL);
    stats->overlap = overlap(c, set, stats->nnz_in_max);
}
