/* SPDX-License-Identifier: BSD-3-Clause */
/* A CUDA-aware MPI over the fake CUDA runtime: messages from and to device memory need no copy. Over the real
 * runtime, the installed MPI is used. */

#ifndef AWARE_MPI_H
#define AWARE_MPI_H

#include <stdbool.h>

/** Whether MPI claims to be CUDA-aware; initially true. */
extern bool aware_claimed;

/** Returns whether MPI claims to be CUDA-aware; MPI's own function only reports its build. */
int MPIX_Query_cuda_support(void);

/** Messages that this rank has sent from device memory, and their bytes. */
extern long aware_messages, aware_bytes;

/** Called for each piece of a message, to replace or shorten it. Initially NULL. */
extern const void *(*aware_corrupt)(const void *piece, int *bytes, bool from_device);

#endif
