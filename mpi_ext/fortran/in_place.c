/* SPDX-License-Identifier: BSD-3-Clause */
/* Fortran's MPI_IN_PLACE is a variable, and where it is differs between MPIs and between their bindings. So
 * Fortran code tells the addresses once, and no name of any MPI's inside is needed. */

#include "mpi_ext/fortran/in_place.h"

#include <mpi.h>
#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *of_f08, *of_mpif;

/* In tell.f90: each calls the one below it. */
void sar_fortran_tell_f08(void);
void sar_fortran_tell_mpif(void);

void sar_fortran_told_f08(void *variable)
{
    of_f08 = variable;
}

void sar_fortran_told_mpif(void *variable)
{
    of_mpif = variable;
}

static void learn(void)
{
    sar_fortran_tell_f08();
    sar_fortran_tell_mpif();
}

void *sar_fortran_buffer(void *address)
{
    pthread_once(&once, learn);
    return address == of_f08 || address == of_mpif ? MPI_IN_PLACE : address;
}
