/* SPDX-License-Identifier: BSD-3-Clause */
/* Begin and end of a broadcast: its trace spans, its report, and a line in the log of the root. */

#ifndef SAR_CORE_BCAST_REPORT_H
#define SAR_CORE_BCAST_REPORT_H

#include "core/bcast_engine.h"

/** Begins a call: frees the memory of the previous one, and takes the time. Local. */
void sar_bcast_open(struct sar_bcast *b);

/** Ends a call. Reports it for MPIX_Sparse_get_report if it has succeeded. Local. */
void sar_bcast_close(struct sar_bcast *b);

#endif
