/* SPDX-License-Identifier: BSD-3-Clause */
/* Fortran's MPI_IN_PLACE is a variable, and where it is differs between MPIs and between their bindings. So
 * Fortran code tells the addresses once, and no name of any MPI's inside is needed. */

#include "mpi_ext/fortran/in_place.h"

#include <mpi.h>
#include <pthread.h>

enum { F08, MPIF };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *in_place[2];

/* In tell.f90: each calls the one below it. */
void sar_fortran_tell_f08(void);
void sar_fortran_tell_mpif(void);

void sar_fortran_told_f08(void *variable)
{
    in_place[F08] = variable;
}

void sar_fortran_told_mpif(void *variable)
{
    in_place[MPIF] = variable;
}

static void learn(void)
{
    sar_fortran_tell_f08();
    sar_fortran_tell_mpif();
}

static void *translate(void *address, int binding)
{
    pthread_once(&once, learn);
    return address == in_place[binding] ? MPI_IN_PLACE : address;
}

void *sar_buffer_f08(void *address)
{
    return translate(address, F08);
}

void *sar_buffer_mpif(void *address)
{
    return translate(address, MPIF);
}
