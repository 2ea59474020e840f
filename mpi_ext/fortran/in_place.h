/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_MPI_EXT_FORTRAN_IN_PLACE_H
#define SAR_MPI_EXT_FORTRAN_IN_PLACE_H

/** MPI_IN_PLACE where the address is that of MPI_IN_PLACE in a binding for Fortran, else the address. */
void *sar_fortran_buffer(void *address);

#endif
