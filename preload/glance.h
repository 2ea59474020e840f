/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_PRELOAD_GLANCE_H
#define SAR_PRELOAD_GLANCE_H

#include <mpi.h>

#include "preload/shapes.h"

/** Density of this rank's vector, from a few of its elements. Local. */
double sar_glance_here(const void *buf, const struct sar_shape_key *key);

/** Mean density of the vectors of all ranks, the same on all of them; 1 where MPI fails. Collective: one
 * MPI_Allreduce of two numbers.
 * @param[in,out] can_pay  whether this rank can; whether all can */
double sar_glance(const void *buf, const struct sar_shape_key *key, MPI_Comm comm, int ranks, bool *can_pay);

#endif
