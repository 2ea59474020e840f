/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of `shared` have in common; for these alone. */

#ifndef SAR_SCHEME_SHARED_PARTS_H
#define SAR_SCHEME_SHARED_PARTS_H

#include "scheme/shared.h"

/** The shelf that this rank's input lies on. */
struct sar_shelf *sar_shared_shelf(const struct sar_request *request);

/** Put the input there, if it is not there, and note on the card where that is. */
enum sar_status sar_shared_shelve(struct sar_request *request, struct sar_card *card);

/** Make the input of the caller's dense buffer, there. */
enum sar_status sar_shared_compact(struct sar_request *request, struct sar_card *card);

/** Copy a run to where all ranks are to read it: past the caches where some are far. Then a line comes from
 * memory sooner than from the caches of another rank, and need not be fetched from there to be written. */
void sar_shared_put(const struct sar_request *request, const struct sar_shape *shape,
                    const struct sar_run *from, struct sar_run *to);

/** Whether each rank had better reduce all than its part, where ranks have nnz elements each on average: a
 * decision of all ranks alike.
 * @param shape  agreed->shape, or the one that takes a -0.0 into account */
bool sar_shared_reduces_all(const struct sar_agreed *agreed, const struct sar_shape *shape, double nnz);

/** What the cost model foresees. */
double sar_shared_seconds(const struct sar_agreed *agreed);

/** Reduce what all ranks have brought, for this rank; one rank copies. */
enum sar_status sar_shared_reduce_all(struct sar_request *request, const struct sar_run inputs[]);

#endif
