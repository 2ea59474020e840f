/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_MPI_EXT_FORTRAN_DESCRIPTOR_H
#define SAR_MPI_EXT_FORTRAN_DESCRIPTOR_H

#include <ISO_Fortran_binding.h>

/** What to pass to C for an array of the module: its address, MPI_IN_PLACE, or MPIX_SPARSE_STRIDED. */
void *sar_buffer_of(const CFI_cdesc_t *array);

/** Set ierror unless it is absent. */
void sar_give(int *ierror, int code);

#endif
