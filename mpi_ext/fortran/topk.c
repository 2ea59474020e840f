/* SPDX-License-Identifier: BSD-3-Clause */
/* Top-k sparsification for Fortran; address.h says how arguments come. */

#include "mpi_ext/fortran/address.h"
#include "mpi_ext/fortran/in_place.h"

void pmpix_sparse_topk_threshold_(void *buf, MPI_Count *count, MPI_Fint *datatype, double *ratio,
                                  double *sample, MPI_Fint *seed, MPI_Fint *comm, double *threshold,
                                  MPI_Fint *ierror)
{
    int code = PMPIX_Sparse_topk_threshold(sar_fortran_buffer(buf), *count, MPI_Type_f2c(*datatype), *ratio,
                                           *sample, *seed, MPI_Comm_f2c(*comm), threshold);
    sar_fortran_give(ierror, code);
}

void pmpix_sparse_topk_select_(void *buf, MPI_Count *count, MPI_Fint *datatype, double *threshold,
                               MPI_Fint *comm, MPI_Fint *indextype, MPI_Count *capacity, void *indices,
                               void *values, MPI_Count *nnz, MPI_Fint *ierror)
{
    void *to = sar_fortran_buffer(indices), *and_to = sar_fortran_buffer(values);
    int code =
        PMPIX_Sparse_topk_select(sar_fortran_buffer(buf), *count, MPI_Type_f2c(*datatype), *threshold,
                                 MPI_Comm_f2c(*comm), MPI_Type_f2c(*indextype), *capacity, to, and_to, nnz);
    sar_fortran_give(ierror, code);
}

void pmpix_sparse_dgc_step_(void *gradient, void *velocity, void *residual, MPI_Count *count,
                            MPI_Fint *datatype, MPIX_Sparse_dgc_t *how, MPI_Fint *comm, MPI_Fint *indextype,
                            MPI_Count *capacity, void *indices, void *values, MPI_Count *nnz,
                            MPI_Fint *ierror)
{
    void *to = sar_fortran_buffer(indices), *and_to = sar_fortran_buffer(values);
    int code =
        PMPIX_Sparse_dgc_step(sar_fortran_buffer(gradient), sar_fortran_buffer(velocity),
                              sar_fortran_buffer(residual), *count, MPI_Type_f2c(*datatype), how,
                              MPI_Comm_f2c(*comm), MPI_Type_f2c(*indextype), *capacity, to, and_to, nnz);
    sar_fortran_give(ierror, code);
}

#pragma weak mpix_sparse_topk_threshold_ = pmpix_sparse_topk_threshold_
#pragma weak mpix_sparse_topk_select_ = pmpix_sparse_topk_select_
#pragma weak mpix_sparse_dgc_step_ = pmpix_sparse_dgc_step_
