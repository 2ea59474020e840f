/* SPDX-License-Identifier: BSD-3-Clause */
/* Pici and Bloom filters.
 *
 * Pici is the format of SpCCL (Parallel Software and Systems Group, University of Maryland; reproducer for
 * SC 2026): one bit a slot, a 32-bit prefix sum for each tile of 64 x 64 slots, and the values. Prefix sums
 * let a warp of a GPU find the values of its tile.
 *
 *     bytes = slots / 8 + 4 (slots / 4096) + size nnz
 *
 * The Bloom filter is the index of DeepReduce (Xu et al., NeurIPS 2021): a filter of k hash functions has
 * k nnz / ln 2 bits and finds a share of 2^-k of the absent slots present. Policy P0, the only one without
 * loss, sends a value for each slot that is found.
 *
 *     bytes = k nnz / (8 ln 2) + size (nnz + 2^-k (slots - nnz))
 *
 * Here k is the number with the fewest bytes. */

#include "bench/studies/other_formats.h"

#include <math.h>
#include <stddef.h>

enum { PICI_TILE = 64 * 64, MAX_HASHES = 64 };

static double pici_bytes(double slots, double nnz, double element_size)
{
    return ceil(slots / 8) + 4 * ceil(slots / PICI_TILE) + element_size * nnz;
}

static double bloom_bytes(double slots, double nnz, double element_size)
{
    double least = INFINITY;

    for (int k = 1; k <= MAX_HASHES; k++) {
        double filter = ceil(k * nnz / log(2) / 8), found = nnz + ldexp(slots - nnz, -k);
        least = fmin(least, filter + ceil(found) * element_size);
    }
    return least;
}

const struct perf_other_format perf_other_formats[] = {
    { "pici", pici_bytes },
    { "bloom", bloom_bytes },
    { NULL, NULL },
};
