/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked into a test: the ways of large vectors are taken by small ones. They are split over threads, cut
 * into segments by their quantiles, and reduced in flight. Unless MPIX_SPARSE_THREADS is set, a rank has 3
 * threads, or 8 if MPICH has started two. Calls are slower, so that fewer cases run. */

#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "scheme/engine/owner.h"

enum { BYTES = 64 };

__attribute__((constructor)) static void split_small_vectors(void)
{
    sar_parallel_piece_bytes = BYTES;
    sar_quantile_min_nnz = SAR_QUANTILE_BINS;
    sar_owner_always_in_flight = true;
    const char *ranks = getenv("PMI_SIZE");
    bool many = ranks != NULL && strcmp(ranks, "2") == 0 && getenv("SAR_TEST_FEW_THREADS") == NULL;
    setenv("MPIX_SPARSE_THREADS", many ? "8" : "3", 0);
    setenv("SAR_TEST_SLOWNESS", "24", 0);
}
