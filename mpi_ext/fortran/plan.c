/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans for Fortran; address.h says how arguments come. */

#include <stdlib.h>

#include "mpi_ext/fortran/address.h"
#include "mpi_ext/fortran/in_place.h"

void pmpix_sparse_allreduce_init_(void *sendbuf, void *recvbuf, MPI_Count *count, MPI_Fint *datatype,
                                  MPI_Fint *op, MPI_Fint *comm, MPI_Fint *info, MPIX_Sparse_plan *plan,
                                  MPI_Fint *ierror)
{
    int code = PMPIX_Sparse_allreduce_init(sar_fortran_buffer(sendbuf), sar_fortran_buffer(recvbuf), *count,
                                           MPI_Type_f2c(*datatype), MPI_Op_f2c(*op), MPI_Comm_f2c(*comm),
                                           MPI_Info_f2c(*info), plan);
    sar_fortran_give(ierror, code);
}

void pmpix_sparse_allreduce_coo_init_(MPI_Fint *indextype, MPI_Count *count, MPI_Fint *datatype, MPI_Fint *op,
                                      MPI_Fint *comm, MPI_Fint *info, MPIX_Sparse_plan *plan,
                                      MPI_Fint *ierror)
{
    int code =
        PMPIX_Sparse_allreduce_coo_init(MPI_Type_f2c(*indextype), *count, MPI_Type_f2c(*datatype),
                                        MPI_Op_f2c(*op), MPI_Comm_f2c(*comm), MPI_Info_f2c(*info), plan);
    sar_fortran_give(ierror, code);
}

void pmpix_sparse_plan_start_(MPIX_Sparse_plan *plan, MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request started = MPI_REQUEST_NULL;
    int code = PMPIX_Sparse_plan_start(*plan, &started);
    sar_fortran_give_request(request, started, ierror, code);
}

void pmpix_sparse_plan_start_coo_(MPIX_Sparse_plan *plan, void *indices, void *values, MPI_Count *nnz,
                                  MPIX_Sparse_result *result, MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request started = MPI_REQUEST_NULL;
    int code = PMPIX_Sparse_plan_start_coo(*plan, sar_fortran_buffer(indices), sar_fortran_buffer(values),
                                           *nnz, result, &started);
    sar_fortran_give_request(request, started, ierror, code);
}

/* C's requests may need more room than Fortran's. */
void pmpix_sparse_plan_start_all_(MPI_Fint *n, MPIX_Sparse_plan *plans, MPI_Fint *requests, MPI_Fint *ierror)
{
    size_t some = *n > 0 ? (size_t)*n : 0;
    MPI_Request *started = malloc((some + 1) * sizeof *started);
    int code = started == NULL ? MPI_ERR_NO_MEM : PMPIX_Sparse_plan_start_all(*n, plans, started);
    for (size_t i = 0; i < some && code == MPI_SUCCESS; i++)
        requests[i] = MPI_Request_c2f(started[i]);
    free(started);
    sar_fortran_give(ierror, code);
}

void pmpix_sparse_plan_free_(MPIX_Sparse_plan *plan, MPI_Fint *ierror)
{
    sar_fortran_give(ierror, PMPIX_Sparse_plan_free(plan));
}

#pragma weak mpix_sparse_allreduce_init_ = pmpix_sparse_allreduce_init_
#pragma weak mpix_sparse_allreduce_coo_init_ = pmpix_sparse_allreduce_coo_init_
#pragma weak mpix_sparse_plan_start_ = pmpix_sparse_plan_start_
#pragma weak mpix_sparse_plan_start_coo_ = pmpix_sparse_plan_start_coo_
#pragma weak mpix_sparse_plan_start_all_ = pmpix_sparse_plan_start_all_
#pragma weak mpix_sparse_plan_free_ = pmpix_sparse_plan_free_
