/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_MPI_EXT_FORTRAN_IN_PLACE_H
#define SAR_MPI_EXT_FORTRAN_IN_PLACE_H

/** MPI_IN_PLACE where `address` is that of mpi_f08's MPI_IN_PLACE, else the address itself. */
void *sar_buffer_f08(void *address);

/** The same with the MPI_IN_PLACE of `use mpi` and mpif.h. */
void *sar_buffer_mpif(void *address);

#endif
