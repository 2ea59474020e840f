/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_NET_HALVES_H
#define SAR_NET_HALVES_H

#include "net/net.h"
#include "tensor/shape.h"

/** MPI's handle of an op on floats of 16 bits, which MPI knows as some type of 2 bytes. It computes what the
 * kernels do. Not for other bases, nor for ops that have no kernels for these. */
MPI_Op sar_half_op(enum sar_base base, enum sar_op op);

/** Create and free these handles; once in a process, local. */
enum sar_status sar_halves_setup(void);
void sar_halves_cleanup(void);

#endif
