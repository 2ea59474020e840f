/* SPDX-License-Identifier: BSD-3-Clause */
/* The collective calls and their results for Fortran; address.h says how arguments come. */

#include "mpi_ext/fortran/address.h"
#include "mpi_ext/fortran/in_place.h"

void pmpix_sparse_allreduce_(void *sendbuf, void *recvbuf, MPI_Count *count, MPI_Fint *datatype, MPI_Fint *op,
                             MPI_Fint *comm, MPI_Fint *ierror)
{
    int code = PMPIX_Sparse_allreduce(sar_fortran_buffer(sendbuf), sar_fortran_buffer(recvbuf), *count,
                                      MPI_Type_f2c(*datatype), MPI_Op_f2c(*op), MPI_Comm_f2c(*comm));
    sar_fortran_give(ierror, code);
}

void pmpix_isparse_allreduce_(void *sendbuf, void *recvbuf, MPI_Count *count, MPI_Fint *datatype,
                              MPI_Fint *op, MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request started = MPI_REQUEST_NULL;
    int code =
        PMPIX_Isparse_allreduce(sar_fortran_buffer(sendbuf), sar_fortran_buffer(recvbuf), *count,
                                MPI_Type_f2c(*datatype), MPI_Op_f2c(*op), MPI_Comm_f2c(*comm), &started);
    sar_fortran_give_request(request, started, ierror, code);
}

void pmpix_sparse_allreduce_enqueue_(void *sendbuf, void *recvbuf, MPI_Count *count, MPI_Fint *datatype,
                                     MPI_Fint *op, MPI_Fint *comm, void **stream, MPI_Fint *ierror)
{
    void *from = sar_fortran_buffer(sendbuf), *to = sar_fortran_buffer(recvbuf);
    int code = PMPIX_Sparse_allreduce_enqueue(from, to, *count, MPI_Type_f2c(*datatype), MPI_Op_f2c(*op),
                                              MPI_Comm_f2c(*comm), *stream);
    sar_fortran_give(ierror, code);
}

void pmpix_sparse_allreduce_coo_(void *indices, void *values, MPI_Count *nnz, MPI_Fint *indextype,
                                 MPI_Count *count, MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm,
                                 MPIX_Sparse_result *result, MPI_Fint *ierror)
{
    int code = PMPIX_Sparse_allreduce_coo(sar_fortran_buffer(indices), sar_fortran_buffer(values), *nnz,
                                          MPI_Type_f2c(*indextype), *count, MPI_Type_f2c(*datatype),
                                          MPI_Op_f2c(*op), MPI_Comm_f2c(*comm), result);
    sar_fortran_give(ierror, code);
}

void pmpix_isparse_allreduce_coo_(void *indices, void *values, MPI_Count *nnz, MPI_Fint *indextype,
                                  MPI_Count *count, MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm,
                                  MPIX_Sparse_result *result, MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request started = MPI_REQUEST_NULL;
    int code = PMPIX_Isparse_allreduce_coo(sar_fortran_buffer(indices), sar_fortran_buffer(values), *nnz,
                                           MPI_Type_f2c(*indextype), *count, MPI_Type_f2c(*datatype),
                                           MPI_Op_f2c(*op), MPI_Comm_f2c(*comm), result, &started);
    sar_fortran_give_request(request, started, ierror, code);
}

void pmpix_sparse_result_get_(MPIX_Sparse_result *result, MPI_Count *nnz, const void **indices,
                              const void **values, MPI_Fint *ierror)
{
    sar_fortran_give(ierror, PMPIX_Sparse_result_get(*result, nnz, indices, values));
}

void pmpix_sparse_result_dense_(MPIX_Sparse_result *result, void *recvbuf, MPI_Fint *ierror)
{
    sar_fortran_give(ierror, PMPIX_Sparse_result_dense(*result, sar_fortran_buffer(recvbuf)));
}

void pmpix_sparse_result_free_(MPIX_Sparse_result *result, MPI_Fint *ierror)
{
    sar_fortran_give(ierror, PMPIX_Sparse_result_free(result));
}

#pragma weak mpix_sparse_allreduce_ = pmpix_sparse_allreduce_
#pragma weak mpix_isparse_allreduce_ = pmpix_isparse_allreduce_
#pragma weak mpix_sparse_allreduce_enqueue_ = pmpix_sparse_allreduce_enqueue_
#pragma weak mpix_sparse_allreduce_coo_ = pmpix_sparse_allreduce_coo_
#pragma weak mpix_isparse_allreduce_coo_ = pmpix_isparse_allreduce_coo_
#pragma weak mpix_sparse_result_get_ = pmpix_sparse_result_get_
#pragma weak mpix_sparse_result_dense_ = pmpix_sparse_result_dense_
#pragma weak mpix_sparse_result_free_ = pmpix_sparse_result_free_
