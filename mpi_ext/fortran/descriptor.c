/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the module with array arguments, which are passed by descriptor. bindings.h describes the
 * other arguments. */

#include <ISO_Fortran_binding.h>
#include <stdbool.h>

#include "mpi_ext/fortran/bindings.h"

/* Replaces CFI_is_contiguous, which rejects a dimension of one element with another stride. The last extent
 * of an assumed-size array is -1. */
static bool is_contiguous(const CFI_cdesc_t *array)
{
    CFI_index_t stride = (CFI_index_t)array->elem_len;
    for (int i = 0; i < array->rank; i++) {
        if (array->dim[i].extent > 1 && array->dim[i].sm != stride)
            return false;
        stride *= array->dim[i].extent;
    }
    return true;
}

/* A copy of a strided section would not outlive this function, but a nonblocking call needs it until its
 * end. So a strided section is passed as MPIX_SPARSE_STRIDED, which is an error on all ranks. */
static void *address_of(const CFI_cdesc_t *array)
{
    return is_contiguous(array) ? array->base_addr : MPIX_SPARSE_STRIDED;
}

void pmpix_sparse_allreduce_f08(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Count *count,
                                MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm, MPI_Fint *ierror)
{
    pmpix_sparse_allreduce_(address_of(sendbuf), address_of(recvbuf), count, datatype, op, comm, ierror);
}

void pmpix_isparse_allreduce_f08(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Count *count,
                                 MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm, MPI_Fint *request,
                                 MPI_Fint *ierror)
{
    pmpix_isparse_allreduce_(address_of(sendbuf), address_of(recvbuf), count, datatype, op, comm, request,
                             ierror);
}

void pmpix_sparse_allreduce_enqueue_f08(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Count *count,
                                        MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm, void **stream,
                                        MPI_Fint *ierror)
{
    pmpix_sparse_allreduce_enqueue_(address_of(sendbuf), address_of(recvbuf), count, datatype, op, comm,
                                    stream, ierror);
}

void pmpix_sparse_allreduce_coo_f08(CFI_cdesc_t *indices, CFI_cdesc_t *values, MPI_Count *nnz,
                                    MPI_Fint *indextype, MPI_Count *count, MPI_Fint *datatype, MPI_Fint *op,
                                    MPI_Fint *comm, MPIX_Sparse_result *result, MPI_Fint *ierror)
{
    pmpix_sparse_allreduce_coo_(address_of(indices), address_of(values), nnz, indextype, count, datatype, op,
                                comm, result, ierror);
}

void pmpix_isparse_allreduce_coo_f08(CFI_cdesc_t *indices, CFI_cdesc_t *values, MPI_Count *nnz,
                                     MPI_Fint *indextype, MPI_Count *count, MPI_Fint *datatype, MPI_Fint *op,
                                     MPI_Fint *comm, MPIX_Sparse_result *result, MPI_Fint *request,
                                     MPI_Fint *ierror)
{
    pmpix_isparse_allreduce_coo_(address_of(indices), address_of(values), nnz, indextype, count, datatype, op,
                                 comm, result, request, ierror);
}

void pmpix_sparse_reduce_scatter_f08(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Count *recvcount,
                                     MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm, MPI_Fint *ierror)
{
    pmpix_sparse_reduce_scatter_(address_of(sendbuf), address_of(recvbuf), recvcount, datatype, op, comm,
                                 ierror);
}

void pmpix_isparse_reduce_scatter_f08(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Count *recvcount,
                                      MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm, MPI_Fint *request,
                                      MPI_Fint *ierror)
{
    pmpix_isparse_reduce_scatter_(address_of(sendbuf), address_of(recvbuf), recvcount, datatype, op, comm,
                                  request, ierror);
}

void pmpix_sparse_reduce_scatter_init_f08(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Count *recvcount,
                                          MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm, MPI_Fint *info,
                                          MPIX_Sparse_plan *plan, MPI_Fint *ierror)
{
    pmpix_sparse_reduce_scatter_init_(address_of(sendbuf), address_of(recvbuf), recvcount, datatype, op, comm,
                                      info, plan, ierror);
}

