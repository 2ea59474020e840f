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

#endif
