/* SPDX-License-Identifier: BSD-3-Clause */
/* What looks and does not reduce, for Fortran; address.h says how arguments come. */

#include <string.h>

#include "mpi_ext/fortran/address.h"
#include "mpi_ext/fortran/in_place.h"

void pmpix_sparse_comm_set_info_(MPI_Fint *comm, MPI_Fint *info, MPI_Fint *ierror)
{
    sar_fortran_give(ierror, PMPIX_Sparse_comm_set_info(MPI_Comm_f2c(*comm), MPI_Info_f2c(*info)));
}

void pmpix_sparse_comm_get_info_(MPI_Fint *comm, MPI_Fint *info_used, MPI_Fint *ierror)
{
    MPI_Info used = MPI_INFO_NULL;
    int code = PMPIX_Sparse_comm_get_info(MPI_Comm_f2c(*comm), &used);
    if (code == MPI_SUCCESS)
        *info_used = MPI_Info_c2f(used);
    sar_fortran_give(ierror, code);
}

void pmpix_sparse_profile_(void *buf, MPI_Count *count, MPI_Fint *datatype, MPI_Fint *comm,
                           MPIX_Sparse_profile_t *profile, MPI_Fint *ierror)
{
    int code = PMPIX_Sparse_profile(sar_fortran_buffer(buf), *count, MPI_Type_f2c(*datatype),
                                    MPI_Comm_f2c(*comm), profile);
    sar_fortran_give(ierror, code);
}

/* As Fortran ends its texts. */
static void pad(char *text, size_t room)
{
    size_t used = strnlen(text, room);
    memset(text + used, ' ', room - used);
}

void pmpix_sparse_get_report_(MPI_Fint *comm, MPIX_Sparse_report_t *report, MPI_Fint *ierror)
{
    int code = PMPIX_Sparse_get_report(MPI_Comm_f2c(*comm), report);
    if (code == MPI_SUCCESS) {
        pad(report->scheme, sizeof report->scheme);
        pad(report->choice, sizeof report->choice);
        pad(report->reason, sizeof report->reason);
        pad(report->push_wire, sizeof report->push_wire);
        pad(report->pull_wire, sizeof report->pull_wire);
        pad(report->partition, sizeof report->partition);
    }
    sar_fortran_give(ierror, code);
}

void pmpix_sparse_get_version_(MPI_Fint *version, MPI_Fint *ierror)
{
    sar_fortran_give(ierror, PMPIX_Sparse_get_version(version));
}

#pragma weak mpix_sparse_comm_set_info_ = pmpix_sparse_comm_set_info_
#pragma weak mpix_sparse_comm_get_info_ = pmpix_sparse_comm_get_info_
#pragma weak mpix_sparse_profile_ = pmpix_sparse_profile_
#pragma weak mpix_sparse_get_report_ = pmpix_sparse_get_report_
#pragma weak mpix_sparse_get_version_ = pmpix_sparse_get_version_
