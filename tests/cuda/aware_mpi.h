/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI that is aware of CUDA, over the runtime that stands in for CUDA's: messages from and to device
 * memory go straight there. Over CUDA's own it is whatever MPI there is. */

#ifndef AWARE_MPI_H
#define AWARE_MPI_H

#include <stdbool.h>

/** Whether it says that it is aware; true at the beginning. */
extern bool aware_says_so;

/** Whether it is; MPI's own function says no more. */
int MPIX_Query_cuda_support(void);

/** Messages, and bytes in them, that this rank has sent from device memory. */
extern long aware_messages, aware_bytes;

/** Called for each piece of a message, which it may replace by another or shorten. NULL at the beginning. */
extern const void *(*aware_spoil)(const void *piece, int *bytes, bool from_device);

#endif
