/* SPDX-License-Identifier: BSD-3-Clause */
/* The optional thread that makes progress on active calls of all communicators. It exists after the first
 * call that needs it, and sleeps while no call is active. All functions are local. */

#ifndef SAR_MPI_EXT_PROGRESS_THREAD_H
#define SAR_MPI_EXT_PROGRESS_THREAD_H

#include "base/status.h"

/** Start the thread unless it runs. Returns SAR_NO_THREADS if MPI was not initialized with
 * MPI_THREAD_MULTIPLE, and SAR_NO_MEMORY if the thread cannot be created. */
enum sar_status sar_progress_thread_ensure(void);

/** Wake the thread, if it exists, after a call became active. */
void sar_progress_thread_wake(void);

/** End and join the thread, if it exists. No call may be active. */
void sar_progress_thread_stop(void);

#endif
