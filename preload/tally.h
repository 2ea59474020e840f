/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_PRELOAD_TALLY_H
#define SAR_PRELOAD_TALLY_H

#include <stdio.h>

#include "mpix_sparse.h"
#include "preload/shapes.h"

/** How a program calls. */
enum sar_how { SAR_BLOCKING, SAR_NONBLOCKING, SAR_PERSISTENT, SAR_HOWS };

/** One call, for the report. */
struct sar_note {
    enum sar_how how;
    struct sar_shape_key key;
    int ranks;
    bool looked;                       /**< all ranks glanced at it */
    bool taken;                        /**< by the library */
    double look_seconds;               /**< of that glance, on this rank */
    double seconds;                    /**< of the call after it; 0 where it does not wait for its end */
    double density;                    /**< negative where nobody has looked */
    char scheme[MPIX_SPARSE_NAME_MAX]; /**< that the library ran, or "" */
    double predicted;                  /**< its price in seconds */
};

/** One row of the report: calls of one shape on communicators with so many ranks. */
struct sar_tally {
    struct sar_note last; /**< what calls have in common; of the last one taken, its scheme and price */
    uint64_t plain, taken, looks;
    double plain_seconds, taken_seconds, look_seconds;
    double density; /**< summed over `known` calls */
    uint64_t known;
    struct sar_tally *next;
};

/** Add a call to its row; without memory for one it is forgotten. Not safe for threads. */
void sar_tally_add(struct sar_tally **rows, const struct sar_note *note);

/** Write the report.
 * @param others  calls that the library has no use for */
void sar_tally_write(FILE *file, const struct sar_tally *rows, uint64_t others);

void sar_tally_free(struct sar_tally **rows);

#endif
