/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics of calls, and the report of the preload library. */

#ifndef SAR_PRELOAD_STATS_H
#define SAR_PRELOAD_STATS_H

#include <stdio.h>

#include "mpix_sparse.h"
#include "preload/policy.h"

/** Kind of call. */
enum sar_stats_kind { SAR_STATS_BLOCKING, SAR_STATS_NONBLOCKING, SAR_STATS_PERSISTENT, SAR_STATS_KINDS };

/** Statistics of one call. */
struct sar_stats_call {
    enum sar_stats_kind kind;
    struct sar_preload_key key;
    int ranks;
    bool sampled;                      /**< the call was probed */
    bool taken;                        /**< the library ran the call */
    double sample_seconds;             /**< time of the probe on this rank */
    double seconds;                    /**< time of the call after the probe; 0 for calls that do not block */
    double density;                    /**< negative if unknown */
    char scheme[MPIX_SPARSE_NAME_MAX]; /**< scheme that the library ran, or "" */
    double predicted;                  /**< price of the scheme in seconds */
};

/** One row of the report: calls with equal kind, key and number of ranks. */
struct sar_stats_row {
    struct sar_stats_call last;     /**< kind, key, ranks; scheme and price of the library's last call */
    uint64_t plain, taken, samples; /**< calls that MPI ran, that the library ran, that were probed */
    double plain_seconds, taken_seconds, sample_seconds;
    double least_plain_seconds; /**< of the fastest call that MPI ran */
    double density;             /**< sum over density_count calls */
    uint64_t density_count;
    struct sar_stats_row *next;
};

/** Adds a call to its row. Drops the call if out of memory. Not thread-safe. */
void sar_stats_add(struct sar_stats_row **rows, const struct sar_stats_call *stats);

/** Writes the report.
 * @param others  calls that cannot gain */
void sar_stats_write(FILE *file, const struct sar_stats_row *rows, uint64_t others);

/** Frees all rows. */
void sar_stats_free(struct sar_stats_row **rows);

#endif