void pmpix_sparse_reduce_scatter_coo_f08(CFI_cdesc_t *indices, CFI_cdesc_t *values, MPI_Count *nnz,
                                         MPI_Fint *indextype, MPI_Count *count, MPI_Count *block,
                                         MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm,
                                         MPIX_Sparse_result *result, MPI_Fint *ierror)
{
    pmpix_sparse_reduce_scatter_coo_(address_of(indices), address_of(values), nnz, indextype, count, block,
                                     datatype, op, comm, result, ierror);
}

void pmpix_isparse_reduce_scatter_coo_f08(CFI_cdesc_t *indices, CFI_cdesc_t *values, MPI_Count *nnz,
                                          MPI_Fint *indextype, MPI_Count *count, MPI_Count *block,
                                          MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm,
                                          MPIX_Sparse_result *result, MPI_Fint *request, MPI_Fint *ierror)
{
    pmpix_isparse_reduce_scatter_coo_(address_of(indices), address_of(values), nnz, indextype, count, block,
                                      datatype, op, comm, result, request, ierror);
}

void pmpix_sparse_allgather_coo_f08(CFI_cdesc_t *indices, CFI_cdesc_t *values, MPI_Count *nnz,
                                    MPI_Fint *indextype, MPI_Count *count, MPI_Fint *datatype, MPI_Fint *comm,
                                    MPIX_Sparse_result *result, MPI_Fint *ierror)
{
    pmpix_sparse_allgather_coo_(address_of(indices), address_of(values), nnz, indextype, count, datatype,
                                comm, result, ierror);
}

void pmpix_isparse_allgather_coo_f08(CFI_cdesc_t *indices, CFI_cdesc_t *values, MPI_Count *nnz,
                                     MPI_Fint *indextype, MPI_Count *count, MPI_Fint *datatype,
                                     MPI_Fint *comm, MPIX_Sparse_result *result, MPI_Fint *request,
                                     MPI_Fint *ierror)
{
    pmpix_isparse_allgather_coo_(address_of(indices), address_of(values), nnz, indextype, count, datatype,
                                 comm, result, request, ierror);
}

void pmpix_sparse_bcast_delta_f08(CFI_cdesc_t *old_version, CFI_cdesc_t *new_version, MPI_Count *count,
                                  MPI_Fint *datatype, MPI_Fint *root, MPI_Fint *comm, MPI_Fint *ierror)
{
    pmpix_sparse_bcast_delta_(address_of(old_version), address_of(new_version), count, datatype, root, comm,
                              ierror);
}

void pmpix_sparse_bcast_coo_f08(CFI_cdesc_t *indices, CFI_cdesc_t *values, MPI_Count *nnz,
                                MPI_Fint *indextype, MPI_Count *count, MPI_Fint *datatype, MPI_Fint *root,
                                MPI_Fint *comm, MPIX_Sparse_result *result, MPI_Fint *ierror)
{
    pmpix_sparse_bcast_coo_(address_of(indices), address_of(values), nnz, indextype, count, datatype, root,
                            comm, result, ierror);
}

void pmpix_sparse_allreduce_init_f08(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Count *count,
                                     MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm, MPI_Fint *info,
                                     MPIX_Sparse_plan *plan, MPI_Fint *ierror)
{
    pmpix_sparse_allreduce_init_(address_of(sendbuf), address_of(recvbuf), count, datatype, op, comm, info,
                                 plan, ierror);
}

void pmpix_sparse_plan_start_coo_f08(MPIX_Sparse_plan *plan, CFI_cdesc_t *indices, CFI_cdesc_t *values,
                                     MPI_Count *nnz, MPIX_Sparse_result *result, MPI_Fint *request,
                                     MPI_Fint *ierror)
{
    pmpix_sparse_plan_start_coo_(plan, address_of(indices), address_of(values), nnz, result, request, ierror);
}

void pmpix_sparse_result_dense_f08(MPIX_Sparse_result *result, CFI_cdesc_t *recvbuf, MPI_Fint *ierror)
{
    pmpix_sparse_result_dense_(result, address_of(recvbuf), ierror);
}

void pmpix_sparse_profile_f08(CFI_cdesc_t *buf, MPI_Count *count, MPI_Fint *datatype, MPI_Fint *comm,
                              MPIX_Sparse_profile_t *profile, MPI_Fint *ierror)
{
    pmpix_sparse_profile_(address_of(buf), count, datatype, comm, profile, ierror);
}

