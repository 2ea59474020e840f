/* SPDX-License-Identifier: BSD-3-Clause */
/* The C side of the module's plans; f08.c says how arguments come. */

#include <mpix_sparse.h>

#include "mpi_ext/fortran/descriptor.h"

void mpix_sparse_allreduce_init_f08(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Count *count,
                                    MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm, MPI_Fint *info,
                                    MPIX_Sparse_plan *plan, int *ierror)
{
    sar_give(ierror, MPIX_Sparse_allreduce_init(sar_buffer_of(sendbuf), sar_buffer_of(recvbuf), *count,
                                                MPI_Type_f2c(*datatype), MPI_Op_f2c(*op), MPI_Comm_f2c(*comm),
                                                MPI_Info_f2c(*info), plan));
}

void mpix_sparse_allreduce_coo_init_f08(MPI_Fint *indextype, MPI_Count *count, MPI_Fint *datatype,
                                        MPI_Fint *op, MPI_Fint *comm, MPI_Fint *info, MPIX_Sparse_plan *plan,
                                        int *ierror)
{
    sar_give(ierror,
             MPIX_Sparse_allreduce_coo_init(MPI_Type_f2c(*indextype), *count, MPI_Type_f2c(*datatype),
                                            MPI_Op_f2c(*op), MPI_Comm_f2c(*comm), MPI_Info_f2c(*info), plan));
}

static int start(MPIX_Sparse_plan plan, MPI_Fint *request)
{
    MPI_Request started;
    int code = MPIX_Sparse_plan_start(plan, &started);
    if (code == MPI_SUCCESS)
        *request = MPI_Request_c2f(started);
    return code;
}

void mpix_sparse_plan_start_f08(MPIX_Sparse_plan *plan, MPI_Fint *request, int *ierror)
{
    sar_give(ierror, start(*plan, request));
}

void mpix_sparse_plan_start_coo_f08(MPIX_Sparse_plan *plan, CFI_cdesc_t *indices, CFI_cdesc_t *values,
                                    MPI_Count *nnz, MPIX_Sparse_result *result, MPI_Fint *request,
                                    int *ierror)
{
    MPI_Request started;
    int code = MPIX_Sparse_plan_start_coo(*plan, sar_buffer_of(indices), sar_buffer_of(values), *nnz, result,
                                          &started);
    if (code == MPI_SUCCESS)
        *request = MPI_Request_c2f(started);
    sar_give(ierror, code);
}

/* One by one, as C does, for there may be no room for C's requests. */
void mpix_sparse_plan_start_all_f08(int *n, MPIX_Sparse_plan *plans, MPI_Fint *requests, int *ierror)
{
    int code = MPI_SUCCESS;
    for (int i = 0; i < *n && code == MPI_SUCCESS; i++)
        code = start(plans[i], &requests[i]);
    sar_give(ierror, code);
}

void mpix_sparse_plan_free_f08(MPIX_Sparse_plan *plan, int *ierror)
{
    sar_give(ierror, MPIX_Sparse_plan_free(plan));
}
