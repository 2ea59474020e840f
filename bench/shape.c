/* SPDX-License-Identifier: BSD-3-Clause */
#include "shape.h"

#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

/* Append the bits of a bitmap that stands for elements from `low` on; returns where they end. */
static uint64_t *list_bits(const uint64_t *bitmap, size_t words, uint64_t low, uint64_t *at)
{
    for (size_t word = 0; word < words; word++)
        for (uint64_t bits = bitmap[word]; bits != 0; bits &= bits - 1)
            *at++ = low + word * 64 + (uint64_t)__builtin_ctzll(bits);
    return at;
}

/* Or bitmaps of the sets of all ranks, a piece of the index range at a time, and count the bits. */
long long perf_shape_union(const struct perf_case *c, const struct perf_set *set, uint64_t *at)
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

/* The elements of a set that every rank would choose from its own, about `share` of them. */
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

/* The set of the rank `distance` below, as this rank's goes to the one as far above. */
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

/* Of all pairs up to 17 ranks, of the nearer ones beyond; of all elements up to 65536, of a sample beyond. */
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

void perf_shape_find(struct perf_shape *shape, const struct perf_case *c, const struct perf_set *set)
{
    long long sums[2] = { (long long)set->n, 0 };

    for (size_t i = 0; i < set->n && set->at[i] < c->count / 8; i++)
        sums[1]++;
    MPI_Allreduce(&sums[0], &shape->nnz_in_max, 1, MPI_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    shape->nnz_in_mean = (double)sums[0] / c->world->ranks;
    shape->head = sums[0] > 0 ? (double)sums[1] / (double)sums[0] : NAN;
    shape->nnz_out = perf_shape_union(c, set, NULL);
    shape->overlap = overlap(c, set, shape->nnz_in_max);
}
