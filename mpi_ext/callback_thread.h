/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads in which CUDA's callbacks make their calls. Functions of the host that CUDA calls
 * (cudaLaunchHostFunc) may not call CUDA, but an MPI that takes device memory asks CUDA about its buffers. */

#ifndef SAR_MPI_EXT_CALLBACK_THREAD_H
#define SAR_MPI_EXT_CALLBACK_THREAD_H

/** Calls function(argument) in another thread, and returns after it. Each caller has a thread of its own for
 * that time. Where no thread can be made, the calling thread does it. Local. */
void sar_callback_thread_run(void (*function)(void *argument), void *argument);

/** Ends the threads. No function may run. */
void sar_callback_threads_stop(void);

#endif
