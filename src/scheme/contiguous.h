/* SPDX-License-Identifier: BSD-3-Clause */
/* Contiguous parts of the vector, one a rank: rank r's is [bounds[r], bounds[r + 1]). */

#ifndef SAR_SCHEME_CONTIGUOUS_H
#define SAR_SCHEME_CONTIGUOUS_H

#include "scheme/scheme.h"

/** Equal parts. */
struct sar_map sar_contiguous_map(const struct sar_agreed *agreed);

/** The share that the fullest of them is expected to have of a rank's elements. */
double sar_contiguous_share(const struct sar_agreed *agreed);

/** The same of the union of k ranks, which is less skewed: where elements stand close, ranks have the same
 * ones. */
double sar_contiguous_union_share(const struct sar_agreed *agreed, double k);

/** The bounds of such a map. */
enum sar_status sar_contiguous_bounds(struct sar_request *request, const struct sar_map *map,
                                      const uint64_t **bounds);

/** Layout of messages about a rank's part: indices count from its beginning. */
struct sar_layout sar_contiguous_layout(const struct sar_request *request, const uint64_t *bounds, int rank);

/** Split the input at the bounds. Indices count from the beginning of each part; values stay where they
 * are. */
enum sar_status sar_contiguous_split(struct sar_request *request, const uint64_t *bounds,
                                     struct sar_run parts[]);

/** Deliver the parts one behind the other. */
enum sar_status sar_contiguous_deliver(struct sar_request *request, const uint64_t *bounds,
                                       const struct sar_run parts[]);

#endif
