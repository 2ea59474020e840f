/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_MPI_EXT_THREAD_H
#define SAR_MPI_EXT_THREAD_H

#include "base/status.h"

/** See to it that a thread makes progress. SAR_NO_THREADS where MPI was not started with
 * MPI_THREAD_MULTIPLE. */
enum sar_status sar_thread_need(void);

/** Tell the thread, if there is one, that a call is in flight. */
void sar_thread_wake(void);

/** End the thread. Calls in flight are done. */
void sar_thread_end(void);

#endif