void pmpix_sparse_topk_threshold_f08(CFI_cdesc_t *buf, MPI_Count *count, MPI_Fint *datatype, double *ratio,
                                     double *sample, MPI_Fint *seed, MPI_Fint *comm, double *threshold,
                                     MPI_Fint *ierror)
{
    pmpix_sparse_topk_threshold_(address_of(buf), count, datatype, ratio, sample, seed, comm, threshold,
                                 ierror);
}

void pmpix_sparse_topk_select_f08(CFI_cdesc_t *buf, MPI_Count *count, MPI_Fint *datatype, double *threshold,
                                  MPI_Fint *comm, MPI_Fint *indextype, MPI_Count *capacity,
                                  CFI_cdesc_t *indices, CFI_cdesc_t *values, MPI_Count *nnz, MPI_Fint *ierror)
{
    pmpix_sparse_topk_select_(address_of(buf), count, datatype, threshold, comm, indextype, capacity,
                              address_of(indices), address_of(values), nnz, ierror);
}

void pmpix_sparse_dgc_step_f08(CFI_cdesc_t *gradient, CFI_cdesc_t *velocity, CFI_cdesc_t *residual,
                               MPI_Count *count, MPI_Fint *datatype, MPIX_Sparse_dgc_t *how, MPI_Fint *comm,
                               MPI_Fint *indextype, MPI_Count *capacity, CFI_cdesc_t *indices,
                               CFI_cdesc_t *values, MPI_Count *nnz, MPI_Fint *ierror)
{
    pmpix_sparse_dgc_step_(address_of(gradient), address_of(velocity), address_of(residual), count, datatype,
                           how, comm, indextype, capacity, address_of(indices), address_of(values), nnz,
                           ierror);
}

#pragma weak mpix_sparse_allreduce_f08 = pmpix_sparse_allreduce_f08
#pragma weak mpix_isparse_allreduce_f08 = pmpix_isparse_allreduce_f08
#pragma weak mpix_sparse_allreduce_enqueue_f08 = pmpix_sparse_allreduce_enqueue_f08
#pragma weak mpix_sparse_allreduce_coo_f08 = pmpix_sparse_allreduce_coo_f08
#pragma weak mpix_isparse_allreduce_coo_f08 = pmpix_isparse_allreduce_coo_f08
#pragma weak mpix_sparse_allreduce_init_f08 = pmpix_sparse_allreduce_init_f08
#pragma weak mpix_sparse_plan_start_coo_f08 = pmpix_sparse_plan_start_coo_f08
#pragma weak mpix_sparse_result_dense_f08 = pmpix_sparse_result_dense_f08
#pragma weak mpix_sparse_profile_f08 = pmpix_sparse_profile_f08
#pragma weak mpix_sparse_reduce_scatter_f08 = pmpix_sparse_reduce_scatter_f08
#pragma weak mpix_isparse_reduce_scatter_f08 = pmpix_isparse_reduce_scatter_f08
#pragma weak mpix_sparse_reduce_scatter_init_f08 = pmpix_sparse_reduce_scatter_init_f08
#pragma weak mpix_sparse_reduce_scatter_coo_f08 = pmpix_sparse_reduce_scatter_coo_f08
#pragma weak mpix_isparse_reduce_scatter_coo_f08 = pmpix_isparse_reduce_scatter_coo_f08
#pragma weak mpix_sparse_allgather_coo_f08 = pmpix_sparse_allgather_coo_f08
#pragma weak mpix_isparse_allgather_coo_f08 = pmpix_isparse_allgather_coo_f08
#pragma weak mpix_sparse_bcast_delta_f08 = pmpix_sparse_bcast_delta_f08
#pragma weak mpix_sparse_bcast_coo_f08 = pmpix_sparse_bcast_coo_f08
#pragma weak mpix_sparse_topk_threshold_f08 = pmpix_sparse_topk_threshold_f08
#pragma weak mpix_sparse_topk_select_f08 = pmpix_sparse_topk_select_f08
#pragma weak mpix_sparse_dgc_step_f08 = pmpix_sparse_dgc_step_f08
