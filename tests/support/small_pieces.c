/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked into a test: small vectors are split over threads, too. MPIX_SPARSE_THREADS is 3 unless it is set.
 * Calls are slower, so that fewer cases run. */

#include <stdlib.h>

#include "base/parallel.h"

enum { BYTES = 64 };

__attribute__((constructor)) static void split_small_vectors(void)
{
    sar_parallel_piece_bytes = BYTES;
    setenv("MPIX_SPARSE_THREADS", "3", 0);
    setenv("SAR_TEST_SLOWNESS", "24", 0);
}
